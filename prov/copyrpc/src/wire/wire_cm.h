/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of the handshake (docs/handshake.md, section 2).
 *
 *   packet = prefix (32 B, the same in every version), features (8 B), body, MAC (32 B)
 * 
 *   0      4     5      6     8        16         24         32           40       len-32    len
 *   | magic | ver | type | len | nonce  | src_inc  | dst_inc  | features   | body   | MAC     |
 *
 * All fields are little endian. Encoding writes zeros in place of the MAC; the caller computes it.
 * Decoding checks everything: reserved bytes must be zero and all lengths must add up, or the whole
 * packet is refused. Pure: no state, no socket, no key.
 *
 * Tested by test/unit/wire/test_wire_cm.c (golden bytes) and test/fuzz/fuzz_wire_cm.c.
 */
#ifndef WIRE_WIRE_CM_H
#define WIRE_WIRE_CM_H

#include <stdbool.h>
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
#define WIRE_CM_HOST_MAX   63u /* characters of the name of a host */

/* Limits the reply to an unauthenticated sender to the length of its REQ. */
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
	WIRE_CM_REQ = 1,     /* datagram: requests a handshake */
	WIRE_CM_ACK = 2,     /* datagram: sends the cookie and the name of the stream socket */
	WIRE_CM_NAK = 3,     /* datagram or stream: refuses, with error and text */
	WIRE_CM_HELLO = 4,   /* cookie, address and connection parameters of the connecting end */
	WIRE_CM_WELCOME = 5, /* connection parameters of the other end */
	WIRE_CM_READY = 6,   /* both ends have each other's parameters */
	WIRE_CM_CROSSED =
		7, /* refuses an attempt because the receiver's own attempt wins or has succeeded */
	WIRE_CM_BYE = 8,   /* closes in good order; datagram: the connection does not exist */
	WIRE_CM_PING = 9,  /* datagram: tests whether the peer lives */
	WIRE_CM_PONG = 10, /* datagram: reply to PING */
	WIRE_CM_BROKEN =
		11, /* the connection failed at the sender's end; data in flight may be lost */
};

/** High half of the feature bits: a receiver refuses unknown ones. It ignores unknown low bits. */
#define WIRE_CM_FEATURES_REQUIRED 0xFFFFFFFF00000000ull

/** The parameters of both ends may have an identity. */
#define WIRE_CM_FEATURE_IDENTITY 0x1ull

/**
 * The address in a HELLO datagram is the first one of the sender's name, and the datagram may come
 * from another one of its addresses.
 */
#define WIRE_CM_FEATURE_NAME 0x2ull

/** Connections by RDMA devices may move between queue pairs (docs/mlx5.md, section 6). */
#define WIRE_CM_FEATURE_MOVES 0x4ull

/** Connections may end for a better path (core/core_failback.h). */
#define WIRE_CM_FEATURE_FAILBACK 0x8ull

/** A connection over RDMA devices may have a second one, its rail: ring parameters, feature 1. */
#define WIRE_CM_FEATURE_RAILS 0x10ull

/** A connection may end for one with rings of another size (engine/eng_room.h). */
#define WIRE_CM_FEATURE_ROOM 0x20ull

/** Paths that an end offers. */
#define WIRE_CM_PATH_SHM 0x1u /* shared memory of one host: HELLO on a stream */
#define WIRE_CM_PATH_NIC 0x2u /* RDMA devices; HELLO of this path and those below in a datagram */
#define WIRE_CM_PATH_UD  0x4u /* sessions over datagrams of RDMA devices */
#define WIRE_CM_PATH_UDP 0x8u /* sessions over UDP */

struct wire_cm_addr {
	uint8_t family; /* 4 or 6 */
	uint16_t port;  /* host byte order; never 0 */
	uint32_t scope; /* IPv6 link-local: interface index at the sending end; else 0 */
	uint8_t ip[16]; /* IPv4: first four bytes, the rest zero */
};

/** Identity of the sender, for people: nothing is decided by it. */
struct wire_cm_identity {
	int32_t rank;                    /* -1: unknown */
	uint32_t pid;                    /* below 2^31; 0: unknown */
	char host[WIRE_CM_HOST_MAX + 1]; /* letters, digits and "._-", ended by 0 */
};

/** Longest that engine, device and identity are together. */
#define WIRE_CM_PARAMS_MAX (WIRE_CM_ENGINE_MAX + WIRE_CM_DEV_MAX)

struct wire_cm_params {
	uint32_t path; /* path of these parameters: one bit, below 256 */
	uint32_t engine_len;
	uint32_t dev_len;
	uint32_t fd_cnt; /* descriptors sent with the packet */
	uint8_t engine[WIRE_CM_ENGINE_MAX];
	uint8_t dev[WIRE_CM_DEV_MAX];
	/* Encoding leaves it out, or cuts the host's name, if there is no room. */
	bool has_identity;
	struct wire_cm_identity identity;
};

/** Decoded packet. Only the member that `type` names is set. */
struct wire_cm_pkt {
	enum wire_cm_type type;
	uint64_t nonce;    /* of the attempt: drawn by the connecting end, not 0, in every packet */
	uint64_t src_inc;  /* incarnation of the sender, not 0 */
	uint64_t dst_inc;  /* incarnation of the receiver; 0 in REQ */
	uint64_t features; /* REQ, ACK: offered; HELLO: used; else 0 */
	union {
		struct {
			uint32_t paths;
			/* First address of the name that is looked for, if it has several. */
			bool has_name;
			struct wire_cm_addr name;
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
			struct wire_cm_addr addr; /* of the sender; the cookie covers it */
			struct wire_cm_params params;
		} hello;
		struct {
			struct wire_cm_params params;
		} welcome;
	};
};

/** Writes `pkt` to `buf` (WIRE_CM_MAX bytes). Returns its length, including zeros for the MAC. */
size_t wire_cm_encode(const struct wire_cm_pkt *pkt, uint8_t *buf);

/**
 * Decodes a packet without checking its MAC. Returns 0, -FI_EINVAL if the bytes are no packet, or
 * -FI_ENOPROTOOPT for a packet of another version; then only type, nonce and incarnations are set.
 */
int wire_cm_decode(const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt);

/**
 * Returns the nonce of the packet that begins in `buf` (quoted in an ICMP error), or 0.
 */
uint64_t wire_cm_peek_nonce(const uint8_t *buf, size_t len);

/** Returns the name of a type ("REQ"), or "?" for an unknown one. */
const char *wire_cm_type_name(enum wire_cm_type type);

/** Length of an encoded address, in a packet and under a MAC. */
#define WIRE_CM_ADDR_LEN 24u
void wire_cm_addr_encode(const struct wire_cm_addr *addr, uint8_t *buf);
int wire_cm_addr_decode(const uint8_t *buf, struct wire_cm_addr *addr);

#endif
