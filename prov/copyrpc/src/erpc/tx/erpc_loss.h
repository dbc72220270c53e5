/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Loss detection by time-outs and go-back-N. Called by the endpoint's progress and by tx/.
 *
 * A session with packets in flight has one timer for all slots, in a wheel of the endpoint that is
 * checked once in a round trip or two. Responses leave it alone: it expires, or is removed before
 * the thread sleeps. A timer enters the wheel when the current slot has passed, if its packets are
 * still in flight then: with thousands of sessions most of them send one message and are idle in
 * no cache when the timer expires.
 *
 * A slot without a response for its timeout (erpc_rto.h) goes back to the last response and repeats
 * one packet until the next response. The timeout is shorter for a batch if a later one arrived
 * (its response, due at once, is missing; or others are KEPT behind it), and if losses are certain:
 * then one probe per round trip. A KEPT batch has arrived and is not probed before earlier ones. A
 * packet that is still in the burst is not lost.
 *
 * Packets received behind a missing one detect it sooner (erpc_kick_missing).
 */
#ifndef ERPC_TX_ERPC_LOSS_H
#define ERPC_TX_ERPC_LOSS_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"

#define ERPC_LOSS_SHIFT 14u /* 16 us a slot, a lap of 34 ms */
#define ERPC_LOSS_SLOTS 2048u

#define ERPC_LOSS_CERTAIN_NS 100000000u /* time for which a loss makes further losses certain */
#define ERPC_LOSS_MANY       64u        /* losses, each within that time of the one before */
#define ERPC_LOSS_EAGER      32768u     /* core_chan.eager_min after them */

/** Checks the sessions with an expired timer. */
void erpc_loss_scan(struct erpc_ep *ep);

/** Removes timers of idle sessions, so that they wake no thread. */
void erpc_loss_forget_idle(struct erpc_ep *ep);

/** Sets the timer to expire at due_ns or before, which is more than a slot of the wheel ahead. */
void erpc_loss_watch_until(struct erpc_session *s, uint64_t due_ns);

/** Removes the timer. */
void erpc_loss_unwatch(struct erpc_session *s);

/** Returns when new timers enter the wheel. */
static inline uint64_t erpc_loss_new_ns(const struct erpc_ep *ep)
{
	return erpc_wheel_end_ns(&ep->timers, ep->now_ns + 1);
}

/** Returns true if a loss was certain within the last ERPC_LOSS_CERTAIN_NS. */
static inline bool erpc_loss_is_certain(const struct erpc_session *s)
{
	return s->losses && s->ep->now_ns - s->time.lost_ns < ERPC_LOSS_CERTAIN_NS;
}

/** Lowers the limit of eager messages: those behind an incomplete one wait for it, gets do not. */
void erpc_loss_many_cold(struct erpc_session *s);

/** Notes a certain loss: a later packet was acknowledged. */
static inline void erpc_loss_note(struct erpc_session *s)
{
	if (!erpc_loss_is_certain(s))
		s->losses = 1;
	else if (s->losses < ERPC_LOSS_MANY && ++s->losses == ERPC_LOSS_MANY)
		erpc_loss_many_cold(s);
	s->time.lost_ns = s->ep->now_ns;
}

/** Starts the timer for a packet that leaves with none of its slot in flight. */
static inline void erpc_loss_watch(struct erpc_session *s)
{
	uint64_t due_ns = s->ep->now_ns + erpc_rto_rack_ns(&s->flow.rto);

	if (!s->flow.watch_ns || due_ns < s->flow.watch_ns)
		erpc_loss_watch_until(s, due_ns);
}

#endif
