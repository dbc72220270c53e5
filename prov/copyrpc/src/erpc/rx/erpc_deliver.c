/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_deliver.h. */
#include "erpc/rx/erpc_deliver.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/base/erpc_ep.h"
#include "erpc/tx/erpc_call.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_respond.h"
#include "util/bits.h"
#include "util/stats.h"

static void erpc_deliver_bad(struct erpc_session *s, const char *why)
{
	s->ep->stats->rx_bad++;
	erpc_session_fail(s, -FI_EIO, why);
}

/**
 * Delivers a reply to call `id`, with its bytes in s->reply_body. Returns NULL or the violation.
 */
static inline const char *erpc_deliver_reply(struct erpc_session *s, uint32_t id,
					     const uint8_t *data, uint32_t len)
{
	void *context = util_idmap_lookup(&s->calls.open, id);
	uint32_t resp_max;

	if (UTIL_UNLIKELY(!context))
		return "a reply without a call";
	resp_max = util_idmap_note(&s->calls.open, id);
	if (UTIL_UNLIKELY(len > resp_max))
		return "a reply beyond its maximum size";
	s->calls.grant_left += erpc_call_cost(resp_max);
	util_idmap_release(&s->calls.open, id);
	s->ep->up->on_reply(&s->conn.chan, context, 0, data, len);
	return NULL;
}

/*
 * Delivery of a batch holds more references than there can be retained messages: core may release a
 * message before on_msg returns CORE_RX_RETAIN.
 */
#define ERPC_DELIVER_REFS (1u << 30)

/** Delivers a call: bytes from the operation word on. Returns NULL or the violation. */
static inline const char *erpc_deliver_call(struct erpc_session *s, struct core_call_ref ref,
					    const uint8_t *data, uint32_t len,
					    struct erpc_body *body)
{
	uint64_t cost = (uint64_t)ref.resp_max + ERPC_GRANT_CALL;
	enum core_rx_verdict verdict;

	/* Replies that the peer may not have received count there no more. */
	if (s->reply_reserved + cost > 2 * ERPC_GRANT)
		return "a call beyond the grant";
	s->reply_reserved += cost;
	s->resp.calls_pending++;
	verdict = s->ep->up->on_call(&s->conn.chan, ref, data, len, erpc_body_retain(body));
	if (UTIL_LIKELY(verdict == CORE_RX_RETAIN))
		body->refs++;
	else if (verdict == CORE_RX_BAD)
		return "invalid message";
	return NULL;
}

/**
 * Delivers a frame that is neither message nor call. Returns its end, and NULL or the violation in
 * *why.
 */
static const uint8_t *__attribute__((noinline))
erpc_deliver_other(struct erpc_session *s, const uint8_t *at, const uint8_t *end,
		   struct erpc_body *body, const char **why)
{
	struct wire_erpc_frame f;

	if (!wire_erpc_frame_next(&f, &at, end) || f.kind != WIRE_ERPC_FRAME_REPLY) {
		*why = "invalid frame";
		return at;
	}
	s->reply_body = body;
	*why = erpc_deliver_reply(s, f.word, f.data, f.len);
	return at;
}

/** Handles the verdict on a message that is not done. Returns NULL or the violation. */
static const char *erpc_deliver_kept(struct erpc_body *body, enum core_rx_verdict verdict)
{
	if (verdict == CORE_RX_BAD)
		return "invalid message";
	body->refs++;
	return NULL;
}

/**
 * Delivers messages from *at up to another kind of frame or `end`. Returns NULL or the violation.
 */
static inline const char *erpc_deliver_msgs(struct erpc_session *s, struct erpc_body *body,
					    const uint8_t **at, const uint8_t *end)
{
	const struct core_upcalls *up = s->ep->up;
	uint64_t *cnt = &s->conn.chan.stats->rx_messages;
	enum core_rx_verdict verdict;
	const uint8_t *data;
	uint32_t op, len;
	const char *why;

	while (UTIL_LIKELY(!s->err)) {
		data = wire_erpc_plain_next(at, end, WIRE_ERPC_FRAME_MSG, &op, &len);
		if (UTIL_UNLIKELY(!data))
			return NULL;
		util_stats_add(cnt, 1);
		verdict = up->on_msg(&s->conn.chan, op, data, len, erpc_body_retain(body));
		if (UTIL_LIKELY(verdict == CORE_RX_DONE))
			continue;
		why = erpc_deliver_kept(body, verdict);
		if (why)
			return why;
	}
	return NULL;
}

/** Delivers calls likewise. Sets *calls if there were any. */
static inline const char *erpc_deliver_calls(struct erpc_session *s, struct erpc_body *body,
					     const uint8_t **at, const uint8_t *end, bool *calls)
{
	uint64_t *cnt = &s->conn.chan.stats->rx_messages;
	struct core_call_ref ref;
	const uint8_t *data;
	const char *why = NULL;
	uint32_t len;

	while (!why && UTIL_LIKELY(!s->err)) {
		data = wire_erpc_call_next(at, end, &ref.call_id, &ref.resp_max, &len);
		if (!data)
			return NULL;
		*calls = true;
		util_stats_add(cnt, 1);
		why = erpc_deliver_call(s, ref, data, len, body);
	}
	return why;
}

/**
 * Delivers all frames of a batch. Returns NULL or the violation. Sets *calls if there were calls.
 */
UTIL_INLINE const char *erpc_deliver_frames(struct erpc_session *s, struct erpc_body *body,
					    bool *calls)
{
	const uint8_t *at = body->data + sizeof(struct wire_erpc_batch);
	const uint8_t *end = body->data + body->len;
	const uint8_t *from;
	const char *why;

	util_stats_arrived(s->conn.chan.stats, 0, body->len);
	do {
		from = at;
		why = erpc_deliver_msgs(s, body, &at, end);
		if (!why && at != end)
			why = erpc_deliver_calls(s, body, &at, end, calls);
		if (!why && at == from && at != end && !s->err)
			at = erpc_deliver_other(s, at, end, body, &why);
	} while (!why && at != end && !s->err);
	return why;
}

static void erpc_deliver_one(struct erpc_session *s, uint32_t slot)
{
	struct erpc_body *body = s->rx[slot].body;
	bool calls = false;
	const char *why;

	s->rx[slot].body = NULL;
	body->delivered = true;
	erpc_piggyback_passed(s, s->rx[slot].seq);
	s->resp.retained_len += body->len;
	body->refs += ERPC_DELIVER_REFS;
	why = erpc_deliver_frames(s, body, &calls);
	body->refs -= ERPC_DELIVER_REFS;
	erpc_body_put(body);
	if (UTIL_UNLIKELY(why != NULL))
		erpc_deliver_bad(s, why);
	else if (UTIL_LIKELY(!s->err))
		erpc_respond_delivered(s, slot, calls);
}

void erpc_deliver_batch(struct erpc_session *s, uint32_t slot)
{
	struct wire_erpc_batch head;
	const char *why;
	void *next;

	if (s->rx[slot].body->len < sizeof(head)) {
		erpc_deliver_bad(s, "a batch without a header");
		return;
	}
	memcpy(&head, s->rx[slot].body->data, sizeof(head));
	why = erpc_piggyback_received(s, head.ack);
	if (UTIL_UNLIKELY(why != NULL)) {
		erpc_deliver_bad(s, why);
		return;
	}
	s->rx[slot].seq = head.seq;
	switch (erpc_order_take(&s->order, head.seq, &s->rx[slot])) {
	case ERPC_TURN_NOW: break;
	case ERPC_TURN_KEPT: erpc_respond_kept(s, slot); return;
	case ERPC_TURN_TWICE:
	case ERPC_TURN_BEYOND: erpc_deliver_bad(s, "a batch out of sequence"); return;
	}
	erpc_deliver_one(s, slot);
	while (!s->err && (next = erpc_order_pop(&s->order)))
		erpc_deliver_one(s, (uint32_t)((struct erpc_rx *)next - s->rx));
	next = erpc_order_first(&s->order);
	if (UTIL_UNLIKELY(next && !s->err)) /* reports the next missing batch */
		erpc_respond_kept(s, (uint32_t)((struct erpc_rx *)next - s->rx));
}

/**
 * Makes a body of the packet's bytes, in no list until it is retained. Returns NULL without memory.
 */
static inline struct erpc_body *erpc_deliver_borrow(struct erpc_session *s,
						    const struct dev_dgram_in *in)
{
	struct erpc_body *body = util_pool_alloc(&s->ep->bodies);

	if (UTIL_UNLIKELY(!body)) {
		erpc_session_fail(s, -FI_ENOMEM, "out of memory for received packets");
		return NULL;
	}
	body->session = s;
	body->heap = NULL;
	body->data = in->data + WIRE_ERPC_HDR_LEN;
	body->len = in->len - WIRE_ERPC_HDR_LEN;
	body->slot = in->slot;
	body->refs = ERPC_DELIVER_REFS;
	body->delivered = false;
	return body;
}

/** Ends the delivery of such a body. Returns true if something in it is retained. */
static inline bool erpc_deliver_retained(struct erpc_session *s, struct erpc_body *body)
{
	body->refs -= ERPC_DELIVER_REFS;
	if (!body->refs) {
		util_pool_release(&s->ep->bodies, body);
		return false;
	}
	util_list_push_back(&s->bodies, &body->link);
	return true;
}

bool erpc_deliver_plain(struct erpc_session *s, uint32_t slot, const struct dev_dgram_in *in)
{
	struct wire_erpc_batch head;
	struct erpc_body *body;
	bool calls = false, kept;
	const char *why;

	memcpy(&head, in->data + WIRE_ERPC_HDR_LEN, sizeof(head));
	why = erpc_piggyback_received(s, head.ack);
	body = UTIL_LIKELY(!why) ? erpc_deliver_borrow(s, in) : NULL;
	if (UTIL_UNLIKELY(!body)) {
		if (why)
			erpc_deliver_bad(s, why);
		return false;
	}
	s->order.next++;
	s->rx[slot].seq = head.seq;
	erpc_piggyback_passed(s, head.seq);
	why = erpc_deliver_frames(s, body, &calls);
	kept = erpc_deliver_retained(s, body);
	if (kept) {
		s->resp.retained_len += body->len;
		body->delivered = true;
	}
	if (UTIL_UNLIKELY(why != NULL))
		erpc_deliver_bad(s, why);
	else if (UTIL_LIKELY(!s->err))
		erpc_respond_delivered(s, slot, calls);
	return kept;
}

/** Delivers the replies in [at, end). Returns NULL or the violation. */
static const char *erpc_deliver_reply_frames(struct erpc_session *s, const uint8_t *at,
					     const uint8_t *end)
{
	const char *why = NULL;
	const uint8_t *data;
	uint32_t id, len;

	while (!why && UTIL_LIKELY(!s->err)) {
		data = wire_erpc_plain_next(&at, end, WIRE_ERPC_FRAME_REPLY, &id, &len);
		if (UTIL_UNLIKELY(!data))
			return at == end ? NULL : "invalid reply frame";
		why = erpc_deliver_reply(s, id, data, len);
	}
	return why;
}

void erpc_deliver_replies(struct erpc_session *s, struct erpc_body *body)
{
	uint32_t head = sizeof(struct wire_erpc_batch);
	struct erpc_body *before = s->reply_body;
	const char *why = "a response without a header";

	s->reply_body = body;
	if (UTIL_LIKELY(body->len >= head))
		why = erpc_deliver_reply_frames(s, body->data + head, body->data + body->len);
	s->reply_body = before;
	if (UTIL_UNLIKELY(why != NULL))
		erpc_deliver_bad(s, why);
}

bool erpc_deliver_response(struct erpc_session *s, const struct dev_dgram_in *in)
{
	struct erpc_body *body, *before = s->reply_body;
	const uint8_t *at = in->data + WIRE_ERPC_HDR_LEN, *end = in->data + in->len;
	const char *why = "a response without a header";

	body = erpc_deliver_borrow(s, in);
	if (UTIL_UNLIKELY(!body))
		return false;
	s->reply_body = body;
	if (UTIL_LIKELY(body->len >= sizeof(struct wire_erpc_batch)))
		why = erpc_deliver_reply_frames(s, at + sizeof(struct wire_erpc_batch), end);
	s->reply_body = before;
	if (UTIL_UNLIKELY(why != NULL))
		erpc_deliver_bad(s, why);
	return erpc_deliver_retained(s, body);
}

int erpc_retain(struct core_chan *chan, core_retain_t *retain)
{
	struct erpc_body *body = erpc_session_of(chan)->reply_body;

	body->refs++;
	*retain = erpc_body_retain(body);
	return 0;
}

void erpc_release(struct core_chan *chan, core_retain_t retain)
{
	erpc_body_put(erpc_body_retained(retain));
	erpc_respond_released(erpc_session_of(chan));
}
