/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress of an endpoint and of its sessions. Called by transport/.
 *
 * Order of erpc_ep_progress: received packets (rx/erpc_rx.h); expired timers (losses, delayed
 * responses, pacing); sessions with something to send; the burst; failures.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c and test_erpc_session.c.
 */
#ifndef ERPC_ERPC_PROGRESS_H
#define ERPC_ERPC_PROGRESS_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "erpc/rx/erpc_rx.h"

/** Returns true if more packets may be pending. A now_ns before the previous one counts as that. */
bool erpc_ep_progress(struct erpc_ep *ep, uint64_t now_ns);

/** Returns true if packets wait for a session's attach or for the next progress. */
static inline bool erpc_ep_has_saved(const struct erpc_ep *ep)
{
	return ep->saved_cnt;
}

/**
 * Returns true if no packet has arrived and no work waits for the time: the caller may skip
 * erpc_rx_poll and the read of the clock. Timers then run at most ERPC_IDLE_MAX progress calls
 * later, and sent packets get their time at most ERPC_IDLE_FRESH calls later.
 */
static inline bool erpc_ep_is_idle(struct erpc_ep *ep)
{
	unsigned max = erpc_set_is_empty(&ep->fresh) ? ERPC_IDLE_MAX : ERPC_IDLE_FRESH;
	struct dev_dgram *dg = ep->dg;

	if (ep->idle >= max || ep->saved_cnt || ep->stage.cnt || !dg->ops->is_idle ||
	    !dg->ops->is_idle(dg))
		return false;
	ep->idle++;
	return true;
}

/** Implements erpc_ep_flush where there is work. */
void erpc_ep_flush_some(struct erpc_ep *ep);

/** Runs timers and sends: the second half of erpc_ep_progress, after erpc_rx_poll. */
static inline void erpc_ep_flush(struct erpc_ep *ep)
{
	if (ep->now_ns >= ep->next_ns || !util_list_is_empty(&ep->dirty) || ep->out.cnt ||
	    ep->reaped != ep->dg->tx_done || !util_list_is_empty(&ep->failing))
		erpc_ep_flush_some(ep);
}

/** Returns true if progress has no work until the device or a timer signals. */
bool erpc_ep_is_quiet(const struct erpc_ep *ep);

/** Returns the nanoseconds until the next timer expires, or UINT64_MAX. */
uint64_t erpc_ep_due_ns(const struct erpc_ep *ep);

/** Sends what slots, credits and rate allow. */
void erpc_session_flush(struct erpc_session *s);

/**
 * Returns the time for which a closing session can repeat its last response, which has no
 * acknowledgement. The peer repeats its request after an RTO similar to ours, and up to five times
 * more, each doubled, if losses are certain.
 */
uint64_t erpc_session_linger_ns(const struct erpc_session *s);

/** Returns true while accepted messages or their responses are unfinished. */
bool erpc_session_is_busy(const struct erpc_session *s);

#endif
