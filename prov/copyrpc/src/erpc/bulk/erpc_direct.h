/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which part of a get comes next, and where does it belong?
 *
 * Where the device can (dgram.h: poll_into), it is told before it looks, and the bytes of a get are
 * moved once. The guess: answers come in the order in which they were asked for, from the session
 * that has begun a get, or got a part of one, last. A wrong guess costs a copy and changes nothing:
 * what comes is held against all checks, and taken only if it is the next part. The memory that is
 * guessed belongs to a get under way, behind all that has come: its bytes are its peer's until its
 * end.
 *
 * Where answers of several peers come by turns guesses fail: after each that did some polls go
 * without.
 *
 * Owner: the ep. Shown by test/unit/erpc/bulk/test_erpc_direct.c.
 */
#ifndef ERPC_DIRECT_H
#define ERPC_DIRECT_H

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"

/** A get begins: its session is guessed. */
void erpc_direct_begin(struct erpc_session *s);

/** A part of the get in `slot` was asked for; */
static inline void erpc_direct_requested(struct erpc_session *s, uint32_t slot)
{
	s->get_pkts[(s->get_pkts_at + s->get_pkts_cnt) % ERPC_GET_PKTS_MAX] = (uint8_t)slot;
	if (s->get_pkts_cnt < ERPC_GET_PKTS_MAX)
		s->get_pkts_cnt++;
	else
		s->get_pkts_at++;
}

/** it came, in its place (ep->placed) or not. */
void erpc_direct_received(struct erpc_session *s, uint32_t slot);

/** Instead of poll while ep->direct_session is set: takes in parts of gets. False: the rest is poll's. */
bool erpc_direct_poll(struct erpc_ep *ep, bool *more);

/** Nothing of the session's comes any more. */
static inline void erpc_direct_forget(struct erpc_session *s)
{
	if (s->ep->direct_session == s)
		s->ep->direct_session = NULL;
}

#endif
