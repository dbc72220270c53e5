/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which bytes does a caller exchange with a listener? (docs/connections.md, section 2)
 *
 *   packet = head (24 B), body, MAC (32 B), back to back on a TCP stream
 *
 *   0      4     5      6     8       16         24     len-32    len
 *   | magic | ver | type | len | nonce | features | body | MAC     |
 *
 * Everything is little endian. Encode writes zeros where the MAC belongs. Decode believes nothing: a
 * packet is taken whole or refused whole, reserved bytes must be zero, every length must add up.
 * Pure: no state, no socket, no key.
 *
 * Shown by test/unit/wire/test_wire_connreq.c (golden bytes) and test/fuzz/fuzz_wire_connreq.c.
 */
#ifndef WIRE_CONNREQ_H
#define WIRE_CONNREQ_H

#include <stddef.h>
#include <stdint.h>

#include "wire/wire_cm.h"

#define WIRE_CONNREQ_MAGIC   0x44435243u /* "CRCD" */
#define WIRE_CONNREQ_VERSION 1u

#define WIRE_CONNREQ_HEAD_LEN 24u
#define WIRE_CONNREQ_LEN_OFF  8u /* as many bytes tell the length of a packet */
#define WIRE_CONNREQ_DATA_MAX 512u
#define WIRE_CONNREQ_BARE_LEN (WIRE_CONNREQ_HEAD_LEN + WIRE_CM_MAC_LEN)
#define WIRE_CONNREQ_SELF_LEN (8u + WIRE_CM_ADDR_LEN + 4u) /* body of CALL, ACCEPT without data */
#define WIRE_CONNREQ_MAX      (WIRE_CONNREQ_BARE_LEN + WIRE_CONNREQ_SELF_LEN + WIRE_CONNREQ_DATA_MAX)

enum wire_connreq_type {
	WIRE_CONNREQ_GREET = 1,   /* listener: I am one; use this nonce */
	WIRE_CONNREQ_REQUEST = 2, /* caller: I should like to be connected; this is my endpoint */
	WIRE_CONNREQ_ACCEPT = 3,  /* listener: this is yours */
	WIRE_CONNREQ_REFUSE = 4,  /* either: no, or no more, because */
};

/** A packet, decoded. */
struct wire_connreq_pkt {
	enum wire_connreq_type type;
	uint64_t nonce;    /* drawn by the listener for this stream, not 0, in every packet */
	uint64_t features; /* GREET: offered; CALL: in use; else 0 */
	uint64_t inc;      /* CALL, ACCEPT: incarnation of the sender's endpoint, not 0 */
	struct wire_cm_addr addr; /* CALL, ACCEPT: where the sender's endpoint is */
	uint32_t err;             /* REFUSE: positive FI_E* */
	uint32_t data_len;        /* the application's; 0 in GREET */
	uint8_t data[WIRE_CONNREQ_DATA_MAX];
};

/** Writes `pkt` to `buf` (WIRE_CONNREQ_MAX bytes): its length, zeros for the MAC included. */
size_t wire_connreq_encode(const struct wire_connreq_pkt *pkt, uint8_t *buf);

/**
 * The length of the packet that begins with these WIRE_CONNREQ_LEN_OFF bytes, at most WIRE_CONNREQ_MAX;
 * 0 if none does.
 */
size_t wire_connreq_peek_len(const uint8_t *buf);

/**
 * Reads a packet: 0; -FI_EINVAL if it is none; -FI_ENOPROTOOPT if it is one of another version. The
 * MAC is not looked at.
 */
int wire_connreq_decode(const uint8_t *buf, size_t len, struct wire_connreq_pkt *pkt);

/** "GREET", ...; "?" for a type that there is not. */
const char *wire_connreq_type_name(enum wire_connreq_type type);

#endif
