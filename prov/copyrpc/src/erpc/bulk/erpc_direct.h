/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct placement: the device writes the bytes of a get straight to their destination. Called by
 * erpc_get.c and by erpc_ep_poll.
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

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"

/** Expects parts of a get of this session next. */
void erpc_direct_begin(struct erpc_session *s);

/** Notes that a packet of the get in `slot` was requested. */
static inline void erpc_direct_requested(struct erpc_session *s, uint32_t slot)
{
	s->gets.pkts[(s->gets.pkts_at + s->gets.pkts_cnt) % ERPC_GET_PKTS_MAX] = (uint8_t)slot;
	if (s->gets.pkts_cnt < ERPC_GET_PKTS_MAX)
		s->gets.pkts_cnt++;
	else
		s->gets.pkts_at++;
}

/** Notes that it arrived, at its destination (ep->direct_placed) or not. */
void erpc_direct_received(struct erpc_session *s, uint32_t slot);

/** Replaces poll while ep->direct_session is set. Returns false if poll has to receive the rest. */
bool erpc_direct_poll(struct erpc_ep *ep, bool *more);

/** Ends the expectation for a session that closes. */
static inline void erpc_direct_forget(struct erpc_session *s)
{
	if (s->ep->direct_session == s)
		s->ep->direct_session = NULL;
}

#endif
