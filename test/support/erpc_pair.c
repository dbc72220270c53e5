/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_pair.h. */
#include "support/erpc_pair.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_RX_CNT  256u
#define PAIR_TX_CNT  64u
#define PAIR_OP_CALL 0x800u
#define PAIR_POLL_NS 500u

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

	cr_assert_gt(pos, e->acked);
	cr_assert_leq(pos, *chan->posted);
	e->acked = pos;
}

static void pair_on_down(struct core_chan *chan, int err)
{
	pair_of(chan)->down = err;
}

static const struct core_upcalls pair_upcalls = {
	.on_msg = pair_on_msg,
	.on_call = pair_on_call,
	.on_reply = pair_on_reply,
	.on_get_done = pair_on_get_done,
	.on_acked = pair_on_acked,
	.on_down = pair_on_down,
};

static void pair_failed(struct erpc_session *s)
{
	erpc_session_end(s);
	if (s->user)
		s->conn.up->on_down(&s->conn.chan, s->err);
}

/* ---- open and close ---- */

void erpc_pair_init(struct erpc_pair *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	fake_net_init(&p->net, seed);
	p->net.now_ns = 1000000;
	p->rng.state = seed * 7919;
}

void erpc_pair_join(struct erpc_ep *a, struct erpc_ep *b, struct erpc_session **sa,
		    struct erpc_session **sb)
{
	struct wire_erpc_params ha, hb;
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	cr_assert_eq(erpc_session_open(a, &ha, sa), 0);
	cr_assert_eq(erpc_session_open(b, &hb, sb), 0);
	cr_assert_eq(b->dg->ops->describe(b->dg, &desc), 0);
	cr_assert_eq(a->dg->ops->resolve(a->dg, &desc, &ah), 0);
	cr_assert_eq(erpc_session_connect(*sa, &hb, ah), 0);
	cr_assert_eq(a->dg->ops->describe(a->dg, &desc), 0);
	cr_assert_eq(b->dg->ops->resolve(b->dg, &desc, &ah), 0);
	cr_assert_eq(erpc_session_connect(*sb, &ha, ah), 0);
	erpc_session_attach(*sa);
	erpc_session_attach(*sb);
}

static void pair_end_open(struct erpc_pair *p, struct pair_end *e)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = PAIR_RX_CNT, .tx_cnt = PAIR_TX_CNT };
	struct erpc_ep_attr attr = {
		.tx_cnt = PAIR_TX_CNT,
		.up = &pair_upcalls,
		.link_rate = p->pace_rate,
		.seed = rng_next(&p->rng) | 1,
		.failed = pair_failed,
	};
	uint32_t i;

	cr_assert_eq(fake_net_ops.open(fake_net_dev(&p->net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &e->ep), 0);
	e->rng = &p->rng;
	e->len_max = 200;
	e->get_max = PAIR_GET_LEN;
	e->memory = malloc(PAIR_GET_LEN);
	for (i = 0; i < PAIR_GET_LEN; i++)
		e->memory[i] = (uint8_t)rng_next(&p->rng);
	for (i = 0; i < PAIR_GET_MAX; i++)
		e->gets[i].buf = malloc(PAIR_GET_LEN);
}

void erpc_pair_open(struct erpc_pair *p)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		pair_end_open(p, &p->end[i]);
		p->end[i].peer = &p->end[!i];
	}
	erpc_pair_join(p->end[0].ep, p->end[1].ep, &p->end[0].s, &p->end[1].s);
	for (i = 0; i < 2; i++)
		p->end[i].s->user = &p->end[i];
}

static void pair_end_close(struct pair_end *e)
{
	uint32_t i;

	for (i = 0; i < PAIR_GET_MAX; i++)
		if (e->gets[i].exposure.chan)
			e->gets[i].exposure.chan->ops->unexpose(e->gets[i].exposure.chan,
								&e->gets[i].exposure);
	if (e->s) {
		if (!e->s->err)
			e->s->err = -FI_ESHUTDOWN;
		erpc_session_end(e->s);
	}
}

/** Asserts that buffers are free or wait for the device. */
static void pair_check_bufs(const struct erpc_bufs *bufs)
{
	const struct util_list *it;
	size_t waiting = 0;

	for (it = bufs->waiting.next; it != &bufs->waiting; it = it->next)
		waiting++;
	cr_assert_eq(bufs->used_cnt, waiting);
}

void erpc_pair_fini(struct erpc_pair *p)
{
	unsigned i, k;

	for (i = 0; i < 2; i++)
		pair_end_close(&p->end[i]);
	for (i = 0; i < 2; i++) {
		if (p->end[i].s)
			erpc_pair_close(p->end[i].s);
		cr_assert_eq(p->end[i].ep->dg->rx_retained, 0, "every receive buffer was returned");
		cr_assert_eq(p->end[i].ep->session_cnt, 0);
		cr_assert_eq(p->end[i].ep->promised, 0);
	}
	/* Buffers that the device still reads return with its reports. */
	for (i = 0; i < 2; i++) {
		fake_net_run(&p->net, p->net.now_ns + 1000000);
		erpc_ep_progress(p->end[i].ep, p->net.now_ns);
		pair_check_bufs(&p->end[i].ep->bufs);
		erpc_ep_close(p->end[i].ep);
		free(p->end[i].memory);
		for (k = 0; k < PAIR_GET_MAX; k++)
			free(p->end[i].gets[k].buf);
	}
	fake_net_fini(&p->net);
}

void erpc_pair_start(struct erpc_pair *p, uint64_t seed, uint32_t mtu)
{
	erpc_pair_init(p, seed);
	p->net.mtu = mtu;
	erpc_pair_open(p);
}

void erpc_pair_warm(struct erpc_pair *p)
{
	unsigned i;

	p->end[0].len_exact = 100;
	for (i = 0; i < 20; i++) {
		cr_assert_eq(pair_send(&p->end[0], 0), 0);
		erpc_pair_settle(p);
	}
	cr_assert_gt(p->end[0].s->time.rto.srtt_ns, 0);
	cr_assert_eq(p->end[0].ep->unread.losses, 0);
}

void erpc_pair_end(struct erpc_pair *p)
{
	erpc_pair_settle(p);
	erpc_pair_check(p);
	erpc_pair_fini(p);
}

struct wire_erpc_hdr erpc_pair_hdr(const struct fake_pkt *pkt)
{
	struct wire_erpc_hdr h = { 0 };

	cr_assert(wire_erpc_get(&h, pkt->data, pkt->len));
	return h;
}

/* ---- send ---- */

static uint32_t pair_len(struct pair_end *e)
{
	if (e->len_exact)
		return e->len_exact;
	return (uint32_t)rng_below(
		e->rng, rng_chance(e->rng, 9, 10) && e->len_max > 200 ? 200 : e->len_max + 1);
}

int pair_send(struct pair_end *e, unsigned flags)
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
	if (rng_chance(e->rng, 1, 2))
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
		e->s->conn.chan.awaited = e->s->send.posted_pos;
	}
	return ret < 0 ? ret : 0;
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
	uint32_t at;
	struct pair_call_ref call;

	if (!e->pending_cnt)
		return false;
	at = (uint32_t)rng_below(e->rng, e->pending_cnt);
	call = e->pending[at];
	e->pending[at] = e->pending[--e->pending_cnt];
	pair_reply(e, &call, rng_chance(e->rng, 1, 2) ? CORE_SEND_MORE : 0);
	return true;
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

/* ---- time ---- */

/** Returns the earliest timer of both ends, or `until`. */
static uint64_t pair_next_ns(const struct erpc_pair *p, uint64_t until)
{
	uint64_t a = erpc_ep_due_ns(p->end[0].ep), b = erpc_ep_due_ns(p->end[1].ep);
	uint64_t due = a < b ? a : b;

	if (due < PAIR_POLL_NS)
		due = PAIR_POLL_NS;
	return due < until - p->net.now_ns ? p->net.now_ns + due : until;
}

void erpc_pair_run(struct erpc_pair *p, uint64_t ns)
{
	uint64_t until = p->net.now_ns + ns;

	do {
		/* Both ends sleep until a packet arrives: neither is away. */
		p->end[0].ep->armed = p->end[1].ep->armed = true;
		erpc_ep_progress(p->end[0].ep, p->net.now_ns);
		erpc_ep_progress(p->end[1].ep, p->net.now_ns);
	} while (fake_net_step(&p->net, pair_next_ns(p, until)) || p->net.now_ns < until);
}

static bool pair_is_done(const struct pair_end *e)
{
	uint32_t i;

	for (i = 0; i < PAIR_GET_MAX; i++)
		if (e->gets[i].open)
			return false;
	return !e->pending_cnt && !e->retained_cnt && e->calls_sent == e->replies &&
	       !e->s->conn.chan.ops->is_busy(&e->s->conn.chan);
}

void erpc_pair_settle(struct erpc_pair *p)
{
	unsigned rounds, i;

	for (rounds = 0; rounds < 200000; rounds++) {
		for (i = 0; i < 2; i++) {
			pair_reply_one(&p->end[i]);
			pair_release(&p->end[i]);
		}
		if (pair_is_done(&p->end[0]) && pair_is_done(&p->end[1]))
			return;
		erpc_pair_run(p, 200000);
	}
	cr_assert_fail("no end: sent %u %u, received %u %u, calls %u %u, replies %u %u",
		       p->end[0].sent, p->end[1].sent, p->end[0].received, p->end[1].received,
		       p->end[0].calls_sent, p->end[1].calls_sent, p->end[0].replies,
		       p->end[1].replies);
}

void erpc_pair_check(struct erpc_pair *p)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct pair_end *e = &p->end[i];

		cr_assert_eq(e->down, 0);
		cr_assert_eq(e->received, e->peer->sent);
		cr_assert_eq(e->replies, e->calls_sent);
		cr_assert_eq(e->acked, e->s->send.posted_pos);
		cr_assert_eq(e->s->credit.avail, e->s->credit.max, "credits are conserved");
		cr_assert_eq(e->s->calls.grant_left, ERPC_GRANT);
		cr_assert_eq(e->s->resp.calls_pending, 0);
		cr_assert_eq(e->s->reply_reserved, 0);
		cr_assert_eq(e->s->retained_len, 0);
		cr_assert_eq(e->s->calls.open.used_cnt, 0);
		cr_assert_eq(e->ep->bodies.used_cnt, 0);
	}
}
