/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Users of a pair: see erpc_pair_user.h. */
#include "support/erpc_pair_user.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_OP_CALL 0x800u

static uint8_t pair_byte(uint32_t number, uint32_t at, uint32_t kind)
{
	return (uint8_t)(number * 131 + at * 7 + kind * 61 + (at >> 8));
}

static void pair_fill(uint8_t *buf, uint32_t len, uint32_t number, uint32_t kind)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		buf[i] = pair_byte(number, i, kind);
}

static bool pair_is(const uint8_t *buf, uint32_t len, uint32_t number, uint32_t kind)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != pair_byte(number, i, kind))
			return false;
	return true;
}

static struct pair_end *pair_of(struct core_chan *chan)
{
	return erpc_session_of(chan)->user;
}

static uint32_t pair_reply_len(uint32_t number)
{
	return number * 37 % PAIR_RESP_MAX;
}

/* ---- up-calls ---- */

static enum core_rx_verdict pair_receive(struct pair_end *e, const uint8_t *data, uint32_t len,
					 uint32_t number, core_retain_t retain)
{
	cr_assert_eq(number, e->received, "%u after %u", number, e->received - 1);
	cr_assert(pair_is(data, len, number, 0));
	e->received++;
	if (!rng_chance(e->rng, e->retain_chance, 100) || e->retained_cnt == PAIR_PENDING_MAX)
		return CORE_RX_DONE;
	e->retained[e->retained_cnt++] = (struct pair_retained){
		.retain = retain, .data = data, .len = len, .number = number
	};
	return CORE_RX_RETAIN;
}

static enum core_rx_verdict pair_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					uint32_t len, core_retain_t retain)
{
	struct pair_end *e = pair_of(chan);
	uint64_t number;

	cr_assert_eq(op, WIRE_OP_MSG | WIRE_F_TAG);
	cr_assert_geq(len, sizeof(number));
	memcpy(&number, data, sizeof(number));
	return pair_receive(e, data + sizeof(number), len - (uint32_t)sizeof(number),
			    (uint32_t)number, retain);
}

static void pair_reply(struct pair_end *e, const struct pair_call_ref *call, unsigned flags)
{
	struct core_chan *chan = &e->s->conn.chan;
	uint8_t buf[PAIR_RESP_MAX];
	uint32_t len = pair_reply_len(call->number);
	struct iovec iov[2] = { { .iov_base = buf, .iov_len = len / 3 },
				{ .iov_base = buf + len / 3, .iov_len = len - len / 3 } };

	pair_fill(buf, len, call->number, 1);
	if (call->retained)
		cr_assert_eq(
			chan->ops->reply_release(chan, call->ref, call->retain, buf, len, flags),
			0);
	else
		cr_assert_eq(chan->ops->reply(chan, call->ref, iov, 2, len, flags), 0);
}

/** Replies to one of the deferred calls. Returns false if there is none. */
static bool pair_reply_any(struct pair_end *e, unsigned flags)
{
	struct pair_call_ref call;
	uint32_t at;

	if (!e->pending_cnt)
		return false;
	at = (uint32_t)rng_below(e->rng, e->pending_cnt);
	call = e->pending[at];
	e->pending[at] = e->pending[--e->pending_cnt];
	pair_reply(e, &call, flags);
	return true;
}

static enum core_rx_verdict pair_on_call(struct core_chan *chan, struct core_call_ref ref,
					 const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct pair_end *e = pair_of(chan);
	struct pair_call_ref call = { .ref = ref };
	enum core_rx_verdict verdict;
	uint32_t op;

	cr_assert_geq(len, sizeof(op));
	memcpy(&op, data, sizeof(op));
	cr_assert_eq(op & 0xFFF, PAIR_OP_CALL);
	call.number = op >> 12;
	cr_assert_eq(ref.resp_max, PAIR_RESP_MAX);
	if (e->ends_chance && rng_chance(e->rng, e->ends_chance, 100))
		pair_end_one(e);
	if (rng_chance(e->rng, e->defer_chance, 100) && e->pending_cnt < PAIR_PENDING_MAX) {
		call.retained =
			e->retain_call_chance && rng_chance(e->rng, e->retain_call_chance, 100);
		call.retain = retain;
		e->pending[e->pending_cnt++] = call;
	} else {
		pair_reply(e, &call, 0);
	}
	verdict =
		pair_receive(e, data + sizeof(op), len - (uint32_t)sizeof(op), call.number, retain);
	if (!call.retained)
		return verdict;
	if (verdict == CORE_RX_RETAIN)
		e->retained_cnt--; /* retained once, not twice */
	return CORE_RX_RETAIN;
}

static void pair_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			  uint32_t len)
{
	struct pair_end *e = pair_of(chan);
	uint32_t number = (uint32_t)(uintptr_t)context - 1;
	struct pair_retained *retain;

	cr_assert_eq(status, 0);
	cr_assert_eq(len, pair_reply_len(number));
	cr_assert(pair_is(data, len, number, 1));
	e->replies++;
	if (!rng_chance(e->rng, e->retain_reply_chance, 100) || e->retained_cnt == PAIR_PENDING_MAX)
		return;
	retain = &e->retained[e->retained_cnt++];
	*retain = (struct pair_retained){
		.data = data, .len = len, .number = number, .is_reply = true
	};
	cr_assert_eq(chan->ops->retain(chan, &retain->retain), 0);
}

static void pair_on_get_done(struct core_chan *chan, struct core_get *get)
{
	struct pair_end *e = pair_of(chan);
	struct pair_get *g = (struct pair_get *)get;

	cr_assert(g->open);
	g->open = false;
	if (!get->status) {
		cr_assert(!memcmp(g->buf, e->peer->memory + g->off, get->len));
		e->gets_done++;
	} else {
		e->gets_refused++;
	}
	if (g->exposure.chan)
		g->exposure.chan->ops->unexpose(g->exposure.chan, &g->exposure);
	g->exposure.chan = NULL;
}

static void pair_on_acked(struct core_chan *chan, uint64_t pos)
{
	struct pair_end *e = pair_of(chan);

	cr_assert_geq(pos, e->acked);
	cr_assert_leq(pos, *chan->posted);
	e->acked = pos;
}

static void pair_on_down(struct core_chan *chan, int err)
{
	pair_of(chan)->down = err;
}

static void pair_on_limits(struct core_chan *chan)
{
	pair_of(chan)->limits++;
}

const struct core_upcalls pair_upcalls = {
	.on_msg = pair_on_msg,
	.on_call = pair_on_call,
	.on_reply = pair_on_reply,
	.on_get_done = pair_on_get_done,
	.on_acked = pair_on_acked,
	.on_limits = pair_on_limits,
	.on_down = pair_on_down,
};

/* ---- send ---- */

static uint32_t pair_len(struct pair_end *e)
{
	if (e->len_exact)
		return e->len_exact;
	return (uint32_t)rng_below(
		e->rng, rng_chance(e->rng, 9, 10) && e->len_max > 200 ? 200 : e->len_max + 1);
}

/** Sends a message, as a frame or as one buffer. */
static int pair_send_as(struct pair_end *e, unsigned flags, bool is_frame)
{
	uint32_t len = pair_len(e);
	uint8_t *buf = malloc(len + 1);
	struct iovec iov[2] = { { .iov_base = buf, .iov_len = len / 2 },
				{ .iov_base = buf + len / 2, .iov_len = len - len / 2 } };
	struct core_frame frame = { .op = WIRE_OP_MSG | WIRE_F_TAG,
				    .ext_len = 8,
				    .ext = { e->sent },
				    .iov = iov,
				    .iov_cnt = 2,
				    .len = len };
	const struct core_chan_ops *ops = e->s->conn.chan.ops;
	int ret;

	pair_fill(buf, len, e->sent, 0);
	if (is_frame)
		ret = ops->send(&e->s->conn.chan, &frame, flags);
	else if (flags == CORE_SEND_MORE)
		ret = ops->send_more(&e->s->conn.chan, core_packed(frame.op, 0), e->sent, 0, buf,
				     len);
	else
		ret = ops->send_buf(&e->s->conn.chan, core_packed(frame.op, flags), e->sent, 0, buf,
				    len);
	free(buf);
	if (ret >= 0) {
		e->sent++;
		e->s->conn.chan.awaited = e->s->flow.posted;
	}
	return ret < 0 ? ret : 0;
}

int pair_send(struct pair_end *e, unsigned flags)
{
	return pair_send_as(e, flags, rng_chance(e->rng, 1, 2));
}

int pair_send_buf(struct pair_end *e, unsigned flags)
{
	return pair_send_as(e, flags, false);
}

int pair_call(struct pair_end *e, unsigned flags)
{
	uint32_t len = pair_len(e), op = PAIR_OP_CALL | e->sent << 12;
	void *context = (void *)((uintptr_t)e->sent + 1); /* not NULL */
	uint8_t *buf = malloc(len + 1);
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct core_frame frame = { .op = op, .iov = &iov, .iov_cnt = 1, .len = len };
	const struct core_chan_ops *ops = e->s->conn.chan.ops;
	bool room = ops->call_room(&e->s->conn.chan, len, PAIR_RESP_MAX) > 0;
	int ret;

	pair_fill(buf, len, e->sent, 0);
	if (rng_chance(e->rng, 1, 2))
		ret = ops->call(&e->s->conn.chan, &frame, PAIR_RESP_MAX, context, flags);
	else
		ret = ops->call_buf(&e->s->conn.chan, op, buf, len, PAIR_RESP_MAX, context, flags);
	free(buf);
	cr_assert(!ret || !room, "%d in spite of call_room", ret);
	if (!ret) {
		e->sent++;
		e->calls_sent++;
	}
	return ret;
}

bool pair_get(struct pair_end *e)
{
	struct core_chan *exposer = &e->peer->s->conn.chan;
	struct pair_get *g = e->gets;
	size_t len, first;

	while (g < e->gets + PAIR_GET_MAX && g->open)
		g++;
	if (g == e->gets + PAIR_GET_MAX || e->peer->s->err)
		return false;
	g->off = rng_below(e->rng, PAIR_GET_LEN);
	len = rng_below(e->rng, PAIR_GET_LEN - g->off) + 1;
	len = len < e->get_max ? len : e->get_max;
	if (e->get_exact) {
		g->off = 0;
		len = e->get_exact;
	}
	cr_assert_eq(exposer->ops->expose(exposer, e->peer->memory + g->off, len, &g->exposure), 0);
	g->exposure.chan = exposer;
	first = (e->get_pieces ? e->get_pieces == 1 : g->off % 2) ? len : len / 3;
	g->iov[0] = (struct iovec){ .iov_base = g->buf, .iov_len = first };
	g->iov[1] = (struct iovec){ .iov_base = g->buf + first, .iov_len = len - first };
	g->get = (struct core_get){ .remote_addr = (uintptr_t)(e->peer->memory + g->off),
				    .remote_key = g->exposure.key,
				    .iov = g->iov,
				    .iov_cnt = first < len ? 2 : 1,
				    .len = len };
	memset(g->buf, 0, len);
	g->open = true;
	cr_assert_eq(e->s->conn.chan.ops->get(&e->s->conn.chan, &g->get), 0);
	return true;
}

bool pair_reply_one(struct pair_end *e)
{
	return pair_reply_any(e, rng_chance(e->rng, 1, 2) ? CORE_SEND_MORE : 0);
}

bool pair_end_one(struct pair_end *e)
{
	return pair_reply_any(e, CORE_SEND_ENDS);
}

bool pair_release(struct pair_end *e)
{
	struct pair_retained retain;
	uint32_t at;

	if (!e->retained_cnt)
		return false;
	at = (uint32_t)rng_below(e->rng, e->retained_cnt);
	retain = e->retained[at];
	e->retained[at] = e->retained[--e->retained_cnt];
	cr_assert(pair_is(retain.data, retain.len, retain.number, retain.is_reply),
		  "retained bytes are unchanged");
	e->s->conn.chan.ops->release(&e->s->conn.chan, retain.retain);
	return true;
}

bool pair_is_done(const struct pair_end *e)
{
	uint32_t i;

	for (i = 0; i < PAIR_GET_MAX; i++)
		if (e->gets[i].open)
			return false;
	return !e->pending_cnt && !e->retained_cnt && e->calls_sent == e->replies &&
	       !e->s->conn.chan.ops->is_busy(&e->s->conn.chan);
}
