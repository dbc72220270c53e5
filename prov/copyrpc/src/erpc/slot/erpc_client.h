/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What may a client slot send next, and what may it take? (docs/datagram-protocol.md, section 4)
 *
 * A slot carries one request at a time. With n packets of request and m of response, both ends send
 * n + m - 1 packets, and packet k of the server answers packet k of the client:
 *
 *	k		0 .. n-2	n-1		n .. n+m-2
 *	client sends	REQ k		REQ n-1		RFR k
 *	server answers	CR k		RESP n-1	RESP k		(response part k - (n-1))
 *
 * So two counters say everything: `tx` packets sent, `rx` answers taken, in order. tx - rx packets
 * are in flight, each on one credit of the session. Losing time is going back to tx = rx. The server
 * takes packets in order, so its answer to one says that it has all before it: answers without
 * bytes that are missing are made good by the next one.
 * m is not known before the first RESP, unless what was asked for says it: then RFR follow at once.
 * Pure: no clock, no bytes, no credits of its own.
 *
 * Shown by test/unit/erpc/slot/test_erpc_client.c, and with the server's half by test_erpc_wire.c.
 */
#ifndef ERPC_CLIENT_H
#define ERPC_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/wire_erpc.h"

/** Requests of a session at a time; the slot of a request is req_num modulo this. */
#define ERPC_SLOTS 8u

#define ERPC_AHEAD_MAX 32u /* as many packets as may be in flight */

enum erpc_verdict {
	ERPC_TAKE,   /* it is what was waited for: the state has moved on */
	ERPC_LAST,   /* as TAKE, and the message is whole */
	ERPC_REPEAT, /* seen before: what it asks for is to be said again */
	ERPC_STALE,  /* of a request that is over: nobody cares */
	ERPC_EARLY,  /* something before it is missing: it may be kept, or will come again */
	ERPC_BAD,    /* no honest peer sends this */
};

struct erpc_client {
	uint64_t req_num;
	uint32_t payload;   /* bytes of a packet behind its header */
	uint32_t req_pkts;  /* n; 0: the slot is free */
	uint32_t resp_pkts; /* m; 0: not known yet */
	uint32_t resp_size; /* bytes, once m is known */
	uint32_t resp_max;  /* bytes that the caller has room for */
	uint32_t tx;
	uint32_t tx_max; /* highest tx so far: what was sent and then counted as lost may be late */
	uint32_t rx;
	uint32_t ahead; /* bit i: answer rx + i is here, before its turn */
};

/** Packets in a row, from the first of `ahead` on, that are here: they leave it. */
static inline uint32_t erpc_ahead_take(uint32_t *ahead)
{
	uint32_t run = (uint32_t)__builtin_ctzll(~(uint64_t)*ahead);

	*ahead = (uint32_t)((uint64_t)*ahead >> run);
	return run;
}

/** The one that is `dist` behind the first that is missing has come: true: for the first time, and it has a place. */
static inline bool erpc_ahead_keep(uint32_t *ahead, uint32_t dist)
{
	if (dist >= ERPC_AHEAD_MAX || *ahead >> dist & 1)
		return false;
	*ahead |= 1u << dist;
	return true;
}

/** A free slot whose first request will be `first`. */
void erpc_client_init(struct erpc_client *c, uint64_t first, uint32_t payload);

/**
 * Begins a request of `size` bytes whose response has at most `resp_max`. Both together take at most
 * WIRE_ERPC_PKT_MAX packets: false otherwise, and nothing has begun.
 */
bool erpc_client_begin(struct erpc_client *c, uint32_t size, uint32_t resp_max);

/** Right behind begin: the response has exactly resp_max bytes. */
static inline void erpc_client_knows(struct erpc_client *c)
{
	c->resp_size = c->resp_max;
	c->resp_pkts = wire_erpc_pkts(c->resp_max, c->payload);
	c->ahead = 0;
}

static inline bool erpc_client_is_free(const struct erpc_client *c)
{
	return !c->req_pkts;
}

/** Packets that could leave now if there were credits. */
static inline uint32_t erpc_client_sendable(const struct erpc_client *c)
{
	/* As long as nobody knows m there is nothing to ask for. */
	return c->req_pkts + (c->resp_pkts ? c->resp_pkts - 1 : 0) - c->tx;
}

static inline uint32_t erpc_client_in_flight(const struct erpc_client *c)
{
	return c->tx - c->rx;
}

/** erpc_client_begin of a request that is one packet, as is its response: it cannot fail. */
static inline void erpc_client_begin_single(struct erpc_client *c, uint32_t resp_max)
{
	c->req_pkts = 1;
	c->resp_pkts = 0;
	c->resp_max = resp_max;
	c->tx = 0;
	c->tx_max = 0;
	c->rx = 0;
}

/** The next packet leaves: its kind and number. It costs a credit. sendable > 0. */
enum wire_erpc_kind erpc_client_next(struct erpc_client *c, uint16_t *pkt_num);

/** A request that is one packet leaves for the first time. */
static inline void erpc_client_first(struct erpc_client *c)
{
	c->tx = 1;
	c->tx_max = 1;
}

/**
 * An answer for this slot, CR or RESP of `len` payload bytes. Credits come back as in_flight falls: an
 * answer to what was counted as lost already returns none.
 */
enum erpc_verdict erpc_client_take(struct erpc_client *c, const struct wire_erpc_hdr *h,
				   uint32_t len);

/**
 * A RESP that is the whole answer to a request of one packet, which is in flight: true: as LAST, and one credit
 * comes back. False: nothing has changed, and erpc_client_take says what it is.
 */
static inline bool erpc_client_take_single(struct erpc_client *c, const struct wire_erpc_hdr *h,
					   uint32_t len)
{
	if (h->req_num != c->req_num || c->req_pkts != 1 || c->tx != 1 || c->rx || h->pkt_num ||
	    h->kind != WIRE_ERPC_RESP || len != h->msg_size || len > c->resp_max ||
	    len > c->payload)
		return false;
	c->resp_size = len;
	c->resp_pkts = 1;
	c->rx = 1;
	return true;
}

/**
 * What take called EARLY: true: its bytes are new, belong in their place, and count as taken when its turn
 * comes.
 */
bool erpc_client_keep(struct erpc_client *c, const struct wire_erpc_hdr *h, uint32_t len);

/** CR with WIRE_ERPC_GAP: that packet is missing there, and all before it have come. */
enum erpc_verdict erpc_client_take_gap(struct erpc_client *c, const struct wire_erpc_hdr *h,
				       uint32_t len);

/** CR with WIRE_ERPC_KEPT: TAKE, if it is about the request that is under way. Nothing moves on. */
enum erpc_verdict erpc_client_take_kept(const struct erpc_client *c, const struct wire_erpc_hdr *h,
					uint32_t len);

/** The slot is free again, for the request after this one. Credits in flight come back: how many. */
static inline uint32_t erpc_client_end(struct erpc_client *c)
{
	c->req_pkts = 0;
	c->req_num += ERPC_SLOTS;
	return erpc_client_in_flight(c);
}

/** Nothing came for too long: what is in flight counts as lost. Credits that come back. */
uint32_t erpc_client_go_back(struct erpc_client *c);

#endif
