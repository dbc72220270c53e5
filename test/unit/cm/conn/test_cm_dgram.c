/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handshakes without a stream: one connection per pair, orderly end, whatever a raw peer sends
 * (cm/conn/cm_dgram.c).
 */
#include "cm/conn/cm_dgram.h"

#include <criterion/criterion.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "cm/conn/cm_conn.h"
#include "cm/node/cm_node.h"
#include "unit/cm/conn/dgram_fixture.h"

/** Deadline of a handshake in these tests, longer than a machine stalls. */
#define TIMEOUT_MS 2400

static struct dgram_peer g;
static struct cm_node *node;
static struct cm_end a, b;

Test(cm_dgram, a_failed_connection_ends_with_broken_not_bye)
{
	dgram_pair_open(&node, &a, &b, DGRAM_NIC_ONLY);
	cm_ends_connect(&a, &b, 1);
	cr_assert(cm_end_break_live(&a, true));
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(b.down_err, -FI_EIO);
	dgram_pair_close(node, &a, &b);
}

Test(cm_dgram, two_ends_connect_and_close_with_bye)
{
	dgram_pair_open(&node, &a, &b, DGRAM_NIC_ONLY);
	cm_ends_connect(&a, &b, 1);
	cr_expect_eq(a.requested, 1);
	cr_expect_eq(b.requested, 0);
	cr_assert(cm_end_put_live(&a));
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(b.down_err, -FI_ESHUTDOWN);
	dgram_pair_close(node, &a, &b);
}

Test(cm_dgram, a_forged_cookie_prepares_nothing)
{
	struct wire_cm_pkt ack, hello, reply;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	cr_assert(cm_raw_peer_get_ack(&g.s, &g.to, &ack));
	cm_raw_peer_make_hello(&g.s, &ack, &hello);
	hello.hello.cookie[3] ^= 1;
	cm_raw_peer_send(&g.s, &g.to, &hello);
	cr_assert(cm_raw_peer_recv(&g.s, &reply, CM_TEST_WAIT_MS));
	cr_expect_eq(reply.type, WIRE_CM_NAK);
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 0);
	cr_expect_eq(cm_end_stats(&g.a).rx_bad_cookie, 1);
	dgram_peer_close(&g);
}

Test(cm_dgram, a_cookie_is_valid_for_its_address_only)
{
	struct cm_raw_peer other;
	struct wire_cm_pkt ack, hello, reply;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	cm_raw_peer_open(&other, "127.0.0.1", NULL);
	other.inc = g.s.inc;
	other.nonce = g.s.nonce;
	cr_assert(cm_raw_peer_get_ack(&g.s, &g.to, &ack));
	cm_raw_peer_make_hello(&g.s, &ack, &hello);
	cm_raw_peer_send(&other, &g.to, &hello);
	cr_assert(cm_raw_peer_recv(&other, &reply, CM_TEST_WAIT_MS));
	cr_expect_eq(reply.type, WIRE_CM_NAK, "the HELLO names another address than its source");
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 0);
	cm_raw_peer_close(&other);
	dgram_peer_close(&g);
}

Test(cm_dgram, a_repeated_hello_is_replied_to_again_and_prepared_once)
{
	struct wire_cm_pkt hello, first, again;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	first = dgram_peer_hello(&g, &hello);
	cr_assert_eq(first.type, WIRE_CM_WELCOME);
	cm_raw_peer_send(&g.s, &g.to, &hello);
	again = cm_raw_peer_await(&g.s, WIRE_CM_WELCOME);
	cr_expect_eq(again.nonce, first.nonce);
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 1);
	dgram_peer_close(&g);
}

/* The timer repeats WELCOME as well, but rarely: most packets received are replies. */
Test(cm_dgram, each_repeated_hello_gets_a_welcome)
{
	struct wire_cm_pkt hello;
	unsigned repeated, i;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 120000);
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	for (i = 0; i < 60; i++)
		cm_raw_peer_send(&g.s, &g.to, &hello);
	for (i = 0; i < 40; i++)
		cm_raw_peer_await(&g.s, WIRE_CM_WELCOME);
	cm_node_lock(g.node);
	repeated = UTIL_CONTAINER_OF(g.a.cep->conns.next, struct cm_conn, cep_link)->try_cnt;
	cm_node_unlock(g.node);
	cr_expect_lt(repeated, 20);
	dgram_peer_close(&g);
}

Test(cm_dgram, a_welcome_is_repeated_until_ready_or_the_deadline)
{
	struct wire_cm_pkt hello;
	unsigned downs = 0;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	cm_raw_peer_await(&g.s, WIRE_CM_WELCOME);
	cm_raw_peer_await(&g.s, WIRE_CM_WELCOME);
	for (int i = 0; i < CM_TEST_WAIT_MS && !downs; i++) {
		cm_test_sleep_ms(1);
		downs = cm_end_reap(&g.a);
	}
	cr_expect_eq(downs, 1, "not down");
	cr_expect_eq(cm_end_get(&g.a, &g.a.up), 0);
	dgram_peer_send(&g, WIRE_CM_READY, g.s.nonce);
	cm_raw_peer_await(&g.s, WIRE_CM_BYE);
	dgram_peer_close(&g);
}

Test(cm_dgram, a_ping_replaces_a_lost_ready)
{
	struct wire_cm_pkt hello;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	dgram_peer_send(&g, WIRE_CM_PING, g.s.nonce);
	cm_raw_peer_await(&g.s, WIRE_CM_PONG);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 1, CM_TEST_WAIT_MS));
	dgram_peer_close(&g);
}

Test(cm_dgram, ready_is_repeated_for_each_repeated_welcome)
{
	struct wire_cm_pkt hello;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	hello = dgram_peer_await_hello(&g);
	cr_expect_eq(cm_raw_peer_await(&g.s, WIRE_CM_HELLO).nonce, hello.nonce,
		     "HELLO was not repeated");
	for (unsigned i = 0; i < 3; i++) {
		dgram_peer_send(&g, WIRE_CM_WELCOME, hello.nonce);
		cm_raw_peer_await(&g.s, WIRE_CM_READY);
	}
	cr_expect_eq(cm_end_get(&g.a, &g.a.up), 1);
	cr_expect_eq(cm_end_get(&g.a, &g.a.established), 1);
	dgram_peer_close(&g);
}

Test(cm_dgram, a_packet_of_an_unknown_connection_gets_bye_and_a_bye_no_reply)
{
	static const enum wire_cm_type asks[] = { WIRE_CM_WELCOME, WIRE_CM_READY, WIRE_CM_PING };
	struct wire_cm_pkt pkt;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	for (unsigned i = 0; i < 3; i++) {
		dgram_peer_send(&g, asks[i], 77 + i);
		pkt = cm_raw_peer_await(&g.s, WIRE_CM_BYE);
		cr_expect_eq(pkt.nonce, 77 + i);
		cr_expect_eq(pkt.dst_inc, g.s.inc);
	}
	dgram_peer_send(&g, WIRE_CM_BYE, 80);
	dgram_peer_send(&g, WIRE_CM_PONG, 81);
	dgram_peer_send(&g, WIRE_CM_CROSSED, 82);
	cr_expect_not(cm_raw_peer_recv(&g.s, &pkt, 50));
	cr_expect_eq(cm_end_stats(&g.a).rx_stale, 6);
	dgram_peer_close(&g);
}

Test(cm_dgram, a_hello_to_an_ended_incarnation_gets_bye)
{
	struct wire_cm_pkt ack, hello, bye;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	cr_assert(cm_raw_peer_get_ack(&g.s, &g.to, &ack));
	cm_raw_peer_make_hello(&g.s, &ack, &hello);
	hello.dst_inc ^= 1;
	cm_raw_peer_send(&g.s, &g.to, &hello);
	bye = cm_raw_peer_await(&g.s, WIRE_CM_BYE);
	cr_expect_eq(bye.nonce, hello.nonce);
	cr_expect_eq(bye.src_inc, g.a.cep->inc);
	cr_expect_eq(bye.dst_inc, g.s.inc);
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 0);
	dgram_peer_close(&g);
}

/** Between ACK and HELLO the process is replaced: the attempt does not wait for its timeout. */
Test(cm_dgram, an_attempt_with_a_peer_that_restarts_meanwhile_begins_anew)
{
	struct wire_cm_pkt hello, req;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 0);
	hello = dgram_peer_await_hello(&g);
	g.s.inc++;
	dgram_peer_send(&g, WIRE_CM_BYE, hello.nonce);
	req = cm_raw_peer_await(&g.s, WIRE_CM_REQ);
	cr_expect_neq(req.nonce, hello.nonce);
	cr_expect_eq(cm_end_get(&g.a, &g.a.failed), 0);
	dgram_peer_close(&g);
}

Test(cm_dgram, packets_of_other_attempts_change_nothing)
{
	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, TIMEOUT_MS);
	dgram_peer_establish(&g);
	for (enum wire_cm_type t = WIRE_CM_READY; t <= WIRE_CM_PONG; t++)
		dgram_peer_send(&g, t, g.s.nonce + 1);
	dgram_peer_send(&g, WIRE_CM_READY, g.s.nonce);
	dgram_peer_send(&g, WIRE_CM_CROSSED, g.s.nonce);
	dgram_peer_send(&g, WIRE_CM_PING, g.s.nonce);
	cm_raw_peer_await(&g.s, WIRE_CM_PONG);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	dgram_peer_close(&g);
}

Test(cm_dgram, packets_without_the_key_change_nothing)
{
	struct wire_cm_pkt pkt;
	struct cm_mac_key none = { .is_set = false };

	dgram_peer_open(&g, DGRAM_NIC_ONLY, "key", 0);
	dgram_peer_establish(&g);
	g.s.key = none;
	dgram_peer_send(&g, WIRE_CM_BYE, g.s.nonce);
	dgram_peer_send(&g, WIRE_CM_PING, 1234);
	while (cm_raw_peer_recv(&g.s, &pkt, 30))
		cr_expect_eq(pkt.type, WIRE_CM_PING);
	cr_expect_eq(cm_end_get(&g.a, &g.a.down), 0);
	cr_expect_eq(cm_end_stats(&g.a).rx_bad_mac, 2);
	dgram_peer_close(&g);
}
