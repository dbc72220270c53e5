/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Client side of a slot: which packet to send next, which to accept (docs/datagram-protocol.md,
 * section 4). Called by tx/ and rx/.
 *
 * A slot carries one request at a time. With n packets of request and m of response, both ends send
 * n + m - 1 packets, and packet k of the server acknowledges packet k of the client:
 *
 *   k              0 .. n-2  n-1     n .. n+m-2
 *   client sends   REQ k     REQ n-1 RFR k
 *   server sends   CR k      RESP n-1 RESP k  (response part k - (n-1))
 *
 * Two counters are the state: `tx` packets sent, `rx` packets acknowledged, in order. tx - rx
 * packets are in flight, each on one credit of the session. A loss rewinds tx to rx. The server
 * accepts packets in order, so a later acknowledgement covers earlier ones without bytes. m is
 * unknown before the first RESP, unless the request implies it; then RFR follow at once. An RFR,
 * and a request that implies m, may stand for several packets in a row. Pure: no clock, no bytes,
 * no credits of its own.
 *
 * Tested in test/unit/erpc/slot/test_erpc_client.c, and with the server side in test_erpc_wire.c.
 */
#ifndef ERPC_SLOT_ERPC_CLIENT_H
#define ERPC_SLOT_ERPC_CLIENT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/wire_erpc.h"

/** Requests of a session at a time. A request's slot is req_num modulo this. */
#define ERPC_SLOTS 8u

#define ERPC_AHEAD_MAX 128u /* packets further ahead are dropped, and sent again */

/** Set of packets that arrived early: bit i is packet i behind the first missing one. */
struct erpc_ahead {
	uint64_t word[ERPC_AHEAD_MAX / 64];
};

enum erpc_verdict {
	ERPC_TAKE,   /* expected: the state has advanced */
	ERPC_LAST,   /* expected, and the message is complete */
	ERPC_REPEAT, /* received before: respond again */
	ERPC_STALE,  /* of a completed request */
	ERPC_EARLY,  /* a packet before it is missing */
	ERPC_BAD,    /* violates the protocol */
};

/** Requests and responses of one packet need the fields up to resp_max only. */
struct erpc_client {
	uint64_t req_num;
	uint16_t req_pkts;  /* n; 0: the slot is free */
	uint16_t resp_pkts; /* m; 0: unknown */
	uint16_t tx;
	uint16_t tx_max; /* highest tx so far: packets counted as lost may be late */
	uint16_t rx;
	uint16_t window;   /* packets that may be in flight, set by the caller */
	uint32_t resp_max; /* largest response that the caller accepts */
	uint32_t payload;  /* bytes of a packet behind its header */
	/* bytes, if m is known; not set by a response that ends its request in one packet */
	uint32_t resp_size;
	struct erpc_ahead ahead; /* behind rx */
};

static_assert(2 * WIRE_ERPC_PKT_MAX <= UINT16_MAX, "numbers of packets");

static inline bool erpc_ahead_is_empty(const struct erpc_ahead *ahead)
{
	return !(ahead->word[0] | ahead->word[1]);
}

static inline void erpc_ahead_clear(struct erpc_ahead *ahead)
{
	*ahead = (struct erpc_ahead){ 0 };
}

/** Moves the first missing packet on by `n`, at most ERPC_AHEAD_MAX. */
static inline void erpc_ahead_shift(struct erpc_ahead *ahead, uint32_t n)
{
	for (; n >= 64; n -= 64)
		*ahead = (struct erpc_ahead){ { ahead->word[1], 0 } };
	if (!n)
		return;
	ahead->word[0] = ahead->word[0] >> n | ahead->word[1] << (64 - n);
	ahead->word[1] >>= n;
}

/** Returns the number of packets in a row from the first of `ahead`. */
static inline uint32_t erpc_ahead_run(const struct erpc_ahead *ahead)
{
	if (~ahead->word[0])
		return (uint32_t)__builtin_ctzll(~ahead->word[0]);
	return 64 + (~ahead->word[1] ? (uint32_t)__builtin_ctzll(~ahead->word[1]) : 64);
}

/** Removes the packets in a row from the first of `ahead`. Returns their number. */
static inline uint32_t erpc_ahead_take(struct erpc_ahead *ahead)
{
	uint32_t run = erpc_ahead_run(ahead);

	erpc_ahead_shift(ahead, run);
	return run;
}

/**
 * Adds packet `dist` behind the first missing one. Returns false if it is known or too far ahead.
 */
static inline bool erpc_ahead_keep(struct erpc_ahead *ahead, uint32_t dist)
{
	uint64_t bit = 1ull << dist % 64;

	if (dist >= ERPC_AHEAD_MAX || ahead->word[dist / 64] & bit)
		return false;
	ahead->word[dist / 64] |= bit;
	return true;
}

/** Initializes a free slot with `first` as its next request number. */
void erpc_client_init(struct erpc_client *c, uint64_t first, uint32_t payload);

/**
 * Begins a request of `size` bytes with a response of at most `resp_max`. Returns false if both
 * together take more than WIRE_ERPC_PKT_MAX packets.
 */
bool erpc_client_begin(struct erpc_client *c, uint32_t size, uint32_t resp_max);

/** Called after begin: the response has exactly resp_max bytes. */
static inline void erpc_client_knows(struct erpc_client *c)
{
	c->resp_size = c->resp_max;
	c->resp_pkts = (uint16_t)wire_erpc_pkts(c->resp_max, c->payload);
	erpc_ahead_clear(&c->ahead);
}

static inline bool erpc_client_is_free(const struct erpc_client *c)
{
	return !c->req_pkts;
}

/** Returns the number of packets that could leave with credits. */
static inline uint32_t erpc_client_sendable(const struct erpc_client *c)
{
	/* While m is unknown there is nothing to request. */
	return c->req_pkts + (c->resp_pkts ? c->resp_pkts - 1 : 0) - c->tx;
}

static inline uint32_t erpc_client_in_flight(const struct erpc_client *c)
{
	return c->tx - c->rx;
}

/** Returns true if the window permits no further packet. */
static inline bool erpc_client_is_full(const struct erpc_client *c)
{
	return erpc_client_in_flight(c) >= c->window;
}

/** Begins a request of one packet with a response of one packet. Cannot fail. */
static inline void erpc_client_begin_single(struct erpc_client *c, uint32_t resp_max)
{
	c->req_pkts = 1;
	c->resp_pkts = 0;
	c->resp_max = resp_max;
	c->tx = 0;
	c->tx_max = 0;
	c->rx = 0;
}

/** Returns kind and number of the next packet, which takes a credit. Requires sendable > 0. */
enum wire_erpc_kind erpc_client_next(struct erpc_client *c, uint16_t *pkt_num);

/** Counts `n` more packets as sent: parts that the last packet requests behind its own. */
static inline void erpc_client_next_run(struct erpc_client *c, uint32_t n)
{
	c->tx = (uint16_t)(c->tx + n);
	if (c->tx > c->tx_max)
		c->tx_max = c->tx;
}

/** Marks the only packet of a request as sent for the first time. */
static inline void erpc_client_first(struct erpc_client *c)
{
	c->tx = 1;
	c->tx_max = 1;
}

/**
 * Takes a CR or RESP of `len` payload bytes. The fall of in_flight is the number of returned
 * credits: a late response to a packet counted as lost returns none.
 */
enum erpc_verdict erpc_client_take(struct erpc_client *c, const struct wire_erpc_hdr *h,
				   uint32_t len);

/**
 * Takes a RESP that completes a request of one packet, with one credit. Returns false for any other
 * packet, without a change; erpc_client_take gives its verdict. Requires that resp_max is at most
 * one packet.
 */
static inline bool erpc_client_take_single(struct erpc_client *c, const struct wire_erpc_hdr *h,
					   uint32_t len)
{
	if (h->req_num != c->req_num || c->req_pkts != 1 || c->tx != 1 || c->rx || h->pkt_num ||
	    h->kind != WIRE_ERPC_RESP || len != h->msg_size || len > c->resp_max)
		return false;
	c->resp_pkts = 1;
	c->rx = 1;
	return true;
}

/** Records an EARLY packet. Returns true if its bytes are new and belong at their place. */
bool erpc_client_keep(struct erpc_client *c, const struct wire_erpc_hdr *h, uint32_t len);

/** Takes a CR with WIRE_ERPC_GAP: that packet is missing, all before it arrived. */
enum erpc_verdict erpc_client_take_gap(struct erpc_client *c, const struct wire_erpc_hdr *h,
				       uint32_t len);

/**
 * Checks a CR with WIRE_ERPC_KEPT. Returns TAKE if it is for the current request, without a change.
 */
enum erpc_verdict erpc_client_take_kept(const struct erpc_client *c, const struct wire_erpc_hdr *h,
					uint32_t len);

/** Frees the slot for the next request. Returns the credits of packets in flight. */
static inline uint32_t erpc_client_end(struct erpc_client *c)
{
	c->req_pkts = 0;
	c->req_num += ERPC_SLOTS;
	return erpc_client_in_flight(c);
}

/** Counts packets in flight as lost. Returns their credits. */
uint32_t erpc_client_go_back(struct erpc_client *c);

#endif
