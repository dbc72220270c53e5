/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When the open batch waits for more messages, how a batch leaves, and the fast path of a small
 * message or call that leaves in a batch of its own. Called by erpc_send.c and erpc_call.c.
 *
 * Fast path: if nothing of the session is in flight or waits, and no flag announces more, the
 * packet is made in one step, without opening, marking, flushing and closing a batch. Packet and
 * session state equal those of the general path.
 *
 * Tested in test/unit/erpc/tx/test_erpc_send.c, and test_erpc_single.c, which compares both paths.
 */
#ifndef ERPC_TX_ERPC_BATCH_H
#define ERPC_TX_ERPC_BATCH_H

#include <string.h>

#include "erpc/base/erpc_session.h"
#include "erpc/tx/erpc_defer.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_stage.h"
#include "util/bits.h"
#include "util/copy.h"
#include "util/stats.h"

#define ERPC_BATCH_HEAD   ((uint32_t)sizeof(struct wire_erpc_batch))
#define ERPC_BURSTS_TRUST 2u /* bursts in a row after which the next one is expected */

/** Returns the mask of batches in flight. */
static inline uint32_t erpc_batch_busy(const struct erpc_session *s)
{
	return ~s->send.free_mask & ERPC_BATCH_MASK;
}

/**
 * Returns true if messages gather in the open batch: others are in flight, or a burst is expected.
 */
static inline bool erpc_batch_gathers(const struct erpc_session *s)
{
	return erpc_batch_busy(s) || s->flow.bursts == ERPC_BURSTS_TRUST;
}

/**
 * Notes that a message leaves in a batch of its own. Without a follower of the previous one, bursts
 * end.
 */
static inline void erpc_batch_is_single(struct erpc_session *s)
{
	if (s->flow.after_single)
		s->flow.bursts = 0;
	s->flow.after_single = true;
}

/** Returns true if another batch may begin. The peer orders at most ERPC_SLOTS of them. */
static inline bool erpc_batch_has_slot(const struct erpc_session *s)
{
	return (s->send.free_mask & ERPC_BATCH_MASK) && s->send.seq - s->send.seq_done < ERPC_SLOTS;
}

/**
 * Sends `buf` with `cnt` messages in a free slot. `now` (if erpc_kick_may_now): the
 * packet is in the burst on return, else it waits for erpc_kick. Requires erpc_batch_has_slot.
 */
UTIL_INLINE void erpc_batch_leave(struct erpc_session *s, struct erpc_buf *buf, uint32_t cnt,
				  bool now)
{
	struct wire_erpc_batch head = { .seq = s->send.seq };
	uint32_t slot = (uint32_t)__builtin_ctz(s->send.free_mask);
	struct erpc_tx *tx = &s->tx[slot];

	tx->seq = head.seq;
	s->send.seq = head.seq + 1;
	if (head.seq != s->send.seq_done) /* else the end of the last one is reported */
		s->batch_ends[(head.seq - 1) % ERPC_SLOTS] = s->flow.sent;
	s->flow.sent += (uint16_t)cnt;
	s->send.done_mask &= ~(1u << head.seq % ERPC_SLOTS);
	head.ack = erpc_piggyback_take(s);
	memcpy(buf->data, &head, sizeof(head));
	if (now)
		erpc_kick_now(s, slot, WIRE_ERPC_BATCH, buf, s->payload);
	else
		erpc_kick_begin(s, slot, WIRE_ERPC_BATCH, buf, s->payload);
}

/* ---- single messages ---- */

/**
 * Returns true if a frame of `span` bytes, `len` of them the user's, may leave alone now, and there
 * is a buffer for it.
 */
static inline bool erpc_batch_may_single(const struct erpc_session *s, uint32_t span, size_t len,
					 unsigned flags)
{
	const struct erpc_ep *ep = s->ep;

	return !flags && len <= UTIL_COPY_SHORT &&
	       !(s->send.waits & (ERPC_WAITS_BATCH | ERPC_WAITS_STAGED)) && !s->err &&
	       !ep->running && !erpc_batch_gathers(s) &&
	       erpc_kick_may_now(s, ERPC_BATCH_HEAD + span) && erpc_buf_has_tiny(&ep->bufs);
}

/** Takes that buffer. Requires erpc_batch_may_single. */
static inline struct erpc_buf *erpc_batch_single_buf(struct erpc_session *s, uint32_t span)
{
	struct erpc_buf *buf = erpc_buf_take(&s->ep->bufs, 0);

	buf->len = ERPC_BATCH_HEAD + span;
	return buf;
}

/** Adds the packet of such a message to the burst, or with `now` false to what waits for one. */
UTIL_INLINE void erpc_batch_leave_single(struct erpc_session *s, struct erpc_buf *buf, bool now)
{
	erpc_batch_is_single(s);
	util_stats_single(s->conn.chan.stats, buf->len);
	erpc_batch_leave(s, buf, 1, now);
	if (!now)
		erpc_kick(s);
	erpc_defer_join(s);
}

/** Sends the buffer after its frame was written, or stages it. */
static inline void erpc_batch_send_single(struct erpc_session *s, struct erpc_buf *buf)
{
	s->flow.posted += ERPC_POS_STEP;
	if (erpc_stage_note(s)) {
		erpc_stage_add(s, buf);
		return;
	}
	erpc_batch_leave_single(s, buf, true);
	erpc_ep_doorbell(s->ep);
}

#endif
