/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_defer.h. */
#include "erpc/tx/erpc_defer.h"

#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_now.h"
#include "erpc/tx/erpc_respond.h"

void erpc_defer_reply(struct erpc_session *s, unsigned flags)
{
	struct erpc_ep *ep = s->ep;

	if (!(flags & CORE_SEND_ENDS)) {
		erpc_defer_forget(s);
		return;
	}
	ep->now.posted = true;
	if (ep->running && !ep->defer.session && erpc_now_is_likely(ep))
		ep->defer = (struct erpc_defer){ .session = s };
}

/** Returns true if packets of the session or of others leave with this progress call. */
static bool erpc_defer_has_company(const struct erpc_session *s)
{
	return s->ep->out.cnt || s->resp.cr_mask || (s->send.waits & ERPC_WAITS_BATCH);
}

bool erpc_defer_flush_cold(struct erpc_session *s)
{
	struct erpc_ep *ep = s->ep;

	if (ep->defer.polls == ERPC_DEFER_POLLS || !ep->running || erpc_defer_has_company(s)) {
		ep->defer.session = NULL;
		return false;
	}
	ep->defer.polls++;
	ep->now.posted = true;
	ep->now.stays = true;
	erpc_session_mark(s);
	return true;
}

void erpc_defer_join_cold(struct erpc_session *s)
{
	s->ep->defer.session = NULL;
	erpc_respond_flush(s);
	erpc_kick(s);
}
