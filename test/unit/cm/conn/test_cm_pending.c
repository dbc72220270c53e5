/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pending connections: a host that leaves many pending does not block other hosts. */
#include "cm/conn/cm_pending.h"

#include <criterion/criterion.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "cm/conn/cm_conn.h"
#include "cm/node/cm_node.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

#define CROWDED "127.0.0.2"
#define HONEST  "127.0.0.3"
#define OTHER   "127.0.0.4"

static struct cm_node *node;
static struct cm_end a;
static union cm_addr to; /* address of `a` */
static struct cm_raw_peer raw_peers[CM_PENDING_MAX + 8];
static unsigned raw_peer_cnt;

/** Returns the counter index for an address. */
static uint32_t host_of(const char *ip)
{
	struct cm_conn conn = { .cep = a.cep };

	cm_test_addr(ip, 1, &conn.via.to);
	util_list_init(&conn.pending_link);
	cm_node_lock(node);
	cm_pending_add(&conn, 0);
	cm_pending_remove(&conn);
	cm_node_unlock(node);
	return conn.pending_host;
}

/** Returns whether each of the hosts above has a counter of its own. */
static bool hosts_differ(void)
{
	uint32_t crowded = host_of(CROWDED), honest = host_of(HONEST), other = host_of(OTHER);

	return crowded != honest && crowded != other && honest != other;
}

static void set_up(void)
{
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC, { WIRE_CM_PATH_NIC } };
	cm_test_apart = true;
	node = cm_test_node(NULL, 120000);
	cm_end_open(&a, node, "127.0.0.1", 0);
	while (!hosts_differ()) { /* their counters follow from a random key of the endpoint */
		cm_end_close(&a);
		cm_end_open(&a, node, "127.0.0.1", 0);
	}
	to = cm_test_addr_of(&a);
}

static void tear_down(void)
{
	while (raw_peer_cnt)
		cm_raw_peer_close(&raw_peers[--raw_peer_cnt]);
	cm_end_close(&a);
	cm_node_close(node);
}

TestSuite(cm_pending, .init = set_up, .fini = tear_down, .timeout = 300);

/**
 * Requests a cookie and sends HELLO. Returns the reply, skipping repetitions of earlier packets.
 */
static struct wire_cm_pkt come(struct cm_raw_peer *s)
{
	struct wire_cm_pkt ack, hello, reply;

	do
		cr_assert(cm_raw_peer_get_ack(s, &to, &ack) || ack.type == WIRE_CM_WELCOME);
	while (ack.type != WIRE_CM_ACK || ack.nonce != s->nonce);
	cm_raw_peer_make_hello(s, &ack, &hello);
	cm_raw_peer_send(s, &to, &hello);
	do
		cr_assert(cm_raw_peer_recv(s, &reply, CM_TEST_WAIT_MS));
	while (reply.nonce != s->nonce || reply.type == WIRE_CM_ACK);
	return reply;
}

static struct wire_cm_pkt come_from(const char *ip)
{
	struct cm_raw_peer *s = &raw_peers[raw_peer_cnt++];

	cm_raw_peer_open(s, ip, NULL);
	return come(s);
}

static void fill(unsigned cnt, const char *ip)
{
	unsigned i;

	for (i = 0; i < cnt; i++)
		cr_assert_eq(come_from(ip).type, WIRE_CM_WELCOME, "peer %u of %s", i, ip);
}

static void say(struct cm_raw_peer *s, enum wire_cm_type type)
{
	struct wire_cm_pkt pkt = { .type = type, .nonce = s->nonce, .dst_inc = a.cep->inc };

	cm_raw_peer_send(s, &to, &pkt);
}

/** Returns the time at which the first pending connection from `ip` was sent WELCOME, or 0. */
static uint64_t since(const char *ip)
{
	struct util_list *it;
	union cm_addr addr;
	uint64_t ns = 0;

	cm_test_addr(ip, 1, &addr);
	cm_node_lock(node);
	for (it = a.cep->pending.next; it != &a.cep->pending && !ns; it = it->next) {
		const struct cm_conn *conn = UTIL_CONTAINER_OF(it, struct cm_conn, pending_link);

		if (conn->addr.in.sin_addr.s_addr == addr.in.sin_addr.s_addr)
			ns = conn->pending_ns;
	}
	cm_node_unlock(node);
	return ns;
}

/** Returns whether a connection from `ip` would be accepted at that time. */
static bool has_room(const char *ip, uint64_t now_ns)
{
	union cm_addr addr;
	bool ret;

	cm_test_addr(ip, 1, &addr);
	cm_node_lock(node);
	ret = cm_pending_make_room(a.cep, &addr, now_ns);
	cm_node_unlock(node);
	return ret;
}

static uint64_t ms(uint32_t ms_cnt)
{
	return ms_cnt * UTIL_NS_PER_MS;
}

Test(cm_pending, pending_connections_are_bounded_and_ready_frees_one)
{
	fill(CM_PENDING_MAX, CROWDED);
	cr_expect_not(has_room(CROWDED, since(CROWDED) + ms(CM_PENDING_OLD_MS) - 1));
	cr_expect_eq(a.cep->pending_cnt, CM_PENDING_MAX);
	say(&raw_peers[7], WIRE_CM_READY);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_expect(has_room(CROWDED, since(CROWDED)), "not freed");
	cr_expect_eq(cm_end_stats(&a).pending_evicted, 0);
}

Test(cm_pending, a_host_with_fewer_replaces_one_of_the_host_with_most)
{
	uint64_t oldest_ns, foe_ns;

	fill(3, HONEST);
	fill(CM_PENDING_MAX - 3, CROWDED);
	oldest_ns = since(HONEST);
	foe_ns = since(CROWDED);
	cr_assert_leq(oldest_ns, foe_ns);
	cr_expect_not(has_room(OTHER, foe_ns + ms(CM_PENDING_MS) - 1), "replaced too early");
	cr_expect(has_room(OTHER, foe_ns + ms(CM_PENDING_MS)));
	cr_expect_eq(cm_end_stats(&a).pending_evicted, 1);
	cr_expect_eq(a.cep->pending_cnt, CM_PENDING_MAX - 1);
	cr_expect_eq(since(HONEST), oldest_ns, "an older one of a host with few was replaced");
	cr_expect_gt(since(CROWDED), foe_ns, "not the oldest of the host with most");
}

Test(cm_pending, the_host_with_most_waits_longer_to_replace_its_own)
{
	uint64_t foe_ns;

	fill(CM_PENDING_MAX, CROWDED);
	foe_ns = since(CROWDED);
	cr_expect_not(has_room(CROWDED, foe_ns + ms(CM_PENDING_OLD_MS) - 1));
	cr_expect(has_room(CROWDED, foe_ns + ms(CM_PENDING_OLD_MS)));
	cr_expect_eq(cm_end_stats(&a).pending_evicted, 1);
}

/** Otherwise two hosts with equal numbers would replace each other's for ever. */
Test(cm_pending, hosts_with_equal_numbers_do_not_replace_each_other)
{
	uint64_t foe_ns;

	fill(CM_PENDING_MAX / 2, CROWDED);
	fill(CM_PENDING_MAX / 2, HONEST);
	foe_ns = since(CROWDED);
	cr_expect_not(has_room(HONEST, foe_ns + ms(CM_PENDING_OLD_MS) - 1));
	cr_expect_not(has_room(CROWDED, foe_ns + ms(CM_PENDING_OLD_MS) - 1));
	cr_expect(has_room(OTHER, foe_ns + ms(CM_PENDING_OLD_MS) - 1));
}

/** Nor does a host with one less, which would then have as many. */
Test(cm_pending, a_host_with_one_less_does_not_replace_one_of_the_host_with_most)
{
	uint64_t foe_ns;

	fill(CM_PENDING_MAX / 2, CROWDED);
	fill(CM_PENDING_MAX / 2 - 1, HONEST);
	fill(1, OTHER);
	foe_ns = since(CROWDED);
	cr_expect_not(has_room(HONEST, foe_ns + ms(CM_PENDING_OLD_MS) - 1));
	cr_expect(has_room(OTHER, foe_ns + ms(CM_PENDING_OLD_MS) - 1));
}

/** A host with one IPv6 address has 2^64. Two networks may share a counter, but not all do. */
Test(cm_pending, an_ipv6_network_counts_as_one_host)
{
	cr_expect_eq(host_of("2001:db8::1"), host_of("2001:db8::ffff:2"));
	cr_expect(host_of("2001:db8::1") != host_of("2001:db8:0:1::1") ||
		  host_of("2001:db8::1") != host_of("2001:db8:0:2::1") ||
		  host_of("2001:db8::1") != host_of("2001:db8:0:3::1"));
	cr_expect(host_of(CROWDED) != host_of(HONEST) || host_of(CROWDED) != host_of(OTHER) ||
		  host_of(CROWDED) != host_of("127.0.0.5"));
}

/** Over sockets: one host has all pending connections, and another one connects repeatedly. */
Test(cm_pending, a_host_with_all_pending_connections_does_not_block_another)
{
	struct cm_raw_peer *s = &raw_peers[CM_PENDING_MAX];
	struct wire_cm_pkt reply;

	fill(CM_PENDING_MAX, CROWDED);
	cm_raw_peer_open(s, HONEST, NULL);
	raw_peer_cnt++;
	for (reply = come(s); reply.type != WIRE_CM_WELCOME; reply = come(s)) {
		cr_assert_eq(reply.type, WIRE_CM_NAK);
		cr_assert_eq(reply.nak.err, FI_EAGAIN);
		s->nonce++;
		cm_test_sleep_ms(20);
	}
	say(s, WIRE_CM_READY);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(cm_end_stats(&a).pending_evicted, 1);
}

/** The replaced peer is notified when it repeats its HELLO, and begins anew. */
Test(cm_pending, a_replaced_peer_is_notified_and_accepted_with_its_next_attempt)
{
	struct cm_raw_peer *s = &raw_peers[0];
	struct wire_cm_pkt ack, hello, reply;

	cm_raw_peer_open(s, CROWDED, NULL);
	raw_peer_cnt++;
	cr_assert(cm_raw_peer_get_ack(s, &to, &ack));
	cm_raw_peer_make_hello(s, &ack, &hello);
	cm_raw_peer_send(s, &to, &hello);
	cr_assert(cm_raw_peer_recv(s, &reply, CM_TEST_WAIT_MS));
	cr_assert_eq(reply.type, WIRE_CM_WELCOME);
	fill(CM_PENDING_MAX - 1, CROWDED);
	cr_assert(has_room(HONEST, since(CROWDED) + ms(CM_PENDING_MS)));
	cm_raw_peer_send(s, &to, &hello);
	cm_raw_peer_await(s, WIRE_CM_BYE);
	cr_expect_eq(cm_end_get(&a, &a.prepared), CM_PENDING_MAX);
	s->nonce++;
	cr_assert_eq(come(s).type, WIRE_CM_WELCOME);
	say(s, WIRE_CM_READY);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
}

static bool all_died(unsigned cnt)
{
	bool ret;

	cm_node_lock(node);
	ret = a.cep->zombie_cnt == cnt;
	cm_node_unlock(node);
	return ret;
}

/**
 * A failed conn uses memory until the engine puts it. An engine that never does gets no more of
 * them.
 */
Test(cm_pending, zombies_are_bounded_and_freed_when_the_engine_puts_them)
{
	unsigned i;

	for (i = 0; i < CM_ZOMBIES_MAX; i++) {
		struct cm_raw_peer *s = &raw_peers[0];

		if (!i)
			cr_assert_eq(come_from(CROWDED).type, WIRE_CM_WELCOME);
		else
			cr_assert_eq(come(s).type, WIRE_CM_WELCOME);
		say(s, WIRE_CM_BYE);
		while (!all_died(i + 1))
			cm_test_sleep_ms(1);
		s->nonce++;
	}
	cr_expect_eq(come_from(HONEST).nak.err, FI_EAGAIN);
	cr_expect_eq(cm_end_reap(&a), CM_ZOMBIES_MAX);
	cr_expect(all_died(0));
	cr_expect_eq(come_from(OTHER).type, WIRE_CM_WELCOME);
}

/** A HELLO that the engine cannot use leaves a zombie as well. */
Test(cm_pending, a_conn_that_failed_to_establish_is_a_zombie)
{
	a.establish_ret = -FI_EIO;
	cr_expect_eq(come_from(CROWDED).type, WIRE_CM_NAK);
	cr_expect(all_died(1));
	cr_expect_eq(cm_end_reap(&a), 1);
	cr_expect(all_died(0));
}
