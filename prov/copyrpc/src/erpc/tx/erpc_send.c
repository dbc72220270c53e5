/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Batches fill and leave: see erpc_send.h. */
#include "erpc/tx/erpc_send.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/tx/erpc_batch.h"
#include "erpc/tx/erpc_single.h"
#include "util/bits.h"

#define ERPC_BUSY_MANY 3u  /* batches under way, and the next ones may be long */
#define ERPC_SEND_SLOP 24u /* beyond a frame: two words of an extension behind its head */

_Static_assert(ERPC_NOW_MAX == 2, "erpc_send_is_now");
_Static_assert(ERPC_BUSY_MANY == 3, "erpc_send_is_busy");

bool erpc_send_batch(struct erpc_session *s, struct erpc_buf *buf, uint64_t end)
{
	if (!erpc_batch_has_slot(s))
		return false;
	erpc_batch_leave(s, buf, end, erpc_first_may(s, buf->len));
	return true;
}

bool erpc_send_leave(struct erpc_session *s)
{
	uint64_t frames = (s->posted_pos - s->sent_pos) / ERPC_POS_STEP;

	if (!s->open)
		return true;
	if (frames == 1 && !s->after_single && !erpc_batch_busy(s))
		s->bursts = 0;       /* it has waited for others in vain */
	erpc_session_close_batch(s); /* if it stays: who adds to it marks the session again */
	s->open->len = erpc_send_len(s);
	if (!s->after_single)
		s->expected_len = s->open->len;
	if (!erpc_batch_has_slot(s))
		return false;
	erpc_batch_leave(s, s->open, s->posted_pos, erpc_first_may(s, s->open->len));
	s->ep->stats.frames += frames;
	s->open = NULL;
	return true;
}

void erpc_send_acked(struct erpc_session *s, uint32_t seq)
{
	uint64_t pos = s->acked_pos;

	s->done_mask |= 1u << seq % ERPC_SLOTS;
	while (s->seq_done != s->seq && (s->done_mask & 1u << s->seq_done % ERPC_SLOTS)) {
		pos = s->batch_ends[s->seq_done % ERPC_SLOTS];
		s->seq_done++;
	}
	if (pos == s->acked_pos)
		return;
	s->acked_pos = pos;
	s->conn.up->on_acked(&s->conn.chan, pos);
}

/**
 * An empty batch for a frame of `span` bytes. One that will gather others, as far as can be known, gets room
 * for them at once.
 */
static bool erpc_send_open(struct erpc_session *s, uint32_t span)
{
	uint32_t len = ERPC_BATCH_HEAD + span;
	struct erpc_buf *buf;

	if (erpc_batch_gathers(s) && len < s->expected_len)
		len = s->expected_len;
	buf = erpc_buf_alloc(&s->ep->bufs, len);
	if (!buf)
		return false;
	s->open = buf;
	s->fill = buf->data + ERPC_BATCH_HEAD;
	return true;
}

/** The open batch gets a buffer for `len` bytes, with all that is in it. */
static bool erpc_send_grow(struct erpc_session *s, uint32_t len)
{
	struct erpc_buf *larger;

	s->open->len = erpc_send_len(s);
	larger = erpc_buf_grow(&s->ep->bufs, s->open, len);
	if (!larger)
		return false;
	s->open = larger;
	s->fill = larger->data + larger->len;
	return true;
}

/** No memory: nothing that comes will say that there is some, so nobody sleeps until there is. */
static uint8_t *erpc_send_no_memory(struct erpc_session *s)
{
	erpc_session_mark(s);
	return NULL;
}

/** Are ERPC_BUSY_MANY batches under way, or is there no slot for another one? */
static inline bool erpc_send_is_busy(const struct erpc_session *s)
{
	uint32_t busy = erpc_batch_busy(s);

	busy &= busy - 1;
	return (busy & (busy - 1)) || !erpc_batch_has_slot(s);
}

/**
 * How long may the open batch be? One that has to wait anyway may be of several packets: what is under way is
 * bounded by credits then, and not by slots.
 */
static inline uint32_t erpc_send_max(const struct erpc_session *s)
{
	return erpc_send_is_busy(s) ? s->batch_long_max : s->batch_max;
}

/** The open batch takes no more: it leaves, if there is a slot. */
static bool erpc_send_full(struct erpc_session *s)
{
	s->expected_len = erpc_send_len(s);
	if (erpc_send_leave(s))
		return true;
	s->ep->stats.no_slot++;
	return false;
}

uint8_t *erpc_send_room(struct erpc_session *s, uint32_t span)
{
	if (s->open && erpc_send_len(s) + span > erpc_send_max(s) && !erpc_send_full(s))
		return NULL;
	if (!s->open) {
		if (!erpc_send_open(s, span))
			return erpc_send_no_memory(s);
	} else if (erpc_send_len(s) + span > s->open->cap) {
		if (!erpc_send_grow(s, erpc_send_len(s) + span))
			return erpc_send_no_memory(s);
	}
	return s->fill;
}

/** Does the batch leave at once? */
static inline bool erpc_send_is_now(const struct erpc_session *s, unsigned flags)
{
	uint32_t busy = erpc_batch_busy(s);

	if (flags & CORE_SEND_NOW)
		return !(busy & (busy - 1)); /* below ERPC_NOW_MAX */
	return !erpc_batch_gathers(s) && !(flags & CORE_SEND_MORE) && !s->ep->running;
}

/** A message stays: does it follow one that left by itself, without progress in between? */
static inline void erpc_send_follows(struct erpc_session *s)
{
	if (!s->after_single)
		return;
	s->after_single = false;
	if (util_list_is_empty(&s->fresh_link))
		s->bursts = 0;
	else if (s->bursts < ERPC_BURSTS_TRUST)
		s->bursts++;
}

/** The batch stays: what may join it by bytes alone. Who does stores more than he counts. */
static void erpc_send_stay(struct erpc_session *s)
{
	uint32_t cap = s->open->cap, max = erpc_send_max(s);

	max = (max < cap ? max : cap) - ERPC_SEND_SLOP;

	erpc_session_close_batch(s);
	if (erpc_send_len(s) > max)
		return;
	s->fill_end_more = s->open->data + max;
	if (erpc_batch_gathers(s))
		s->fill_end = s->fill_end_more;
}

void erpc_send_added(struct erpc_session *s, uint32_t span, unsigned flags)
{
	s->fill += span;
	s->posted_pos += ERPC_POS_STEP;
	if (!erpc_send_is_now(s, flags)) {
		erpc_send_follows(s);
		erpc_send_stay(s);
		erpc_session_mark(s);
		return;
	}
	if (!(flags & CORE_SEND_NOW))
		erpc_batch_is_single(s);
	erpc_send_leave(s);
	erpc_kick(s);
	erpc_ep_doorbell(s->ep);
}

int erpc_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, len);
	uint8_t *at;

	if (UTIL_UNLIKELY(s->err))
		return s->err;
	at = erpc_send_room(s, span);
	if (!at)
		return -FI_EAGAIN;
	erpc_send_gather(wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, frame->op, 0, len), frame);
	erpc_send_added(s, span, flags);
	return 0;
}

static int __attribute__((noinline))
erpc_send_buf_cold(struct erpc_session *s, uint64_t packed, uint64_t ext0, uint64_t ext1,
		   const void *buf, size_t len)
{
	uint32_t ext_len = core_packed_ext_len(packed);
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, ext_len + (uint32_t)len);
	uint64_t ext[8] = { ext0, ext1 }; /* as much as util_copy_short may take */
	struct erpc_buf *single = NULL;
	uint8_t *at;

	if (UTIL_UNLIKELY(s->err))
		return s->err;
	if (erpc_single_may(s, span, len, core_packed_flags(packed)))
		single = erpc_single_buf(s, span);
	at = single ? single->data + ERPC_BATCH_HEAD : erpc_send_room(s, span);
	if (UTIL_UNLIKELY(!at))
		return -FI_EAGAIN;
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, core_packed_op(packed), 0,
				 ext_len + (uint32_t)len);
	util_copy_short(at, ext, ext_len);
	util_copy(at + ext_len, buf, len);
	if (single)
		erpc_single_go(s, single);
	else
		erpc_send_added(s, span, core_packed_flags(packed));
	return 1; /* CORE_CHAN_ASYNC */
}

/*
 * Most messages join a batch that waits already: then nothing but its bytes is to be done. Both words of an
 * extension are stored, whatever it has, and the bytes then over what is none of it.
 */
int erpc_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
		  const void *buf, size_t len)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t ext_len = core_packed_ext_len(packed), body = ext_len + (uint32_t)len;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, body);
	uint64_t ext[2] = { ext0, ext1 };
	uint8_t *at = s->fill;

	if (UTIL_UNLIKELY((ptrdiff_t)span > s->fill_end - at || len > UTIL_COPY_SHORT ||
			  core_packed_flags(packed)))
		return erpc_send_buf_cold(s, packed, ext0, ext1, buf, len);
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, core_packed_op(packed), 0, body);
	memcpy(at, ext, sizeof(ext));
	util_copy_short(at + ext_len, buf, len);
	s->fill += span;
	s->posted_pos += ERPC_POS_STEP;
	return 1; /* CORE_CHAN_ASYNC */
}
