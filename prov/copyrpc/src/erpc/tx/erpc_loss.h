/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What seems to be lost?
 *
 * A session with packets in flight has one timer, whatever the number of its slots, in a wheel of the
 * endpoint, which is looked at once in a round trip or two. Answers leave it alone: that all have come is
 * found when it is over, or before somebody sleeps.
 *
 * A slot that heard nothing for its time-out (erpc_rto.h) goes back to the last answer and sends one
 * packet again, no more until something comes: if the peer is only slow, it gets little to do. A batch is
 * lost sooner if something that was sent later is known to have come (its answer, where one is due at once,
 * is missing; or it keeps others waiting). So is anything where packets are known to get lost: whether a
 * peer is slow or a packet did not get there is no question then, and one packet a round trip asks for it.
 * A batch that was KEPT has come: it waits for its elders, and is not missed before them. Nothing is lost
 * while one of its packets is still here, in the burst: a second one would not help.
 *
 * What is missing in the middle is known before that, by what came behind it (erpc_kick_missing).
 *
 * Shown by test/unit/erpc/tx/test_erpc_loss.c.
 */
#ifndef ERPC_LOSS_H
#define ERPC_LOSS_H

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"

#define ERPC_LOSS_SHIFT 14u /* 16 us a slot, a lap of 34 ms */
#define ERPC_LOSS_SLOTS 2048u

#define ERPC_LOSS_CERTAIN_NS 100000000u /* a loss that was seen says so much of what is to come */

/** Of sessions whose timer is over. */
void erpc_loss_scan(struct erpc_ep *ep);

/** Nobody is woken by the timer of a session that waits for nothing any more. */
void erpc_loss_forget_idle(struct erpc_ep *ep);

/** The timer is over at that time, or sooner. */
void erpc_loss_watch_until(struct erpc_session *s, uint64_t due_ns);

/** Something was lost, and not only late: what was sent behind it is known to have come. */
static inline void erpc_loss_note(struct erpc_session *s)
{
	s->loss_seen = true;
	s->lost_ns = s->ep->now_ns;
}

/** Was it seen a moment ago that packets get lost here, and are not only late? */
static inline bool erpc_loss_is_certain(const struct erpc_session *s)
{
	return s->loss_seen && s->ep->now_ns - s->lost_ns < ERPC_LOSS_CERTAIN_NS;
}

/** A packet leaves, and nothing of its slot is in flight. */
static inline void erpc_loss_watch(struct erpc_session *s)
{
	uint64_t due_ns = s->ep->now_ns + s->rto.rack_ns;

	if (!s->watched || due_ns < s->watch_ns)
		erpc_loss_watch_until(s, due_ns);
}

#endif
