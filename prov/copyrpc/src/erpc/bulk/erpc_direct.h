/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct placement: the device writes the bytes of a get straight to their destination. Guesses the
 * next packets. Called by erpc_get.c and by erpc_rx.c, which polls the device.
 *
 * Needs poll_into of the device (dgram.h), which is passed the next destination before the poll.
 * The guess: packets arrive in the order of their requests, from the session that last began a get
 * or received a part of one. A wrong guess costs a copy. Each packet passes all checks and is
 * placed only if it is the next part. The guessed memory belongs to a get in progress, behind all
 * received parts, so the peer may write it until the end of the get.
 *
 * With gets from several peers in turn guesses fail. After each failure ERPC_DIRECT_SKIP polls go
 * without.
 *
 * Owner: the endpoint. Tested in test/unit/erpc/bulk/test_erpc_direct.c.
 */
#ifndef ERPC_BULK_ERPC_DIRECT_H
#define ERPC_BULK_ERPC_DIRECT_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"

/** Expects parts of a get of this session next. */
void erpc_direct_begin(struct erpc_session *s);

/** Notes that a packet of the get in `slot` arrived, placed (ep->direct_placed) or not. */
void erpc_direct_received(struct erpc_session *s, uint32_t slot);

/**
 * Returns the number of consecutive packets expected next for one slot, and the slot; 0 if unknown.
 */
uint32_t erpc_direct_expected(struct erpc_session *s, uint32_t *slot);

/**
 * Computes the destination of the next `cnt` packets of the get in `slot`. Returns false if it is
 * not contiguous.
 */
bool erpc_direct_target(const struct erpc_session *s, uint32_t slot, uint32_t cnt,
			struct dev_dgram_target *target);

/**
 * Takes packets of the target that are parts in a row of the get in `slot`, at once. Leaves the
 * last of the row, which has the effects that all of them have, and all from the first other packet
 * on. Returns the number of those taken, whose buffers are released.
 */
unsigned erpc_direct_take_run(struct erpc_session *s, uint32_t slot, const struct dev_dgram_in *in,
			      unsigned cnt);

/** Returns true if the packet is the next one of the get in `slot`, and reads its header. */
static inline bool erpc_direct_is_next(const struct erpc_session *s, uint32_t slot,
				       const struct dev_dgram_in *in, struct wire_erpc_hdr *h)
{
	const struct erpc_tx *tx = &s->tx[slot];

	return wire_erpc_get(h, in->data, in->len) && h->kind == WIRE_ERPC_RESP &&
	       h->session == s->num && h->tag == s->tag && h->req_num == tx->c.req_num &&
	       h->pkt_num == tx->c.rx && tx->get_op && dev_dgram_is_from(s->ah, in);
}

/** Ends the expectation for a session that closes. */
static inline void erpc_direct_forget(struct erpc_session *s)
{
	if (s->ep->direct_session == s)
		s->ep->direct_session = NULL;
}

#endif
