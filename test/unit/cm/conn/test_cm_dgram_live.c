/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Detection of a dead peer without a stream (cm/conn/cm_dgram.c). */
#include "cm/conn/cm_dgram.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "cm/node/cm_node.h"
#include "unit/cm/conn/dgram_fixture.h"
#include "util/clock.h"

/** Peer timeout of these tests, longer than a machine stalls; PINGs are sent at an eighth of it. */
#define TIMEOUT_MS 2400
#define PING_MS    (TIMEOUT_MS / 8)

static struct dgram_peer g;

Test(cm_dgram_live, a_silent_peer_gets_pings_and_fails_after_the_timeout)
{
	uint64_t start, ms;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	start = util_clock_ns();
	dgram_peer_establish(&g);
	cm_raw_peer_await(&g.s, WIRE_CM_PING);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_expect_eq(g.a.down_err, -FI_ETIMEDOUT);
	cr_expect(ms >= TIMEOUT_MS, "%lu ms", ms);
	dgram_peer_close(&g);
}

/** A peer that was only stopped must not wait for work that was abandoned here. */
Test(cm_dgram_live, a_peer_that_timed_out_is_sent_broken)
{
	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	dgram_peer_establish(&g);
	cm_raw_peer_await(&g.s, WIRE_CM_BROKEN);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(g.a.down_err, -FI_ETIMEDOUT);
	dgram_peer_close(&g);
}

/* This process was stopped (debugger, swap): packets of the peer are unread. */
Test(cm_dgram_live, a_stall_of_this_process_does_not_count_as_silence)
{
	uint64_t pings;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	dgram_peer_establish(&g);
	cm_node_lock(g.node);
	pings = g.a.cep->stats->tx_pings;
	usleep(3 * TIMEOUT_MS / 2 * 1000);
	cm_node_unlock(g.node);
	do {
		cm_raw_peer_await(&g.s, WIRE_CM_PING);
		dgram_peer_send(&g, WIRE_CM_PONG, g.s.nonce);
	} while (cm_end_stats(&g.a).tx_pings <= pings);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	dgram_peer_close(&g);
}

Test(cm_dgram_live, a_peer_that_replies_stays_connected)
{
	uint64_t start, pings, ms;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	start = util_clock_ns();
	dgram_peer_establish(&g);
	while (util_clock_ns() - start < 3 * TIMEOUT_MS / 2 * UTIL_NS_PER_MS) {
		cm_raw_peer_await(&g.s, WIRE_CM_PING);
		dgram_peer_send(&g, WIRE_CM_PONG, g.s.nonce);
	}
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	pings = cm_end_stats(&g.a).tx_pings;
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_expect_leq(pings, 1 + ms / (PING_MS - PING_MS / 4), "at a low rate");
	dgram_peer_close(&g);
}

/* Only a stall of this process for two seconds could cause a PING here. */
Test(cm_dgram_live, a_peer_that_talks_to_the_engine_gets_no_ping)
{
	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 8000);
	g.a.last_rx_ns = UINT64_MAX;
	dgram_peer_establish(&g);
	cr_assert(cm_end_wait(&g.a, &g.a.last_rx_cnt, 2, CM_TEST_WAIT_MS));
	cr_expect_eq(cm_end_stats(&g.a).tx_pings, 0);
	pthread_mutex_lock(&g.a.lock);
	g.a.last_rx_ns = 0;
	pthread_mutex_unlock(&g.a.lock);
	cm_raw_peer_await(&g.s, WIRE_CM_PING);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	dgram_peer_close(&g);
}

Test(cm_dgram_live, a_closed_port_ends_the_conn_before_the_timeout)
{
	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 0);
	dgram_peer_establish(&g);
	cm_raw_peer_refuse(&g.s);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(g.a.down_err, -FI_ECONNRESET);
	dgram_peer_close(&g);
}

/* A packet from before the peer restarted arrives once more, delayed or replayed. */
Test(cm_dgram_live, an_old_hello_ends_nothing)
{
	struct wire_cm_pkt old, hello, ping, pong = { .type = WIRE_CM_PONG };
	uint64_t inc, nonce;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, "key", TIMEOUT_MS);
	cr_assert_eq(dgram_peer_hello(&g, &old).type, WIRE_CM_WELCOME);
	dgram_peer_send(&g, WIRE_CM_READY, g.s.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 1, CM_TEST_WAIT_MS));
	dgram_peer_send(&g, WIRE_CM_BYE, g.s.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	inc = ++g.s.inc;
	nonce = ++g.s.nonce;
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	dgram_peer_send(&g, WIRE_CM_READY, nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 2, CM_TEST_WAIT_MS));
	cm_raw_peer_send(&g.s, &g.to, &old);
	ping = cm_raw_peer_await(&g.s, WIRE_CM_PING);
	cr_expect_eq(ping.nonce, nonce);
	pong.nonce = nonce;
	pong.src_inc = inc;
	pong.dst_inc = g.a.cep->inc;
	cm_raw_peer_send(&g.s, &g.to, &pong);
	cr_expect(!cm_end_wait(&g.a, &g.a.down, 2, 100));
	cr_expect_eq(cm_end_live(&g.a), 1);
	dgram_peer_close(&g);
}

/* A restarted peer replies BYE to the PING for the old connection, and its HELLO is accepted. */
Test(cm_dgram_live, a_restarted_peer_is_checked_and_accepted)
{
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE }, hello, ping;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, "key", TIMEOUT_MS);
	dgram_peer_establish(&g);
	g.s.inc++;
	g.s.nonce++;
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_NAK);
	ping = cm_raw_peer_await(&g.s, WIRE_CM_PING);
	bye.nonce = ping.nonce;
	bye.dst_inc = g.a.cep->inc;
	cm_raw_peer_send(&g.s, &g.to, &bye);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(g.a.down_err, -FI_ECONNABORTED);
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	dgram_peer_close(&g);
}

/** The stream of a process that has ended may be read after its successor has connected. */
Test(cm_dgram_live, an_old_hello_on_a_stream_ends_nothing)
{
	struct cm_paths paths = { WIRE_CM_PATH_NIC | WIRE_CM_PATH_SHM, { WIRE_CM_PATH_NIC } };
	struct wire_cm_pkt ack, hello, reply;

	dgram_peer_open(&g, paths, NULL, 0);
	dgram_peer_establish(&g);
	g.s.inc++;
	g.s.nonce++;
	cr_assert(cm_raw_peer_get_ack(&g.s, &g.to, &ack));
	cr_assert(cm_raw_peer_connect(&g.s, &ack));
	cm_raw_peer_make_hello(&g.s, &ack, &hello);
	cm_raw_peer_send_stream(&g.s, &g.to, &hello, NULL, 0);
	cr_assert_eq(cm_raw_peer_recv_stream(&g.s, &reply, CM_TEST_WAIT_MS), 1);
	cr_expect_eq(reply.type, WIRE_CM_NAK);
	cr_expect_eq(reply.nak.err, FI_EAGAIN);
	cm_raw_peer_await(&g.s, WIRE_CM_PING);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	dgram_peer_close(&g);
}

Test(cm_dgram_live, another_incarnation_at_the_address_ends_the_old_connection)
{
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE, .src_inc = 4711 };

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	dgram_peer_establish(&g);
	bye.dst_inc = g.a.cep->inc;
	bye.nonce = g.s.nonce;
	cm_raw_peer_send(&g.s, &g.to, &bye);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(g.a.down_err, -FI_ECONNABORTED);
	dgram_peer_close(&g);
}

/** Many peers cause few PINGs per second, and each peer still gets one before its timeout. */
Test(cm_dgram_live, many_peers_get_pings_less_often)
{
	uint64_t second = 1000000000, timeout = 30 * second, ns;
	uint32_t cnt;

	cr_expect_eq(cm_dgram_ping_ns(timeout, 1), 2 * second);
	cr_expect_eq(cm_dgram_ping_ns(timeout, 2000), 2 * second);
	cr_expect_eq(cm_dgram_ping_ns(timeout, 5000), 5 * second);
	cr_expect_eq(cm_dgram_ping_ns(second, 1), second / 8);
	for (cnt = 1; cnt < 1000000; cnt *= 3) {
		ns = cm_dgram_ping_ns(timeout, cnt);
		cr_expect(cnt * second / ns <= CM_DGRAM_PINGS_S || ns == timeout / 4);
		cr_expect_leq(ns, timeout / 4);
	}
}
