/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ICMP errors and forged packets that do and do not end a connection without a stream; any host can
 * send them.
 */
#include <criterion/criterion.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_dgram.h"
#include "unit/cm/conn/dgram_fixture.h"

static struct dgram_peer g;

static void set_up(void)
{
	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 120000);
}

static void tear_down(void)
{
	dgram_peer_close(&g);
}

TestSuite(cm_dgram_errors, .init = set_up, .fini = tear_down, .timeout = 300);

static void say(enum wire_cm_type type, uint64_t dst_inc)
{
	struct wire_cm_pkt pkt = { .type = type, .nonce = g.s.nonce, .dst_inc = dst_inc };

	cm_raw_peer_send(&g.s, &g.to, &pkt);
}

static struct cm_conn *conn_of(void)
{
	return UTIL_CONTAINER_OF(g.a.cep->conns.next, struct cm_conn, cep_link);
}

/** Injects ICMP errors for packets of the connection. */
static void unreachable(unsigned cnt, int err)
{
	cm_node_lock(g.node);
	while (cnt--)
		cm_dgram_on_unreachable(conn_of(), err);
	cm_node_unlock(g.node);
}

static uint32_t refusals(void)
{
	uint32_t cnt;

	cm_node_lock(g.node);
	cnt = conn_of()->refused_cnt;
	cm_node_unlock(g.node);
	return cnt;
}

/** An ICMP error triggers a PING. The PONG resets the count of errors. */
Test(cm_dgram_errors, fewer_errors_than_the_limit_end_no_connection)
{
	unsigned i;

	dgram_peer_establish(&g);
	for (i = 0; i < 3; i++) {
		unreachable(CM_DGRAM_REFUSED_CNT - 1, -FI_ECONNREFUSED);
		cm_raw_peer_await(&g.s, WIRE_CM_PING);
		say(WIRE_CM_PONG, g.a.cep->inc);
		while (refusals())
			cm_test_sleep_ms(1);
	}
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	unreachable(CM_DGRAM_REFUSED_CNT, -FI_ECONNREFUSED);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(g.a.down_err, -FI_ECONNRESET);
}

/** A route may come back within the timeout. */
Test(cm_dgram_errors, a_missing_route_ends_no_connection)
{
	dgram_peer_establish(&g);
	unreachable(10 * CM_DGRAM_REFUSED_CNT, -FI_EHOSTUNREACH);
	unreachable(10 * CM_DGRAM_REFUSED_CNT, -FI_ENETUNREACH);
	cr_expect_eq(refusals(), 0);
	say(WIRE_CM_PING, g.a.cep->inc);
	cm_raw_peer_await(&g.s, WIRE_CM_PONG);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
}

/** The active end keeps repeating HELLO. */
Test(cm_dgram_errors, fewer_errors_than_the_limit_end_no_handshake)
{
	struct wire_cm_pkt hello = dgram_peer_await_hello(&g);

	unreachable(CM_DGRAM_REFUSED_CNT - 1, -FI_ECONNREFUSED);
	cr_expect_eq(cm_raw_peer_await(&g.s, WIRE_CM_HELLO).nonce, hello.nonce,
		     "HELLO was not repeated");
	dgram_peer_send(&g, WIRE_CM_WELCOME, hello.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
}

/** Packets for an earlier process at this address are ignored. */
Test(cm_dgram_errors, packets_for_an_earlier_incarnation_change_nothing)
{
	dgram_peer_establish(&g);
	say(WIRE_CM_BYE, g.a.cep->inc + 1);
	say(WIRE_CM_BROKEN, g.a.cep->inc + 1);
	say(WIRE_CM_PING, g.a.cep->inc);
	cm_raw_peer_await(&g.s, WIRE_CM_PONG);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
}
