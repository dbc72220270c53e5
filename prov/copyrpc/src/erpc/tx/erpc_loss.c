/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_loss.h. */
#include "erpc/tx/erpc_loss.h"

#include "erpc/tx/erpc_kick.h"
#include "util/stats.h"

#define ERPC_ALIVE_TRIES 3u

void erpc_loss_unwatch(struct erpc_session *s)
{
	if (s->flow.timer == ERPC_TIMER_NEW)
		erpc_set_remove(&s->ep->new_timers, s);
	else if (s->flow.timer == ERPC_TIMER_WHEEL)
		erpc_wheel_remove(&s->ep->timers, &s->timer);
	s->flow.timer = ERPC_TIMER_NONE;
}

/** Moves the timer to its place in the wheel. */
static void erpc_loss_insert(struct erpc_session *s, uint64_t due_ns)
{
	s->flow.watch_ns = due_ns;
	erpc_loss_unwatch(s);
	s->flow.timer = ERPC_TIMER_WHEEL;
	erpc_wheel_insert(&s->ep->timers, &s->timer, due_ns, s->ep->now_ns);
	erpc_ep_due_at(s->ep, erpc_wheel_end_ns(&s->ep->timers, due_ns));
}

void erpc_loss_watch_until(struct erpc_session *s, uint64_t due_ns)
{
	s->flow.watch_ns = due_ns;
	if (s->flow.timer == ERPC_TIMER_NONE) {
		s->flow.timer = ERPC_TIMER_NEW;
		erpc_set_add(&s->ep->new_timers, s);
		erpc_ep_due_at(s->ep, erpc_loss_new_ns(s->ep));
	} else if (s->flow.timer == ERPC_TIMER_WHEEL && s->timer.due_ns > due_ns) {
		erpc_loss_insert(s, due_ns);
	}
}

/** Moves new timers to the wheel, but for those whose packets are acknowledged. */
static void erpc_loss_take_new(struct erpc_ep *ep)
{
	for (uint32_t i = 0; i < ep->new_timers.cnt; i++) {
		struct erpc_session *s = ep->new_timers.at[i];

		s->flow.timer = ERPC_TIMER_NONE;
		if (s->flow.watch_ns)
			erpc_loss_insert(s, s->flow.watch_ns);
	}
	ep->new_timers.cnt = 0;
}

/**
 * Returns true if later packets were acknowledged before this one. A KEPT batch has arrived and
 * waits for earlier ones.
 */
static bool erpc_loss_is_passed(const struct erpc_session *s, const struct erpc_tx *tx)
{
	return !tx->tries && (tx->is.overtaken ||
			      (tx->is.prompt && !tx->is.kept && tx->sent_ns < s->flow.acked_tx_ns));
}

static void erpc_loss_timeout(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];

	if (erpc_loss_is_passed(s, tx))
		erpc_loss_note(s);
	s->conn.chan.stats->timeouts++;
	/* A peer that sends packets does not get ever longer timeouts. */
	if (tx->tries < (s->rx_ns > tx->sent_ns ? ERPC_ALIVE_TRIES : ERPC_TRIES_MAX))
		tx->tries++;
	erpc_rto_repeated(&s->flow.rto);
	tx->c.window = 1;
	erpc_kick_go_back(s, slot);
}

/** Returns the timeout of the packets of a slot in flight. */
static uint64_t erpc_loss_resend_timeout(const struct erpc_session *s, const struct erpc_tx *tx)
{
	uint64_t silence;

	if (erpc_loss_is_passed(s, tx))
		return erpc_rto_rack_ns(&s->flow.rto);
	/* A KEPT batch is not probed before the earlier ones. */
	silence = erpc_loss_is_certain(s) && (!tx->is.kept || tx->seq == s->send.seq_done)
			  ? erpc_rto_probe(&s->flow.rto, tx->tries)
			  : erpc_rto_after(&s->flow.rto, tx->tries);
	return tx->tries ? erpc_rto_spread(silence, s->token + tx->c.req_num + tx->tries) : silence;
}

/** Checks a slot with packets in flight. Returns the time of its next check. */
static uint64_t erpc_loss_slot(struct erpc_session *s, uint32_t slot)
{
	struct erpc_tx *tx = &s->tx[slot];
	uint64_t now_ns = s->ep->now_ns, due_ns = tx->sent_ns + erpc_loss_resend_timeout(s, tx);

	if (due_ns > now_ns) {
		uint64_t look_ns = now_ns + erpc_rto_rack_ns(&s->flow.rto);

		return tx->type != WIRE_ERPC_GET && !tx->tries && look_ns < due_ns ? look_ns
										   : due_ns;
	}
	if (!tx->out.unsent)
		erpc_loss_timeout(s, slot);
	return now_ns + erpc_loss_resend_timeout(s, tx);
}

static void erpc_loss_session(struct erpc_session *s)
{
	uint32_t busy = ~s->send.free_mask & ERPC_FREE_ALL, slot;
	uint64_t next_ns = UINT64_MAX, due_ns;

	if (!s->flow.watch_ns)
		return;
	if (s->flow.watch_ns > s->ep->now_ns) { /* set for earlier packets */
		erpc_loss_insert(s, s->flow.watch_ns);
		return;
	}
	s->flow.watch_ns = 0;
	for (; busy; busy &= busy - 1) {
		slot = (uint32_t)__builtin_ctz(busy);
		if (!erpc_client_in_flight(&s->tx[slot].c))
			continue; /* nothing in flight: credits, rate or room will bring it on */
		due_ns = erpc_loss_slot(s, slot);
		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	if (next_ns != UINT64_MAX)
		erpc_loss_insert(s, next_ns);
}

/** Returns the session of a timer. */
static struct erpc_session *erpc_loss_of(struct erpc_wheel_item *timer)
{
	return UTIL_CONTAINER_OF(timer, struct erpc_session, timer);
}

void erpc_loss_forget_idle(struct erpc_ep *ep)
{
	struct erpc_wheel_item *first;

	erpc_loss_take_new(ep);
	while ((first = erpc_wheel_first(&ep->timers))) {
		if (erpc_loss_of(first)->flow.watch_ns)
			return;
		erpc_loss_unwatch(erpc_loss_of(first));
	}
}

void erpc_loss_scan(struct erpc_ep *ep)
{
	struct util_list ready, *first;

	erpc_loss_take_new(ep);
	util_list_init(&ready);
	erpc_wheel_advance(&ep->timers, ep->now_ns, &ready);
	while ((first = util_list_pop(&ready))) {
		struct erpc_session *s =
			erpc_loss_of(UTIL_CONTAINER_OF(first, struct erpc_wheel_item, link));

		s->flow.timer = ERPC_TIMER_NONE;
		erpc_loss_session(s);
	}
}

void __attribute__((noinline)) erpc_loss_many_cold(struct erpc_session *s)
{
	struct core_chan *chan = &s->conn.chan;

	if (chan->eager_min <= ERPC_LOSS_EAGER)
		return;
	chan->eager_min = ERPC_LOSS_EAGER;
	s->ep->up->on_limits(chan);
}
