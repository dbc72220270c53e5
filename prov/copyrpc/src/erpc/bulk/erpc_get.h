/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does the peer's memory get into ours? core_chan_ops.get.
 *
 * A get is cut into requests of at most ERPC_GET_MAX bytes, each in a slot for that purpose; what their
 * responses bring goes straight to where it belongs. So several are under way at once, of one get or
 * of several. A peer that refuses one ends its get, and nothing else.
 *
 * Shown by test/unit/erpc/test_erpc_ep.c, bulk/test_erpc_get.c and rx/test_erpc_resp.c.
 */
#ifndef ERPC_GET_H
#define ERPC_GET_H

#include "erpc/erpc_session.h"

#define ERPC_GET_MAX (4u << 20)

/** A get under way. Lives in core_get.engine. */
struct erpc_get_op {
	struct util_list link; /* erpc_session.gets_pending, while some of it was not asked for */
	struct util_list open_link; /* erpc_session.gets_open, until its end */
	struct core_get *get;
	uint64_t requested; /* bytes */
	uint32_t open;      /* requests under way */
};

_Static_assert(sizeof(struct erpc_get_op) <= sizeof(((struct core_get *)0)->engine), "lives there");

/** core_chan_ops.get */
int erpc_get(struct core_chan *chan, struct core_get *get);

/** Part of erpc_session_flush: requests for what was not asked for yet, while there are slots. */
void erpc_get_flush(struct erpc_session *s);

/** A RESP for the slot of a get: false: it was dealt with, or it is counted as bad. */
bool erpc_get_check(struct erpc_session *s, struct erpc_tx *tx, const struct wire_erpc_hdr *h,
		    uint32_t pkt_len);

/** Which part of what its request asks for is in the answer with this number? */
static inline uint32_t erpc_get_part_of(const struct erpc_tx *tx, uint32_t pkt_num)
{
	return pkt_num - (tx->c.req_pkts - 1);
}

/** A part is here. */
void erpc_get_part(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h,
		   const struct dev_dgram_in *in, bool last);

/** All end with `err`. */
void erpc_get_fail(struct erpc_session *s, int err);

#endif
