/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Selection of a path: preferences, failures and fallbacks. Chosen in cm/conn/cm_req.c and
 * cm_peer.c, used by cm/conn/cm_attempt.c and cm_dgram.c.
 */
#include "cm/conn/cm_dgram.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_peer.h"
#include "unit/cm/conn/dgram_fixture.h"

static struct cm_node *node;
static struct cm_end a, b;

/** Returns whether the only conn of `end` has no stream. */
static bool went_without_stream(struct cm_end *end)
{
	struct util_list *first = util_list_first(&end->conns);

	cr_assert_not_null(first);
	return UTIL_CONTAINER_OF(first, struct cm_end_conn, link)->cm->is_dgram;
}

Test(cm_dgram_paths, the_active_end_chooses_among_common_paths)
{
	static const struct {
		uint32_t all[2], first;
		bool dgram;
	} cases[] = {
		{ { 3, 3 }, WIRE_CM_PATH_SHM, false }, { { 3, 3 }, WIRE_CM_PATH_NIC, true },
		{ { 3, 1 }, WIRE_CM_PATH_NIC, false }, { { 3, 2 }, WIRE_CM_PATH_SHM, true },
		{ { 2, 3 }, WIRE_CM_PATH_NIC, true },
	};

	cm_test_apart = true;
	node = cm_test_node(NULL, 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cm_test_paths = (struct cm_paths){ cases[i].all[0], { cases[i].first } };
		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_test_paths = (struct cm_paths){ cases[i].all[1], { cases[i].all[1] & 1 ?: 2 } };
		cm_end_open(&b, node, "127.0.0.1", 0);
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "case %u", i);
		cr_expect_eq(went_without_stream(&a), cases[i].dgram, "case %u", i);
		cm_end_close(&a);
		cm_end_close(&b);
	}
	cm_node_close(node);
}

#define ANY_PATH (WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC | WIRE_CM_PATH_UD | WIRE_CM_PATH_UDP)

/** Returns the path of the conn prepared last. */
static uint32_t path_of(struct cm_end *end)
{
	cr_assert(!util_list_is_empty(&end->conns));
	return UTIL_CONTAINER_OF(end->conns.prev, struct cm_end_conn, link)->cm->path;
}

Test(cm_dgram_paths, the_preference_of_the_active_end_decides)
{
	static const struct cm_paths orders[] = {
		{ ANY_PATH, { WIRE_CM_PATH_UDP, WIRE_CM_PATH_SHM } },
		{ ANY_PATH, { WIRE_CM_PATH_UD, WIRE_CM_PATH_NIC } },
		{ ANY_PATH, { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } },
		{ WIRE_CM_PATH_UDP | WIRE_CM_PATH_UD, { WIRE_CM_PATH_UDP } },
	};

	cm_test_apart = true;
	node = cm_test_node(NULL, 0);
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		cm_test_paths = orders[i];
		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_test_paths = (struct cm_paths){ ANY_PATH, { WIRE_CM_PATH_SHM } };
		cm_end_open(&b, node, "127.0.0.1", 0);
		cm_ends_connect(&a, &b, 1);
		cr_expect_eq(path_of(&a), orders[i].best[0], "case %u", i);
		cr_expect_eq(path_of(&b), orders[i].best[0], "case %u", i);
		cm_end_close(&a);
		cm_end_close(&b);
	}
	cm_node_close(node);
}

Test(cm_dgram_paths, a_path_that_one_end_cannot_prepare_is_avoided_while_there_is_another)
{
	static const struct {
		uint32_t not_a, not_b, taken;
	} cases[] = {
		{ WIRE_CM_PATH_SHM, 0, WIRE_CM_PATH_NIC },
		{ 0, WIRE_CM_PATH_SHM, WIRE_CM_PATH_NIC },
		{ 0, WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP },
		{ WIRE_CM_PATH_NIC, WIRE_CM_PATH_SHM, WIRE_CM_PATH_UDP },
	};

	cm_test_apart = true;
	node = cm_test_node(NULL, 0);
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_SHM, WIRE_CM_PATH_NIC } };
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_end_open(&b, node, "127.0.0.1", 0);
		a.no_path = cases[i].not_a;
		b.no_path = cases[i].not_b;
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS), "case %u", i);
		cr_expect_eq(path_of(&a), cases[i].taken, "case %u", i);
		cm_end_close(&a);
		cm_end_close(&b);
	}
	cm_node_close(node);
}

/* Two hosts with a NIC each, on networks that are not connected. */
Test(cm_dgram_paths, a_path_on_which_nothing_arrives_is_replaced_by_another)
{
	dgram_pair_open(&node, &a, &b,
			(struct cm_paths){ WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } });
	for (unsigned i = 0; i <= CM_PEER_FAILURES_MAX; i++) {
		cm_ends_connect(&a, &b, i + 1);
		cr_expect_eq(path_of(&a),
			     i < CM_PEER_FAILURES_MAX ? WIRE_CM_PATH_NIC : WIRE_CM_PATH_UDP,
			     "try %u", i);
		cr_assert(cm_end_break_live(&a, false));
		cr_assert(cm_end_wait(&b, &b.down, i + 1, CM_TEST_WAIT_MS));
	}
	/* The other end cannot use that path either. */
	cr_assert(!cm_end_connect(&b, &a));
	cr_assert(cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(path_of(&b), WIRE_CM_PATH_UDP);
	dgram_pair_close(node, &a, &b);
}

Test(cm_dgram_paths, a_path_that_worked_is_used_again_however_often_it_fails)
{
	dgram_pair_open(&node, &a, &b,
			(struct cm_paths){ WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } });
	for (unsigned i = 0; i < 4 * CM_PEER_FAILURES_MAX; i++) {
		cm_ends_connect(&a, &b, i + 1);
		cr_expect_eq(path_of(&a), WIRE_CM_PATH_NIC, "try %u", i);
		cr_assert(cm_end_break_live(&a, i % CM_PEER_FAILURES_MAX != 0));
		cr_assert(cm_end_wait(&b, &b.down, i + 1, CM_TEST_WAIT_MS));
	}
	dgram_pair_close(node, &a, &b);
}

Test(cm_dgram_paths, after_every_path_failed_the_last_error_is_reported)
{
	dgram_pair_open(
		&node, &a, &b,
		(struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_UDP, { WIRE_CM_PATH_SHM } });
	b.no_path = WIRE_CM_PATH_SHM | WIRE_CM_PATH_UDP;
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.failed_err, -FI_ENOMEM);
	cr_expect_eq(b.prepared, 2);
	dgram_pair_close(node, &a, &b);
}

Test(cm_dgram_paths, a_request_refused_for_access_is_not_retried_on_another_path)
{
	struct wire_cm_pkt req, hello, ack = { .type = WIRE_CM_ACK };
	struct wire_cm_pkt nak = { .type = WIRE_CM_NAK, .nak.err = FI_EACCES, .nak.text = "no" };
	struct dgram_peer g;

	dgram_peer_open(&g,
			(struct cm_paths){ WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } },
			NULL, 0);
	cr_assert(!cm_connect(g.a.cep, &g.s.addr.sa, false));
	req = cm_raw_peer_await(&g.s, WIRE_CM_REQ);
	ack.nonce = nak.nonce = req.nonce;
	ack.dst_inc = nak.dst_inc = req.src_inc;
	ack.ack.paths = WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP;
	memset(ack.ack.name, '0', sizeof(ack.ack.name));
	cm_raw_peer_send(&g.s, &g.to, &ack);
	hello = cm_raw_peer_await(&g.s, WIRE_CM_HELLO);
	cr_assert_eq(hello.hello.params.path, WIRE_CM_PATH_NIC);
	cm_raw_peer_send(&g.s, &g.to, &nak);
	cr_assert(cm_end_wait(&g.a, &g.a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(g.a.failed_err, -FI_EACCES);
	cr_expect_eq(g.a.prepared, 1);
	dgram_peer_close(&g);
}

/**
 * Opens `a` and `b` with control threads in two network namespaces that share an address: packets
 * arrive, but no abstract name leads from one to the other, like in a container.
 */
static void open_in_two_namespaces(struct cm_node *nodes[2], const char *key)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (geteuid())
		cr_skip_test("needs root");
	nodes[0] = cm_test_node(key, 0);
	if (unshare(CLONE_NEWNET))
		cr_skip_test("no network namespaces");
	nodes[1] = cm_test_node(key, 0);
	cr_assert(!setns(home, CLONE_NEWNET));
	close(home);
	cm_test_paths =
		(struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC, { WIRE_CM_PATH_SHM } };
	cm_end_open(&a, nodes[1], "127.0.0.1", 0);
	cm_end_open(&b, nodes[0], "127.0.0.1", 0);
}

static void close_namespaces(struct cm_node *nodes[2])
{
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(nodes[0]);
	cm_node_close(nodes[1]);
}

Test(cm_dgram_paths, another_network_namespace_is_reached_if_both_have_a_device)
{
	struct cm_node *nodes[2];

	cm_test_apart = true;
	open_in_two_namespaces(nodes, NULL);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect(went_without_stream(&a));
	close_namespaces(nodes);
}

Test(cm_dgram_paths, a_namespace_with_the_same_address_is_refused_and_the_text_names_the_job_key)
{
	struct cm_node *nodes[2];

	open_in_two_namespaces(nodes, NULL);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.failed_err, -FI_EACCES);
	cr_expect(strstr(a.why, "Set FI_COPYRPC_JOB_KEY"), "%s", a.why);
	cr_expect_eq(b.prepared, 0);
	close_namespaces(nodes);
}

Test(cm_dgram_paths, a_namespace_with_the_same_address_is_reached_with_a_job_key)
{
	struct cm_node *nodes[2];

	open_in_two_namespaces(nodes, "key");
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect(went_without_stream(&a));
	close_namespaces(nodes);
}

/* With FI_COPYRPC_PATHS=udp at one end, another user's process never had to show its user. */
Test(cm_dgram_paths, without_a_job_key_a_datagram_from_this_host_opens_no_connection)
{
	static const uint32_t paths[] = { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UD, WIRE_CM_PATH_UDP };
	struct wire_cm_pkt ack, hello, reply;
	struct cm_raw_peer s;
	union cm_addr to;

	cm_test_paths = (struct cm_paths){ ANY_PATH, { WIRE_CM_PATH_SHM } };
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	to = cm_test_addr_of(&a);
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cm_raw_peer_open(&s, i % 2 ? "127.0.0.2" : "127.0.0.1", NULL);
		cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
		cm_raw_peer_make_hello(&s, &ack, &hello);
		hello.hello.params.path = paths[i];
		cm_raw_peer_send(&s, &to, &hello);
		reply = cm_raw_peer_await(&s, WIRE_CM_NAK);
		cr_expect_eq(reply.nak.err, FI_EACCES);
		cr_expect(strstr(reply.nak.text, "set FI_COPYRPC_JOB_KEY"), "%s", reply.nak.text);
		cm_raw_peer_close(&s);
	}
	cr_expect_eq(cm_end_get(&a, &a.prepared), 0);
	cr_expect_eq(cm_end_stats(&a).rx_unproven, sizeof(paths) / sizeof(paths[0]));
	cm_end_close(&a);
	cm_node_close(node);
}

Test(cm_dgram_paths, without_a_job_key_ends_of_one_host_have_a_stream_whatever_the_path)
{
	static const uint32_t paths[] = { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UD, WIRE_CM_PATH_UDP };

	node = cm_test_node(NULL, 0);
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cm_test_paths = (struct cm_paths){ paths[i], { paths[i] } };
		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_end_open(&b, node, "127.0.0.1", 0);
		cm_ends_connect(&a, &b, 1);
		cr_expect_eq(path_of(&a), paths[i]);
		cr_expect(!went_without_stream(&a) && !went_without_stream(&b));
		cm_end_close(&a);
		cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
		cr_expect_eq(b.down_err, -FI_ESHUTDOWN);
		cm_end_close(&b);
	}
	cm_node_close(node);
}

Test(cm_dgram_paths, a_path_that_is_not_offered_is_refused)
{
	static struct dgram_peer g;
	struct wire_cm_pkt hello, reply;

	dgram_peer_open(&g, (struct cm_paths){ WIRE_CM_PATH_SHM, { WIRE_CM_PATH_SHM } }, NULL, 0);
	reply = dgram_peer_hello(&g, &hello);
	cr_expect_eq(reply.type, WIRE_CM_NAK);
	cr_expect_eq(reply.nak.err, FI_EOPNOTSUPP);
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 0);
	dgram_peer_close(&g);
}
