/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watching of batches for awaited arrival, and requests for acknowledgement: see ring_ack.h.
 */
#include "ring/ring_ack.h"

#include "ring/ring_tx.h"
#include "util/clock.h"

void ring_ack_init(struct ring_conn *conn)
{
	conn->ack = (struct ring_ack){ 0 };
	util_list_init(&conn->ack.link);
	conn->ack.early_need = 1;
	conn->eng.chan.posted = &conn->tx.flow.producer;
	conn->eng.chan.awaited = 0;
	if (conn->link->ops->write_imm_ack)
		conn->eng.chan.caps |= CORE_CHAN_ASYNC;
}

void ring_ack_advance(struct ring_conn *conn)
{
	uint64_t arrived = ring_ack_arrived(&conn->tx);

	if ((int64_t)(arrived - conn->ack.reported) <= 0) /* less after a takeover */
		return;
	conn->ack.reported = arrived;
	conn->eng.up->on_acked(&conn->eng.chan, arrived);
}

void ring_ack_watch(struct ring_conn *conn)
{
	struct ring_transport *transport = ring_conn_transport(conn);
	struct ring_ack *ack = &conn->ack;

	if ((int64_t)(ack->watched - ring_ack_arrived(&conn->tx)) <= 0)
		ack->tick = transport->unacked_tick;
	ack->watched = conn->tx.flush_start;
	if (conn->eng.err || !util_list_is_empty(&ack->link))
		return;
	if (util_list_is_empty(&transport->unacked))
		transport->unacked_polls = 0;
	util_list_push_back(&transport->unacked, &ack->link);
}

void ring_ack_await(struct core_chan *chan)
{
	ring_ack_watch(ring_conn_of(chan));
}

static void ring_ack_placed(struct ring_conn *conn, uint64_t pos)
{
	if ((int64_t)(pos - conn->tx.placed) > 0)
		conn->tx.placed = pos;
	ring_ack_advance(conn);
}

void ring_ack_received(struct ring_conn *conn)
{
	struct ring_ack *ack = &conn->ack;

	ack->acked_at = ring_conn_transport(conn)->polls;
	ring_ack_placed(conn, ack->ack_mark[ack->ack_head++ & (RING_ACKS_MAX - 1)]);
	/*
	 * Stops watching for the rest of the tick if the ack covers everything: watching costs
	 * clock reads.
	 */
	if (UTIL_UNLIKELY(ack->link.next != &ack->link) && ring_ack_is_idle(conn))
		util_list_remove(&ack->link);
}

/* Returns true if each batch may have an ack at no cost. */
static bool ring_ack_is_free(const struct ring_conn *conn)
{
	const struct dev_link_ops *ops = conn->link->ops;

	return ops->acks_are_free && ops->acks_are_free(conn->link);
}

void ring_ack_early_cold(struct ring_conn *conn)
{
	const struct ring_tx *tx = &conn->tx;
	struct ring_ack *ack = &conn->ack;

	if (!ack->requests_acks) {
		ack->early_need--;
		return;
	}
	if (tx->flow.remote_consumer != tx->flush_start ||
	    (ack->ack_head == ack->ack_tail &&
	     ring_conn_transport(conn)->polls - ack->acked_at > RING_ACK_EARLY_POLLS))
		ack->early_cnt = 0;
	else if (++ack->early_cnt >= ack->early_need && !ring_ack_is_free(conn))
		ack->requests_acks = false;
}

/** Returns true if an outstanding ack covers everything awaited. */
static bool ring_ack_is_requested(const struct ring_conn *conn)
{
	const struct ring_ack *ack = &conn->ack;

	return ack->ack_head != ack->ack_tail &&
	       (int64_t)(ack->ack_mark[(ack->ack_tail - 1) & (RING_ACKS_MAX - 1)] -
			 conn->eng.chan.awaited) >= 0;
}

/**
 * Returns true if no request is needed: everything awaited has arrived, or the watched batches have
 * and outstanding acks cover the rest. Messages that have not left count as neither: how they leave
 * is undecided.
 */
static bool ring_ack_is_covered(const struct ring_conn *conn)
{
	return ring_ack_is_idle(conn) ||
	       ((int64_t)(conn->ack.watched - ring_ack_arrived(&conn->tx)) <= 0 &&
		ring_ack_is_requested(conn));
}

/** Posts each later batch with an ack: the peer's acknowledgements come too late. */
static void ring_ack_request_always(struct ring_ack *ack)
{
	if (ack->requests_acks)
		return;
	ack->requests_acks = true;
	ack->early_cnt = 0;
	ack->early_need =
		ack->early_need < RING_ACK_EARLY_NEED_MAX ? 2 * ack->early_need : ack->early_need;
}

/**
 * Posts a fence unless one is on its way. Returns 0 if an acknowledgement will come or none is
 * needed, or -FI_EAGAIN.
 */
static int ring_ack_request(struct ring_conn *conn)
{
	uint64_t pos;

	if (ring_ack_is_covered(conn))
		return 0;
	/* A fence cannot cover bytes that the device does not have yet. One fence at a time. */
	if (conn->tx.open || conn->tx.post_cnt || conn->read == RING_READ_POSTED)
		return -FI_EAGAIN;
	if (ring_tx_read_start(conn->link->ops, conn, &pos))
		return -FI_EAGAIN;
	ring_ack_request_always(&conn->ack);
	return 0;
}

/** Posts fences for connections watched for longer than a tick, or for all. */
static int ring_ack_request_overdue(struct ring_transport *transport, bool all)
{
	struct util_list *it, *tmp;
	int ret = 0;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->unacked) {
		struct ring_conn *conn = UTIL_CONTAINER_OF(it, struct ring_conn, ack.link);

		if (!all && conn->ack.tick == transport->unacked_tick && !ring_ack_is_covered(conn))
			continue;
		if (ring_ack_request(conn))
			ret = -FI_EAGAIN;
		else
			util_list_remove(it);
	}
	return ret;
}

int ring_ack_request_all(struct ring_transport *transport)
{
	return ring_ack_request_overdue(transport, true);
}

void ring_ack_tick_cold(struct ring_transport *transport)
{
	uint32_t polls = transport->unacked_polls++;
	uint64_t now_ns, passed_ns;

	/* Reads the clock seldom: in the first, 4th, 8th, 16th and every 32nd call. */
	if (polls && (polls < RING_ACK_TICK_LEAST || (polls & (polls - 1))) &&
	    polls % RING_ACK_TICK_POLLS)
		return;
	now_ns = util_clock_ns();
	if (!polls)
		transport->unacked_ns = now_ns;
	passed_ns = now_ns - transport->unacked_ns;
	if (passed_ns < (polls >= RING_ACK_TICK_POLLS ? RING_ACK_TICK_NS : RING_ACK_TICK_RARE))
		return;
	ring_ack_request_overdue(transport, false);
	transport->unacked_tick++;
	transport->unacked_polls = 1;
	transport->unacked_ns = now_ns;
}
