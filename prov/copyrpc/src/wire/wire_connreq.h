/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets between a connecting endpoint and a listener (docs/connections.md, section 2).
 *
 *   packet = head (24 B), body, MAC (32 B), back to back on a TCP stream
 * 
 *   0      4     5      6     8       16         24     len-32    len
 *   | magic | ver | type | len | nonce | features | body | MAC     |
 *
 * All fields are little endian. Encoding writes zeros in place of the MAC. Decoding checks
 * everything: reserved bytes must be zero and all lengths must add up, or the whole packet is
 * refused. Pure: no state, no socket, no key.
 *
 * Tested by test/unit/wire/test_wire_connreq.c (golden bytes) and test/fuzz/fuzz_wire_connreq.c.
 */
#ifndef WIRE_WIRE_CONNREQ_H
#define WIRE_WIRE_CONNREQ_H

#include <stddef.h>
#include <stdint.h>

#include "wire/wire_cm.h"

#define WIRE_CONNREQ_MAGIC   0x44435243u /* "CRCD" */
#define WIRE_CONNREQ_VERSION 1u

#define WIRE_CONNREQ_HEAD_LEN 24u
#define WIRE_CONNREQ_LEN_OFF  8u /* first bytes of a packet, enough to know its length */
#define WIRE_CONNREQ_DATA_MAX 512u
#define WIRE_CONNREQ_BARE_LEN (WIRE_CONNREQ_HEAD_LEN + WIRE_CM_MAC_LEN)
/** Body of REQUEST and ACCEPT without the application's data. */
#define WIRE_CONNREQ_SELF_LEN (8u + WIRE_CM_ADDR_LEN + 4u)
#define WIRE_CONNREQ_BODY_MAX (WIRE_CONNREQ_SELF_LEN + WIRE_CONNREQ_DATA_MAX)
#define WIRE_CONNREQ_MAX      (WIRE_CONNREQ_BARE_LEN + WIRE_CONNREQ_BODY_MAX)

enum wire_connreq_type {
	WIRE_CONNREQ_GREET = 1,   /* from the listener: carries the nonce */
	WIRE_CONNREQ_REQUEST = 2, /* from the connecting endpoint: requests a connection */
	WIRE_CONNREQ_ACCEPT = 3,  /* from the listener: accepts */
	WIRE_CONNREQ_REFUSE = 4,  /* from either end: rejects or gives up, with an error */
};

/** Decoded packet. */
struct wire_connreq_pkt {
	enum wire_connreq_type type;
	uint64_t nonce;    /* drawn by the listener for this stream, not 0, in every packet */
	uint64_t features; /* GREET: offered; REQUEST: in use; else 0 */
	uint64_t inc;      /* REQUEST, ACCEPT: incarnation of the sender's endpoint, not 0 */
	struct wire_cm_addr addr; /* REQUEST, ACCEPT: address of the sender's CM endpoint */
	uint32_t err;             /* REFUSE: positive FI_E* */
	uint32_t data_len;        /* length of the application's data; 0 in GREET */
	uint8_t data[WIRE_CONNREQ_DATA_MAX];
};

/**
 * Writes `pkt` to `buf` (WIRE_CONNREQ_MAX bytes). Returns its length, including zeros for the MAC.
 */
size_t wire_connreq_encode(const struct wire_connreq_pkt *pkt, uint8_t *buf);

/**
 * Returns the length of the packet with these first WIRE_CONNREQ_LEN_OFF bytes, at most
 * WIRE_CONNREQ_MAX; 0 if they begin no packet.
 */
size_t wire_connreq_peek_len(const uint8_t *buf);

/**
 * Decodes a packet without checking its MAC. Returns 0, -FI_EINVAL if the bytes are no packet, or
 * -FI_ENOPROTOOPT for a packet of another version.
 */
int wire_connreq_decode(const uint8_t *buf, size_t len, struct wire_connreq_pkt *pkt);

/** Returns the name of a type ("GREET"), or "?" for an unknown one. */
const char *wire_connreq_type_name(enum wire_connreq_type type);

#endif
