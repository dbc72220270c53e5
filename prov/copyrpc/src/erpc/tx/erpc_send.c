/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_send.h. */
#include "erpc/tx/erpc_send.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/tx/erpc_batch.h"
#include "erpc/tx/erpc_now.h"
#include "util/bits.h"
#include "util/probe.h"
#include "util/stats.h"

#define ERPC_BUSY_MANY 3u /* batches in flight behind which the next ones may be long */
/* bytes stored beyond a frame: two words of extension behind its header */
#define ERPC_SEND_SLOP 24u

static_assert(ERPC_BUSY_MANY == 3, "erpc_send_is_busy");

bool erpc_send_batch(struct erpc_session *s, struct erpc_buf *buf, uint32_t cnt)
{
	if (!erpc_batch_has_slot(s))
		return false;
	erpc_batch_leave(s, buf, cnt, erpc_kick_may_now(s, buf->len));
	return true;
}

bool erpc_send_leave(struct erpc_session *s)
{
	uint32_t frames;

	if (!(s->send.waits & ERPC_WAITS_BATCH)) {
		erpc_stage_end(s);
		return true;
	}
	frames = (uint16_t)(s->flow.posted / ERPC_POS_STEP - s->flow.sent);
	if (frames == 1 && !s->flow.after_single && !erpc_batch_busy(s))
		s->flow.bursts = 0; /* waited for other messages in vain */
	/* if the batch stays, the next message marks the session again */
	erpc_session_close_batch(s);
	s->batch.buf->len = erpc_send_len(s);
	if (!s->flow.after_single)
		s->batch.expected_len = s->batch.buf->len;
	if (!erpc_batch_has_slot(s))
		return false;
	if (UTIL_LIKELY(frames)) /* 0: a call that found no number opened it */
		util_stats_batch(s->conn.chan.stats, frames, s->batch.buf->len);
	erpc_batch_leave(s, s->batch.buf, frames, erpc_kick_may_now(s, s->batch.buf->len));
	s->batch.buf = NULL;
	s->send.waits &= ~ERPC_WAITS_BATCH;
	return true;
}

void erpc_send_acked(struct erpc_session *s, uint32_t seq)
{
	uint16_t acked, left;

	s->send.done_mask |= 1u << seq % ERPC_SLOTS;
	if (seq != s->send.seq_done)
		return; /* an earlier one is not acknowledged */
	do
		seq++;
	while (seq != s->send.seq && (s->send.done_mask & 1u << seq % ERPC_SLOTS));
	s->send.seq_done = seq;
	acked = seq == s->send.seq ? s->flow.sent : s->batch_ends[(seq - 1) % ERPC_SLOTS];
	left = (uint16_t)(s->flow.posted / ERPC_POS_STEP - acked);
	s->ep->up->on_acked(&s->conn.chan, s->flow.posted - ERPC_POS_STEP * (uint64_t)left);
}

/** Opens a batch for a frame of `span` bytes, with room for expected followers. */
static bool erpc_send_open(struct erpc_session *s, uint32_t span)
{
	uint32_t len = ERPC_BATCH_HEAD + span;
	struct erpc_buf *buf;

	if (erpc_batch_gathers(s) && len < s->batch.expected_len)
		len = s->batch.expected_len;
	buf = erpc_buf_alloc(&s->ep->bufs, len);
	if (!buf)
		return false;
	s->batch.buf = buf;
	s->send.waits |= ERPC_WAITS_BATCH;
	s->flow.fill = buf->data + ERPC_BATCH_HEAD;
	return true;
}

/** Moves the open batch to a buffer for `len` bytes. */
static bool erpc_send_grow(struct erpc_session *s, uint32_t len)
{
	struct erpc_buf *larger;

	s->batch.buf->len = erpc_send_len(s);
	larger = erpc_buf_grow(&s->ep->bufs, s->batch.buf, len);
	if (!larger)
		return false;
	s->batch.buf = larger;
	s->flow.fill = larger->data + larger->len;
	return true;
}

/** Marks the session, so that no thread sleeps until there is memory. Returns NULL. */
static uint8_t *erpc_send_no_memory(struct erpc_session *s)
{
	erpc_session_mark(s);
	return NULL;
}

/** Returns true if ERPC_BUSY_MANY batches are in flight, or no slot is free for another. */
static inline bool erpc_send_is_busy(const struct erpc_session *s)
{
	uint32_t busy = erpc_batch_busy(s);

	busy &= busy - 1;
	return (busy & (busy - 1)) || !erpc_batch_has_slot(s);
}

/**
 * Returns the maximum length of the open batch. One that waits anyway may have several packets:
 * then credits bound the bytes in flight, not slots.
 */
static inline uint32_t erpc_send_max(const struct erpc_session *s)
{
	return erpc_send_is_busy(s) ? s->batch_long_max : s->batch_max;
}

/** Sends the full open batch. Returns false without a slot. */
static bool erpc_send_full(struct erpc_session *s)
{
	s->batch.expected_len = erpc_send_len(s);
	if (erpc_send_leave(s))
		return true;
	return false;
}

bool erpc_send_has_room(const struct erpc_session *s, uint32_t span)
{
	return !s->batch.buf || erpc_send_len(s) + span <= erpc_send_max(s) ||
	       erpc_batch_has_slot(s);
}

uint8_t *erpc_send_room(struct erpc_session *s, uint32_t span)
{
	erpc_stage_end(s);
	if (s->batch.buf && erpc_send_len(s) + span > erpc_send_max(s) && !erpc_send_full(s))
		return NULL;
	if (!s->batch.buf) {
		if (!erpc_send_open(s, span))
			return erpc_send_no_memory(s);
	} else if (erpc_send_len(s) + span > s->batch.buf->cap) {
		if (!erpc_send_grow(s, erpc_send_len(s) + span))
			return erpc_send_no_memory(s);
	}
	return s->flow.fill;
}

/** Returns true if the batch leaves at once. */
static inline bool erpc_send_is_now(const struct erpc_session *s, unsigned flags)
{
	if (flags & CORE_SEND_NOW)
		return (uint32_t)__builtin_popcount(erpc_batch_busy(s)) < erpc_now_max(s->ep) &&
		       erpc_batch_has_slot(s);
	return !erpc_batch_gathers(s) && !(flags & CORE_SEND_MORE) && !s->ep->running;
}

/** Notes a message that stays: does it follow a single one without progress in between? */
static inline void erpc_send_follows(struct erpc_session *s)
{
	if (!s->flow.after_single)
		return;
	s->flow.after_single = false;
	if (!s->flow.fresh)
		s->flow.bursts = 0;
	else if (s->flow.bursts < ERPC_BURSTS_TRUST)
		s->flow.bursts++;
}

/**
 * Sets the limits up to which messages are appended without further checks. Such a message stores
 * up to ERPC_SEND_SLOP bytes beyond its end.
 */
static void erpc_send_stay(struct erpc_session *s)
{
	uint32_t cap = s->batch.buf->cap, max = erpc_send_max(s);

	max = (max < cap ? max : cap) - ERPC_SEND_SLOP;

	erpc_session_close_batch(s);
	if (erpc_send_len(s) > max)
		return;
	s->batch.end_more = s->batch.buf->data + max;
	if (erpc_batch_gathers(s))
		s->flow.end = s->batch.end_more;
}

void erpc_send_added(struct erpc_session *s, uint32_t span, unsigned flags)
{
	bool leaves = erpc_send_is_now(s, flags);

	s->flow.fill += span;
	s->flow.posted += ERPC_POS_STEP;
	if (leaves) {
		if (!(flags & CORE_SEND_NOW))
			erpc_batch_is_single(s);
		erpc_send_leave(s);
		erpc_kick(s);
		erpc_defer_join(s);
		erpc_ep_doorbell(s->ep);
	} else {
		erpc_send_follows(s);
		erpc_send_stay(s);
		erpc_session_mark(s);
	}
	if (flags & CORE_SEND_NOW)
		erpc_now_posted(s);
}

/** Counts a message without a slot or memory. Returns -FI_EAGAIN. */
static __attribute__((noinline, cold)) int erpc_send_refuse_cold(struct erpc_session *s)
{
	s->conn.chan.stats->no_space++;
	UTIL_PROBE2(wait, s->conn.chan.stats, UTIL_PROBE_SPACE);
	return -FI_EAGAIN;
}

int erpc_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, len);
	uint8_t *at;

	if (UTIL_UNLIKELY(s->err))
		return -FI_EAGAIN; /* the next progress call reports it, and ends what waits */
	at = erpc_send_room(s, span);
	if (!at)
		return erpc_send_refuse_cold(s);
	erpc_send_gather(wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, frame->op, 0, len), frame);
	erpc_send_added(s, span, flags);
	return 0;
}

/** Returns the flags of a message: one of several packets leaves at once. */
static inline unsigned erpc_send_flags(const struct erpc_session *s, uint64_t packed, size_t len)
{
	unsigned flags = core_packed_flags(packed);

	return len > s->payload && !(flags & CORE_SEND_MORE) ? flags | CORE_SEND_NOW : flags;
}

static int __attribute__((noinline))
erpc_send_buf_cold(struct erpc_session *s, uint64_t packed, uint64_t ext0, uint64_t ext1,
		   const void *buf, size_t len)
{
	uint32_t ext_len = core_packed_ext_len(packed);
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, ext_len + (uint32_t)len);
	uint64_t ext[8] = { ext0, ext1 }; /* bytes that util_copy_short may read */
	unsigned flags = erpc_send_flags(s, packed, len);
	uint8_t *at;

	if (UTIL_UNLIKELY(s->err))
		return -FI_EAGAIN; /* likewise */
	at = erpc_send_room(s, span);
	if (UTIL_UNLIKELY(!at))
		return erpc_send_refuse_cold(s);
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, core_packed_op(packed), 0,
				 ext_len + (uint32_t)len);
	util_copy_short(at, ext, ext_len);
	util_copy(at + ext_len, buf, len);
	erpc_send_added(s, span, flags);
	return 1 | (erpc_now_stays(s, flags) ? CORE_SEND_STAYS : 0) |
	       (len > s->payload ? CORE_SEND_LONG : 0);
}

/**
 * Writes a message. Stores both words of extension, whatever it has, and then the bytes over the
 * unused part.
 */
UTIL_INLINE void erpc_send_put(uint8_t *at, uint64_t packed, uint64_t ext0, uint64_t ext1,
			       const void *buf, size_t len)
{
	uint32_t ext_len = core_packed_ext_len(packed);
	uint64_t ext[2] = { ext0, ext1 };

	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, core_packed_op(packed), 0,
				 ext_len + (uint32_t)len);
	memcpy(at, ext, sizeof(ext));
	util_copy_short(at + ext_len, buf, len);
}

/** Handles a message that cannot be appended without further checks. */
static int __attribute__((noinline))
erpc_send_buf_general(struct erpc_session *s, uint64_t packed, uint64_t ext0, uint64_t ext1,
		      const void *buf, size_t len)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG,
					     core_packed_ext_len(packed) + (uint32_t)len);
	struct erpc_buf *single;

	if (!erpc_batch_may_single(s, span, len, core_packed_flags(packed)))
		return erpc_send_buf_cold(s, packed, ext0, ext1, buf, len);
	single = erpc_batch_single_buf(s, span);
	erpc_send_put(single->data + ERPC_BATCH_HEAD, packed, ext0, ext1, buf, len);
	erpc_batch_send_single(s, single);
	return 1; /* CORE_CHAN_ASYNC */
}

/** Appends to the open batch up to `end`, the common case. Returns false if nothing was done. */
UTIL_INLINE bool erpc_send_append(struct erpc_session *s, const uint8_t *end, uint64_t packed,
				  uint64_t ext0, uint64_t ext1, const void *buf, size_t len)
{
	uint32_t body = core_packed_ext_len(packed) + (uint32_t)len;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, body);
	uint8_t *at = s->flow.fill;

	if (UTIL_UNLIKELY((ptrdiff_t)span > end - at || len > UTIL_COPY_SHORT ||
			  core_packed_flags(packed)))
		return false;
	erpc_send_put(at, packed, ext0, ext1, buf, len);
	s->flow.fill += span;
	s->flow.posted += ERPC_POS_STEP;
	return true;
}

int erpc_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		  const void *buf, size_t len)
{
	struct erpc_session *s = erpc_session_of(chan);

	if (UTIL_UNLIKELY(!erpc_send_append(s, s->flow.end, packed, ext0, ext1, buf, len)))
		return erpc_send_buf_general(s, packed, ext0, ext1, buf, len);
	return 1; /* CORE_CHAN_ASYNC */
}

int erpc_send_more(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		   const void *buf, size_t len)
{
	struct erpc_session *s = erpc_session_of(chan);

	if (UTIL_UNLIKELY(!erpc_send_append(s, s->batch.end_more, packed, ext0, ext1, buf, len)))
		return erpc_send_buf_cold(s, core_packed_more(packed), ext0, ext1, buf, len);
	return 1; /* CORE_CHAN_ASYNC */
}
