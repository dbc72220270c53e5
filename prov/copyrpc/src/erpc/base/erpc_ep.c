/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations on an endpoint for all of erpc/: see erpc_ep.h. */
#include "erpc/base/erpc_ep.h"

#include <sched.h>

#include "erpc/base/erpc_session.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"

void erpc_ep_doorbell_some(struct erpc_ep *ep)
{
	int ret = erpc_out_flush_some(&ep->out);

	if (UTIL_UNLIKELY(ret))
		erpc_ep_fail(ep, ret);
}

/** Polls once and saves the packets. */
static void erpc_ep_await_poll(struct erpc_ep *ep)
{
	int n;

	if (ep->saved_cnt == ERPC_POLL_BURST) /* drops the last packet, as a network may */
		ep->dg->ops->release(ep->dg, ep->saved[--ep->saved_cnt].slot);
	n = ep->dg->ops->poll(ep->dg, ep->saved + ep->saved_cnt, ERPC_POLL_BURST - ep->saved_cnt);
	if (n < 0)
		erpc_ep_fail(ep, n);
	else
		ep->saved_cnt += (unsigned)n;
}

void erpc_ep_await(struct erpc_ep *ep, uint32_t number)
{
	uint64_t end_ns = 0;

	for (unsigned polls = 0; !ep->err && !dev_dgram_is_done(ep->dg, number); polls++) {
		if (polls == ERPC_AWAIT_POLLS)
			end_ns = util_clock_ns() + ERPC_AWAIT_NS;
		if (polls > ERPC_AWAIT_POLLS && util_clock_ns() > end_ns) {
			UTIL_WARN(EP_DATA,
				  "the device has not sent datagram %u for %u s (is its port "
				  "paused?): its buffer returns to its owner unsent\n",
				  number, (unsigned)(ERPC_AWAIT_NS / UTIL_NS_PER_S));
			return;
		}
		if (polls >= ERPC_AWAIT_POLLS)
			sched_yield();
		erpc_ep_await_poll(ep);
	}
}

void erpc_ep_fail_sessions(struct erpc_ep *ep, int err)
{
	for (uint32_t num = 0; num < ERPC_SESSIONS_MAX; num++) {
		struct erpc_session *s = ep->sessions[num];

		if (s && s->attached)
			erpc_session_fail(s, err, NULL);
	}
}

void erpc_ep_fail(struct erpc_ep *ep, int err)
{
	if (ep->err)
		return;
	ep->err = err;
	erpc_ep_fail_sessions(ep, err);
}
