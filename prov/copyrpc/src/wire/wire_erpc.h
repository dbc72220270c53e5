/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which bytes stand at the head of a datagram? (docs/datagram-protocol.md, section 2)
 *
 *   packet = header (16 B), payload
 *
 *   bit  0        8             32             48    50         63
 *        | type   | msg_size    | session      | kind | pkt_num |   first eight bytes
 *        | req_num                         44 | magic 48 | tag  |   last eight bytes
 *
 * Two little-endian words. Everything in them is a peer's (or a stranger's) word: get checks what
 * can be known without a session, the rest is the session's to check. Pure.
 *
 * Shown by test/unit/wire/test_wire_erpc.c (golden bytes).
 */
#ifndef WIRE_ERPC_H
#define WIRE_ERPC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WIRE_ERPC_HDR_LEN 16u
#define WIRE_ERPC_MAGIC   0xBu
#define WIRE_ERPC_MSG_MAX ((1u << 24) - 1) /* bytes of a request or a response */
#define WIRE_ERPC_PKT_MAX (1u << 14)       /* packets of a request and its response together */
#define WIRE_ERPC_REQ_MAX (1ull << 44)

enum wire_erpc_kind {
	WIRE_ERPC_REQ = 0,  /* a part of a request */
	WIRE_ERPC_RFR = 1,  /* asks for a part of the response */
	WIRE_ERPC_CR = 2,   /* a part of a request has arrived; there are more to come */
	WIRE_ERPC_RESP = 3, /* a part of the response */
};

struct wire_erpc_hdr {
	uint8_t req_type;  /* what kind of request: the engine's */
	uint32_t msg_size; /* bytes of the whole request (REQ) or response (RESP), else 0 */
	uint16_t session;  /* the receiver's number for it */
	enum wire_erpc_kind kind;
	uint16_t pkt_num;
	uint64_t req_num;
	uint16_t tag; /* of the session's token: who does not know it is not the peer */
};

/** Writes a header to `buf`, WIRE_ERPC_HDR_LEN bytes. */
static inline void wire_erpc_put(uint8_t *buf, const struct wire_erpc_hdr *h)
{
	uint64_t word[2];

	word[0] = h->req_type | (uint64_t)h->msg_size << 8 | (uint64_t)h->session << 32 |
		  (uint64_t)h->kind << 48 | (uint64_t)h->pkt_num << 50;
	word[1] = h->req_num | (uint64_t)WIRE_ERPC_MAGIC << 44 | (uint64_t)h->tag << 48;
	memcpy(buf, word, sizeof(word));
}

/** Reads the header of a packet of `len` bytes: false if it is none. */
static inline bool wire_erpc_get(struct wire_erpc_hdr *h, const uint8_t *buf, uint32_t len)
{
	uint64_t word[2];

	if (len < WIRE_ERPC_HDR_LEN)
		return false;
	memcpy(word, buf, sizeof(word));
	if ((word[1] >> 44 & 0xF) != WIRE_ERPC_MAGIC)
		return false;
	h->req_type = (uint8_t)word[0];
	h->msg_size = (uint32_t)(word[0] >> 8 & WIRE_ERPC_MSG_MAX);
	h->session = (uint16_t)(word[0] >> 32);
	h->kind = (enum wire_erpc_kind)(word[0] >> 48 & 3);
	h->pkt_num = (uint16_t)(word[0] >> 50);
	h->req_num = word[1] & (WIRE_ERPC_REQ_MAX - 1);
	h->tag = (uint16_t)(word[1] >> 48);
	return true;
}

/** Packets that a message of `size` bytes takes when each carries `payload`: at least one. */
static inline uint32_t wire_erpc_pkts(uint32_t size, uint32_t payload)
{
	return size ? (size + payload - 1) / payload : 1;
}

/** Bytes of the message in its packet `i`. */
static inline uint32_t wire_erpc_pkt_len(uint32_t size, uint32_t payload, uint32_t i)
{
	uint32_t rest = size - i * payload;

	return rest < payload ? rest : payload;
}

#endif
