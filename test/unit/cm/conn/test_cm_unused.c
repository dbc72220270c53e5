/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unused connections: a host that leaves many idle gets no more of them, and others do. */
#include "cm/conn/cm_unused.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include <rdma/fi_errno.h>

#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_pending.h"
#include "cm/ep/cm_ep.h"
#include "cm/node/cm_node.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

#define CROWDED "127.0.0.2"
#define MAX     8u

static struct cm_node *node;
static struct cm_end a;
static union cm_addr to; /* address of `a` */
static struct cm_raw_peer raw_peers[4 * MAX];
static unsigned raw_peer_cnt;
static uint32_t path = WIRE_CM_PATH_UDP;

static void set_up(void)
{
	cm_test_paths =
		(struct cm_paths){ WIRE_CM_PATH_UDP | WIRE_CM_PATH_NIC, { WIRE_CM_PATH_UDP } };
	cm_test_apart = true;
	node = cm_test_node(NULL, 120000);
	cm_end_open(&a, node, "127.0.0.1", 0);
	a.cep->unused_max = MAX;
	to = cm_test_addr_of(&a);
}

static void tear_down(void)
{
	while (raw_peer_cnt)
		cm_raw_peer_close(&raw_peers[--raw_peer_cnt]);
	cm_end_close(&a);
	cm_node_close(node);
}

TestSuite(cm_unused, .init = set_up, .fini = tear_down, .timeout = 300);

/** Completes a handshake from `ip`. Returns the reply to HELLO. */
static struct wire_cm_pkt come_from(const char *ip)
{
	struct cm_raw_peer *s = &raw_peers[raw_peer_cnt++];
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ }, ack, hello, reply,
			   ready = { .type = WIRE_CM_READY, .dst_inc = a.cep->inc };
	unsigned ups = cm_end_get(&a, &a.up);

	cm_raw_peer_open(s, ip, NULL);
	req.req.paths = path;
	cm_raw_peer_send(s, &to, &req);
	ack = cm_raw_peer_await(s, WIRE_CM_ACK);
	cm_raw_peer_make_hello(s, &ack, &hello);
	hello.hello.params.path = path;
	cm_raw_peer_send(s, &to, &hello);
	cr_assert(cm_raw_peer_recv(s, &reply, CM_TEST_WAIT_MS));
	if (reply.type == WIRE_CM_WELCOME) {
		cm_raw_peer_send(s, &to, &ready);
		cr_assert(cm_end_wait(&a, &a.up, ups + 1, CM_TEST_WAIT_MS));
	}
	return reply;
}

/** Returns an address of a host that has a counter of its own. */
static const char *other_host(void)
{
	static char ip[32];
	union cm_addr crowded, other;

	cm_test_addr(CROWDED, 1, &crowded);
	for (int i = 3;; i++) {
		snprintf(ip, sizeof(ip), "127.0.0.%d", i);
		cm_test_addr(ip, 1, &other);
		if (cm_ep_host(a.cep, &other) != cm_ep_host(a.cep, &crowded))
			return ip;
	}
}

static void fill(unsigned cnt)
{
	while (cnt--)
		cr_assert_eq(come_from(CROWDED).type, WIRE_CM_WELCOME);
}

Test(cm_unused, a_host_with_too_many_is_refused_for_now_and_another_is_not)
{
	struct wire_cm_pkt reply;

	fill(MAX);
	reply = come_from(CROWDED);
	cr_expect_eq(reply.type, WIRE_CM_NAK);
	cr_expect_eq(reply.nak.err, FI_EAGAIN);
	cr_expect_eq(come_from(other_host()).type, WIRE_CM_WELCOME);
	cr_expect_eq(cm_end_stats(&a).unused_refused, 1);
	cr_expect_eq(cm_end_get(&a, &a.down), 0, "the others stay");
}

Test(cm_unused, messages_make_room)
{
	fill(MAX);
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_NAK);
	pthread_mutex_lock(&a.lock);
	a.last_rx_ns = UINT64_MAX; /* the engine receives on all of them */
	pthread_mutex_unlock(&a.lock);
	cm_test_sleep_ms(2 * CM_UNUSED_SWEEP_MS);
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_WELCOME);
}

Test(cm_unused, the_end_of_a_connection_makes_room)
{
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE, .dst_inc = a.cep->inc };

	fill(MAX);
	cm_raw_peer_send(&raw_peers[3], &to, &bye);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_WELCOME);
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_NAK);
}

/**
 * Counts the sessions of a host that sends a message on each: the limit and no more, while a host
 * that has none gets its first.
 */
Test(cm_unused, a_host_that_uses_all_its_sessions_gets_no_more_than_its_share)
{
	unsigned got = 0, refused = 0;

	pthread_mutex_lock(&a.lock);
	a.last_rx_ns = UINT64_MAX;
	pthread_mutex_unlock(&a.lock);
	a.cep->held_max = 2 * MAX;
	for (unsigned i = 0; i < 3 * MAX; i++) {
		enum wire_cm_type reply = come_from(CROWDED).type;

		got += reply == WIRE_CM_WELCOME;
		refused += reply == WIRE_CM_NAK;
		if (reply == WIRE_CM_WELCOME)
			cm_test_sleep_ms(CM_UNUSED_SWEEP_MS +
					 1); /* the next sweep sees its message */
	}
	cr_expect_eq(got, 2 * MAX);
	cr_expect_eq(refused, MAX);
	cr_expect_eq(cm_end_stats(&a).unused_refused, MAX);
	cr_expect_eq(come_from(other_host()).type, WIRE_CM_WELCOME);
	cr_expect_eq(cm_end_get(&a, &a.down), 0, "the others stay");
}

Test(cm_unused, the_end_of_a_used_connection_makes_room)
{
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE, .dst_inc = a.cep->inc };

	a.cep->held_max = 2;
	fill(2);
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_NAK);
	cm_raw_peer_send(&raw_peers[0], &to, &bye);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_WELCOME);
}

/** Rings have no session numbers. */
Test(cm_unused, paths_without_sessions_are_not_counted)
{
	path = WIRE_CM_PATH_NIC;
	fill(MAX + 1);
	cr_expect_eq(cm_end_stats(&a).unused_refused, 0);
}
