/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations on a session for all of erpc/: see erpc_session.h. */
#include "erpc/base/erpc_session.h"

#include "erpc/base/erpc_ep.h"
#include "util/log.h"

void erpc_session_mark_cold(struct erpc_session *s)
{
	if (!s->err)
		util_list_push_back(&s->ep->dirty, &s->dirty_link);
}

void erpc_session_fail(struct erpc_session *s, int err, const char *why)
{
	if (s->err)
		return;
	s->err = err;
	erpc_session_close_all(s);
	if (why)
		UTIL_WARN(EP_DATA, "connection to one peer failed: %s\n", why);
	util_list_remove(&s->dirty_link);
	if (util_list_is_empty(&s->fail_link))
		util_list_push_back(&s->ep->failing, &s->fail_link);
}

void erpc_session_refuse(struct erpc_session *s, enum erpc_verdict verdict)
{
	struct copyrpc_stats_packets *stats = s->ep->stats;

	switch (verdict) {
	case ERPC_REPEAT: stats->rx_repeats++; break;
	case ERPC_STALE: stats->rx_stale++; break;
	case ERPC_EARLY: stats->rx_early++; break;
	case ERPC_BAD: stats->rx_bad++; break;
	case ERPC_TAKE:
	case ERPC_LAST: break;
	}
}
