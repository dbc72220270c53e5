/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Header of a session's datagrams (docs/datagram-protocol.md, section 2).
 *
 *   packet = header (16 B), payload
 * 
 *   bit  0        8             32             48    50         63
 *        | type   | msg_size    | session      | kind | pkt_num |   first eight bytes
 *        | req_num                         44 | magic 48 | tag  |   last eight bytes
 *
 * Two little-endian words. No field is trusted: wire_erpc_get checks those that need no session,
 * the session checks the rest. Pure.
 *
 * Tested by test/unit/wire/test_wire_erpc.c (golden bytes).
 */
#ifndef WIRE_WIRE_ERPC_H
#define WIRE_WIRE_ERPC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WIRE_ERPC_HDR_LEN  16u
#define WIRE_ERPC_MAGIC    0xBu
#define WIRE_ERPC_MAGIC_AT 13u /* byte of the header whose upper half is the magic */
#define WIRE_ERPC_TAG_AT   14u /* byte of the header that is the lower half of the tag */
#define WIRE_ERPC_MSG_MAX  ((1u << 24) - 1) /* bytes of a request or a response */
#define WIRE_ERPC_PKT_MAX  (1u << 14)       /* packets of a request and its response together */
#define WIRE_ERPC_REQ_MAX  (1ull << 44)
#define WIRE_ERPC_RUN_MAX  256u /* parts of a response that one packet requests */

enum wire_erpc_kind {
	WIRE_ERPC_REQ = 0,  /* part of a request */
	WIRE_ERPC_RFR = 1,  /* requests parts of the response: pkt_num and msg_size behind it */
	WIRE_ERPC_CR = 2,   /* acknowledges a packet of a request before its last */
	WIRE_ERPC_RESP = 3, /* part of the response */
};

struct wire_erpc_hdr {
	uint8_t req_type; /* kind of the request, for the engine */
	/* bytes of the whole request (REQ) or response (RESP); RFR: parts behind the first */
	uint32_t msg_size;
	uint16_t session; /* session number at the receiver */
	enum wire_erpc_kind kind;
	uint16_t pkt_num;
	uint64_t req_num;
	uint16_t tag; /* low bits of the session's token; other senders cannot guess them */
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

/** Returns true if header `b` is header `a` but for a number of packet that is `n` higher. */
static inline bool wire_erpc_follows(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint64_t of_a[2], of_b[2];

	memcpy(of_a, a, sizeof(of_a));
	memcpy(of_b, b, sizeof(of_b));
	return of_b[0] == of_a[0] + ((uint64_t)n << 50) && of_b[1] == of_a[1];
}

/** Reads the fields of WIRE_ERPC_HDR_LEN bytes, which need not be a header. */
static inline void wire_erpc_parse(struct wire_erpc_hdr *h, const uint8_t *buf)
{
	uint64_t word[2];

	memcpy(word, buf, sizeof(word));
	h->req_type = (uint8_t)word[0];
	h->msg_size = (uint32_t)(word[0] >> 8 & WIRE_ERPC_MSG_MAX);
	h->session = (uint16_t)(word[0] >> 32);
	h->kind = (enum wire_erpc_kind)(word[0] >> 48 & 3);
	h->pkt_num = (uint16_t)(word[0] >> 50);
	h->req_num = word[1] & (WIRE_ERPC_REQ_MAX - 1);
	h->tag = (uint16_t)(word[1] >> 48);
}

/** Reads the header of a packet of `len` bytes. Returns false if it is none. */
static inline bool wire_erpc_get(struct wire_erpc_hdr *h, const uint8_t *buf, uint32_t len)
{
	uint64_t word;

	if (len < WIRE_ERPC_HDR_LEN)
		return false;
	memcpy(&word, buf + sizeof(word), sizeof(word));
	if ((word >> 44 & 0xF) != WIRE_ERPC_MAGIC)
		return false;
	wire_erpc_parse(h, buf);
	return true;
}

/**
 * Returns the number of packets for a message of `size` bytes with `payload` bytes each, at least
 * 1.
 */
static inline uint32_t wire_erpc_pkts(uint32_t size, uint32_t payload)
{
	return size ? (size + payload - 1) / payload : 1;
}

/** Returns the bytes of the message in its packet `i`. */
static inline uint32_t wire_erpc_pkt_len(uint32_t size, uint32_t payload, uint32_t i)
{
	uint32_t rest = size - i * payload;

	return rest < payload ? rest : payload;
}

#endif
