/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When does what is said wait for more, and what becomes of a batch that leaves?
 *
 * The rules of the open batch (erpc_send.h), for who fills one and for who needs none (erpc_single.h).
 *
 * Shown by test/unit/erpc/tx/test_erpc_send.c.
 */
#ifndef ERPC_BATCH_H
#define ERPC_BATCH_H

#include <string.h>

#include "erpc/erpc_session.h"
#include "erpc/tx/erpc_first.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_piggyback.h"

#define ERPC_BATCH_HEAD   ((uint32_t)sizeof(struct wire_erpc_batch))
#define ERPC_BURSTS_TRUST 2u /* bursts in a row, and one more is expected */

/** Batches under way: a bit for each. */
static inline uint32_t erpc_batch_busy(const struct erpc_session *s)
{
	return ~s->free_mask & ERPC_BATCH_MASK;
}

/**
 * Does what is said gather in the open batch? Behind others that are under way, and where it is usual that
 * more follows before the next progress.
 */
static inline bool erpc_batch_gathers(const struct erpc_session *s)
{
	return erpc_batch_busy(s) || s->bursts == ERPC_BURSTS_TRUST;
}

/** A message leaves by itself: so did the one before, if nothing followed it. */
static inline void erpc_batch_is_single(struct erpc_session *s)
{
	if (s->after_single)
		s->bursts = 0;
	s->after_single = true;
}

/** May another batch begin? The peer orders no more than ERPC_SLOTS of them. */
static inline bool erpc_batch_has_slot(const struct erpc_session *s)
{
	return (s->free_mask & ERPC_BATCH_MASK) && s->seq - s->seq_done < ERPC_SLOTS;
}

/**
 * `buf` leaves in a free slot, at once (`now`: after erpc_first_may) or as soon as it may; `end`: the position behind it.
 * After has_slot; the packets are in the burst, or wait for erpc_kick.
 */
static inline __attribute__((always_inline)) void erpc_batch_leave(struct erpc_session *s,
								   struct erpc_buf *buf,
								   uint64_t end, bool now)
{
	struct wire_erpc_batch head = { .seq = s->seq };
	uint32_t slot = (uint32_t)__builtin_ctz(s->free_mask);
	struct erpc_tx *tx = &s->tx[slot];
	bool prompt = !buf->has_calls;

	tx->seq = head.seq;
	s->seq = head.seq + 1;
	s->batch_ends[head.seq % ERPC_SLOTS] = end;
	s->sent_pos = end;
	s->done_mask &= ~(1u << head.seq % ERPC_SLOTS);
	s->ep->stats.batches++;
	head.ack = erpc_piggyback_take(s);
	memcpy(buf->data, &head, sizeof(head));
	if (now)
		erpc_first_go(s, slot, WIRE_ERPC_BATCH, buf, s->payload);
	else
		erpc_kick_begin(s, slot, WIRE_ERPC_BATCH, buf, s->payload);
	tx->prompt = prompt;
}

#endif
