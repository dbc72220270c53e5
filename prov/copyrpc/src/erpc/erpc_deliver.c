/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Up-calls: see erpc_deliver.h. */
#include "erpc/erpc_deliver.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/erpc_answer.h"
#include "erpc/erpc_port.h"
#include "erpc/erpc_ride.h"
#include "erpc/erpc_send.h"
#include "util/bits.h"

static void erpc_deliver_bad(struct erpc_session *s, const char *why)
{
	s->port->stats.rx_bad++;
	erpc_session_fail(s, -FI_EIO, why);
}

static core_hold_t erpc_body_hold(const struct erpc_body *body)
{
	return (core_hold_t)(uintptr_t)body;
}

/** An answer to a call of ours; s->telling has its bytes. */
static const char *erpc_deliver_reply(struct erpc_session *s, const struct wire_erpc_frame *f)
{
	struct erpc_asked *asked = util_idmap_lookup(&s->calls, f->word);
	void *context;

	if (!asked)
		return "an answer to a call that does not wait";
	if (f->len > asked->allowance)
		return "an answer beyond its allowance";
	context = asked->context;
	s->grant_left += erpc_send_cost(asked->allowance);
	util_idmap_release(&s->calls, f->word);
	util_pool_release(&s->port->asked, asked);
	s->conn.up->on_reply(&s->conn.chan, context, 0, f->data, f->len);
	return NULL;
}

/** A message or a call; the reference for a hold is taken before core may release it. */
static const char *erpc_deliver_frame(struct erpc_session *s, const struct wire_erpc_frame *f,
				      struct erpc_body *body)
{
	struct core_call_ref ref = { .call_id = f->word, .allowance = f->allowance };
	uint64_t cost = (uint64_t)f->allowance + ERPC_GRANT_CALL;
	enum core_rx_verdict verdict;

	if (UTIL_UNLIKELY(f->kind == WIRE_ERPC_FRAME_REPLY)) {
		s->telling = body;
		return erpc_deliver_reply(s, f);
	}
	body->refs++;
	if (f->kind == WIRE_ERPC_FRAME_MSG) {
		verdict = s->conn.up->on_msg(&s->conn.chan, f->word, f->data, f->len,
					     erpc_body_hold(body));
	} else {
		/* What was answered and is not known to be with the peer counts there no more. */
		if (s->owed_len + cost > 2 * ERPC_GRANT) {
			body->refs--;
			return "an allowance beyond what was granted";
		}
		s->owed_len += cost;
		s->calls_owed++;
		verdict = s->conn.up->on_call(&s->conn.chan, ref, f->data, f->len,
					      erpc_body_hold(body));
	}
	if (verdict != CORE_RX_HOLD)
		body->refs--;
	return verdict == CORE_RX_BAD ? "message not understood" : NULL;
}

static void erpc_deliver_one(struct erpc_session *s, uint32_t slot)
{
	struct erpc_body *body = s->rx[slot].body;
	const uint8_t *at = body->data + sizeof(struct wire_erpc_batch);
	const uint8_t *end = body->data + body->len;
	struct wire_erpc_frame f;
	const char *why = NULL;
	bool calls = false;

	s->rx[slot].body = NULL;
	body->delivered = true;
	erpc_ride_passed(s, s->rx[slot].seq);
	s->held_len += body->len;
	while (at < end && !why && !s->err) {
		if (UTIL_UNLIKELY(!wire_erpc_frame_next(&f, &at, end))) {
			why = "no message where one should be";
			break;
		}
		calls |= f.kind == WIRE_ERPC_FRAME_CALL;
		why = erpc_deliver_frame(s, &f, body);
	}
	erpc_body_put(body);
	if (UTIL_UNLIKELY(why != NULL))
		erpc_deliver_bad(s, why);
	else if (!s->err)
		erpc_answer_delivered(s, slot, calls);
}

void erpc_deliver_batch(struct erpc_session *s, uint32_t slot)
{
	struct wire_erpc_batch head;
	const char *why;
	void *next;

	if (s->rx[slot].body->len < sizeof(head)) {
		erpc_deliver_bad(s, "a batch without a number");
		return;
	}
	memcpy(&head, s->rx[slot].body->data, sizeof(head));
	why = erpc_ride_heard(s, head.ack);
	if (UTIL_UNLIKELY(why != NULL)) {
		erpc_deliver_bad(s, why);
		return;
	}
	s->rx[slot].seq = head.seq;
	switch (erpc_order_take(&s->order, head.seq, &s->rx[slot])) {
	case ERPC_TURN_NOW: break;
	case ERPC_TURN_KEPT: erpc_answer_kept(s, slot); return;
	case ERPC_TURN_TWICE:
	case ERPC_TURN_BEYOND: erpc_deliver_bad(s, "a batch out of turn"); return;
	}
	erpc_deliver_one(s, slot);
	while (!s->err && (next = erpc_order_pop(&s->order)))
		erpc_deliver_one(s, (uint32_t)((struct erpc_rx *)next - s->rx));
	next = erpc_order_first(&s->order);
	if (UTIL_UNLIKELY(next && !s->err)) /* another one is missing */
		erpc_answer_kept(s, (uint32_t)((struct erpc_rx *)next - s->rx));
}

void erpc_deliver_replies(struct erpc_session *s, struct erpc_body *body)
{
	const uint8_t *at = body->data + sizeof(struct wire_erpc_batch);
	const uint8_t *end = body->data + body->len;
	struct erpc_body *before = s->telling;
	struct wire_erpc_frame f;
	const char *why = NULL;

	if (body->len < sizeof(struct wire_erpc_batch))
		why = "answers without a head";
	s->telling = body;
	while (!why && at < end && !s->err) {
		if (wire_erpc_frame_next(&f, &at, end) && f.kind == WIRE_ERPC_FRAME_REPLY)
			why = erpc_deliver_reply(s, &f);
		else
			why = "no answer where one should be";
	}
	s->telling = before;
	if (why)
		erpc_deliver_bad(s, why);
}

int erpc_keep(struct core_chan *chan, core_hold_t *hold)
{
	struct erpc_body *body = erpc_session_of(chan)->telling;

	body->refs++;
	*hold = erpc_body_hold(body);
	return 0;
}

void erpc_release(struct core_chan *chan, core_hold_t hold)
{
	erpc_body_put((struct erpc_body *)(uintptr_t)hold);
	erpc_answer_released(erpc_session_of(chan));
}
