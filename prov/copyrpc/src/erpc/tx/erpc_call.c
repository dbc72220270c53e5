/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_call.h. */
#include "erpc/tx/erpc_call.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "engine/eng_stats.h"
#include "erpc/base/erpc_ep.h"
#include "erpc/tx/erpc_batch.h"
#include "erpc/tx/erpc_now.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"

/** Allocates the id of a call and takes its cost from the grant. Returns 0 or -FI_E*. */
static inline int erpc_call_register(struct erpc_session *s, uint32_t resp_max, void *context,
				     uint32_t *id)
{
	int ret = util_idmap_alloc_noted(&s->calls.open, context, resp_max, id);

	if (UTIL_LIKELY(!ret))
		s->calls.grant_left -= erpc_call_cost(resp_max);
	return ret;
}

/**
 * Returns the shortage because of which a call of `span` bytes would be refused now. Slots are in
 * use until the peer acknowledges; if the device accepts no packets, it has not received them yet.
 */
static enum core_shortage erpc_call_short(const struct erpc_session *s, uint32_t span,
					  uint32_t resp_max)
{
	if (s->calls.grant_left < erpc_call_cost(resp_max))
		return CORE_SHORT_CREDIT;
	if (erpc_send_has_room(s, span))
		return CORE_SHORT_NONE;
	return s->ep->out.cnt == ERPC_BURST ? CORE_SHORT_QUEUE : CORE_SHORT_SPACE;
}

/** Records why a call was refused with `err`. */
static __attribute__((noinline, cold)) void erpc_call_refuse_cold(struct erpc_session *s,
								  uint32_t span, uint32_t resp_max,
								  int err)
{
	core_chan_refuse(&s->conn.chan, erpc_call_short(s, span, resp_max), err);
	eng_stats_shortage(&s->conn.chan);
}

/**
 * Reserves space for a call of `len` bytes and writes its header. Returns NULL and *ret on error.
 */
static uint8_t *erpc_call_begin(struct erpc_session *s, uint32_t op, uint32_t len,
				uint32_t resp_max, void *context, int *ret)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(op) + len), id;
	uint8_t *at;

	if (s->err) { /* the next progress call reports it, and ends what waits */
		*ret = core_chan_refuse(&s->conn.chan, CORE_SHORT_CONNECTION, -FI_EAGAIN);
		return NULL;
	}
	at = s->calls.grant_left >= erpc_call_cost(resp_max) ? erpc_send_room(s, span) : NULL;
	*ret = at ? erpc_call_register(s, resp_max, context, &id) : -FI_EAGAIN;
	if (*ret) {
		erpc_call_refuse_cold(s, span, resp_max, *ret);
		return NULL;
	}
	s->batch.buf->has_calls = true;
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_CALL, id, resp_max, sizeof(op) + len);
	memcpy(at, &op, sizeof(op));
	return at + sizeof(op);
}

int erpc_call(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
	      void *context, unsigned flags)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t len = frame->ext_len + (uint32_t)frame->len;
	int ret;
	uint8_t *at = erpc_call_begin(s, frame->op, len, resp_max, context, &ret);

	if (!at)
		return ret;
	erpc_send_gather(at, frame);
	erpc_send_added(s, wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(uint32_t) + len),
			flags);
	return 0;
}

/** Sends a call as a single message (erpc_batch.h). */
static inline int erpc_call_single(struct erpc_session *s, uint32_t op, const void *buf, size_t len,
				   uint32_t resp_max, void *context)
{
	uint32_t body = (uint32_t)(sizeof(op) + len), id;
	struct erpc_buf *single;
	uint8_t *at;

	if (UTIL_UNLIKELY(erpc_call_register(s, resp_max, context, &id)))
		return -FI_ENOMEM;
	single = erpc_batch_single_buf(s, wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, body));
	single->has_calls = true;
	at = wire_erpc_frame_put(single->data + ERPC_BATCH_HEAD, WIRE_ERPC_FRAME_CALL, id, resp_max,
				 body);
	memcpy(at, &op, sizeof(op));
	util_copy_short(at + sizeof(op), buf, len);
	erpc_batch_send_single(s, single);
	return 0;
}

static int __attribute__((noinline))
erpc_call_buf_cold(struct erpc_session *s, uint32_t op, const void *buf, size_t len,
		   uint32_t resp_max, void *context, unsigned flags)
{
	int ret;
	uint8_t *at = erpc_call_begin(s, op, (uint32_t)len, resp_max, context, &ret);

	if (!at)
		return ret;
	util_copy(at, buf, len);
	erpc_send_added(s, wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(op) + (uint32_t)len),
			flags);
	return 0;
}

/** Handles a call that cannot be appended without further checks. */
static int __attribute__((noinline))
erpc_call_buf_general(struct erpc_session *s, uint32_t op, const void *buf, size_t len,
		      uint32_t resp_max, void *context, unsigned flags)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, (uint32_t)(sizeof(op) + len));

	if (s->calls.grant_left >= erpc_call_cost(resp_max) &&
	    erpc_batch_may_single(s, span, len, flags))
		return erpc_call_single(s, op, buf, len, resp_max, context);
	return erpc_call_buf_cold(s, op, buf, len, resp_max, context, flags);
}

/** Returns true if a call of `span` bytes only needs its bytes and an id. */
static inline bool erpc_call_appends(const struct erpc_session *s, uint32_t span, unsigned flags)
{
	const uint8_t *end = flags & CORE_SEND_MORE ? s->batch.end_more : s->flow.end;

	return end - s->flow.fill >= (ptrdiff_t)span && s->calls.open.free_head != UTIL_IDMAP_NONE;
}

int erpc_call_buf(struct core_chan *chan, uint32_t op, const void *buf, size_t len,
		  uint32_t resp_max, void *context, unsigned flags)
{
	uint32_t body = (uint32_t)(sizeof(op) + len), id;
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, body);
	struct erpc_session *s = erpc_session_of(chan);
	uint8_t *at = s->flow.fill;

	if (UTIL_UNLIKELY(!erpc_call_appends(s, span, flags) || len > UTIL_COPY_SHORT ||
			  s->calls.grant_left < erpc_call_cost(resp_max)))
		return erpc_call_buf_general(s, op, buf, len, resp_max, context, flags);
	if (UTIL_UNLIKELY(erpc_call_register(s, resp_max, context, &id)))
		return -FI_ENOMEM;
	s->batch.buf->has_calls = true;
	s->flow.fill = at + span;
	s->flow.posted += ERPC_POS_STEP;
	at = wire_erpc_frame_put(at, WIRE_ERPC_FRAME_CALL, id, resp_max, body);
	memcpy(at, &op, sizeof(op));
	util_copy_short(at + sizeof(op), buf, len);
	return 0;
}

/** Returns the number of batches in flight. */
static unsigned erpc_call_flying(const struct erpc_session *s)
{
	return ERPC_BATCH_SLOTS - (unsigned)__builtin_popcount(s->send.free_mask & ERPC_BATCH_MASK);
}

/**
 * Returns how many batches may leave before they are full, if the next calls have CORE_SEND_NOW.
 */
static size_t erpc_call_early(const struct erpc_session *s)
{
	uint32_t max = erpc_now_max(s->ep), flying = erpc_call_flying(s);

	return flying < max ? max - flying : 0;
}

/** Returns how many batches may still leave. */
static size_t erpc_call_slots(const struct erpc_session *s)
{
	size_t order = ERPC_SLOTS - (s->send.seq - s->send.seq_done);
	size_t slots = (size_t)__builtin_popcount(s->send.free_mask & ERPC_BATCH_MASK);

	return order < slots ? order : slots;
}

/*
 * Counts the open batch and one for each slot. The first ones may leave with a single call. An open
 * batch without room for one more call takes a slot.
 */
size_t erpc_call_room(struct core_chan *chan, size_t len, uint32_t resp_max)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint32_t span =
		wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, sizeof(uint32_t) + (uint32_t)len);
	uint32_t room = s->batch_max - ERPC_BATCH_HEAD;
	uint32_t used = s->batch.buf ? erpc_send_len(s) - ERPC_BATCH_HEAD : 0;
	size_t each = span <= room ? room / span : 1;
	size_t by_grant = s->calls.grant_left / erpc_call_cost(resp_max);
	size_t slots, early, open = each, cnt;

	if (s->err)
		return 0;
	erpc_stage_end(s); /* takes a slot */
	slots = erpc_call_slots(s);
	early = erpc_call_early(s);
	if (s->batch.buf)
		open = used < room ? (room - used) / span : 0;
	if (!open && slots) {
		slots--;
		open = each;
	}
	early = early < slots ? early : slots;
	cnt = early ? early + (slots - early + 1) * each : open + slots * each;
	return cnt < by_grant ? cnt : by_grant;
}

enum core_shortage erpc_call_shortage(const struct core_chan *chan, size_t len, uint32_t resp_max)
{
	uint32_t body = (uint32_t)(sizeof(uint32_t) + len);

	return erpc_call_short((const struct erpc_session *)chan,
			       wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, body), resp_max);
}
