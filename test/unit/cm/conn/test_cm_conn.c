/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Establishment and end of connections: cm/conn/cm_conn.c. */
#include "cm/conn/cm_conn.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/conn/cm_incoming.h"
#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"

static void connect_and_check(const char *ip, const char *key)
{
	struct cm_node *node_a = cm_test_node(key, 0), *node_b = cm_test_node(key, 0);
	struct cm_end a, b;

	cm_end_open(&a, node_a, ip, 0);
	cm_end_open(&b, node_b, ip, 0);
	cm_ends_connect(&a, &b, 1);
	cr_assert(a.requested == 1 && b.requested == 0);
	cr_assert(a.prepared == 1 && b.prepared == 1 && a.established == 1 && b.established == 1);
	cm_end_check_text(&a, b.text);
	cm_end_check_text(&b, a.text);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node_a);
	cm_node_close(node_b);
}

Test(cm_conn, both_ends_come_up_with_usable_descriptors_ipv4)
{
	connect_and_check("127.0.0.1", NULL);
}

Test(cm_conn, both_ends_come_up_with_usable_descriptors_ipv6)
{
	cm_test_need_ipv6();
	connect_and_check("::1", NULL);
}

Test(cm_conn, both_ends_come_up_with_a_job_key)
{
	connect_and_check("127.0.0.1", "the key of the job");
	cm_test_need_ipv6();
	connect_and_check("::1", "the key of the job");
}

/* An engine whose memory takes longer than an acceptor waits for a HELLO. */
static void prepare_slowly(struct cm_end *end)
{
	(void)end;
	cm_test_sleep_ms(CM_INCOMING_WAIT_MS + 500);
}

Test(cm_conn, an_engine_that_prepares_slowly_prepares_once)
{
	struct cm_node *node_a = cm_test_node(NULL, 0), *node_b = cm_test_node(NULL, 0);
	struct cm_end a, b;

	cm_end_open(&a, node_a, "127.0.0.1", 0);
	cm_end_open(&b, node_b, "127.0.0.1", 0);
	a.on_prepare = b.on_prepare = prepare_slowly;
	cm_ends_connect(&a, &b, 1);
	cr_expect_eq(cm_end_get(&a, &a.prepared), 1);
	cr_expect_eq(cm_end_get(&b, &b.prepared), 1);
	cr_expect_eq(cm_end_stats(&b).incoming_evicted, 1);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node_a);
	cm_node_close(node_b);
}

Test(cm_conn, each_end_knows_the_other_by_address_and_incarnation)
{
	struct cm_node *node;
	struct cm_end a, b;
	struct sockaddr_storage addr;
	struct cm_end_conn *c;

	node = cm_ends_open(0, &a, &b);
	cm_ends_connect(&a, &b, 1);
	c = UTIL_CONTAINER_OF(b.conns.next, struct cm_end_conn, link);
	cm_conn_addr(c->cm, &addr);
	cr_assert(!memcmp(&addr, &a.addr, sizeof(addr)));
	cr_assert(cm_conn_incarnation(c->cm) == cm_ep_incarnation(a.cep));
	c = UTIL_CONTAINER_OF(a.conns.next, struct cm_end_conn, link);
	cm_conn_addr(c->cm, &addr);
	cr_assert(!memcmp(&addr, &b.addr, sizeof(addr)));
	cr_assert(cm_conn_incarnation(c->cm) == cm_ep_incarnation(b.cep));
	cm_ends_close(node, &a, &b);
}

#define SHM_NIC (WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC)

Test(cm_conn, a_better_path_is_sound_usable_and_for_peers_that_can_leave)
{
	struct cm_node *node;
	struct cm_conn *conn;
	struct cm_end a, b;

	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } };
	node = cm_ends_open(0, &a, &b);
	cm_ep_set_down(a.cep, WIRE_CM_PATH_NIC);
	cm_ends_connect(&a, &b, 1);
	conn = UTIL_CONTAINER_OF(a.conns.next, struct cm_end_conn, link)->cm;
	cr_assert_eq(conn->path, WIRE_CM_PATH_UDP);
	cr_expect_eq(cm_conn_better(conn, SHM_NIC), 0, "it is out");
	cm_ep_set_down(a.cep, 0);
	cr_expect_eq(cm_conn_better(conn, SHM_NIC), WIRE_CM_PATH_NIC);
	cm_node_lock(node);
	conn->features &= ~WIRE_CM_FEATURE_FAILBACK;
	cm_node_unlock(node);
	cr_expect_eq(cm_conn_better(conn, SHM_NIC), 0, "the peer cannot");
	cm_node_lock(node);
	conn->features |= WIRE_CM_FEATURE_FAILBACK;
	for (unsigned i = 0; i < CM_PEER_FAILURES_MAX; i++)
		cm_peer_note_failure(conn->peer, conn->peer_inc, WIRE_CM_PATH_NIC, false);
	cm_node_unlock(node);
	cr_expect_eq(cm_conn_better(conn, SHM_NIC), 0, "it is avoided");
	cm_node_lock(node);
	conn->peer->failed_until_ns = 0;
	cm_node_unlock(node);
	cr_expect_eq(cm_conn_better(conn, SHM_NIC), WIRE_CM_PATH_NIC);
	cr_assert(cm_end_put_live(&b));
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(cm_conn_better(conn, SHM_NIC), 0, "it has ended");
	cm_ends_close(node, &a, &b);
}

Test(cm_conn, bye_is_a_shutdown_at_the_other_end)
{
	struct cm_node *node_a = cm_test_node(NULL, 0), *node_b = cm_test_node(NULL, 0);
	struct cm_end a, b;

	cm_end_open(&a, node_a, "127.0.0.1", 0);
	cm_end_open(&b, node_b, "127.0.0.1", 0);
	for (unsigned i = 1; i <= 20; i++) {
		struct cm_end *quitter = i % 2 ? &a : &b, *other = i % 2 ? &b : &a;
		unsigned before = cm_end_get(other, &other->down);

		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.requested, i, CM_TEST_WAIT_MS));
		cr_assert(cm_end_wait(&b, &b.up, i, CM_TEST_WAIT_MS));
		cr_assert(cm_end_put_live(quitter));
		cr_assert(cm_end_wait(other, &other->down, before + 1, CM_TEST_WAIT_MS));
		cr_assert_eq(other->down_err, -FI_ESHUTDOWN);
		cr_assert_eq(cm_end_reap(other), 1);
	}
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node_a);
	cm_node_close(node_b);
}

Test(cm_conn, put_then_connect_at_once_gives_a_new_conn)
{
	struct cm_node *node_a = cm_test_node(NULL, 0), *node_b = cm_test_node(NULL, 0);
	struct cm_end a, b;

	cm_end_open(&a, node_a, "127.0.0.1", 0);
	cm_end_open(&b, node_b, "127.0.0.1", 0);
	for (unsigned i = 1; i <= 100; i++) {
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.requested, i, CM_TEST_WAIT_MS));
		cr_assert(cm_end_put_live(&a));
		cm_end_reap(&b);
	}
	cr_assert(cm_end_wait(&b, &b.down, 100, CM_TEST_WAIT_MS));
	cr_assert_eq(b.up, 100);
	cr_assert_eq(b.down_err, -FI_ESHUTDOWN);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node_a);
	cm_node_close(node_b);
}

/* A HELLO of another incarnation proves that the first one has ended. */
Test(cm_conn, another_incarnation_at_the_address_aborts_the_old_conn)
{
	struct cm_node *node = cm_test_node(NULL, 0);
	struct cm_raw_peer s;
	union cm_addr to;
	struct cm_end a;
	int first;

	cm_end_open(&a, node, "127.0.0.1", 0);
	to = cm_test_addr_of(&a);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	for (unsigned i = 1; i <= 2; i++) {
		first = s.stream;
		s.stream = -1;
		cm_raw_peer_establish(&s, &to);
		cr_assert(cm_end_wait(&a, &a.up, i, CM_TEST_WAIT_MS));
		s.inc = cm_mac_random();
		s.nonce = cm_mac_random();
	}
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.down_err, -FI_ECONNABORTED);
	cr_assert_eq(cm_end_live(&a), 1);
	close(first);
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

Test(cm_conn, a_protocol_violation_ends_only_its_conn)
{
	struct cm_node *node = cm_test_node(NULL, 0);
	struct wire_cm_pkt ready = { .type = WIRE_CM_READY };
	struct cm_raw_peer s;
	union cm_addr to;
	struct cm_end a, b;

	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	to = cm_test_addr_of(&a);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	cm_raw_peer_establish(&s, &to);
	cr_assert(cm_end_wait(&a, &a.up, 2, CM_TEST_WAIT_MS));
	/*
	 * Bytes that are no packet are ignored; a packet that the state does not permit ends the
	 * conn.
	 */
	cr_assert(!cm_fd_send(s.stream, (const uint8_t *)"rubbish", 7, NULL, 0));
	cr_assert(!cm_end_wait(&a, &a.down, 1, 50));
	ready.dst_inc = cm_ep_incarnation(a.cep);
	cm_raw_peer_send_stream(&s, &to, &ready, NULL, 0);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.down_err, -FI_EIO);
	cr_assert_eq(cm_end_live(&a), 1);
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_conn, conns_outlive_their_endpoint_and_node_until_they_are_put)
{
	struct cm_node *node;
	struct cm_end_conn *c;
	struct cm_end a, b;

	node = cm_ends_open(0, &a, &b);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	c = UTIL_CONTAINER_OF(util_list_pop(&a.conns), struct cm_end_conn, link);
	cm_end_close(&a);
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(b.down_err, -FI_ESHUTDOWN);
	cm_end_close(&b);
	cm_node_close(node);
	cm_conn_put(c->cm);
	free(c);
}

Test(cm_conn, transitions_are_those_of_the_table_and_no_others)
{
	static const char *const legal[] = { "new>hello_sent",    "new>welcome_sent",
					     "new>down",          "hello_sent>up",
					     "hello_sent>down",   "welcome_sent>up",
					     "welcome_sent>down", "up>down" };

	cm_test_transitions(&cm_conn_states, legal, sizeof(legal) / sizeof(legal[0]));
}
