/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which bytes stand in a packet of the handshake? (docs/handshake.md, section 2)
 *
 *   packet = prefix (32 B, the same in every version), features (8 B), body, MAC (32 B)
 *
 *   0      4     5      6     8        16         24         32           40       len-32    len
 *   | magic | ver | type | len | nonce  | src_inc  | dst_inc  | features   | body   | MAC     |
 *
 * Everything is little endian. Encode writes zeros where the MAC belongs; who has a key fills it
 * in. Decode believes nothing: a packet is taken whole or refused whole, reserved bytes must be
 * zero, every length must add up. Pure: no state, no socket, no key.
 *
 * Shown by test/unit/wire/test_wire_cm.c (golden bytes) and test/fuzz/fuzz_wire_cm.c.
 */
#ifndef WIRE_CM_H
#define WIRE_CM_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_CM_MAGIC   0x4D435243u /* "CRCM" */
#define WIRE_CM_VERSION 1u

#define WIRE_CM_PREFIX_LEN 32u
#define WIRE_CM_HEAD_LEN   40u /* prefix and features */
#define WIRE_CM_MAC_LEN    32u
#define WIRE_CM_COOKIE_LEN 16u
#define WIRE_CM_NAME_LEN   32u /* lower-case hexadecimal digits */
#define WIRE_CM_TEXT_MAX   120u
#define WIRE_CM_ENGINE_MAX 64u
#define WIRE_CM_DEV_MAX    512u
#define WIRE_CM_FDS_MAX    4u

/* Every answer to a stranger is at most as long as his question. */
#define WIRE_CM_REQ_LEN     200u
#define WIRE_CM_ACK_LEN     128u
#define WIRE_CM_NAK_MAX     200u
#define WIRE_CM_HELLO_MIN   120u
#define WIRE_CM_HELLO_MAX   696u
#define WIRE_CM_WELCOME_MIN 80u
#define WIRE_CM_WELCOME_MAX 656u
#define WIRE_CM_BARE_LEN    72u /* CROSSED, READY, BYE, PING, PONG, BROKEN */
#define WIRE_CM_MAX         WIRE_CM_HELLO_MAX

enum wire_cm_type {
	WIRE_CM_REQ = 1,     /* datagram: may I? */
	WIRE_CM_ACK = 2,     /* datagram: come here, show this cookie */
	WIRE_CM_NAK = 3,     /* datagram or stream: no, because */
	WIRE_CM_HELLO = 4,   /* cookie, address and half of the end that connects */
	WIRE_CM_WELCOME = 5, /* the other half */
	WIRE_CM_READY = 6,   /* both halves are in place */
	WIRE_CM_CROSSED = 7, /* my attempt towards you wins, or is done already */
	WIRE_CM_BYE = 8,     /* I am closing in good order; datagram: there is no such connection */
	WIRE_CM_PING = 9,    /* datagram: are you there? */
	WIRE_CM_PONG = 10,   /* datagram: yes */
	WIRE_CM_BROKEN = 11, /* the connection failed at my end: what was on its way may be lost */
};

/** The low half of the feature bits may be ignored by who does not know them, the high half not. */
#define WIRE_CM_FEATURES_REQUIRED 0xFFFFFFFF00000000ull

/** Ways to carry messages that an end offers. */
#define WIRE_CM_PATH_SHM 0x1u /* the memory of one host: HELLO on a stream */
#define WIRE_CM_PATH_NIC 0x2u /* RDMA devices; this and the following: HELLO in a datagram */
#define WIRE_CM_PATH_UD  0x4u /* sessions over datagrams of RDMA devices */
#define WIRE_CM_PATH_UDP 0x8u /* sessions over UDP */

struct wire_cm_addr {
	uint8_t family; /* 4 or 6 */
	uint16_t port;  /* host order here; never 0 */
	uint32_t scope; /* IPv6 link-local: interface index of the end that says it; else 0 */
	uint8_t ip[16]; /* IPv4: the first four, the rest zero */
};

struct wire_cm_params {
	uint32_t path; /* the one that it is for: one bit, below 256 */
	uint32_t engine_len;
	uint32_t dev_len;
	uint32_t fd_cnt; /* descriptors that go with the packet */
	uint8_t engine[WIRE_CM_ENGINE_MAX];
	uint8_t dev[WIRE_CM_DEV_MAX];
};

/** A packet, decoded. Only the member that `type` names is set. */
struct wire_cm_pkt {
	enum wire_cm_type type;
	uint64_t nonce;    /* of the attempt: chosen by who asks, not 0, repeated in every packet */
	uint64_t src_inc;  /* incarnation of the sender, not 0 */
	uint64_t dst_inc;  /* of the receiver; 0 in REQ, which does not know it */
	uint64_t features; /* REQ, ACK: offered; HELLO: used; else 0 */
	union {
		struct {
			uint32_t paths;
		} req;
		struct {
			uint8_t cookie[WIRE_CM_COOKIE_LEN];
			char name[WIRE_CM_NAME_LEN]; /* not terminated */
			uint32_t paths;
		} ack;
		struct {
			uint32_t err; /* positive FI_E* */
			char text[WIRE_CM_TEXT_MAX + 1];
		} nak;
		struct {
			uint8_t cookie[WIRE_CM_COOKIE_LEN];
			struct wire_cm_addr addr; /* of the sender: what the cookie was given to */
			struct wire_cm_params params;
		} hello;
		struct {
			struct wire_cm_params params;
		} welcome;
	};
};

/** Writes `pkt` to `buf` (WIRE_CM_MAX bytes): its length, zeros for the MAC included. */
size_t wire_cm_encode(const struct wire_cm_pkt *pkt, uint8_t *buf);

/**
 * Reads a packet: 0; -FI_EINVAL if it is none; -FI_ENOPROTOOPT if it is one of another version
 * (then type, nonce and incarnations are set, and nothing else). The MAC is not looked at.
 */
int wire_cm_decode(const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt);

/** The nonce of the packet that `buf` begins with, or 0: for quotations in ICMP errors. */
uint64_t wire_cm_peek_nonce(const uint8_t *buf, size_t len);

/** "REQ", ...; "?" for a type that there is not. */
const char *wire_cm_type_name(enum wire_cm_type type);

/** Bytes of an address in a packet, and under a MAC. */
#define WIRE_CM_ADDR_LEN 24u
void wire_cm_addr_encode(const struct wire_cm_addr *addr, uint8_t *buf);
int wire_cm_addr_decode(const uint8_t *buf, struct wire_cm_addr *addr);

#endif
