/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections move by what has passed their rings. (ring_balance.h) */
#include "ring/ring_balance.h"

#include <criterion/criterion.h>

#include "support/ring_pair.h"
#include "util/clock.h"
#include "util/param.h"

static struct ring_pair pair;
static struct ring_transport *transport;
static struct ring_conn *conn;
static struct dev_link_ops link_ops;
static struct dev_ops dev_ops;
static uint32_t free_cnt, moved_cnt;
static bool moved_to;
static int move_ret;
static uint64_t now_ns;

static uint32_t own_left(struct dev *dev)
{
	return free_cnt;
}

static int move(struct dev_link *link, bool own)
{
	moved_cnt++;
	moved_to = own;
	if (!move_ret)
		link->caps ^= DEV_CAP_DC;
	return move_ret;
}

static void start(void)
{
	const struct ring_pair_cfg cfg = { .rx_len = { 4096, 4096 }, .seed = 1 };

	ring_pair_init(&pair, &cfg, &ring_pair_deaf);
	conn = &pair.end[0].conn;
	transport = ring_end_transport(&pair.end[0]);
	link_ops = *conn->link->ops;
	link_ops.move = move;
	conn->link->ops = &link_ops;
	dev_ops = *transport->dev_ops;
	dev_ops.own_left = own_left;
	transport->dev_ops = &dev_ops;
	conn->eng.chan.stats = &conn->eng.engine->unread;
	conn->link->caps |= DEV_CAP_MOVE | DEV_CAP_DC;
	util_params.rc_interval_ms = 1000;
	now_ns = 5 * UTIL_NS_PER_S;
	free_cnt = 1;
	moved_cnt = 0;
	move_ret = 0;
}

static void stop(void)
{
	ring_balance_remove(conn);
	ring_pair_fini(&pair);
}

TestSuite(ring_balance, .init = start, .fini = stop, .timeout = 200);

/* Looks as often as a connection rests after it came up. */
static void look(uint64_t bytes)
{
	for (uint32_t i = 0; i <= RING_MOVES_REST; i++) {
		conn->rx.producer += bytes / 2;
		conn->tx.flow.producer += bytes / 2;
		now_ns += UTIL_NS_PER_S;
		ring_balance_look_at(transport, now_ns);
	}
}

Test(ring_balance, traffic_of_both_rings_brings_a_queue_pair)
{
	ring_balance_add(conn);
	look(RING_MOVES_LEAST / 4);
	cr_expect_eq(moved_cnt, 0);
	look(4 * RING_MOVES_LEAST);
	cr_expect_eq(moved_cnt, 1);
	cr_expect(moved_to);
	free_cnt = 0;
	look(4 * RING_MOVES_LEAST);
	cr_expect_eq(moved_cnt, 1, "it has one");
}

Test(ring_balance, simple_accesses_count)
{
	ring_balance_add(conn);
	for (uint32_t i = 0; i < 2 * RING_MOVES_REST; i++) {
		conn->link->access_cnt += RING_MOVES_LEAST;
		look(0);
	}
	cr_expect_geq(moved_cnt, 1);
	conn->link->access_cnt = 0; /* fini counts those that have not ended */
}

Test(ring_balance, simple_accesses_are_counted_on_when_their_number_wraps)
{
	conn->link->access_cnt = UINT32_MAX;
	ring_balance_add(conn);
	look(0);
	conn->link->access_cnt += RING_MOVES_LEAST;
	look(0);
	cr_expect_lt(conn->moves.traffic, (uint64_t)UINT32_MAX * RING_BALANCE_ACCESS);
	conn->link->access_cnt = 0; /* fini counts those that have not ended */
}

Test(ring_balance, a_link_that_does_not_move_is_not_looked_at)
{
	conn->link->caps &= ~(uint32_t)DEV_CAP_MOVE;
	ring_balance_add(conn);
	look(4 * RING_MOVES_LEAST);
	cr_expect_eq(moved_cnt, 0);
}

Test(ring_balance, looks_in_rapid_succession_are_one)
{
	ring_balance_add(conn);
	look(0);
	for (unsigned i = 0; i < 1000; i++) {
		conn->rx.producer += RING_MOVES_LEAST;
		ring_balance_look_at(transport, now_ns + i);
	}
	cr_expect_eq(moved_cnt, 0);
	ring_balance_look_at(transport, now_ns + UTIL_NS_PER_S);
	cr_expect_eq(moved_cnt, 1);
}

Test(ring_balance, a_move_that_the_device_refuses_is_tried_at_the_next_look)
{
	ring_balance_add(conn);
	move_ret = -FI_EAGAIN;
	look(4 * RING_MOVES_LEAST);
	cr_expect_geq(moved_cnt, 1);
	move_ret = 0;
	moved_cnt = 0;
	look(4 * RING_MOVES_LEAST);
	cr_expect_eq(moved_cnt, 1);
}

Test(ring_balance, a_connection_that_ends_is_forgotten)
{
	ring_balance_add(conn);
	transport->eng.ops->stop(&conn->eng);
	look(4 * RING_MOVES_LEAST);
	cr_expect_eq(moved_cnt, 0);
}
