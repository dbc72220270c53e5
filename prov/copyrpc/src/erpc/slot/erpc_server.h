/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Server side of a slot: which packet to accept (docs/datagram-protocol.md, section 4). Called by
 * rx/ and tx/.
 *
 * The server only responds: to each REQ but the last with a CR, to the last one with the first part
 * of the response once there is one, to each RFR with its part. It accepts the packets of a request
 * in order, executes it once, and keeps the response until the client begins the next request in
 * the slot, which acknowledges it. A repeated packet is responded to again and changes nothing.
 *
 * Pure: no clock, no bytes. Tested in test/unit/erpc/slot/test_erpc_server.c and test_erpc_wire.c.
 */
#ifndef ERPC_SLOT_ERPC_SERVER_H
#define ERPC_SLOT_ERPC_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "erpc/slot/erpc_client.h"
#include "wire/wire_erpc.h"

struct erpc_server {
	uint64_t req_num;  /* number of the current or last request */
	uint32_t payload;  /* bytes of a packet behind its header */
	uint32_t size;     /* bytes of the request */
	uint32_t req_pkts; /* 0: nothing received yet */
	uint32_t rx;       /* packets received in order */
	uint32_t resp_size;
	bool responded; /* there is a response */
	uint8_t req_type;
	struct erpc_ahead ahead; /* behind rx */
};

/** Initializes a slot with `first` as its next request number. */
void erpc_server_init(struct erpc_server *s, uint64_t first, uint32_t payload);

/**
 * Takes a REQ of `len` payload bytes. TAKE: its bytes belong at pkt_num * payload; send a CR for rx
 * - 1. LAST: the request is complete, too; execute it. REPEAT: respond again by erpc_server_repeat.
 * The first packet of a request drops the previous response.
 */
enum erpc_verdict erpc_server_take_req(struct erpc_server *s, const struct wire_erpc_hdr *h,
				       uint32_t len);

/** Records an EARLY packet. Returns true if its bytes are new; they belong at pkt_num * payload. */
bool erpc_server_keep(struct erpc_server *s, const struct wire_erpc_hdr *h);

/**
 * Takes a REQ that is a whole request and the expected one. Returns false for any other, without a
 * change; erpc_server_take_req gives its verdict. Requires h->msg_size <= s->payload.
 */
static inline bool erpc_server_take_single(struct erpc_server *s, const struct wire_erpc_hdr *h,
					   uint32_t len)
{
	if (h->req_num != ((s->req_num + ERPC_SLOTS) & (WIRE_ERPC_REQ_MAX - 1)) || h->pkt_num ||
	    len != h->msg_size || (s->req_pkts && !s->responded))
		return false;
	s->req_num = h->req_num;
	s->req_type = h->req_type;
	s->size = len;
	s->req_pkts = 1;
	s->rx = 1;
	s->responded = false;
	return true;
}

/**
 * Checks an RFR of `len` payload bytes. TAKE: send those parts of the response. EARLY: the request
 * is missing.
 */
enum erpc_verdict erpc_server_take_rfr(const struct erpc_server *s, const struct wire_erpc_hdr *h,
				       uint32_t len);

/** Sets a response of one packet. */
static inline void erpc_server_respond_single(struct erpc_server *s, uint32_t size)
{
	s->resp_size = size;
	s->responded = true;
}

/** Sets an empty response. */
static inline void erpc_server_respond_empty(struct erpc_server *s)
{
	erpc_server_respond_single(s, 0);
}

/** Sets the response. Returns false if request and response have too many packets. */
bool erpc_server_respond(struct erpc_server *s, uint32_t size);

/**
 * Returns kind and number of the packet that acknowledges most of the request, in response to a
 * repeated packet. Returns false if there is none yet.
 */
bool erpc_server_repeat(const struct erpc_server *s, uint16_t *pkt_num, enum wire_erpc_kind *kind);

/** Returns the part of the response that a RESP with this number carries. */
static inline uint32_t erpc_server_part(const struct erpc_server *s, uint16_t pkt_num)
{
	return pkt_num - (s->req_pkts - 1);
}

#endif
