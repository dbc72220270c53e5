/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two ends that do what they like, and what must hold all the time: see flow.h. */
#include "flow.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "support/rng.h"
#include "wire/wire_ring.h"

#define FLOW_QUEUE    8192u /* messages that may be under way in one direction */
#define FLOW_OPEN_MAX 1024u /* calls without an answer */
#define FLOW_HOLD_MAX 24u
#define FLOW_DATA_MAX 32768u
#define FLOW_NO_HOLD  UINT64_MAX /* a number that no held message has */
#define FLOW_EPISODE  3000u
#define FLOW_PATIENCE 20000u

enum flow_kind { FLOW_MSG, FLOW_CALL, FLOW_REPLY };

/** A message as its reader must see it. */
struct flow_msg {
	enum flow_kind kind;
	uint32_t op;
	uint32_t len;
	uint64_t serial; /* its bytes follow from it; an answer has its call's */
	uint32_t allowance;
};

struct flow_hold {
	core_hold_t hold;
	const uint8_t *data;
	struct flow_msg msg;
};

struct flow_open {
	struct core_call_ref ref;
	uint64_t serial;
};

struct flow_call {
	uint64_t serial;
	bool open;
};

struct flow_run;

struct flow_end {
	struct flow_run *run;
	struct flow_end *peer;
	struct ring_end *ring;
	struct flow_msg out[FLOW_QUEUE]; /* what the peer has to see, oldest first */
	uint64_t out_head;
	uint64_t out_tail;
	struct flow_open open[FLOW_OPEN_MAX]; /* calls of the peer */
	unsigned open_cnt;
	struct flow_call calls[FLOW_OPEN_MAX]; /* our calls */
	uint64_t reserved;                     /* by those that the peer has not answered */
	unsigned call_cnt;
	struct flow_hold hold[FLOW_HOLD_MAX];
	unsigned hold_cnt;
	uint64_t consumer; /* at the last check */
	uint64_t sent, called, answered, again;
	unsigned weight[6];
};

struct flow_run {
	const struct flow_case *c;
	uint64_t seed;
	uint64_t step;
	struct rng rng;
	struct ring_pair pair;
	struct flow_end end[2];
	uint64_t serial;
	unsigned hold_rate;    /* out of 16 */
	unsigned reenter_rate; /* out of 8 */
};

static struct flow_run flow_run;

#define FLOW_CHECK(run, cond, ...)                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			flow_fail((run), #cond, __VA_ARGS__);                                      \
	} while (0)

static void flow_fail(struct flow_run *run, const char *cond, const char *what)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct ring_conn *c = &run->pair.end[i].conn;

		fprintf(stderr,
			"end %d: producer %#" PRIx64 " flushed %#" PRIx64 " known %#" PRIx64
			" R %" PRIu64 " claimed %" PRIu64 " credit %" PRIu64 " posts %u open %d\n"
			"       rx producer %#" PRIx64 " parsed %#" PRIx64 " consumer %#" PRIx64
			" told %#" PRIx64 " holds %u calls %u\n",
			i, c->tx.flow.producer, c->tx.flush_start, c->tx.flow.remote_consumer,
			c->tx.flow.granted, c->tx.flow.claimed, c->tx.credit, c->tx.post_cnt,
			c->tx.open, c->rx.producer, c->rx.parsed, c->rx.consumer, c->rx.told,
			run->end[i].hold_cnt, run->end[i].call_cnt);
	}
	cr_assert_fail("%s: %s (%s); COPYRPC_TEST_SEED=%" PRIu64 " step %" PRIu64, run->c->name,
		       what, cond, run->seed, run->step);
	abort();
}

/* ---- contents ---- */

static void flow_fill(uint8_t *dst, uint32_t len, uint64_t serial)
{
	struct rng r = { .state = serial };
	uint64_t word;

	for (; len >= 8; len -= 8, dst += 8) {
		word = rng_next(&r);
		memcpy(dst, &word, 8);
	}
	word = rng_next(&r);
	memcpy(dst, &word, len);
}

static void flow_compare(struct flow_run *run, const struct flow_msg *msg, const uint8_t *data,
			 uint32_t len)
{
	static uint8_t want[FLOW_DATA_MAX + 8];

	FLOW_CHECK(run, len == msg->len, "length of a message");
	flow_fill(want, len, msg->serial);
	FLOW_CHECK(run, !memcmp(want, data, len), "bytes of a message");
}

/** What the reader `end` must see next. */
static struct flow_msg flow_expect(struct flow_end *end, enum flow_kind kind)
{
	struct flow_end *from = end->peer;
	struct flow_msg *msg = &from->out[from->out_head % FLOW_QUEUE];

	FLOW_CHECK(end->run, from->out_head != from->out_tail, "a message that nobody sent");
	FLOW_CHECK(end->run, msg->kind == kind, "messages out of order");
	from->out_head++;
	return *msg;
}

static void flow_sent(struct flow_end *end, const struct flow_msg *msg)
{
	FLOW_CHECK(end->run, end->out_tail - end->out_head < FLOW_QUEUE, "test's own queue");
	end->out[end->out_tail++ % FLOW_QUEUE] = *msg;
}

/* ---- steps ---- */

/** Mostly small, often at the edge of a block, sometimes as large as it gets. */
static uint32_t flow_draw_len(struct flow_run *run, uint32_t max)
{
	uint32_t len;

	switch (rng_below(&run->rng, 8)) {
	case 0: len = max; break;
	case 1: len = (uint32_t)rng_below(&run->rng, (uint64_t)max + 1); break;
	case 2:
		len = (uint32_t)(32 * rng_below(&run->rng, max / 32 + 1) + 18 +
				 rng_below(&run->rng, 5));
		break;
	case 3: len = (uint32_t)rng_below(&run->rng, 128); break;
	default: len = (uint32_t)rng_below(&run->rng, 24); break;
	}
	return len < max ? len : max;
}

struct flow_frame {
	struct core_frame frame;
	struct iovec iov[3];
	uint8_t flat[FLOW_DATA_MAX + 16];
};

/** A frame whose bytes on the ring, `skip` ones aside, are those of `serial`. */
static void flow_make_frame(struct flow_run *run, struct flow_frame *f, uint32_t op, uint32_t len,
			    uint64_t serial)
{
	uint32_t ext_len = 4 * (uint32_t)rng_below(&run->rng, 13);
	uint32_t off = (uint32_t)rng_below(&run->rng, 9);
	uint32_t cut[2];

	ext_len = ext_len < len ? ext_len : len & ~3u;
	f->frame = (struct core_frame){ .op = op, .ext_len = ext_len };
	flow_fill(f->flat + off, len, serial);
	memcpy(f->frame.ext, f->flat + off, ext_len);
	memmove(f->flat + off, f->flat + off + ext_len, len - ext_len);
	f->frame.len = len - ext_len;
	f->frame.iov_off = off;
	f->frame.iov = f->iov;
	f->frame.iov_cnt = rng_chance(&run->rng, 1, 2) ? 1 : 3;
	cut[0] = (uint32_t)rng_below(&run->rng, f->frame.len + off + 1);
	cut[1] = cut[0] + (uint32_t)rng_below(&run->rng, f->frame.len + off - cut[0] + 1);
	if (f->frame.iov_cnt == 1)
		cut[0] = cut[1] = (uint32_t)f->frame.len + off;
	f->iov[0] = (struct iovec){ f->flat, cut[0] };
	f->iov[1] = (struct iovec){ f->flat + cut[0], cut[1] - cut[0] };
	f->iov[2] = (struct iovec){ f->flat + cut[1], f->frame.len + off - cut[1] };
}

static struct flow_frame flow_frame;

/** The same message by send_buf, which takes one buffer and the extension that the operation announces. */
static int flow_send_buf(struct flow_end *end, struct flow_msg *msg, unsigned flags)
{
	static const uint32_t ops[] = { 0, WIRE_F_TAG, WIRE_F_TAG | WIRE_F_DATA32, WIRE_F_DATA64 };
	static uint8_t flat[FLOW_DATA_MAX + 8];
	struct core_chan *chan = &end->ring->conn.eng.chan;
	uint64_t ext[2] = { 0, 0 };
	uint32_t ext_len;
	int ret;

	msg->op = WIRE_OP_MSG | ops[rng_below(&end->run->rng, 4)];
	if (msg->len < wire_ext_len(msg->op))
		msg->op = WIRE_OP_MSG;
	ext_len = wire_ext_len(msg->op);
	flow_fill(flat, msg->len, msg->serial);
	memcpy(ext, flat, ext_len);
	ret = chan->ops->send_buf(chan, core_label(msg->op, flags), ext[0], ext[1], flat + ext_len,
				  msg->len - ext_len);
	return ret > 0 ? 0 : ret; /* 1: it arrives later */
}

static int flow_send_len(struct flow_end *end, uint32_t len, unsigned flags)
{
	struct core_chan *chan = &end->ring->conn.eng.chan;
	struct flow_run *run = end->run;
	struct flow_msg msg = { FLOW_MSG, (uint32_t)rng_below(&run->rng, 1u << 31), len,
				++run->serial, 0 };
	int ret;

	if (rng_chance(&run->rng, 1, 2)) {
		ret = flow_send_buf(end, &msg, flags);
	} else {
		flow_make_frame(run, &flow_frame, msg.op, len, msg.serial);
		ret = chan->ops->send(chan, &flow_frame.frame, flags);
	}
	if (!ret)
		flow_sent(end, &msg);
	FLOW_CHECK(run, !ret || ret == -FI_EAGAIN, "send failed");
	end->sent += !ret;
	end->again += !!ret;
	return ret;
}

static void flow_send(struct flow_end *end)
{
	static const unsigned flags[] = { 0, 0, 0, CORE_SEND_NOW, CORE_SEND_MORE };
	uint32_t max = (uint32_t)end->ring->conn.eng.chan.eager_max;

	flow_send_len(end, flow_draw_len(end->run, max), flags[rng_below(&end->run->rng, 5)]);
}

/** The largest allowance that a call is promised to get sooner or later. */
static uint32_t flow_sure_allowance(const struct flow_end *end)
{
	uint32_t reserve = (uint32_t)end->peer->ring->conn.tx.flow.grant_max / 2 & ~31u;

	return reserve < 64 ? 0 : reserve - WIRE_META_LEN - WIRE_HDR_LEN;
}

static int flow_call_with(struct flow_end *end, uint32_t len, uint32_t allowance)
{
	struct core_chan *chan = &end->ring->conn.eng.chan;
	struct flow_run *run = end->run;
	struct flow_msg msg = { FLOW_CALL, 0, len, ++run->serial, allowance };
	unsigned slot = 0;
	int ret;

	while (slot < FLOW_OPEN_MAX && end->calls[slot].open)
		slot++;
	if (slot == FLOW_OPEN_MAX)
		return -FI_EAGAIN;
	msg.op = (uint32_t)rng_next(&run->rng);
	if (rng_chance(&run->rng, 1, 2)) {
		static uint8_t flat[FLOW_DATA_MAX + 8];

		flow_fill(flat, len, msg.serial);
		ret = chan->ops->call_buf(chan, msg.op, flat, len, allowance, &end->calls[slot],
					  rng_chance(&run->rng, 1, 4) ? CORE_SEND_MORE : 0);
	} else {
		flow_make_frame(run, &flow_frame, msg.op, len, msg.serial);
		ret = chan->ops->call(chan, &flow_frame.frame, allowance, &end->calls[slot]);
	}
	FLOW_CHECK(run, !ret || ret == -FI_EAGAIN, "call failed");
	end->called += !ret;
	end->again += !!ret;
	if (ret)
		return ret;
	end->calls[slot] = (struct flow_call){ msg.serial, true };
	end->call_cnt++;
	end->reserved += wire_reservation(allowance);
	flow_sent(end, &msg);
	return 0;
}

static void flow_call(struct flow_end *end)
{
	uint32_t max = (uint32_t)end->ring->conn.eng.chan.eager_max;
	uint32_t grant = (uint32_t)end->peer->ring->conn.tx.flow.grant_max;
	uint32_t allowance = grant < 64 ? 0 : grant - WIRE_META_LEN - WIRE_HDR_LEN;

	if (end->call_cnt < FLOW_OPEN_MAX)
		flow_call_with(end, flow_draw_len(end->run, max),
			       flow_draw_len(end->run, allowance));
}

/** Answers one of the peer's open calls, whichever, with as many bytes as it likes. */
static void flow_answer(struct flow_end *end)
{
	static uint8_t flat[FLOW_DATA_MAX + 8];
	struct core_chan *chan = &end->ring->conn.eng.chan;
	struct flow_run *run = end->run;
	struct flow_msg msg = { .kind = FLOW_REPLY };
	struct flow_open open;
	unsigned i;

	if (!end->open_cnt)
		return;
	i = (unsigned)rng_below(&run->rng, end->open_cnt);
	open = end->open[i];
	end->open[i] = end->open[--end->open_cnt];
	msg.len = flow_draw_len(run, open.ref.allowance);
	msg.serial = open.serial;
	flow_fill(flat, msg.len, msg.serial);
	FLOW_CHECK(run,
		   chan->ops->reply(chan, open.ref, flat, open.ref.allowance + 1) == -FI_EMSGSIZE,
		   "a reply that is too long");
	end->peer->reserved -= wire_reservation(open.ref.allowance);
	if (rng_chance(&run->rng, 1, 2))
		FLOW_CHECK(run, !chan->ops->reply(chan, open.ref, flat, msg.len),
			   "a reply was refused");
	else
		FLOW_CHECK(run, !chan->ops->answer(chan, open.ref, FLOW_NO_HOLD, flat, msg.len, 0),
			   "an answer was refused");
	flow_sent(end, &msg);
	end->answered++;
}

static void flow_release(struct flow_end *end)
{
	struct core_chan *chan = &end->ring->conn.eng.chan;
	const struct ring_rx *rx = &end->ring->conn.rx;
	uint64_t before = rx->consumer;
	struct flow_hold hold;
	unsigned i;

	if (!end->hold_cnt)
		return;
	i = (unsigned)rng_below(&end->run->rng, end->hold_cnt);
	hold = end->hold[i];
	end->hold[i] = end->hold[--end->hold_cnt];
	flow_compare(end->run, &hold.msg, hold.data, hold.msg.len);
	chan->ops->release(chan, hold.hold);
	FLOW_CHECK(end->run, rx->consumer - before <= rx->len, "consumer goes back");
}

static void flow_flush(struct flow_end *end)
{
	end->ring->conn.eng.chan.ops->flush(&end->ring->conn.eng.chan);
}

static void flow_progress(struct flow_end *end)
{
	ring_end_progress(end->ring);
}

static void (*const flow_steps[6])(struct flow_end *end) = {
	flow_send, flow_call, flow_answer, flow_release, flow_flush, flow_progress,
};

/* ---- up-calls ---- */

/** In an up-call the user does what he does elsewhere, except progress. */
static void flow_reenter(struct flow_end *end)
{
	while (rng_chance(&end->run->rng, end->run->reenter_rate, 8))
		flow_steps[rng_below(&end->run->rng, 5)](end);
}

static enum core_rx_verdict flow_verdict(struct flow_end *end, const struct flow_msg *msg,
					 const uint8_t *data, core_hold_t hold)
{
	struct flow_run *run = end->run;

	flow_reenter(end);
	if (end->hold_cnt == FLOW_HOLD_MAX || !rng_chance(&run->rng, run->hold_rate, 16))
		return CORE_RX_DONE;
	end->hold[end->hold_cnt++] = (struct flow_hold){ hold, data, *msg };
	return CORE_RX_HOLD;
}

static struct flow_end *flow_end_of(struct core_chan *chan)
{
	return ring_end_of(chan)->user;
}

static enum core_rx_verdict flow_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					uint32_t len, core_hold_t hold)
{
	struct flow_end *end = flow_end_of(chan);
	struct flow_msg msg = flow_expect(end, FLOW_MSG);

	FLOW_CHECK(end->run, op == msg.op, "operation of a message");
	flow_compare(end->run, &msg, data, len);
	return flow_verdict(end, &msg, data, hold);
}

static enum core_rx_verdict flow_on_call(struct core_chan *chan, struct core_call_ref ref,
					 const uint8_t *data, uint32_t len, core_hold_t hold)
{
	struct flow_end *end = flow_end_of(chan);
	struct flow_msg msg = flow_expect(end, FLOW_CALL);
	uint32_t op;

	FLOW_CHECK(end->run, len >= sizeof(op), "a call without its operation");
	memcpy(&op, data, sizeof(op));
	FLOW_CHECK(end->run, op == msg.op, "operation of a call");
	FLOW_CHECK(end->run,
		   ref.allowance >= msg.allowance &&
			   wire_reservation(ref.allowance) == wire_reservation(msg.allowance),
		   "allowance of a call");
	flow_compare(end->run, &msg, data + sizeof(op), len - (uint32_t)sizeof(op));
	FLOW_CHECK(end->run, end->open_cnt < FLOW_OPEN_MAX, "test's own table");
	end->open[end->open_cnt++] = (struct flow_open){ ref, msg.serial };
	return flow_verdict(end, &msg, data + sizeof(op), hold);
}

static void flow_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			  uint32_t len)
{
	struct flow_end *end = flow_end_of(chan);
	struct flow_msg msg = flow_expect(end, FLOW_REPLY);
	struct flow_call *call = context;

	FLOW_CHECK(end->run, !status && call->open && call->serial == msg.serial,
		   "the answer of another call");
	flow_compare(end->run, &msg, data, len);
	call->open = false;
	end->call_cnt--;
	flow_reenter(end);
}

static void flow_on_arrived(struct core_chan *chan, uint64_t pos)
{
	struct flow_end *end = flow_end_of(chan);

	FLOW_CHECK(end->run, (int64_t)(pos - end->ring->conn.tx.flow.producer) <= 0,
		   "news of what was not sent");
}

static void flow_on_down(struct core_chan *chan, int err)
{
	(void)err;
	flow_fail(flow_end_of(chan)->run, "up", "the connection went down");
}

static const struct core_upcalls flow_upcalls = {
	.on_msg = flow_on_msg,
	.on_call = flow_on_call,
	.on_reply = flow_on_reply,
	.on_arrived = flow_on_arrived,
	.on_down = flow_on_down,
};

/* ---- what must hold ---- */

static uint64_t flow_grant_at(const uint8_t *bytes, uint32_t imm)
{
	struct wire_meta meta;

	if (imm & WIRE_IMM_SHORT)
		return 0;
	memcpy(&meta, bytes, sizeof(meta));
	return meta.credit_grant;
}

/** Credit that has left the writer and not reached the reader. */
static uint64_t flow_grants_in_transit(const struct ring_conn *conn)
{
	uint32_t i, cnt = fake_link_in_transit(conn->link);
	struct fake_write w;
	uint64_t sum = 0;

	for (i = 0; i < cnt; i++) {
		const uint8_t *bytes = fake_link_peek(conn->link, i, &w);

		sum += flow_grant_at(bytes, w.imm);
	}
	for (i = 0; i < conn->tx.post_cnt; i++)
		sum += flow_grant_at(conn->tx.base + conn->tx.posts[i].off, conn->tx.posts[i].imm);
	return sum;
}

static void flow_check_credit(struct flow_end *w)
{
	const struct ring_tx *tx = &w->ring->conn.tx;
	uint64_t claimed = 0;
	unsigned i;

	for (i = 0; i < w->open_cnt; i++)
		claimed += wire_reservation(w->open[i].ref.allowance);
	FLOW_CHECK(w->run, tx->flow.claimed == claimed, "claims do not add up");
	FLOW_CHECK(w->run,
		   tx->flow.granted == w->peer->ring->conn.tx.credit + w->peer->reserved +
					       flow_grants_in_transit(&w->ring->conn),
		   "credit is not conserved");
}

static void flow_check(struct flow_end *w)
{
	const struct ring_tx *tx = &w->ring->conn.tx;
	const struct ring_rx *rx = &w->peer->ring->conn.rx;
	struct flow_run *run = w->run;

	FLOW_CHECK(run, ring_flow_holds(&tx->flow), "the invariant");
	FLOW_CHECK(run, tx->flow.producer - rx->consumer <= tx->flow.cap, "the ring overflows");
	FLOW_CHECK(run, rx->consumer - tx->flow.remote_consumer <= tx->len, "told too much");
	FLOW_CHECK(run, rx->consumer - w->peer->consumer <= rx->len, "consumer goes back");
	FLOW_CHECK(run, rx->parsed - rx->consumer <= rx->len, "released and not parsed");
	FLOW_CHECK(run, tx->flow.producer - rx->parsed <= tx->len, "parsed and not sent");
	FLOW_CHECK(run, *w->peer->ring->link->consumer_word == rx->consumer, "consumer word");
	FLOW_CHECK(run, tx->open || (!tx->msg_cnt && tx->flush_start == tx->flow.producer),
		   "no batch is open");
	w->peer->consumer = rx->consumer;
	if (fake_link_in_transit(w->ring->link) < 40 || rng_chance(&run->rng, 1, 64))
		flow_check_credit(w);
}

/* ---- episodes ---- */

static void flow_draw_weights(struct flow_run *run)
{
	static const unsigned choice[] = { 0, 1, 1, 2, 4, 16 };
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < 6; k++)
			run->end[i].weight[k] = choice[rng_below(&run->rng, 6)];
		run->end[i].weight[5] += rng_chance(&run->rng, 1, 2) ? 4 : 0;
	}
	run->hold_rate = (unsigned)rng_below(&run->rng, 3) * (unsigned)rng_below(&run->rng, 6);
	run->reenter_rate = (unsigned)rng_below(&run->rng, 7);
}

static void flow_step(struct flow_run *run)
{
	struct flow_end *end = &run->end[rng_below(&run->rng, 2)];
	unsigned sum = 0, k = 0, draw;

	while (k < 6)
		sum += end->weight[k++];
	draw = (unsigned)rng_below(&run->rng, sum + 1);
	for (k = 0; k < 5 && draw >= end->weight[k]; k++)
		draw -= end->weight[k];
	flow_steps[k](end);
	if (rng_chance(&run->rng, 1, 4))
		fake_link_deliver(end->ring->link);
	run->step++;
	flow_check(&run->end[0]);
	flow_check(&run->end[1]);
}

static bool flow_end_is_done(const struct flow_end *w)
{
	const struct ring_tx *tx = &w->ring->conn.tx;
	const struct ring_rx *rx = &w->peer->ring->conn.rx;

	return !tx->open && !tx->post_cnt && !w->open_cnt && !w->call_cnt && !w->hold_cnt &&
	       w->out_head == w->out_tail && !fake_link_in_transit(w->ring->link) &&
	       tx->flow.producer == rx->consumer;
}

static void flow_serve(struct flow_run *run)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		while (run->end[i].hold_cnt)
			flow_release(&run->end[i]);
		while (run->end[i].open_cnt)
			flow_answer(&run->end[i]);
		flow_progress(&run->end[i]);
		flow_check(&run->end[0]);
		flow_check(&run->end[1]);
	}
}

/** Nothing new is begun: everything must arrive, and then nothing more may leave. */
static void flow_drain(struct flow_run *run)
{
	unsigned rounds = 0, silent = 0;
	uint64_t writes = 0, now;

	run->reenter_rate = 0;
	while (silent < 64) {
		flow_serve(run);
		now = run->pair.end[0].dev.write_cnt + run->pair.end[1].dev.write_cnt;
		if (now != writes || !flow_end_is_done(&run->end[0]) ||
		    !flow_end_is_done(&run->end[1]))
			silent = 0;
		else
			silent++;
		writes = now;
		FLOW_CHECK(run, rounds++ < FLOW_PATIENCE, "it does not drain");
	}
}

/** Both ends are silent: what is promised must be possible, at each of them. */
static void flow_check_promises(struct flow_run *run, struct flow_end *end)
{
	uint32_t max = (uint32_t)end->ring->conn.eng.chan.eager_max;
	unsigned rounds;

	for (rounds = 0; flow_send_len(end, max, 0); rounds++) {
		flow_serve(run);
		FLOW_CHECK(run, rounds < 200, "the largest message is never admitted");
	}
	flow_drain(run);
	for (rounds = 0; flow_call_with(end, max, flow_sure_allowance(end)); rounds++) {
		flow_serve(run);
		FLOW_CHECK(run, rounds < 200, "the largest call is never admitted");
	}
	flow_drain(run);
}

static void flow_init(struct flow_run *run, const struct flow_case *c, uint64_t seed)
{
	struct ring_pair_cfg cfg = c->pair;
	unsigned i;

	memset(run, 0, sizeof(*run));
	run->c = c;
	run->seed = seed;
	run->rng.state = seed;
	cfg.seed = seed;
	ring_pair_flush = c->flush;
	ring_pair_init(&run->pair, &cfg, &flow_upcalls);
	for (i = 0; i < 2; i++) {
		struct flow_end *end = &run->end[i];

		end->run = run;
		end->peer = &run->end[!i];
		end->ring = &run->pair.end[i];
		end->ring->user = end;
		end->ring->dev.sq_len = c->sq_len;
		end->ring->dev.no_read = c->no_read;
		end->consumer = end->ring->conn.rx.consumer;
	}
}

void flow_play(const struct flow_case *c, uint64_t seed, uint64_t steps)
{
	struct flow_run *run = &flow_run;
	unsigned i;

	flow_init(run, c, seed);
	while (run->step < steps) {
		uint64_t until = run->step + 1 + rng_below(&run->rng, FLOW_EPISODE);

		flow_draw_weights(run);
		while (run->step < until)
			flow_step(run);
		flow_drain(run);
		flow_check_promises(run, &run->end[rng_below(&run->rng, 2)]);
	}
	for (i = 0; i < 2; i++)
		cr_assert(run->end[i].sent && run->end[i].called && run->end[i].answered,
			  "%s: end %u did nothing; COPYRPC_TEST_SEED=%" PRIu64, c->name, i, seed);
	ring_pair_fini(&run->pair);
}
