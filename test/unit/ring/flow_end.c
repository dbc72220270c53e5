/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random steps of the two ends, and comparison of received messages: see flow_end.h. */
#include "unit/ring/flow_end.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "wire/wire_ring.h"

#define FLOW_DATA_MAX      32768u
#define FLOW_NONE_RETAINED UINT64_MAX /* Number that no retained message has */

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

/** Returns the message that the reader `end` must receive next. */
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

/** Draws a length: mostly small, often at the edge of a block, sometimes the maximum. */
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

/** Makes a frame with the bytes of `serial` on the ring, except for the first `skip`. */
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

/**
 * Sends a message by send_buf or send_more, which take one buffer and the extension that the
 * operation implies.
 */
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
	if (flags == CORE_SEND_MORE && rng_chance(&end->run->rng, 3, 4))
		ret = chan->ops->send_more(chan, core_packed(msg->op, 0), ext[0], ext[1],
					   flat + ext_len, msg->len - ext_len);
	else
		ret = chan->ops->send_buf(chan, core_packed(msg->op, flags), ext[0], ext[1],
					  flat + ext_len, msg->len - ext_len);
	return ret > 0 ? 0 : ret; /* 1: arrives later */
}

int flow_send_len(struct flow_end *end, uint32_t len, unsigned flags)
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

uint32_t flow_sure_resp_max(const struct flow_end *end)
{
	uint32_t reserve = (uint32_t)end->peer->ring->conn.tx.flow.grant_max / 2 & ~31u;

	return reserve < 64 ? 0 : reserve - WIRE_META_LEN - WIRE_HDR_LEN;
}

int flow_call_with(struct flow_end *end, uint32_t len, uint32_t resp_max)
{
	struct core_chan *chan = &end->ring->conn.eng.chan;
	struct flow_run *run = end->run;
	struct flow_msg msg = { FLOW_CALL, 0, len, ++run->serial, resp_max };
	unsigned slot = 0, flags;
	int ret;

	while (slot < FLOW_OPEN_MAX && end->calls[slot].open)
		slot++;
	if (slot == FLOW_OPEN_MAX)
		return -FI_EAGAIN;
	msg.op = (uint32_t)rng_next(&run->rng);
	flags = rng_chance(&run->rng, 1, 4) ? CORE_SEND_MORE : 0;
	if (rng_chance(&run->rng, 1, 2)) {
		static uint8_t flat[FLOW_DATA_MAX + 8];

		flow_fill(flat, len, msg.serial);
		ret = chan->ops->call_buf(chan, msg.op, flat, len, resp_max, &end->calls[slot],
					  flags);
	} else {
		flow_make_frame(run, &flow_frame, msg.op, len, msg.serial);
		ret = chan->ops->call(chan, &flow_frame.frame, resp_max, &end->calls[slot], flags);
	}
	FLOW_CHECK(run, !ret || ret == -FI_EAGAIN, "call failed");
	end->called += !ret;
	end->again += !!ret;
	if (ret)
		return ret;
	end->calls[slot] = (struct flow_call){ msg.serial, true };
	end->call_cnt++;
	end->reserved += wire_reservation(resp_max);
	flow_sent(end, &msg);
	return 0;
}

static void flow_call(struct flow_end *end)
{
	uint32_t max = (uint32_t)end->ring->conn.eng.chan.eager_max;
	uint32_t grant = (uint32_t)end->peer->ring->conn.tx.flow.grant_max;
	uint32_t resp_max = grant < 64 ? 0 : grant - WIRE_META_LEN - WIRE_HDR_LEN;

	if (end->call_cnt < FLOW_OPEN_MAX)
		flow_call_with(end, flow_draw_len(end->run, max),
			       flow_draw_len(end->run, resp_max));
}

/** Replies to one of the peer's open calls with a random number of bytes. */
void flow_reply(struct flow_end *end)
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
	msg.len = flow_draw_len(run, open.ref.resp_max);
	msg.serial = open.serial;
	flow_fill(flat, msg.len, msg.serial);
	FLOW_CHECK(run,
		   core_chan_reply(chan, open.ref, flat, open.ref.resp_max + 1) == -FI_EMSGSIZE,
		   "a reply that is too long");
	end->peer->reserved -= wire_reservation(open.ref.resp_max);
	if (rng_chance(&run->rng, 1, 2))
		FLOW_CHECK(run, !core_chan_reply(chan, open.ref, flat, msg.len),
			   "a reply was refused");
	else
		FLOW_CHECK(run,
			   !chan->ops->reply_release(chan, open.ref, FLOW_NONE_RETAINED, flat,
						     msg.len, 0),
			   "a response was refused");
	flow_sent(end, &msg);
	end->replied++;
}

void flow_release(struct flow_end *end)
{
	struct core_chan *chan = &end->ring->conn.eng.chan;
	const struct ring_rx *rx = &end->ring->conn.rx;
	uint64_t before = rx->consumer;
	struct flow_hold retain;
	unsigned i;

	if (!end->hold_cnt)
		return;
	i = (unsigned)rng_below(&end->run->rng, end->hold_cnt);
	retain = end->retain[i];
	end->retain[i] = end->retain[--end->hold_cnt];
	flow_compare(end->run, &retain.msg, retain.data, retain.msg.len);
	chan->ops->release(chan, retain.retain);
	FLOW_CHECK(end->run, rx->consumer - before <= rx->len, "consumer goes back");
}

static void flow_flush(struct flow_end *end)
{
	end->ring->conn.eng.chan.ops->flush(&end->ring->conn.eng.chan);
}

void flow_progress(struct flow_end *end)
{
	if (end->run->c->pair.rails)
		ring_end_progress_rails(end->ring);
	else
		ring_end_progress(end->ring);
}

void flow_fail_link(struct flow_end *end)
{
	struct ring_conn *conn = &end->ring->conn;

	if (conn->rail->phase == RING_RAIL_BESIDE && !fake_link_of(conn->link)->dead)
		fake_link_kill(conn->link, -FI_ETIMEDOUT);
}

bool flow_has_failed(const struct flow_run *run)
{
	return run->end[0].ring->conn.rail->phase == RING_RAIL_TAKEN &&
	       run->end[1].ring->conn.rail->phase == RING_RAIL_TAKEN;
}

void (*const flow_steps[FLOW_STEPS])(struct flow_end *end) = {
	flow_send, flow_call, flow_reply, flow_release, flow_flush, flow_progress,
};

/* ---- up-calls ---- */

/** Runs random steps, except progress, inside an up-call. */
static void flow_reenter(struct flow_end *end)
{
	while (rng_chance(&end->run->rng, end->run->reenter_rate, 8))
		flow_steps[rng_below(&end->run->rng, 5)](end);
}

static enum core_rx_verdict flow_verdict(struct flow_end *end, const struct flow_msg *msg,
					 const uint8_t *data, core_retain_t retain)
{
	struct flow_run *run = end->run;

	flow_reenter(end);
	if (end->hold_cnt == FLOW_HOLD_MAX || !rng_chance(&run->rng, run->hold_rate, 16))
		return CORE_RX_DONE;
	end->retain[end->hold_cnt++] = (struct flow_hold){ retain, data, *msg };
	return CORE_RX_RETAIN;
}

static struct flow_end *flow_end_of(struct core_chan *chan)
{
	return ring_end_of(chan)->user;
}

static enum core_rx_verdict flow_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					uint32_t len, core_retain_t retain)
{
	struct flow_end *end = flow_end_of(chan);
	struct flow_msg msg = flow_expect(end, FLOW_MSG);

	FLOW_CHECK(end->run, op == msg.op, "operation of a message");
	flow_compare(end->run, &msg, data, len);
	return flow_verdict(end, &msg, data, retain);
}

static enum core_rx_verdict flow_on_call(struct core_chan *chan, struct core_call_ref ref,
					 const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct flow_end *end = flow_end_of(chan);
	struct flow_msg msg = flow_expect(end, FLOW_CALL);
	uint32_t op;

	FLOW_CHECK(end->run, len >= sizeof(op), "a call without its operation");
	memcpy(&op, data, sizeof(op));
	FLOW_CHECK(end->run, op == msg.op, "operation of a call");
	FLOW_CHECK(end->run,
		   ref.resp_max >= msg.resp_max &&
			   wire_reservation(ref.resp_max) == wire_reservation(msg.resp_max),
		   "maximum response size of a call");
	flow_compare(end->run, &msg, data + sizeof(op), len - (uint32_t)sizeof(op));
	FLOW_CHECK(end->run, end->open_cnt < FLOW_OPEN_MAX, "test's own table");
	end->open[end->open_cnt++] = (struct flow_open){ ref, msg.serial };
	return flow_verdict(end, &msg, data + sizeof(op), retain);
}

static void flow_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			  uint32_t len)
{
	struct flow_end *end = flow_end_of(chan);
	struct flow_msg msg = flow_expect(end, FLOW_REPLY);
	struct flow_call *call = context;

	FLOW_CHECK(end->run, !status && call->open && call->serial == msg.serial,
		   "the response of another call");
	flow_compare(end->run, &msg, data, len);
	call->open = false;
	end->call_cnt--;
	flow_reenter(end);
}

/** Returns the position up to which writes of the end have reached the peer's ring. */
static uint64_t flow_placed(const struct flow_end *end)
{
	const struct fake_link *link = fake_link_of(end->ring->conn.link);
	uint64_t pos = end->peer->ring->conn.rx.producer, i;

	for (i = link->wire_head; i != link->wire_sent; i++)
		pos += wire_imm_units(link->wire[i & link->wire_mask].imm) * WIRE_ALIGN;
	return pos;
}

static void flow_on_arrived(struct core_chan *chan, uint64_t pos)
{
	struct flow_end *end = flow_end_of(chan);

	FLOW_CHECK(end->run, (int64_t)(pos - flow_placed(end)) <= 0,
		   "acknowledgement of bytes that are not there");
}

static void flow_on_down(struct core_chan *chan, int err)
{
	flow_fail(flow_end_of(chan)->run, "up", "the connection went down");
}

const struct core_upcalls flow_upcalls = {
	.on_msg = flow_on_msg,
	.on_call = flow_on_call,
	.on_reply = flow_on_reply,
	.on_acked = flow_on_arrived,
	.on_down = flow_on_down,
};
