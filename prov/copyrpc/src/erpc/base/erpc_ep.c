/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations on an endpoint for all of erpc/: see erpc_ep.h. */
#include "erpc/base/erpc_ep.h"

#include "erpc/base/erpc_session.h"
#include "util/bits.h"

void erpc_ep_doorbell_some(struct erpc_ep *ep)
{
	int ret = erpc_out_flush_some(&ep->out);

	if (UTIL_UNLIKELY(ret))
		erpc_ep_fail(ep, ret);
}

void erpc_ep_await(struct erpc_ep *ep, uint32_t number)
{
	unsigned polls;
	int n = 0;

	for (polls = 0; polls < ERPC_AWAIT_POLLS && !ep->err; polls++) {
		if (dev_dgram_is_done(ep->dg, number))
			return;
		if (ep->saved_cnt == ERPC_POLL_BURST) /* drops the last packet, as a network may */
			ep->dg->ops->release(ep->dg, ep->saved[--ep->saved_cnt].slot);
		n = ep->dg->ops->poll(ep->dg, ep->saved + ep->saved_cnt,
				      ERPC_POLL_BURST - ep->saved_cnt);
		if (n < 0)
			erpc_ep_fail(ep, n);
		else
			ep->saved_cnt += (unsigned)n;
	}
}

void erpc_ep_fail_sessions(struct erpc_ep *ep, int err)
{
	for (uint32_t num = 0; num < ERPC_SESSIONS_MAX; num++) {
		struct erpc_session *s = ep->sessions[num].session;

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
