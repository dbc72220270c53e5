/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads of the peer's memory: core_chan_ops.get. Called by core and, for responses, by rx/.
 *
 * A get is cut into requests of at most ERPC_GET_MAX bytes, each in a GET slot. Response packets
 * are copied to their destination as they arrive. Requests of one or several gets are in flight at
 * once. A refused request ends its get only.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c, bulk/test_erpc_get.c and rx/test_erpc_resp.c.
 */
#ifndef ERPC_BULK_ERPC_GET_H
#define ERPC_BULK_ERPC_GET_H

#include <assert.h>

#include "erpc/base/erpc_session.h"

#define ERPC_GET_MAX (4u << 20)

/** Get in progress. Stored in core_get.engine. */
struct erpc_get_op {
	struct util_list link;      /* erpc_session.gets_pending, until all of it is requested */
	struct util_list open_link; /* erpc_session.gets_open, until its end */
	struct core_get *get;
	uint64_t requested; /* bytes requested */
	uint32_t open;      /* requests in flight */
};

static_assert(sizeof(struct erpc_get_op) <= sizeof(((struct core_get *)0)->engine),
	      "fits core_get.engine");

/** Implements core_chan_ops.get. */
int erpc_get(struct core_chan *chan, struct core_get *get);

/** Sends requests while there are slots. Part of erpc_session_flush. */
void erpc_get_flush(struct erpc_session *s);

/** Checks a RESP for the slot of a get. Returns false if it ended the request or was refused. */
bool erpc_get_check(struct erpc_session *s, struct erpc_tx *tx, const struct wire_erpc_hdr *h,
		    uint32_t pkt_len);

/** Returns the part of the response that a packet number stands for. */
static inline uint32_t erpc_get_part_of(const struct erpc_tx *tx, uint32_t pkt_num)
{
	return pkt_num - (tx->c.req_pkts - 1);
}

/** Copies a received part, unless it was placed directly. */
void erpc_get_part(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h,
		   const struct dev_dgram_in *in, bool last);

/** Ends all gets with `err`. */
void erpc_get_fail(struct erpc_session *s, int err);

#endif
