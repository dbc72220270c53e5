/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_progress.h. */
#include "erpc/erpc_progress.h"

#include "erpc/bulk/erpc_expose.h"
#include "erpc/bulk/erpc_get.h"
#include "erpc/erpc_setup.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_loss.h"
#include "erpc/tx/erpc_now.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_respond.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"

/* ---- sessions ---- */

void erpc_session_flush(struct erpc_session *s)
{
	if (s->err)
		return;
	if (erpc_respond_has_some(s))
		erpc_respond_flush(s);
	erpc_send_leave(s);
	if (s->send.waits & ERPC_WAITS_GETS)
		erpc_get_flush(s);
	erpc_kick(s);
	erpc_now_flushed(s);
}

/** Returns true if packets of a response are still in the burst. */
static bool erpc_session_has_unsent(const struct erpc_session *s)
{
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++)
		if (s->rx[slot].out.unsent)
			return true;
	return false;
}

uint64_t erpc_session_linger_ns(const struct erpc_session *s)
{
	uint64_t ns = erpc_rto_ns(&s->flow.rto) * (s->lossy ? ERPC_LINGER_LOSSY : ERPC_LINGER);

	if (s->lossy && ns < ERPC_LINGER_MIN)
		ns = ERPC_LINGER_MIN;
	return ns < ERPC_RTO_MAX ? ns : ERPC_RTO_MAX;
}

static bool erpc_session_lingers(const struct erpc_session *s)
{
	return s->last_resp_ns && s->ep->now_ns - s->last_resp_ns < erpc_session_linger_ns(s);
}

bool erpc_session_is_busy(const struct erpc_session *s)
{
	if (s->err)
		return false;
	return s->batch.buf || (s->send.waits & ERPC_WAITS_STAGED) ||
	       s->send.free_mask != ERPC_FREE_ALL || s->resp.due_mask || s->ack.wait_mask ||
	       s->ack.empty_mask || !util_list_is_empty(&s->replies) ||
	       erpc_session_has_unsent(s) || erpc_session_lingers(s);
}

/* ---- endpoint ---- */

static inline uint64_t erpc_ep_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/** Returns the earliest time at which a timer expires, or UINT64_MAX. */
static uint64_t erpc_ep_next_ns(const struct erpc_ep *ep)
{
	uint64_t at_ns = UINT64_MAX;

	if (ep->wheel.cnt)
		at_ns = erpc_ep_min(at_ns, erpc_wheel_next_ns(&ep->wheel));
	if (!erpc_set_is_empty(&ep->new_timers))
		at_ns = erpc_ep_min(at_ns, erpc_loss_new_ns(ep));
	if (ep->timers.cnt)
		at_ns = erpc_ep_min(at_ns, erpc_wheel_next_ns(&ep->timers));
	if (!util_list_is_empty(&ep->waiting))
		at_ns = erpc_ep_min(
			at_ns, UTIL_CONTAINER_OF(ep->waiting.next, struct erpc_session, wait_link)
				       ->deadline_ns);
	if (!util_list_is_empty(&ep->piggybacking))
		at_ns = erpc_ep_min(at_ns, UTIL_CONTAINER_OF(ep->piggybacking.next,
							     struct erpc_session, piggyback_link)
						   ->ack_until_ns);
	return at_ns;
}

static void erpc_ep_flush_sessions(struct erpc_ep *ep)
{
	struct util_list todo, *first;

	/* A session that cannot go on marks itself again, for the next call. */
	util_list_move(&ep->dirty, &todo);
	while ((first = util_list_pop(&todo)))
		erpc_session_flush(UTIL_CONTAINER_OF(first, struct erpc_session, dirty_link));
}

static void erpc_ep_report_failures(struct erpc_ep *ep)
{
	struct util_list *first;

	while ((first = util_list_pop(&ep->failing)))
		ep->failed(UTIL_CONTAINER_OF(first, struct erpc_session, fail_link));
}

static inline bool erpc_ep_waits_for_device(const struct erpc_ep *ep)
{
	return !util_list_is_empty(&ep->bufs.waiting) || !util_list_is_empty(&ep->dereg_list) ||
	       !util_list_is_empty(&ep->zombies);
}

/** Frees what waited for the device to complete datagrams. */
static void erpc_ep_reap_cold(struct erpc_ep *ep)
{
	ep->reaped = ep->dg->tx_done;
	if (!erpc_ep_waits_for_device(ep))
		return;
	erpc_bufs_reap_cold(&ep->bufs);
	erpc_expose_reap(ep, false);
	erpc_session_reap(ep, false);
}

/** Runs the expired timers and computes the next expiry. */
static void erpc_ep_due(struct erpc_ep *ep)
{
	if (!util_list_is_empty(&ep->waiting))
		erpc_respond_overdue(ep);
	if (!util_list_is_empty(&ep->piggybacking))
		erpc_piggyback_overdue(ep, false);
	if (ep->wheel.cnt)
		erpc_kick_wheel(ep);
	if (erpc_wheel_is_due(&ep->timers, ep->now_ns))
		erpc_loss_scan(ep);
	ep->next_ns = erpc_ep_next_ns(ep);
}

void erpc_ep_flush_some(struct erpc_ep *ep)
{
	int ret;

	ep->running = true;
	if (ep->now_ns >= ep->next_ns)
		erpc_ep_due(ep);
	if (!util_list_is_empty(&ep->dirty))
		erpc_ep_flush_sessions(ep);
	ret = erpc_out_flush(&ep->out);
	if (UTIL_UNLIKELY(ret))
		erpc_ep_fail(ep, ret);
	if (ep->reaped != ep->dg->tx_done)
		erpc_ep_reap_cold(ep);
	ep->running = false;
	if (UTIL_UNLIKELY(!util_list_is_empty(&ep->failing)))
		erpc_ep_report_failures(ep);
}

bool erpc_ep_progress(struct erpc_ep *ep, uint64_t now_ns)
{
	bool more = erpc_rx_poll(ep, now_ns);

	erpc_ep_flush(ep);
	return more;
}

bool erpc_ep_is_quiet(const struct erpc_ep *ep)
{
	/* While the device is full no packet can be posted; the device signals when that ends. */
	return util_list_is_empty(&ep->failing) && !ep->stage.cnt &&
	       (ep->dg->tx_full || (util_list_is_empty(&ep->dirty) && !ep->out.cnt));
}

uint64_t erpc_ep_due_ns(const struct erpc_ep *ep)
{
	uint64_t at_ns = erpc_ep_next_ns(ep);

	if (at_ns == UINT64_MAX)
		return UINT64_MAX;
	return at_ns > ep->now_ns ? at_ns - ep->now_ns : 0;
}
