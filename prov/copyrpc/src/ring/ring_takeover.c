/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Takeover of a connection by its rail: see ring_takeover.h. */
#include "ring/ring_takeover.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "engine/eng_engine.h"
#include "engine/eng_stats.h"
#include "ring/ring_ack.h"
#include "ring/ring_balance.h"
#include "ring/ring_tx.h"
#include "util/log.h"

/* Progress calls after which a first device that always has more counts as drained */
#define RING_TAKEOVER_POLLS 1024u

static struct ring_rails *ring_takeover_rails(const struct ring_conn *conn)
{
	return ring_conn_transport(conn)->rails;
}

/* ---- begin ---- */

/** Returns true if a direct access is in progress: it is not done again. */
static bool ring_takeover_has_direct(const struct ring_conn *conn)
{
	const struct util_list *it;

	for (it = conn->gets.next; it != &conn->gets; it = it->next)
		if (UTIL_CONTAINER_OF(it, const struct ring_get, link)->direct)
			return true;
	return conn->link->access_cnt != conn->accessed;
}

/** Immediates over DC have no room for a position. */
static bool ring_takeover_may(const struct ring_conn *conn)
{
	const struct ring_rail *rail = conn->rail;

	return rail->phase == RING_RAIL_BESIDE && rail->link && rail->attached &&
	       !(rail->link->caps & DEV_CAP_DC) && conn->attached && !conn->eng.err &&
	       !ring_takeover_has_direct(conn);
}

void ring_takeover_hold(struct ring_get *rget)
{
	rget->waits = true;
	util_list_init(&rget->dev.dev_link);
}

/** Holds the gets of the first link, which is detached. */
static void ring_takeover_hold_all(struct ring_conn *conn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->gets) {
		struct ring_get *rget = UTIL_CONTAINER_OF(it, struct ring_get, link);

		if (rget->on_rail)
			continue;
		if (rget->waits)
			util_list_remove(&rget->dev.dev_link);
		ring_bulk_release(conn, rget);
		ring_takeover_hold(rget);
	}
}

/** Leases name keys of the first device: remote memory access goes by calls. */
static void ring_takeover_undirect(struct eng_conn *eng)
{
	if (!eng->chan.reg_dev)
		return;
	eng->chan.reg_dev = NULL;
	eng->chan.access_inline = 0;
	eng->up->on_limits(&eng->chan);
}

/** Keeps the connection out of the list in which `link` is, or would be. */
static void ring_takeover_park(struct ring_rails *rails, struct util_list *link)
{
	util_list_remove(link);
	util_list_push_back(&rails->parked, link);
}

/** Ends the use of the first link. Memory is registered with the second device from now on. */
static void ring_takeover_leave(struct ring_conn *conn)
{
	struct ring_rails *rails = ring_takeover_rails(conn);
	struct ring_rail *rail = conn->rail;

	ring_balance_remove(conn);
	conn->link->ops->detach(conn->link);
	ring_takeover_park(rails, &conn->dirty_link);
	ring_takeover_park(rails, &conn->ack.link);
	ring_conn_disable_fast_paths(conn);
	ring_takeover_hold_all(conn);
	ring_rail_release_first(conn);
	conn->dev = rails->dev;
	conn->read = RING_READ_POSTED; /* none is started meanwhile */
	ring_takeover_undirect(&conn->eng);
	conn->eng.engine->must_look = true; /* the device may be out */
	rail->phase = RING_RAIL_LEFT;
	util_list_remove(&rail->taking); /* a peer that is followed is there already */
	util_list_push_back(&rails->taking, &rail->taking);
}

/**
 * Sends the position of this end, if there is room. The bytes that are written with it are free at
 * the peer, or the same as there.
 */
static void ring_takeover_send(struct ring_conn *conn)
{
	struct dev_link *link = conn->rail->link;
	uint32_t pos = (uint32_t)(conn->rx.producer / WIRE_ALIGN);

	if (!link->ops->write_imm(link, ring_off(conn->tx.flush_start, conn->tx.len), WIRE_ALIGN,
				  pos))
		conn->rail->phase = RING_RAIL_SENT;
}

bool ring_takeover_begin(struct ring_conn *conn)
{
	if (!ring_takeover_may(conn) || !(conn->rail->is_ready || conn->rail->has_peer_pos))
		return false;
	UTIL_WARN(EP_CTRL,
		  "the link to a peer failed: the second device takes over, and nothing is "
		  "lost; check the port and the cable of the first one\n");
	ring_takeover_leave(conn);
	ring_takeover_send(conn);
	return true;
}

/* ---- batches that are written again ---- */

/** Returns the bytes of `cnt` messages at `pos`, or 0 if there are not so many up to `end`. */
static uint64_t ring_takeover_span(const struct ring_tx *tx, uint64_t pos, uint64_t end,
				   uint32_t cnt)
{
	uint64_t start = pos;
	uint32_t len;

	for (; cnt; cnt--) {
		if (pos == end)
			return 0;
		memcpy(&len, tx->base + ring_off(pos, tx->len) + offsetof(struct wire_hdr, len),
		       sizeof(len));
		if (len > end - pos || wire_msg_span(len) > end - pos)
			return 0;
		pos += wire_msg_span(len);
	}
	return WIRE_META_LEN + pos - start;
}

/** Returns the end of the lap that contains `pos`, or that of the batches, if it comes first. */
static uint64_t ring_takeover_end(const struct ring_tx *tx, uint64_t pos)
{
	uint64_t lap = (pos | (tx->len - 1)) + 1;

	return lap - pos < tx->replay_end - pos ? lap : tx->replay_end;
}

bool ring_takeover_next(struct ring_conn *conn, struct ring_post *post)
{
	struct ring_tx *tx = &conn->tx;
	uint64_t pos = tx->replay, end = ring_takeover_end(tx, pos), len;
	struct wire_meta meta;

	if (pos == tx->replay_end)
		return false;
	memcpy(&meta, tx->base + ring_off(pos, tx->len), sizeof(meta));
	if (meta.message_count == WIRE_COUNT_WRAP)
		len = ring_skip(pos, tx->len);
	else
		len = ring_takeover_span(tx, pos + WIRE_META_LEN, end, meta.message_count);
	if (!len || len > end - pos) {
		tx->replay = tx->replay_end;
		ring_conn_fail_cold(conn, -FI_EIO, "the peer's position is not between batches");
		return false;
	}
	*post = (struct ring_post){ .off = ring_off(pos, tx->len),
				    .len = (uint32_t)len,
				    .imm = (uint32_t)(len / WIRE_ALIGN) };
	tx->replay += len;
	return true;
}

/** Lets the batches from `pos` on be written again, instead of those that are queued. */
static void ring_takeover_rewind(struct ring_conn *conn, uint64_t pos)
{
	struct ring_tx *tx = &conn->tx;

	tx->replay = pos;
	tx->replay_end = tx->flush_start;
	tx->post_cnt = ring_takeover_next(conn, &tx->posts[0]);
}

/* ---- end ---- */

/** Everything before `pos` has arrived; what was requested of the first link does not come. */
static void ring_takeover_ack(struct ring_conn *conn, uint64_t pos)
{
	const struct ring_rail *rail = conn->rail;
	struct ring_ack *ack = &conn->ack;

	ack->ack_head = ack->ack_tail;
	util_list_remove(&ack->link);
	/* The test READ may be outstanding on the link. */
	conn->read = rail->is_tested && !rail->is_ready ? RING_READ_POSTED : RING_READ_IDLE;
	conn->read_base = conn->tx.flow.remote_consumer;
	conn->read_mark = pos;
	/* Less than before where the peer had not processed what its device had acknowledged. */
	conn->tx.placed = pos;
	ring_ack_advance(conn);
	if (!ring_ack_is_idle(conn))
		ring_ack_watch(conn);
}

/** Closes the first link, whose memory is the rail's then. */
static void ring_takeover_close_first(struct ring_conn *conn)
{
	struct ring_rails *rails = ring_takeover_rails(conn);
	struct dev_link *first = conn->link, *second = conn->rail->link;

	second->ops->adopt(second, first);
	pthread_mutex_lock(&rails->lock);
	first->ops->close(first);
	rails->first_cnt--;
	pthread_mutex_unlock(&rails->lock);
	conn->link = second;
	conn->rail->link = NULL;
	conn->rail->attached = false;
}

/** Parts on the rail go on: they are on the connection's link. */
static void ring_takeover_keep_parts(struct ring_conn *conn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->gets)
		UTIL_CONTAINER_OF(it, struct ring_get, link)->on_rail = false;
}

static void ring_takeover_refuse(struct ring_conn *conn)
{
	ring_conn_fail_cold(conn, -FI_EIO, "illegal position over a second device");
}

static void ring_takeover_finish(struct ring_conn *conn)
{
	struct ring_rail *rail = conn->rail;

	/* The peer may have released more since it sent its position. */
	if ((int64_t)(rail->peer_pos - conn->tx.flow.remote_consumer) < 0) {
		ring_takeover_refuse(conn);
		return;
	}
	ring_takeover_close_first(conn);
	ring_takeover_keep_parts(conn);
	rail->phase = RING_RAIL_TAKEN;
	conn->accessed = conn->link->access_cnt;
	ring_takeover_rewind(conn, rail->peer_pos);
	if (conn->eng.err)
		return;
	ring_takeover_ack(conn, rail->peer_pos);
	rail->is_ready = false;
	ring_rail_lose(conn);
	util_list_remove(&conn->dirty_link);
	ring_conn_mark_dirty(conn);
	conn->eng.engine->must_look = true; /* the devices may change places */
	eng_stats_conn_moved(&conn->eng);
	UTIL_WARN(EP_CTRL, "the second device has taken over the connection to a peer\n");
}

/** Returns true with the peer's position, if it is between what is released and what was sent. */
static bool ring_takeover_parse(const struct ring_conn *conn, uint32_t imm, uint64_t *pos)
{
	uint64_t base = conn->tx.flow.remote_consumer;
	uint64_t ahead = (uint64_t)(imm - (uint32_t)(base / WIRE_ALIGN)) * WIRE_ALIGN;

	*pos = base + ahead;
	return ahead <= conn->tx.flush_start - base - ring_tx_queued_len(&conn->tx);
}

void ring_takeover_received(struct ring_conn *conn, uint32_t imm)
{
	struct ring_rail *rail = conn->rail;

	if (rail->has_peer_pos || !ring_takeover_parse(conn, imm, &rail->peer_pos)) {
		ring_takeover_refuse(conn);
		return;
	}
	rail->has_peer_pos = true;
	if (rail->phase == RING_RAIL_BESIDE)
		util_list_push_back(&ring_takeover_rails(conn)->taking, &rail->taking);
	if (rail->phase == RING_RAIL_SENT)
		ring_takeover_finish(conn);
}

/**
 * Follows the peer, whose first link has failed, once everything that came over this one is
 * processed: the peer's device has acknowledged it.
 */
static void ring_takeover_follow(struct ring_conn *conn, bool is_drained)
{
	if (!is_drained && ++conn->rail->polls < RING_TAKEOVER_POLLS)
		return;
	if (ring_takeover_may(conn))
		ring_takeover_leave(conn);
	else
		ring_conn_fail_cold(
			conn, -FI_EIO,
			"the peer goes on over its second device, which this end cannot while "
			"its adapter accesses remote memory alone: FI_COPYRPC_NIC_RMA=0 "
			"prevents it");
}

/** Returns a get that is held, or NULL. */
static struct ring_get *ring_takeover_held(struct ring_conn *conn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->gets) {
		struct ring_get *rget = UTIL_CONTAINER_OF(it, struct ring_get, link);

		if (rget->waits && util_list_is_empty(&rget->dev.dev_link))
			return rget;
	}
	return NULL;
}

/** Posts the gets that were held. Returns true if none is left. */
static bool ring_takeover_post(struct ring_conn *conn)
{
	struct ring_get *rget;
	int ret;

	while ((rget = ring_takeover_held(conn))) {
		ret = ring_bulk_post_held(conn, rget);
		if (ret == -FI_EAGAIN)
			return false;
		rget->waits = false;
		if (!ret)
			continue;
		if (ret < 0)
			rget->dev.status = ret;
		ring_bulk_get_done(conn, &rget->dev);
	}
	return true;
}

bool ring_takeover_is_due(const struct ring_rails *rails)
{
	const struct util_list *it;

	for (it = rails->taking.next; it != &rails->taking; it = it->next)
		if (UTIL_CONTAINER_OF(it, const struct ring_rail, taking)->phase != RING_RAIL_SENT)
			return true;
	return false;
}

/** Does the next step of a takeover. Returns true if none is left. */
static bool ring_takeover_step(struct ring_conn *conn, bool is_drained)
{
	struct ring_rail *rail = conn->rail;

	if (conn->eng.err)
		return true;
	if (rail->phase == RING_RAIL_BESIDE)
		ring_takeover_follow(conn, is_drained);
	if (rail->phase == RING_RAIL_LEFT)
		ring_takeover_send(conn);
	if (rail->phase == RING_RAIL_SENT && rail->has_peer_pos)
		ring_takeover_finish(conn);
	return rail->phase == RING_RAIL_TAKEN && ring_takeover_post(conn);
}

void ring_takeover_work(struct ring_rails *rails, bool is_drained)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &rails->taking) {
		struct ring_rail *rail = UTIL_CONTAINER_OF(it, struct ring_rail, taking);

		if (ring_takeover_step(rail->conn, is_drained))
			util_list_remove(it);
	}
}
