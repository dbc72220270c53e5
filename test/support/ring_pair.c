/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two connections back to back: see ring_pair.h. */
#include "support/ring_pair.h"

#include <string.h>

#include "ring/ring_loop.h"

struct ring_flush_cfg ring_pair_flush = { .best_len = 4096, .cheap = true, .looks = true };

/* One copy of the engine's operations per device, as an engine has them. */
#define RING_PAIR_OPS(name)                                                                        \
	static int ring_pair_##name##_send(struct core_chan *chan, const struct core_frame *frame, \
					   unsigned flags)                                         \
	{                                                                                          \
		return ring_tx_send(&fake_link_##name##_ops, &ring_pair_flush, ring_conn_of(chan), \
				    frame, flags);                                                 \
	}                                                                                          \
	static int ring_pair_##name##_call(struct core_chan *chan, const struct core_frame *frame, \
					   uint32_t allowance, void *context)                      \
	{                                                                                          \
		return ring_tx_call(&fake_link_##name##_ops, &ring_pair_flush, ring_conn_of(chan), \
				    frame, allowance, context);                                    \
	}                                                                                          \
	static int ring_pair_##name##_reply(struct core_chan *chan, struct core_call_ref ref,      \
					    const void *buf, size_t len)                           \
	{                                                                                          \
		return ring_tx_reply(&fake_link_##name##_ops, &ring_pair_flush,                    \
				     ring_conn_of(chan), ref, buf, len);                           \
	}                                                                                          \
	static void ring_pair_##name##_flush(struct core_chan *chan)                               \
	{                                                                                          \
		if (!ring_conn_of(chan)->err)                                                      \
			ring_tx_progress(&fake_link_##name##_ops, ring_conn_of(chan));             \
	}                                                                                          \
	static int ring_pair_##name##_get(struct core_chan *chan, struct core_get *get)            \
	{                                                                                          \
		return ring_loop_get(&fake_link_##name##_ops, ring_conn_of(chan), get);            \
	}                                                                                          \
	static void ring_pair_##name##_progress(struct core_engine *engine)                        \
	{                                                                                          \
		ring_loop_progress(&fake_dev_ops, &fake_link_##name##_ops, engine);                \
	}                                                                                          \
	static const struct core_chan_ops ring_pair_##name##_ops = {                               \
		.send = ring_pair_##name##_send,                                                   \
		.call = ring_pair_##name##_call,                                                   \
		.reply = ring_pair_##name##_reply,                                                 \
		.flush = ring_pair_##name##_flush,                                                 \
		.get = ring_pair_##name##_get,                                                     \
		.release = ring_pair_release,                                                      \
		.is_busy = ring_pair_is_busy,                                                      \
		.close = ring_engine_chan_close,                                                   \
	}

static void ring_pair_release(struct core_chan *chan, core_hold_t hold)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (ring_holds_release(&conn->rx.holds, hold))
		ring_rx_release(conn);
}

static bool ring_pair_is_busy(struct core_chan *chan)
{
	struct ring_conn *conn = ring_conn_of(chan);

	return conn->link->caps & DEV_CAP_DIRECT ? ring_tx_is_busy(&fake_link_direct_ops, conn)
						 : ring_tx_is_busy(&fake_link_staged_ops, conn);
}

RING_PAIR_OPS(direct);
RING_PAIR_OPS(staged);

int ring_pair_engine_open(const struct core_upcalls *up, struct core_engine **engine)
{
	return ring_engine_open(&fake_dev_ops, &ring_pair_direct_ops, up, engine);
}

void ring_pair_engine_progress(struct core_engine *engine)
{
	ring_pair_direct_progress(engine);
}

uint64_t ring_pair_grant(uint64_t announced, uint64_t len)
{
	uint64_t grant = announced && announced < len / 8 ? announced : len / 8;

	return grant & ~(uint64_t)(WIRE_ALIGN - 1);
}

static void ring_end_start(struct ring_conn *conn, uint64_t tx_pos, uint64_t rx_pos)
{
	conn->tx.flow.producer = tx_pos;
	conn->tx.flow.remote_consumer = tx_pos;
	conn->tx.flush_start = tx_pos;
	conn->rx.producer = rx_pos;
	conn->rx.parsed = rx_pos;
	conn->rx.consumer = rx_pos;
	conn->rx.told = rx_pos;
	fake_link_start(conn->link, tx_pos, rx_pos);
}

static void ring_end_init(struct ring_end *end, const struct ring_pair_cfg *cfg, int self,
			  const struct core_upcalls *up)
{
	struct ring_conn *conn = &end->conn;
	struct core_engine *engine = &end->engine;

	engine->dev_ops = &fake_dev_ops;
	engine->dev = fake_dev_of(&end->dev);
	engine->chan_ops = cfg->direct ? &ring_pair_direct_ops : &ring_pair_staged_ops;
	engine->up = up;
	util_list_init(&engine->dirty);
	util_list_init(&engine->failed);
	util_list_init(&engine->events);
	conn->engine = engine;
	conn->up = up;
	conn->chan.ops = engine->chan_ops;
	util_list_init(&conn->dirty_link);
	util_list_init(&conn->conn_link);
	ring_conn_init(conn, end->link, ring_pair_grant(cfg->announce[self], end->link->tx_len),
		       ring_pair_grant(cfg->announce[!self], end->link->rx_len));
	ring_end_start(conn, cfg->start[!self], cfg->start[self]);
}

void ring_pair_init(struct ring_pair *pair, const struct ring_pair_cfg *cfg,
		    const struct core_upcalls *up)
{
	struct dev_link *link[2];
	int i;

	memset(pair, 0, sizeof(*pair));
	ring_pair_flush.looks = cfg->direct;
	for (i = 0; i < 2; i++) {
		fake_dev_init(&pair->end[i].dev, cfg->direct, cfg->seed + (uint64_t)i);
		pair->end[i].dev.ahead = cfg->ahead;
	}
	fake_link_pair(&pair->end[0].dev, cfg->rx_len[0], &pair->end[1].dev, cfg->rx_len[1], link);
	for (i = 0; i < 2; i++)
		pair->end[i].link = link[i];
	for (i = 0; i < 2; i++)
		ring_end_init(&pair->end[i], cfg, i, up);
}

void ring_pair_fini(struct ring_pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct dev_link *link = pair->end[i].link;

		ring_conn_fini(&pair->end[i].conn);
		link->ops->detach(link);
		link->ops->close(link);
	}
}

void ring_end_progress(struct ring_end *end)
{
	if (end->dev.direct)
		ring_pair_direct_progress(&end->engine);
	else
		ring_pair_staged_progress(&end->engine);
}

static enum core_rx_verdict ring_deaf_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					  uint32_t len, core_hold_t hold)
{
	(void)chan;
	(void)op;
	(void)data;
	(void)len;
	(void)hold;
	return CORE_RX_DONE;
}

static enum core_rx_verdict ring_deaf_call(struct core_chan *chan, struct core_call_ref ref,
					   const uint8_t *data, uint32_t len, core_hold_t hold)
{
	(void)chan;
	(void)ref;
	(void)data;
	(void)len;
	(void)hold;
	return CORE_RX_DONE;
}

static void ring_deaf_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			    uint32_t len)
{
	(void)chan;
	(void)context;
	(void)status;
	(void)data;
	(void)len;
}

static void ring_deaf_get_done(struct core_chan *chan, struct core_get *get)
{
	(void)chan;
	(void)get;
}

static void ring_deaf_down(struct core_chan *chan, int err)
{
	(void)chan;
	(void)err;
}

const struct core_upcalls ring_pair_deaf = {
	.on_msg = ring_deaf_msg,
	.on_call = ring_deaf_call,
	.on_reply = ring_deaf_reply,
	.on_get_done = ring_deaf_get_done,
	.on_down = ring_deaf_down,
};
