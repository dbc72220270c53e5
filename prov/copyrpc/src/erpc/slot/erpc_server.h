/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a server slot make of a packet? (docs/datagram-protocol.md, section 4)
 *
 * The server only ever answers: each REQ but the last with a CR, the last one with the first part of the
 * response once there is one, each RFR with its part. It takes a request's packets in order, runs it once,
 * and keeps the response until the client begins the next request in this slot, which says
 * that it has all of it. A packet seen before is answered again, and changes nothing.
 *
 * Pure: no clock, no bytes. Shown by test/unit/erpc/slot/test_erpc_server.c and test_erpc_wire.c.
 */
#ifndef ERPC_SERVER_H
#define ERPC_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "erpc/slot/erpc_client.h"
#include "wire/wire_erpc.h"

struct erpc_server {
	uint64_t req_num;  /* of the request that this slot holds, or held last */
	uint32_t payload;  /* bytes of a packet behind its header */
	uint32_t size;     /* bytes of the request */
	uint32_t req_pkts; /* 0: nothing has come yet */
	uint32_t rx;       /* of them, all before */
	uint32_t ahead;    /* bit i: packet rx + i is here, too */
	bool responded;    /* the response is there */
	uint32_t resp_size;
	uint8_t req_type;
};

/** A slot whose first request will be `first`. */
void erpc_server_init(struct erpc_server *s, uint64_t first, uint32_t payload);

/**
 * A REQ of `len` payload bytes. TAKE: its bytes belong at pkt_num * payload, answer with a CR for rx - 1.
 * LAST: the same, and the request is whole: run it. REPEAT: answer again, with erpc_server_repeat.
 * What begins a new request drops the old response.
 */
enum erpc_verdict erpc_server_take_req(struct erpc_server *s, const struct wire_erpc_hdr *h,
				       uint32_t len);

/** What take_req called EARLY: true: its bytes are new, belong at pkt_num * payload, and will not come again. */
bool erpc_server_keep(struct erpc_server *s, const struct wire_erpc_hdr *h);

/**
 * A REQ that is a whole request, and what is expected: true: as LAST. False: nothing has changed, and
 * erpc_server_take_req says what it is. h->msg_size is at most s->payload.
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
 * An RFR of `len` payload bytes: TAKE: send that part of the response. EARLY: what it belongs to
 * has not come.
 */
enum erpc_verdict erpc_server_take_rfr(const struct erpc_server *s, const struct wire_erpc_hdr *h,
				       uint32_t len);

/** The response is there, and one packet takes it. */
static inline void erpc_server_respond_single(struct erpc_server *s, uint32_t size)
{
	s->resp_size = size;
	s->responded = true;
}

/** The response is there, and has no bytes. */
static inline void erpc_server_respond_empty(struct erpc_server *s)
{
	erpc_server_respond_single(s, 0);
}

/** The response is there: its first part is to be sent. False: the client cannot take that much. */
bool erpc_server_respond(struct erpc_server *s, uint32_t size);

/**
 * The answer to a packet of the request that was here before: the one that says most of how far it is. False
 * when there is none yet.
 */
bool erpc_server_repeat(const struct erpc_server *s, uint16_t *pkt_num, enum wire_erpc_kind *kind);

/** Which part of the response a RESP with this number is. */
static inline uint32_t erpc_server_part(const struct erpc_server *s, uint16_t pkt_num)
{
	return pkt_num - (s->req_pkts - 1);
}

#endif
