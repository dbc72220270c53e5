/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_side.h. */
#include "erpc_side.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define MEM_LEN  5000u
#define RESP_MAX 64u

static uint64_t side_take(const struct side *side, unsigned bytes)
{
	return script_take(side->attacker->script, bytes);
}

static struct side *side_of(struct core_chan *chan)
{
	return erpc_session_of(chan)->user;
}

/* ---- up-calls ---- */

static void read_all(const uint8_t *data, uint32_t len)
{
	static volatile uint8_t sink;
	uint8_t sum = 0;

	while (len--)
		sum ^= *data++;
	sink = sum;
	(void)sink;
}

/** Checks a message of an honest user: its bytes follow from its number. */
static void check_bytes(const uint8_t *data, uint32_t len, uint32_t number)
{
	CHECK(len == number % 200 * (number % 7));
	while (len--)
		CHECK(data[len] == (uint8_t)(number + len));
}

static enum core_rx_verdict decide(struct side *side, core_retain_t retain)
{
	uint8_t what = (uint8_t)side_take(side, 1);

	if (!side->honest && what > 0xF8)
		return CORE_RX_BAD;
	if ((what & 7) != 7 || side->retained_cnt == RETAINED_MAX)
		return CORE_RX_DONE;
	side->retained[side->retained_cnt++] = retain;
	return CORE_RX_RETAIN;
}

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	struct side *side = side_of(chan);

	if (side->honest) {
		CHECK(op == side->received++);
		check_bytes(data, len, op);
	}
	read_all(data, len);
	return decide(side, retain);
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct side *side = side_of(chan);
	uint32_t op;

	memcpy(&op, data, sizeof(op));
	if (side->honest) {
		CHECK(op == side->received++ && ref.resp_max == RESP_MAX);
		check_bytes(data + sizeof(op), len - sizeof(op), op);
	}
	read_all(data, len);
	if (side->call_cnt < OPEN)
		side->calls[side->call_cnt++] = ref;
	else
		core_chan_reply(chan, ref, "late", ref.resp_max < 4 ? ref.resp_max : 4);
	return decide(side, retain);
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	struct side *side = side_of(chan);

	CHECK(!status && len <= RESP_MAX);
	CHECK(context && (uintptr_t)context <= side->sent);
	CHECK(side->replies++ < side->calls_sent);
	read_all(data, len);
	if (side_take(side, 1) > 0xF0 && side->retained_cnt < RETAINED_MAX &&
	    !chan->ops->retain(chan, &side->retained[side->retained_cnt]))
		side->retained_cnt++;
}

static void on_get_done(struct core_chan *chan, struct core_get *get)
{
	struct side *side = side_of(chan);

	CHECK(get == &side->get && side->into);
	if (side->honest) {
		CHECK(!get->status && !memcmp(side->into, side->peer->exposed, get->len));
		side->peer->s->conn.chan.ops->unexpose(&side->peer->s->conn.chan,
						       &side->peer->exposure);
		free(side->peer->exposed);
		side->peer->exposed = NULL;
	}
	side->gets_done++;
	free(side->into);
	side->into = NULL;
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
	CHECK(pos <= *chan->posted);
}

const struct core_upcalls side_upcalls = {
	.on_msg = on_msg,
	.on_call = on_call,
	.on_reply = on_reply,
	.on_get_done = on_get_done,
	.on_acked = on_acked,
};

void side_failed(struct erpc_session *s)
{
	CHECK(!((struct side *)s->user)->honest);
	erpc_session_end(s);
}

/* ---- actions ---- */

static void act_send(struct side *side, bool call)
{
	uint32_t number = side->sent, len = number % 200 * (number % 7), i;
	struct core_chan *chan = &side->s->conn.chan;
	uint8_t bytes[LEN_MAX];
	int ret;

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(number + i);
	if (call) {
		ret = chan->ops->call_buf(chan, number, bytes, len, RESP_MAX,
					  (void *)((uintptr_t)number + 1), side_take(side, 1) & 3);
		side->calls_sent += !ret;
	} else {
		struct iovec iov = { .iov_base = bytes, .iov_len = len };
		struct core_frame frame = { .op = number, .iov = &iov, .iov_cnt = 1, .len = len };

		ret = chan->ops->send(chan, &frame, side_take(side, 1) & 3);
	}
	side->sent += !ret;
}

void side_reply(struct side *side)
{
	static const uint8_t zeros[256];
	struct core_chan *chan = &side->s->conn.chan;
	struct core_call_ref ref;
	size_t len = side_take(side, 1);

	if (!side->call_cnt)
		return;
	ref = side->calls[--side->call_cnt];
	len = len < ref.resp_max ? len : ref.resp_max;
	CHECK(!core_chan_reply(chan, ref, zeros, len));
}

void side_release(struct side *side)
{
	core_retain_t retain;
	unsigned i;

	if (!side->retained_cnt)
		return;
	i = (unsigned)side_take(side, 1) % side->retained_cnt;
	retain = side->retained[i];
	side->retained[i] = side->retained[--side->retained_cnt];
	side->s->conn.chan.ops->release(&side->s->conn.chan, retain);
}

static bool expose(struct side *side, size_t len)
{
	size_t i;

	if (side->exposed || side->s->err)
		return false;
	side->exposed = malloc(len);
	CHECK(side->exposed);
	for (i = 0; i < len; i++)
		side->exposed[i] = (uint8_t)(i * 7);
	CHECK(!side->s->conn.chan.ops->expose(&side->s->conn.chan, side->exposed, len,
					      &side->exposure));
	return true;
}

void side_unexpose(struct side *side)
{
	if (!side->exposed || side->honest)
		return;
	side->s->conn.chan.ops->unexpose(&side->s->conn.chan, &side->exposure);
	free(side->exposed);
	side->exposed = NULL;
}

static void act_expose(struct side *side)
{
	size_t len = 1 + side_take(side, 2) % MEM_LEN;

	if (side->honest || !expose(side, len))
		return;
	side->attacker->exposure_addr = (uintptr_t)side->exposed;
	side->attacker->exposure_key = side->exposure.key;
	side->attacker->exposure_len = (uint32_t)len;
}

static void act_get(struct side *side)
{
	size_t len = 1 + side_take(side, 2) % MEM_LEN;

	if (side->into || side->s->err || (side->honest && !expose(side->peer, len)))
		return;
	side->into = malloc(len);
	CHECK(side->into);
	side->iov = (struct iovec){ .iov_base = side->into, .iov_len = len };
	side->get = (struct core_get){ .iov = &side->iov, .iov_cnt = 1, .len = len };
	if (side->honest) {
		side->get.remote_addr = (uintptr_t)side->peer->exposed;
		side->get.remote_key = side->peer->exposure.key;
	}
	CHECK(!side->s->conn.chan.ops->get(&side->s->conn.chan, &side->get));
}

void side_act(struct side *side, uint8_t what)
{
	if (!side->s)
		return;
	switch (what % 9) {
	case 0: act_send(side, false); break;
	case 1: act_send(side, true); break;
	case 2: side_reply(side); break;
	case 3: side_release(side); break;
	case 4: act_get(side); break;
	case 5: act_expose(side); break;
	case 6: side_unexpose(side); break;
	case 7: side->s->conn.chan.ops->flush(&side->s->conn.chan); break;
	case 8: side->s->conn.chan.ops->is_busy(&side->s->conn.chan); break;
	}
}
