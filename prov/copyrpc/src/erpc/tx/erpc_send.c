/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Batches fill and leave: see erpc_send.h. */
#include "erpc/tx/erpc_send.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_ride.h"
#include "util/bits.h"
#include "util/copy.h"

/* What was asked to leave at once gathers behind so many batches that are under way. */
#define ERPC_NOW_MAX 2u
_Static_assert(ERPC_NOW_MAX == 2, "erpc_send_is_now");
#define ERPC_BURSTS_TRUST 2u /* bursts in a row, and one more is expected */
#define ERPC_BATCH_HEAD   ((uint32_t)sizeof(struct wire_erpc_batch))
#define ERPC_SEND_SLOP    24u /* beyond a frame: two words of an extension behind its head */

/** Bytes in the open batch. */
static inline uint32_t erpc_send_len(const struct erpc_session *s)
{
	return (uint32_t)(s->fill - s->open->data);
}

/** May another batch begin? The peer orders no more than ERPC_SLOTS of them. */
static bool erpc_send_has_slot(const struct erpc_session *s)
{
	return (s->free_mask & ERPC_BATCH_MASK) && s->seq - s->seq_done < ERPC_SLOTS;
}

bool erpc_send_batch(struct erpc_session *s, struct erpc_buf *buf, uint64_t end)
{
	struct wire_erpc_batch head = { .seq = s->seq };
	uint32_t slot;

	if (!erpc_send_has_slot(s))
		return false;
	slot = (uint32_t)__builtin_ctz(s->free_mask);
	head.ack = erpc_ride_take(s);
	memcpy(buf->data, &head, sizeof(head));
	erpc_kick_begin(s, slot, WIRE_ERPC_BATCH, buf, s->payload);
	s->tx[slot].seq = s->seq;
	s->tx[slot].prompt = !buf->asks;
	s->left = end;
	s->ends[s->seq % ERPC_SLOTS] = end;
	s->done_mask &= ~(1u << s->seq % ERPC_SLOTS);
	s->seq++;
	s->port->stats.batches++;
	return true;
}

/** Batches under way: a bit for each. */
static inline uint32_t erpc_send_busy(const struct erpc_session *s)
{
	return ~s->free_mask & ERPC_BATCH_MASK;
}

/**
 * Does what is said gather in the open batch? Behind others that are under way, and where it is usual that
 * more follows before the next progress.
 */
static inline bool erpc_send_gathers(const struct erpc_session *s)
{
	return erpc_send_busy(s) || s->bursts == ERPC_BURSTS_TRUST;
}

bool erpc_send_leave(struct erpc_session *s)
{
	uint64_t frames = (s->taken - s->left) / ERPC_POS_STEP;

	if (!s->open)
		return true;
	if (frames == 1 && !s->lone && !erpc_send_busy(s))
		s->bursts = 0;       /* it has waited for others in vain */
	erpc_session_close_batch(s); /* if it stays: who adds to it marks the session again */
	s->open->len = erpc_send_len(s);
	if (!s->lone)
		s->usual = s->open->len;
	if (!erpc_send_batch(s, s->open, s->taken))
		return false;
	s->port->stats.frames += frames;
	s->open = NULL;
	return true;
}

void erpc_send_arrived(struct erpc_session *s, uint32_t seq)
{
	uint64_t pos = s->told;

	s->done_mask |= 1u << seq % ERPC_SLOTS;
	while (s->seq_done != s->seq && (s->done_mask & 1u << s->seq_done % ERPC_SLOTS)) {
		pos = s->ends[s->seq_done % ERPC_SLOTS];
		s->seq_done++;
	}
	if (pos == s->told)
		return;
	s->told = pos;
	s->conn.up->on_arrived(&s->conn.chan, pos);
}

/**
 * An empty batch for a frame of `span` bytes. One that will gather others, as far as can be known, gets room
 * for them at once.
 */
static bool erpc_send_open(struct erpc_session *s, uint32_t span)
{
	uint32_t len = ERPC_BATCH_HEAD + span;
	struct erpc_buf *buf;

	if (erpc_send_gathers(s) && len < s->usual)
		len = s->usual;
	buf = erpc_buf_alloc(&s->port->bufs, len);
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
	larger = erpc_buf_grow(&s->port->bufs, s->open, len);
	if (!larger)
		return false;
	s->open = larger;
	s->fill = larger->data + larger->len;
	return true;
}

/** Room for `span` bytes in the open batch, which is made, grown or replaced: NULL: not now. */
static uint8_t *erpc_send_room(struct erpc_session *s, uint32_t span)
{
	if (s->open && erpc_send_len(s) + span > s->shared) {
		s->usual = erpc_send_len(s);
		if (!erpc_send_leave(s)) {
			s->port->stats.no_slot++;
			return NULL;
		}
	}
	if (!s->open) {
		if (!erpc_send_open(s, span))
			return NULL;
	} else if (erpc_send_len(s) + span > s->open->cap) {
		if (!erpc_send_grow(s, erpc_send_len(s) + span))
			return NULL;
	}
	return s->fill;
}

/** Batches under way. */
static unsigned erpc_send_flying(const struct erpc_session *s)
{
	return ERPC_BATCH_SLOTS - (unsigned)__builtin_popcount(s->free_mask & ERPC_BATCH_MASK);
}

/** Does the batch leave at once? */
static inline bool erpc_send_is_now(const struct erpc_session *s, unsigned flags)
{
	uint32_t busy = erpc_send_busy(s);

	if (flags & CORE_SEND_NOW)
		return !(busy & (busy - 1)); /* below ERPC_NOW_MAX */
	return !erpc_send_gathers(s) && !(flags & CORE_SEND_MORE) && !s->port->running;
}

/** A message leaves by itself: so did the one before, if nothing followed it. */
static inline void erpc_send_alone(struct erpc_session *s)
{
	if (s->lone)
		s->bursts = 0;
	s->lone = true;
}

/** A message stays: does it follow one that left by itself, without progress in between? */
static inline void erpc_send_follows(struct erpc_session *s)
{
	if (!s->lone)
		return;
	s->lone = false;
	if (util_list_is_empty(&s->fresh_link))
		s->bursts = 0;
	else if (s->bursts < ERPC_BURSTS_TRUST)
		s->bursts++;
}

/** The batch stays: what may join it by bytes alone. Who does stores more than he counts. */
static void erpc_send_stay(struct erpc_session *s)
{
	uint32_t cap = s->open->cap, max = (s->shared < cap ? s->shared : cap) - ERPC_SEND_SLOP;

	erpc_session_close_batch(s);
	if (erpc_send_len(s) > max)
		return;
	s->fill_end = s->open->data + max;
	if (erpc_send_gathers(s))
		s->room = max - erpc_send_len(s);
}

/** A frame is whole: does the batch wait for others? */
static inline void erpc_send_added(struct erpc_session *s, uint32_t span, unsigned flags)
{
	s->fill += span;
	s->taken += ERPC_POS_STEP;
	if (!erpc_send_is_now(s, flags)) {
		erpc_send_follows(s);
		erpc_send_stay(s);
		erpc_session_mark(s);
		return;
	}
	if (!(flags & CORE_SEND_NOW))
		erpc_send_alone(s);
	erpc_send_leave(s);
	erpc_kick(s);
	erpc_port_ring(s->port);
}

/** Extension and user bytes. */
static void erpc_send_gather(uint8_t *at, const struct core_frame *frame)
{
	memcpy(at, frame->ext, frame->ext_len);
	util_iov_gather(at + frame->ext_len, frame->iov, frame->iov_cnt, frame->iov_off,
			frame->len);
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
erpc_send_buf_cold(struct erpc_session *s, uint64_t label, uint64_t ext0, uint64_t ext1,
		   const void *buf, size_t len)
{
	uint32_t ext_len = core_label_ext_len(label);
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, ext_len + (uint32_t)len);
	uint64_t ext[8] = { ext0, ext1 }; /* as much as util_copy_short may take */
	uint8_t *at;

	if (UTIL_UNLIKELY(s->err))
		return s->err;
	at = erpc_send_room(s, span);
	if (UTIL_UNLIKELY(!at))
		return -FI_EAGAIN;
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, core_label_op(label), 0,
				 ext_len + (uint32_t)len);
	util_copy_short(at, ext, ext_len);
	util_copy(at + ext_len, buf, len);
	erpc_send_added(s, span, core_label_flags(label));
	return 1; /* CORE_CHAN_LATE */
}

/*
 * Most messages join a batch that waits already: then nothing but its bytes is to be done. Both words of an
 * extension are stored, whatever it has, and the bytes then over what is none of it.
 */
int erpc_send_buf(struct core_chan *chan, uint64_t label, uint64_t ext0, uint64_t ext1,
		  const void *buf, size_t len)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t ext_len = core_label_ext_len(label), body = ext_len + (uint32_t)len;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, body);
	uint64_t ext[2] = { ext0, ext1 };
	uint8_t *at = s->fill;

	if (UTIL_UNLIKELY(span > s->room || len > UTIL_COPY_SHORT || core_label_flags(label)))
		return erpc_send_buf_cold(s, label, ext0, ext1, buf, len);
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_MSG, core_label_op(label), 0, body);
	memcpy(at, ext, sizeof(ext));
	util_copy_short(at + ext_len, buf, len);
	s->fill += span;
	s->room -= span;
	s->taken += ERPC_POS_STEP;
	return 1; /* CORE_CHAN_LATE */
}

/** Remembers a call: its name in *id. 0, or -FI_E*. */
static inline int erpc_call_ask(struct erpc_session *s, uint32_t allowance, void *context,
				uint32_t *id)
{
	struct erpc_asked *asked = util_pool_alloc(&s->port->asked);
	int ret;

	if (!asked)
		return -FI_ENOMEM;
	*asked = (struct erpc_asked){ .context = context, .allowance = allowance };
	ret = util_idmap_alloc(&s->calls, asked, id);
	if (ret)
		util_pool_release(&s->port->asked, asked);
	else
		s->grant_left -= erpc_send_cost(allowance);
	return ret;
}

/** Room for a call of `len` bytes and its operation, its head written: NULL and *ret. */
static uint8_t *erpc_call_begin(struct erpc_session *s, uint32_t op, uint32_t len,
				uint32_t allowance, void *context, int *ret)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(op) + len), id;
	uint8_t *at;

	*ret = s->err;
	if (*ret)
		return NULL;
	*ret = -FI_EAGAIN;
	if (s->grant_left < erpc_send_cost(allowance))
		return NULL;
	at = erpc_send_room(s, span);
	if (!at)
		return NULL;
	*ret = erpc_call_ask(s, allowance, context, &id);
	if (*ret)
		return NULL;
	s->open->asks = true;
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_CALL, id, allowance, sizeof(op) + len);
	memcpy(at, &op, sizeof(op));
	return at + sizeof(op);
}

int erpc_call(struct core_chan *chan, const struct core_frame *frame, uint32_t allowance,
	      void *context)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	int ret;
	uint8_t *at = erpc_call_begin(s, frame->op, len, allowance, context, &ret);

	if (!at)
		return ret;
	erpc_send_gather(at, frame);
	erpc_send_added(s, wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(uint32_t) + len), 0);
	return 0;
}

static int __attribute__((noinline))
erpc_call_buf_cold(struct erpc_session *s, uint32_t op, const void *buf, size_t len,
		   uint32_t allowance, void *context, unsigned flags)
{
	int ret;
	uint8_t *at = erpc_call_begin(s, op, (uint32_t)len, allowance, context, &ret);

	if (!at)
		return ret;
	util_copy(at, buf, len);
	erpc_send_added(s, wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(op) + (uint32_t)len),
			flags);
	return 0;
}

/** Is nothing but its bytes, and a name, to be done for a call of `span` bytes? */
static inline bool erpc_call_joins(const struct erpc_session *s, uint32_t span, unsigned flags)
{
	return span <= (flags & CORE_SEND_MORE ? (size_t)(s->fill_end - s->fill) : s->room) &&
	       s->calls.free_head != UTIL_IDMAP_NONE && util_pool_first(&s->port->asked) &&
	       !util_list_is_empty(&s->dirty_link);
}

/** It joins the open batch. */
static inline void erpc_call_join(struct erpc_session *s, uint32_t span, bool gathers)
{
	s->open->asks = true;
	s->fill += span;
	s->room -= gathers ? span : 0;
	s->taken += ERPC_POS_STEP;
}

int erpc_call_buf(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
		  uint32_t allowance, void *context, unsigned flags)
{
	uint32_t body = (uint32_t)(sizeof(op) + len), id;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, body);
	struct erpc_session *s = erpc_session_of(chan);
	uint8_t *at;

	if (UTIL_UNLIKELY(!erpc_call_joins(s, span, flags) || len > UTIL_COPY_SHORT ||
			  s->grant_left < erpc_send_cost(allowance)))
		return erpc_call_buf_cold(s, op, buf, len, allowance, context, flags);
	if (UTIL_UNLIKELY(erpc_call_ask(s, allowance, context, &id)))
		return -FI_ENOMEM;
	at = wire_erpc_frame_put(s->fill, WIRE_ERPC_FRAME_CALL, id, allowance, body);
	memcpy(at, &op, sizeof(op));
	util_copy_short(at + sizeof(op), buf, len);
	erpc_call_join(s, span, s->room != 0);
	return 0;
}

/** Batches that may leave before they are full, if the next calls are of those that wait for nothing. */
static size_t erpc_call_early(const struct erpc_session *s)
{
	return erpc_send_flying(s) < ERPC_NOW_MAX ? ERPC_NOW_MAX - erpc_send_flying(s) : 0;
}

/** Batches that may still begin to travel. */
static size_t erpc_call_slots(const struct erpc_session *s)
{
	size_t order = ERPC_SLOTS - (s->seq - s->seq_done);
	size_t slots = (size_t)__builtin_popcount(s->free_mask & ERPC_BATCH_MASK);

	return order < slots ? order : slots;
}

/*
 * One batch is open, and another one for each slot. The first ones may leave with a single call; an
 * open one into which not even that fits takes a slot with it.
 */
size_t erpc_call_room(struct core_chan *chan, size_t len, uint32_t allowance)
{
	const struct erpc_session *s = erpc_session_of(chan);
	uint32_t span =
		wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(uint32_t) + (uint32_t)len);
	uint32_t room = s->shared - ERPC_BATCH_HEAD;
	uint32_t used = s->open ? erpc_send_len(s) - ERPC_BATCH_HEAD : 0;
	size_t each = span <= room ? room / span : 1;
	size_t by_grant = s->grant_left / erpc_send_cost(allowance);
	size_t slots = erpc_call_slots(s), early = erpc_call_early(s), open = each, cnt;

	if (s->err)
		return 0;
	if (s->open)
		open = used < room ? (room - used) / span : 0;
	if (!open && slots) {
		slots--;
		open = each;
	}
	early = early < slots ? early : slots;
	cnt = early ? early + (slots - early + 1) * each : open + slots * each;
	return cnt < by_grant ? cnt : by_grant;
}
