/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which bytes does a caller exchange with a listener? (docs/dialing.md, section 2)
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
 * Shown by test/unit/wire/test_wire_dial.c (golden bytes) and test/fuzz/fuzz_wire_dial.c.
 */
#ifndef WIRE_DIAL_H
#define WIRE_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "wire/wire_cm.h"

#define WIRE_DIAL_MAGIC   0x44435243u /* "CRCD" */
#define WIRE_DIAL_VERSION 1u

#define WIRE_DIAL_HEAD_LEN 24u
#define WIRE_DIAL_LEN_OFF  8u /* as many bytes tell the length of a packet */
#define WIRE_DIAL_DATA_MAX 512u
#define WIRE_DIAL_BARE_LEN (WIRE_DIAL_HEAD_LEN + WIRE_CM_MAC_LEN)
#define WIRE_DIAL_SELF_LEN (8u + WIRE_CM_ADDR_LEN + 4u) /* body of CALL, ACCEPT without data */
#define WIRE_DIAL_MAX      (WIRE_DIAL_BARE_LEN + WIRE_DIAL_SELF_LEN + WIRE_DIAL_DATA_MAX)

enum wire_dial_type {
	WIRE_DIAL_GREET = 1,  /* listener: I am one; use this nonce */
	WIRE_DIAL_CALL = 2,   /* caller: I should like to be connected; this is my endpoint */
	WIRE_DIAL_ACCEPT = 3, /* listener: this is yours */
	WIRE_DIAL_REFUSE = 4, /* either: no, or no more, because */
};

/** A packet, decoded. */
struct wire_dial_pkt {
	enum wire_dial_type type;
	uint64_t nonce;    /* drawn by the listener for this stream, not 0, in every packet */
	uint64_t features; /* GREET: offered; CALL: in use; else 0 */
	uint64_t inc;      /* CALL, ACCEPT: incarnation of the sender's endpoint, not 0 */
	struct wire_cm_addr addr; /* CALL, ACCEPT: where the sender's endpoint is */
	uint32_t err;             /* REFUSE: positive FI_E* */
	uint32_t data_len;        /* the application's; 0 in GREET */
	uint8_t data[WIRE_DIAL_DATA_MAX];
};

/** Writes `pkt` to `buf` (WIRE_DIAL_MAX bytes): its length, zeros for the MAC included. */
size_t wire_dial_encode(const struct wire_dial_pkt *pkt, uint8_t *buf);

/**
 * The length of the packet that begins with these WIRE_DIAL_LEN_OFF bytes, at most WIRE_DIAL_MAX;
 * 0 if none does.
 */
size_t wire_dial_peek_len(const uint8_t *buf);

/**
 * Reads a packet: 0; -FI_EINVAL if it is none; -FI_ENOPROTOOPT if it is one of another version. The
 * MAC is not looked at.
 */
int wire_dial_decode(const uint8_t *buf, size_t len, struct wire_dial_pkt *pkt);

/** "GREET", ...; "?" for a type that there is not. */
const char *wire_dial_type_name(enum wire_dial_type type);

#endif
