/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a message that must leave at once (CORE_SEND_NOW) may gather with others all the same.
 * Called by erpc_send.c, erpc_call.c and the poll.
 *
 * A sender of such messages may never call progress: what stays in the open batch stays there while
 * it computes. Yet a sender of thousands would pay for a packet each. So a message leaves as long
 * as a slot is free. When none is, the caller makes progress, which may free one (CORE_SEND_STAYS;
 * once, until the batch has left). If the process calls progress within ERPC_NOW_SOON_NS of such
 * messages ERPC_NOW_TRUST times in a row, they gather from then on behind ERPC_NOW_FEW batches in
 * flight. A call that comes later ends that; if it let messages wait, four times as many are needed
 * the next time.
 *
 * Owner: the endpoint. Tested in test/unit/erpc/tx/test_erpc_now.c.
 */
#ifndef ERPC_TX_ERPC_NOW_H
#define ERPC_TX_ERPC_NOW_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "util/bits.h"

#define ERPC_NOW_FEW     2u
#define ERPC_NOW_SOON_NS 200000u
#define ERPC_NOW_MOST    65536u /* largest number of times in a row */

/** Returns true if the process is expected to call progress soon. */
static inline bool erpc_now_is_trusted(const struct erpc_ep *ep)
{
	return ep->now.soon >= ep->now.trust;
}

/** Returns the number of batches in flight behind which such messages do not leave. */
static inline uint32_t erpc_now_max(const struct erpc_ep *ep)
{
	return erpc_now_is_trusted(ep) ? ERPC_NOW_FEW : ERPC_BATCH_SLOTS;
}

/** Notes such a message; `stays`: in the open batch. */
static inline void erpc_now_posted(struct erpc_ep *ep, bool stays)
{
	ep->now.posted = true;
	ep->now.stays |= stays;
}

/** Handles that such a message stays. Returns true if progress may let it leave. */
bool erpc_now_stays_cold(struct erpc_session *s);

/** Returns true if the last message, with `flags`, stays and progress may let it leave. */
static inline bool erpc_now_stays(struct erpc_session *s, unsigned flags)
{
	return UTIL_UNLIKELY((flags & CORE_SEND_NOW) && s->ep->now.stays) && erpc_now_stays_cold(s);
}

/** Notes that nothing of a session waits in its open batch. */
static inline void erpc_now_left(struct erpc_session *s)
{
	s->conn.chan.stays = false;
}

/** Learns from a poll at now_ns that such messages preceded. */
void erpc_now_learn_cold(struct erpc_ep *ep, uint64_t now_ns);

/** Notes a poll. Called before the endpoint's time is set. */
static inline void erpc_now_polled(struct erpc_ep *ep, uint64_t now_ns)
{
	if (UTIL_UNLIKELY(ep->now.posted))
		erpc_now_learn_cold(ep, now_ns);
}

#endif
