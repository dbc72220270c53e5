/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Initial state of a connection, and operations on a failed one. (ring_conn.h) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "ring/ring_rx.h"
#include "ring/ring_call.h"
#include "support/ring_pair.h"
#include "support/up_count.h"

static struct ring_pair pair;
static struct ring_conn *conn;
static const struct core_upcalls upcalls = { .on_msg = up_count_msg, .on_down = up_count_down };

static void start(bool direct, uint64_t rx0, uint64_t rx1)
{
	const struct ring_pair_cfg cfg = { .direct = direct, .rx_len = { rx0, rx1 }, .seed = 1 };

	up_count.verdict = CORE_RX_RETAIN;
	ring_pair_init(&pair, &cfg, &upcalls);
	pair.end[0].dev.eager = pair.end[1].dev.eager = true;
	conn = &pair.end[0].conn;
}

static int send_some(struct ring_end *end)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);

	return end->conn.eng.chan.ops->send(&end->conn.eng.chan, &frame, 0);
}

Test(ring_conn, both_ends_start_with_the_same_credit)
{
	start(true, 1024, 8192);
	cr_expect_eq(pair.end[0].conn.tx.flow.granted, 1024);
	cr_expect_eq(pair.end[1].conn.tx.credit, 1024);
	cr_expect_eq(pair.end[1].conn.tx.flow.granted, 128);
	cr_expect_eq(pair.end[0].conn.tx.credit, 128);
	cr_expect(ring_flow_holds(&conn->tx.flow));
	ring_pair_fini(&pair);
}

Test(ring_conn, an_in_band_link_costs_the_ring_one_block)
{
	start(true, 1024, 2048);
	cr_expect_eq(conn->tx.flow.cap, 2048 - 32);
	ring_pair_fini(&pair);
	start(false, 1024, 2048);
	cr_expect_eq(conn->tx.flow.cap, 2048);
	ring_pair_fini(&pair);
}

Test(ring_conn, eager_max_is_admitted_by_an_idle_ring_at_every_position)
{
	uint64_t len, off, advertised;

	for (len = 1024; len <= 65536; len *= 2) {
		start(true, 1024, len);
		advertised = RING_UNADVERTISED_MAX(len);
		for (off = 0; off < len; off += 32) {
			struct ring_tx *tx = &conn->tx;

			tx->flow.producer = tx->flush_start = 4 * len + off;
			tx->flow.remote_consumer = tx->flow.producer - advertised;
			cr_assert(ring_flow_admits(
					  &tx->flow,
					  ring_tx_move(
						  tx,
						  wire_msg_span((uint32_t)conn->eng.chan.eager_max +
								4))),
				  "ring %lu offset %lu", len, off);
		}
		cr_expect_leq(wire_msg_span((uint32_t)conn->eng.chan.eager_max + 4), len / 4);
		ring_pair_fini(&pair);
	}
}

Test(ring_conn, maximum_response_sizes_follow_the_peers_grant)
{
	uint64_t grant;

	start(true, 1024, 65536);
	grant = conn->tx.credit;
	cr_expect_leq(wire_reservation((uint32_t)conn->eng.chan.resp_lim), grant);
	cr_expect_gt(wire_reservation((uint32_t)conn->eng.chan.resp_lim + 1), grant);
	cr_expect_leq(wire_reservation((uint32_t)conn->eng.chan.resp_sure), grant / 2);
	ring_pair_fini(&pair);
}

Test(ring_conn, a_device_with_get_gives_the_channel_get)
{
	start(true, 1024, 1024);
	cr_expect(conn->eng.chan.caps & CORE_CHAN_GET);
	ring_pair_fini(&pair);
}

Test(ring_conn, a_failure_is_reported_to_core_once)
{
	start(true, 1024, 1024);
	ring_conn_fail_cold(conn, -FI_EIO, "first");
	ring_conn_fail_cold(conn, -FI_EOTHER, "second");
	cr_expect_eq(up_count.down_cnt, 0, "not in the middle of something");
	ring_end_progress(&pair.end[0]);
	ring_end_progress(&pair.end[0]);
	cr_expect_eq(up_count.down_cnt, 1);
	cr_expect_eq(up_count.down_err, -FI_EIO);
	ring_pair_fini(&pair);
}

Test(ring_conn, a_failed_connection_refuses_with_its_error)
{
	struct core_call_ref ref = { .call_id = 1, .resp_max = 20 };
	struct core_get get = { .len = 0 };

	start(true, 1024, 1024);
	ring_conn_fail_cold(conn, -FI_EIO, "test");
	cr_expect_eq(send_some(&pair.end[0]), -FI_EIO);
	cr_expect_eq(conn->eng.chan.ops->call(&conn->eng.chan, &(struct core_frame){ .op = 1 }, 20,
					      &get, 0),
		     -FI_EIO);
	cr_expect_eq(conn->eng.chan.ops->get(&conn->eng.chan, &get), -FI_EIO);
	cr_expect_eq(core_chan_reply(&conn->eng.chan, ref, NULL, 0), 0, "nobody waits for it");
	cr_expect_eq(core_chan_reply(&conn->eng.chan, ref, NULL, 21), -FI_EMSGSIZE);
	ring_pair_fini(&pair);
}

Test(ring_conn, a_failed_connection_sends_nothing)
{
	uint64_t writes, retain = 0;

	start(true, 1024, 1024);
	while (!send_some(&pair.end[1]))
		;
	ring_end_progress(&pair.end[0]);
	send_some(&pair.end[0]);
	writes = pair.end[0].dev.write_cnt;
	ring_conn_fail_cold(conn, -FI_EIO, "test");
	ring_end_progress(&pair.end[0]);
	cr_assert_eq(up_count.down_cnt, 1);
	/*
	 * Releases everything retained: the peer would have to be notified, if it were still there.
	 */
	while (retain != conn->rx.retained.tail)
		conn->eng.chan.ops->release(&conn->eng.chan, retain++);
	conn->eng.chan.ops->flush(&conn->eng.chan);
	ring_end_progress(&pair.end[0]);
	cr_expect_eq(pair.end[0].dev.write_cnt, writes);
	cr_expect(util_list_is_empty(&conn->dirty_link));
	ring_pair_fini(&pair);
}

Test(ring_conn, a_connection_is_marked_dirty_once)
{
	start(true, 1024, 1024);
	ring_conn_mark_dirty(conn);
	ring_conn_mark_dirty(conn);
	cr_expect_eq(ring_end_transport(&pair.end[0])->dirty.next, &conn->dirty_link);
	cr_expect_eq(ring_end_transport(&pair.end[0])->dirty.prev, &conn->dirty_link);
	ring_end_progress(&pair.end[0]);
	cr_expect(util_list_is_empty(&ring_end_transport(&pair.end[0])->dirty));
	ring_pair_fini(&pair);
}
