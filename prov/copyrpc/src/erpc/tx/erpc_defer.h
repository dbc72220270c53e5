/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deferred replies: the end of a received message waits for the next message of its receiver, and
 * both leave with one call of the device. Called by erpc_reply.c, erpc_respond.c, erpc_send.c and
 * erpc_batch.h.
 *
 * A process that awaited a long message often sends one next, and the sender of the first awaits
 * both. The process may compute instead. So such a reply is deferred only while the process is
 * likely to call progress soon (erpc_now.h), until the second progress call that follows, and only
 * if nothing else leaves with this one. The message goes first, since it is the longer one (GSO).
 *
 * Owner: the endpoint. Tested in test/unit/erpc/tx/test_erpc_defer.c.
 */
#ifndef ERPC_TX_ERPC_DEFER_H
#define ERPC_TX_ERPC_DEFER_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "util/bits.h"

#define ERPC_DEFER_POLLS 2u /* progress calls that end before it leaves */

/** Notes a reply with `flags` (CORE_SEND_ENDS). Another kind of reply ends the deferral. */
void erpc_defer_reply(struct erpc_session *s, unsigned flags);

/** Returns true if the replies of a session wait for another progress call. */
bool erpc_defer_flush_cold(struct erpc_session *s);

static inline bool erpc_defer_flush(struct erpc_session *s)
{
	return UTIL_UNLIKELY(s->ep->defer.session == s) && erpc_defer_flush_cold(s);
}

/** Sends deferred replies. */
void erpc_defer_join_cold(struct erpc_session *s);

/** Adds the deferred replies of a session to the burst, behind a message. */
static inline void erpc_defer_join(struct erpc_session *s)
{
	if (UTIL_UNLIKELY(s->ep->defer.session == s))
		erpc_defer_join_cold(s);
}

/** Ends the deferral of a session that closes. */
static inline void erpc_defer_forget(struct erpc_session *s)
{
	if (s->ep->defer.session == s)
		s->ep->defer.session = NULL;
}

#endif
