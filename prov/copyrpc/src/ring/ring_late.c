/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watching what was sent, and asking for it: see ring_late.h. */
#include "ring/ring_late.h"

#include "ring/ring_tx_place.h"
#include "util/clock.h"

void ring_late_init(struct ring_conn *conn)
{
	conn->late = (struct ring_late){ 0 };
	util_list_init(&conn->late.link);
	conn->late.need = 1;
	conn->eng.chan.taken = &conn->tx.flow.producer;
	conn->eng.chan.awaited = 0;
	if (conn->link->ops->write_imm_ack)
		conn->eng.chan.caps |= CORE_CHAN_ASYNC;
}

void ring_late_news(struct ring_conn *conn)
{
	uint64_t arrived = ring_late_arrived(&conn->tx);

	if (arrived == conn->late.told)
		return;
	conn->late.told = arrived;
	conn->eng.up->on_acked(&conn->eng.chan, arrived);
}

void ring_late_watch(struct ring_conn *conn)
{
	struct ring_lane *lane = ring_conn_lane(conn);
	struct ring_late *late = &conn->late;

	if ((int64_t)(late->watched - ring_late_arrived(&conn->tx)) <= 0)
		late->tick = lane->unsure_tick;
	late->watched = conn->tx.flush_start;
	if (conn->eng.err || !util_list_is_empty(&late->link))
		return;
	if (util_list_is_empty(&lane->unsure))
		lane->unsure_polls = 0;
	util_list_push_back(&lane->unsure, &late->link);
}

static void ring_late_placed(struct ring_conn *conn, uint64_t pos)
{
	if ((int64_t)(pos - conn->tx.placed) > 0)
		conn->tx.placed = pos;
	ring_late_news(conn);
}

void ring_late_acked(struct ring_conn *conn)
{
	struct ring_late *late = &conn->late;

	late->acked_at = ring_conn_lane(conn)->polls;
	ring_late_placed(conn, late->ack_mark[late->ack_head++ & (RING_ACKS_MAX - 1)]);
	/* What it told of need not be watched for the rest of the tick: that costs looks at the clock. */
	if (UTIL_UNLIKELY(late->link.next != &late->link) && ring_late_is_idle(conn))
		util_list_remove(&late->link);
}

void ring_late_answered_cold(struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;
	struct ring_late *late = &conn->late;

	if (!late->asks) {
		late->need--;
		return;
	}
	if (tx->flow.remote_consumer != tx->flush_start ||
	    (late->ack_head == late->ack_tail &&
	     ring_conn_lane(conn)->polls - late->acked_at > RING_LATE_SOON))
		late->answers = 0;
	else if (++late->answers >= late->need)
		late->asks = false;
}

/** Will an ack that is on its way tell of everything that anybody waits for? */
static bool ring_late_is_asked(const struct ring_conn *conn)
{
	const struct ring_late *late = &conn->late;

	return late->ack_head != late->ack_tail &&
	       (int64_t)(late->ack_mark[(late->ack_tail - 1) & (RING_ACKS_MAX - 1)] -
			 conn->eng.chan.awaited) >= 0;
}

/**
 * Need nobody ask? All has arrived that anybody waits for; or what is watched has, and acks will tell
 * of the rest. What has not left yet is neither: how it leaves is not known.
 */
static bool ring_late_is_sure(const struct ring_conn *conn)
{
	return ring_late_is_idle(conn) ||
	       ((int64_t)(conn->late.watched - ring_late_arrived(&conn->tx)) <= 0 &&
		ring_late_is_asked(conn));
}

/** What the peer says comes too late: from now on each batch is asked for. */
static void ring_late_ask_always(struct ring_late *late)
{
	if (late->asks)
		return;
	late->asks = true;
	late->answers = 0;
	late->need = late->need < RING_LATE_NEED_MAX ? 2 * late->need : late->need;
}

/** Asks unless it is done already: 0 (an answer comes, or none is needed), or -FI_EAGAIN. */
static int ring_late_ask(struct ring_conn *conn)
{
	uint64_t pos;

	if (ring_late_is_sure(conn))
		return 0;
	/* What is in no device's hands yet cannot be asked for; one question at a time. */
	if (conn->tx.open || conn->tx.post_cnt || conn->read == RING_READ_OUT)
		return -FI_EAGAIN;
	if (ring_tx_read_start(conn->link->ops, conn, &pos))
		return -FI_EAGAIN;
	ring_late_ask_always(&conn->late);
	return 0;
}

/** Asks for all that are older than a tick, or for all. */
static int ring_late_ask_old(struct ring_lane *lane, bool all)
{
	struct util_list *it, *tmp;
	int ret = 0;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &lane->unsure) {
		struct ring_conn *conn = UTIL_CONTAINER_OF(it, struct ring_conn, late.link);

		if (!all && conn->late.tick == lane->unsure_tick && !ring_late_is_sure(conn))
			continue;
		if (ring_late_ask(conn))
			ret = -FI_EAGAIN;
		else
			util_list_remove(it);
	}
	return ret;
}

int ring_late_ask_all(struct ring_lane *lane)
{
	return ring_late_ask_old(lane, true);
}

void ring_late_tick_cold(struct ring_lane *lane)
{
	uint32_t polls = lane->unsure_polls++;
	uint64_t now_ns, passed_ns;

	/* The clock is read seldom: at first, at the 4th, 8th, 16th and every 32nd call. */
	if (polls && (polls < RING_LATE_TICK_LEAST || (polls & (polls - 1))) &&
	    polls % RING_LATE_TICK_POLLS)
		return;
	now_ns = util_clock_ns();
	if (!polls)
		lane->unsure_ns = now_ns;
	passed_ns = now_ns - lane->unsure_ns;
	if (passed_ns < (polls >= RING_LATE_TICK_POLLS ? RING_LATE_TICK_NS : RING_LATE_TICK_RARE))
		return;
	ring_late_ask_old(lane, false);
	lane->unsure_tick++;
	lane->unsure_polls = 1;
	lane->unsure_ns = now_ns;
}
