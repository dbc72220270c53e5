/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two connections back to back: see ring_pair.h. */
#include "support/ring_pair.h"

#include <stdlib.h>
#include <string.h>

#include "core/core_ep.h"
#include "ring/ring_rx.h"
#include "ring/ring_takeover.h"
#include "support/ring_pair_names.h"
#include "util/stats.h"
#include "wire/wire_cm.h"

struct ring_flush_cfg ring_pair_flush = { .best_len = 4096,
					  .cheap_signal = true,
					  .reads_consumer = true };

#define RING_NAME      "fake"
#define RING_FLUSH_CFG ring_pair_flush
#define RING_PATH      WIRE_CM_PATH_SHM
#define RING_DEVICE    fake_dev_ops
#define RING_DEV_OPS   fake_dev_ops

#define RING_PAIR_KIND ring_pair_direct
#define RING_LINK_OPS  fake_link_direct_ops
#include "ring/ring_template.h"
#undef RING_PAIR_KIND
#undef RING_LINK_OPS

#define RING_PAIR_KIND ring_pair_staged
#define RING_LINK_OPS  fake_link_staged_ops
#include "ring/ring_template.h"
#undef RING_PAIR_KIND
#undef RING_LINK_OPS

#define RING_PAIR_KIND ring_pair_late
#define RING_LINK_OPS  fake_link_late_ops
#include "ring/ring_template.h"
#undef RING_PAIR_KIND
#undef RING_LINK_OPS

#undef RING_PATH
#undef RING_DEVICE
#undef RING_DEV_OPS
#define RING_PATH      WIRE_CM_PATH_NIC
#define RING_DEVICE    fake_nic_ops
#define RING_DEV_OPS   fake_nic_ops
#define RING_PAIR_KIND ring_pair_nic
#define RING_LINK_OPS  fake_link_staged_ops
#include "ring/ring_template.h"

const struct eng_transports ring_pair_transports_nic = { .cnt = 1,
							 .ops = { &ring_pair_nic_transport } };
const struct eng_transports ring_pair_transports_both = {
	.cnt = 2, .ops = { &ring_pair_direct_transport, &ring_pair_nic_transport }
};

int ring_pair_engine_open(const struct core_upcalls *up, struct core_engine **engine)
{
	static const struct eng_transports transports = { .cnt = 1,
							  .ops = { &ring_pair_direct_transport } };

	return eng_open(&transports, up, engine);
}

void ring_pair_engine_progress(struct core_engine *engine)
{
	ring_rx_progress(&fake_dev_ops, &fake_link_direct_ops, engine);
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
	conn->tx.placed = tx_pos;
	conn->tx.peer_advertised = tx_pos;
	conn->eng.chan.awaited = tx_pos;
	conn->ack.seen_consumer = tx_pos;
	conn->ack.reported = tx_pos;
	conn->ack.watched = tx_pos;
	conn->rx.producer = rx_pos;
	conn->rx.parsed = rx_pos;
	conn->rx.consumer = rx_pos;
	conn->rx.advertised = rx_pos;
	fake_link_start(conn->link, tx_pos, rx_pos);
}

/* Endpoint at which ends of connections are counted. */
static struct core_ep ring_pair_ep = { .stats = &ring_pair_ep.unread };

static void ring_end_init(struct ring_end *end, const struct ring_pair_cfg *cfg, int self,
			  const struct core_upcalls *up)
{
	struct ring_conn *conn = &end->conn;
	struct core_engine *engine = &end->engine;
	struct ring_transport *transport = ring_transport_of(eng_transport_at(engine, 0));

	transport->eng.engine = engine;
	transport->eng.ops = cfg->direct ? &ring_pair_direct_transport
			     : cfg->ack  ? &ring_pair_late_transport
					 : &ring_pair_staged_transport;
	transport->chan_ops = cfg->direct ? &ring_pair_direct_chan_ops
			      : cfg->ack  ? &ring_pair_late_chan_ops
					  : &ring_pair_staged_chan_ops;
	transport->eng.conn_cnt = 1;
	transport->dev_ops = &fake_dev_ops;
	transport->dev = fake_dev_of(&end->dev);
	util_list_init(&transport->dirty);
	util_list_init(&transport->unacked);
	util_list_init(&transport->movable);
	util_list_init(&transport->regs);
	engine->transport_cnt = 1;
	engine->up = up;
	util_list_init(&engine->failed);
	util_list_init(&engine->events);
	conn->eng.engine = engine;
	conn->eng.transport = &transport->eng;
	conn->eng.up = up;
	end->eep = (struct core_engine_ep){ .ep = &ring_pair_ep,
					    .engine = engine,
					    .look_queued = true };
	conn->eng.eep = &end->eep;
	conn->eng.chan.ops = transport->chan_ops;
	util_list_init(&conn->eng.fail_link);
	util_list_init(&conn->dirty_link);
	util_list_init(&conn->ack.link);
	util_list_init(&conn->balance_link);
	util_list_init(&conn->eng.conn_link);
	conn->dev = transport->dev;
	conn->attached = true;
	ring_conn_init(conn, end->link, ring_pair_grant(cfg->announce[self], end->link->tx_len),
		       ring_pair_grant(cfg->announce[!self], end->link->rx_len));
	ring_end_start(conn, cfg->start[!self], cfg->start[self]);
}

static void ring_end_init_rail(struct ring_end *end, struct dev_link *link)
{
	struct ring_transport *transport = ring_end_transport(end);
	struct ring_rail *rail = calloc(1, sizeof(*rail));

	if (!rail)
		abort();
	end->rails = (struct ring_rails){ .dev = fake_dev_of(&end->second),
					  .user_cnt = 1,
					  .first_cnt = 1 };
	pthread_mutex_init(&end->rails.lock, NULL);
	util_list_init(&end->rails.waiting);
	util_list_init(&end->rails.taking);
	util_list_init(&end->rails.parked);
	*rail = (struct ring_rail){ .conn = &end->conn,
				    .link = link,
				    .attached = true,
				    .is_tested = true,
				    .is_ready = true };
	util_list_init(&rail->exposed);
	util_list_init(&rail->stripes);
	util_list_init(&rail->taking);
	link->user = &end->conn;
	end->conn.rail = rail;
	end->conn.tx.keeps_heads = true;
	transport->rails = &end->rails;
}

/** Gives both ends a second device, and the connection a rail. */
static void ring_pair_init_rails(struct ring_pair *pair, const struct ring_pair_cfg *cfg)
{
	struct dev_link *first[2] = { pair->end[0].link, pair->end[1].link }, *link[2];
	int i;

	for (i = 0; i < 2; i++) {
		fake_dev_init(&pair->end[i].second, false, cfg->seed + 7 + (uint64_t)i);
		pair->end[i].second.late = cfg->ack;
	}
	fake_link_pair_beside(&pair->end[0].second, &pair->end[1].second, first, link);
	for (i = 0; i < 2; i++)
		ring_end_init_rail(&pair->end[i], link[i]);
}

void ring_pair_init(struct ring_pair *pair, const struct ring_pair_cfg *cfg,
		    const struct core_upcalls *up)
{
	struct dev_link *link[2];
	int i;

	memset(pair, 0, sizeof(*pair));
	ring_pair_flush.reads_consumer = cfg->direct;
	for (i = 0; i < 2; i++) {
		fake_dev_init(&pair->end[i].dev, cfg->direct, cfg->seed + (uint64_t)i);
		pair->end[i].dev.ahead = cfg->ahead;
		pair->end[i].dev.late = cfg->ack;
	}
	fake_link_pair(&pair->end[0].dev, cfg->rx_len[0], &pair->end[1].dev, cfg->rx_len[1], link);
	for (i = 0; i < 2; i++)
		pair->end[i].link = link[i];
	for (i = 0; i < 2; i++)
		ring_end_init(&pair->end[i], cfg, i, up);
	if (cfg->rails)
		ring_pair_init_rails(pair, cfg);
}

void ring_pair_fini(struct ring_pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ring_conn *conn = &pair->end[i].conn;
		struct dev_link *link = conn->link;

		if (conn->rail)
			ring_rail_free(conn);
		ring_conn_fini(conn);
		link->ops->detach(link);
		link->ops->close(link);
	}
}

void ring_end_progress(struct ring_end *end)
{
	const struct dev_link_ops *ops = end->dev.direct ? &fake_link_direct_ops
					 : end->dev.late ? &fake_link_late_ops
							 : &fake_link_staged_ops;

	ring_rx_progress(&fake_dev_ops, ops, &end->engine);
}

void ring_end_progress_rails(struct ring_end *end)
{
	struct ring_transport *transport = ring_end_transport(end);
	const struct dev_link_ops *ops =
		end->dev.late ? &fake_link_late_ops : &fake_link_staged_ops;
	bool more = ring_rx_poll(&fake_dev_ops, ops, transport);

	ring_takeover_work(&end->rails, !more);
	ring_rails_poll(transport);
	ring_end_progress(end);
}

static enum core_rx_verdict ring_deaf_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					  uint32_t len, core_retain_t retain)
{
	return CORE_RX_DONE;
}

static enum core_rx_verdict ring_deaf_call(struct core_chan *chan, struct core_call_ref ref,
					   const uint8_t *data, uint32_t len, core_retain_t retain)
{
	return CORE_RX_DONE;
}

static void ring_deaf_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			    uint32_t len)
{
}

static void ring_deaf_get_done(struct core_chan *chan, struct core_get *get)
{
}

static void ring_deaf_down(struct core_chan *chan, int err)
{
}

const struct core_upcalls ring_pair_deaf = {
	.on_msg = ring_deaf_msg,
	.on_call = ring_deaf_call,
	.on_reply = ring_deaf_reply,
	.on_get_done = ring_deaf_get_done,
	.on_down = ring_deaf_down,
};
