/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a message that must leave at once (CORE_SEND_NOW) may gather with others all the same.
 * Called by erpc_send.c, erpc_call.c and the poll.
 *
 * A sender of such messages may never call progress: what stays in the open batch stays there while
 * it computes. Yet a sender of thousands would pay for a packet each. So a message leaves as long
 * as a slot is free. When none is, the caller makes progress, which may free one (CORE_SEND_STAYS).
 * A message of several packets is one of them, since it may be complete for its sender, and has
 * little to gain from company. If the process calls progress within ERPC_NOW_SOON_NS of such
 * messages, or of the ends of received ones (erpc_defer.h), ERPC_NOW_TRUST times in a row, they
 * gather from then on behind ERPC_NOW_FEW batches in flight. A call that comes later ends that; if
 * it let messages wait, four times as many are needed the next time.
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
#define ERPC_NOW_LIKELY  16u    /* part of the times in a row after which a reply may wait */
#define ERPC_NOW_MOST    65536u /* largest number of times in a row */

/** Returns true if the process is expected to call progress soon. */
static inline bool erpc_now_is_trusted(const struct erpc_ep *ep)
{
	return ep->now.soon >= ep->now.trust;
}

/** Returns true if that is likely: a single reply may wait for it (erpc_defer.h). */
static inline bool erpc_now_is_likely(const struct erpc_ep *ep)
{
	return ep->now.soon >= ep->now.trust / ERPC_NOW_LIKELY;
}

/** Returns the number of batches in flight behind which such messages do not leave. */
static inline uint32_t erpc_now_max(const struct erpc_ep *ep)
{
	return erpc_now_is_trusted(ep) ? ERPC_NOW_FEW : ERPC_BATCH_SLOTS;
}

/** Returns true if a message waits in the open batch, for credits, or for room in the device. */
static inline bool erpc_now_waits(const struct erpc_session *s)
{
	return s->batch.buf || (s->send.pending_mask & ERPC_BATCH_MASK) || s->ep->out.cnt;
}

/** Notes such a message of a session. What waits during progress leaves at its end. */
static inline void erpc_now_posted(struct erpc_session *s)
{
	s->ep->now.posted = true;
	s->ep->now.stays |= !s->ep->running && erpc_now_waits(s);
}

/** Handles that such a message waits. Returns true if progress may let it leave. */
bool erpc_now_stays_cold(struct erpc_session *s);

/** Returns true if the last message, with `flags`, waits and progress may let it leave. */
static inline bool erpc_now_stays(struct erpc_session *s, unsigned flags)
{
	return UTIL_UNLIKELY((flags & CORE_SEND_NOW) && erpc_now_waits(s)) &&
	       erpc_now_stays_cold(s);
}

/** Handles the flush of a session whose message waited. */
void erpc_now_flushed_cold(struct erpc_session *s);

/** Notes the flush of a session. */
static inline void erpc_now_flushed(struct erpc_session *s)
{
	if (UTIL_UNLIKELY(s->send.waits & ERPC_WAITS_NOW))
		erpc_now_flushed_cold(s);
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
