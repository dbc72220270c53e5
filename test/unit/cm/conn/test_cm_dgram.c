/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Do two ends without a stream between them connect once, whatever the network does, and does each
 * notice the other's end? (cm/conn/cm_dgram.c)
 */
#include "cm/conn/cm_dgram.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/cm_agent.h"
#include "cm/node/cm_node.h"
#include "cm/ask/cm_peer.h"
#include "support/rng.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

static struct cm_node *node;
static struct cm_end a, b;
static struct cm_stranger s;
static union cm_addr to; /* where a is */

/** The peer timeout of these tests, longer than a machine stands still; PINGs come at an eighth of it. */
#define TIMEOUT_MS 2400
#define PING_MS    (TIMEOUT_MS / 8)

static void nic_only(void)
{
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC, { WIRE_CM_PATH_NIC } };
}

static void set_up(void)
{
	nic_only();
	node = cm_test_node(NULL, TIMEOUT_MS);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_stranger_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
}

static void tear_down(void)
{
	cm_stranger_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

static void say(enum wire_cm_type type, uint64_t nonce)
{
	struct wire_cm_pkt pkt = { .type = type, .nonce = nonce, .dst_inc = a.agent->inc };

	if (type == WIRE_CM_WELCOME)
		pkt.welcome.half.path = WIRE_CM_PATH_NIC;
	cm_stranger_send(&s, &to, &pkt);
}

/** The stranger asks and says HELLO: what comes back. */
static struct wire_cm_pkt hello_answer(struct wire_cm_pkt *hello)
{
	struct wire_cm_pkt ack, answer;

	cr_assert(cm_stranger_ask(&s, &to, &ack));
	cr_assert_eq(ack.ack.paths, WIRE_CM_PATH_NIC);
	cm_stranger_hello(&s, &ack, hello);
	cm_stranger_send(&s, &to, hello);
	cr_assert(cm_stranger_recv(&s, &answer, CM_TEST_WAIT_MS));
	return answer;
}

static void come_up(struct wire_cm_pkt *hello)
{
	cr_assert_eq(hello_answer(hello).type, WIRE_CM_WELCOME);
	say(WIRE_CM_READY, s.nonce);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
}

/* ---- whole agents ---- */

Test(cm_dgram, a_connection_that_failed_ends_without_a_goodbye)
{
	nic_only();
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_break_live(&a, true));
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(b.down_err, -FI_EIO);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_dgram, it_connects_and_says_goodbye)
{
	nic_only();
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.asked, 1);
	cr_expect_eq(b.asked, 0);
	cr_assert(cm_end_put_live(&a));
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(b.down_err, -FI_ESHUTDOWN);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

static struct cm_paths both(uint32_t first)
{
	return (struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC, { first } };
}

/** Which way did `end`'s only conn come about? */
static bool went_without_stream(struct cm_end *end)
{
	struct util_list *first = util_list_first(&end->conns);

	cr_assert_not_null(first);
	return UTIL_CONTAINER_OF(first, struct cm_end_conn, link)->cm->is_dgram;
}

Test(cm_dgram, the_one_who_asks_chooses_among_what_both_have)
{
	static const struct {
		uint32_t all[2], first;
		bool dgram;
	} cases[] = {
		{ { 3, 3 }, WIRE_CM_PATH_SHM, false }, { { 3, 3 }, WIRE_CM_PATH_NIC, true },
		{ { 3, 1 }, WIRE_CM_PATH_NIC, false }, { { 3, 2 }, WIRE_CM_PATH_SHM, true },
		{ { 2, 3 }, WIRE_CM_PATH_NIC, true },
	};

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

/** Of the connection that was prepared last. */
static uint32_t path_of(struct cm_end *end)
{
	cr_assert(!util_list_is_empty(&end->conns));
	return UTIL_CONTAINER_OF(end->conns.prev, struct cm_end_conn, link)->cm->path;
}

Test(cm_dgram, the_order_of_the_one_who_asks_counts)
{
	static const struct cm_paths orders[] = {
		{ ANY_PATH, { WIRE_CM_PATH_UDP, WIRE_CM_PATH_SHM } },
		{ ANY_PATH, { WIRE_CM_PATH_UD, WIRE_CM_PATH_NIC } },
		{ ANY_PATH, { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } },
		{ WIRE_CM_PATH_UDP | WIRE_CM_PATH_UD, { WIRE_CM_PATH_UDP } },
	};

	node = cm_test_node(NULL, 0);
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		cm_test_paths = orders[i];
		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_test_paths = (struct cm_paths){ ANY_PATH, { WIRE_CM_PATH_SHM } };
		cm_end_open(&b, node, "127.0.0.1", 0);
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "case %u", i);
		cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS), "case %u", i);
		cr_expect_eq(path_of(&a), orders[i].best[0], "case %u", i);
		cr_expect_eq(path_of(&b), orders[i].best[0], "case %u", i);
		cm_end_close(&a);
		cm_end_close(&b);
	}
	cm_node_close(node);
}

Test(cm_dgram, a_path_that_one_end_cannot_make_is_avoided_as_long_as_there_is_another)
{
	static const struct {
		uint32_t not_a, not_b, taken;
	} cases[] = {
		{ WIRE_CM_PATH_SHM, 0, WIRE_CM_PATH_NIC },
		{ 0, WIRE_CM_PATH_SHM, WIRE_CM_PATH_NIC },
		{ 0, WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP },
		{ WIRE_CM_PATH_NIC, WIRE_CM_PATH_SHM, WIRE_CM_PATH_UDP },
	};

	node = cm_test_node(NULL, 0);
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_SHM, WIRE_CM_PATH_NIC } };
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_end_open(&b, node, "127.0.0.1", 0);
		a.no_path = cases[i].not_a;
		b.no_path = cases[i].not_b;
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.asked, 1, CM_TEST_WAIT_MS), "case %u", i);
		cr_expect_eq(path_of(&a), cases[i].taken, "case %u", i);
		cm_end_close(&a);
		cm_end_close(&b);
	}
	cm_node_close(node);
}

/* Two hosts with a NIC each and no wire between them. */
Test(cm_dgram, a_path_by_which_nothing_ever_came_is_left_for_another)
{
	node = cm_test_node(NULL, 0);
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } };
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	for (unsigned i = 0; i <= CM_PEER_STRIKES; i++) {
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.asked, i + 1, CM_TEST_WAIT_MS));
		cr_assert(cm_end_wait(&b, &b.up, i + 1, CM_TEST_WAIT_MS));
		cr_expect_eq(path_of(&a), i < CM_PEER_STRIKES ? WIRE_CM_PATH_NIC : WIRE_CM_PATH_UDP,
			     "try %u", i);
		cr_assert(cm_end_break_live(&a, false));
		cr_assert(cm_end_wait(&b, &b.down, i + 1, CM_TEST_WAIT_MS));
	}
	/* Nor does the other end get in by it. */
	cr_assert(!cm_end_connect(&b, &a));
	cr_assert(cm_end_wait(&b, &b.asked, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(path_of(&b), WIRE_CM_PATH_UDP);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_dgram, a_path_that_worked_is_taken_again_however_often_it_breaks)
{
	node = cm_test_node(NULL, 0);
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP,
					   { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } };
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	for (unsigned i = 0; i < 4 * CM_PEER_STRIKES; i++) {
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.asked, i + 1, CM_TEST_WAIT_MS));
		cr_assert(cm_end_wait(&b, &b.up, i + 1, CM_TEST_WAIT_MS));
		cr_expect_eq(path_of(&a), WIRE_CM_PATH_NIC, "try %u", i);
		cr_assert(cm_end_break_live(&a, i % CM_PEER_STRIKES != 0));
		cr_assert(cm_end_wait(&b, &b.down, i + 1, CM_TEST_WAIT_MS));
	}
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_dgram, when_every_path_failed_the_last_reason_is_told)
{
	node = cm_test_node(NULL, 0);
	cm_test_paths =
		(struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_UDP, { WIRE_CM_PATH_SHM } };
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	b.no_path = WIRE_CM_PATH_SHM | WIRE_CM_PATH_UDP;
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.failed_err, -FI_ENOMEM);
	cr_expect_eq(b.prepared, 2);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_dgram, another_network_namespace_is_reached_if_both_have_a_device)
{
	struct cm_node *here, *there;
	int home;

	if (geteuid())
		cr_skip_test("needs root");
	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	here = cm_test_node(NULL, 0);
	if (unshare(CLONE_NEWNET))
		cr_skip_test("no network namespaces");
	there = cm_test_node(NULL, 0);
	cr_assert(!setns(home, CLONE_NEWNET));
	cm_test_paths = both(WIRE_CM_PATH_SHM);
	cm_end_open(&a, there, "127.0.0.1", 0);
	cm_end_open(&b, here, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect(went_without_stream(&a));
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(here);
	cm_node_close(there);
}

/* ---- a network that loses, doubles and delays ---- */

struct network {
	struct rng rng;
	unsigned loss; /* of 16 */
	struct {
		uint8_t buf[WIRE_CM_MAX];
		size_t len;
		int fd;
		struct sockaddr_in to;
	} late;
};

/* Under the node's lock. */
static ssize_t bad_send(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *dst,
			socklen_t dst_len)
{
	struct network *net = ctx;

	if (rng_chance(&net->rng, net->loss, 16))
		return (ssize_t)len;
	if (rng_chance(&net->rng, 2, 16)) {
		net->late.len = len;
		net->late.fd = fd;
		memcpy(net->late.buf, buf, len);
		memcpy(&net->late.to, dst, sizeof(net->late.to));
		return (ssize_t)len;
	}
	if (net->late.len && rng_chance(&net->rng, 4, 16)) {
		sendto(net->late.fd, net->late.buf, net->late.len, MSG_DONTWAIT,
		       (struct sockaddr *)&net->late.to, sizeof(net->late.to));
		net->late.len = 0;
	}
	if (rng_chance(&net->rng, 2, 16))
		sendto(fd, buf, len, MSG_DONTWAIT, dst, dst_len);
	return sendto(fd, buf, len, MSG_DONTWAIT, dst, dst_len);
}

static struct cm_node *bad_node(struct network *net, unsigned loss, uint64_t seed)
{
	struct cm_cfg cfg = { .udp_send = bad_send, .udp_send_ctx = net };
	struct cm_node *out;

	*net = (struct network){ .rng.state = seed, .loss = loss };
	CM_CHECK(!cm_node_open_cfg(&cfg, &out));
	return out;
}

Test(cm_dgram, over_a_bad_network_both_ask_and_one_connection_comes_of_it, .timeout = 200)
{
	static struct network net[2];
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 1);
	struct cm_node *nodes[2];

	nic_only();
	for (unsigned round = 0; round < 12; round++) {
		nodes[0] = bad_node(&net[0], round % 6, seed + round);
		nodes[1] = bad_node(&net[1], round % 6, seed + 100 + round);
		cm_end_open(&a, nodes[0], "127.0.0.1", 0);
		cm_end_open(&b, nodes[1], "127.0.0.1", 0);
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(!cm_end_connect(&b, &a));
		cr_assert(cm_end_wait(&a, &a.asked, 1, CM_TEST_WAIT_MS), "round %u", round);
		cr_assert(cm_end_wait(&b, &b.asked, 1, CM_TEST_WAIT_MS), "round %u", round);
		cr_expect_eq(a.failed + b.failed, 0);
		cr_expect_eq(cm_end_live(&a), 1, "round %u", round);
		cr_expect_eq(cm_end_live(&b), 1, "round %u", round);
		cr_expect_eq(a.asked, 1);
		cr_expect_eq(b.asked, 1);
		cm_end_close(&a);
		cm_end_close(&b);
		cm_node_close(nodes[0]);
		cm_node_close(nodes[1]);
	}
}

static bool deaf;

static ssize_t deaf_send(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *dst,
			 socklen_t dst_len)
{
	(void)ctx;
	if (__atomic_load_n(&deaf, __ATOMIC_RELAXED))
		return (ssize_t)len;
	return sendto(fd, buf, len, MSG_DONTWAIT, dst, dst_len);
}

Test(cm_dgram, a_goodbye_that_was_lost_is_made_good)
{
	struct cm_cfg cfg = { .udp_send = deaf_send };
	struct cm_node *mute;

	nic_only();
	CM_CHECK(!cm_node_open_cfg(&cfg, &mute));
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, mute, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS));
	deaf = true;
	cr_assert(cm_end_put_live(&a));
	deaf = false;
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS),
		  "the next PING is answered with it");
	cr_expect_eq(b.down_err, -FI_ESHUTDOWN);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(mute);
	cm_node_close(node);
}

/* How long it takes to be let in again after a goodbye that nobody heard. */
static uint64_t comes_back_ms(struct cm_node *mute)
{
	uint64_t start;

	cm_end_open(&a, mute, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS));
	deaf = true;
	cr_assert(cm_end_put_live(&a));
	deaf = false;
	start = util_clock_ns();
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&b, &b.up, 2, CM_TEST_WAIT_MS));
	cr_expect_eq(b.down, 1);
	cm_end_close(&a);
	cm_end_close(&b);
	return (util_clock_ns() - start) / UTIL_NS_PER_MS;
}

/* Its HELLO is a reason to ask the old one, long before that is asked anyway. */
Test(cm_dgram, who_comes_back_after_a_lost_goodbye_is_let_in)
{
	struct cm_cfg cfg = { .udp_send = deaf_send };
	struct cm_node *mute;
	uint64_t took = UINT64_MAX;

	nic_only();
	CM_CHECK(!cm_node_open_cfg(&cfg, &mute));
	node = cm_test_node(NULL, 0);
	for (int i = 0; i < 10 && took >= CM_DGRAM_PING_MS / 2; i++)
		took = comes_back_ms(mute);
	cr_expect_lt(took, CM_DGRAM_PING_MS / 2);
	cm_node_close(mute);
	cm_node_close(node);
}

/* ---- a peer that says what it likes ---- */

Test(cm_dgram, a_forged_cookie_prepares_nothing)
{
	struct wire_cm_pkt ack, hello, answer;

	set_up();
	cr_assert(cm_stranger_ask(&s, &to, &ack));
	cm_stranger_hello(&s, &ack, &hello);
	hello.hello.cookie[3] ^= 1;
	cm_stranger_send(&s, &to, &hello);
	cr_assert(cm_stranger_recv(&s, &answer, CM_TEST_WAIT_MS));
	cr_expect_eq(answer.type, WIRE_CM_NAK);
	cr_expect_eq(cm_end_get(&a, &a.prepared), 0);
	cr_expect_eq(cm_end_stats(&a).rx_bad_cookie, 1);
	tear_down();
}

Test(cm_dgram, a_cookie_is_good_for_its_address_only)
{
	struct cm_stranger other;
	struct wire_cm_pkt ack, hello, answer;

	set_up();
	cm_stranger_open(&other, "127.0.0.1", NULL);
	other.inc = s.inc;
	other.nonce = s.nonce;
	cr_assert(cm_stranger_ask(&s, &to, &ack));
	cm_stranger_hello(&s, &ack, &hello);
	cm_stranger_send(&other, &to, &hello);
	cr_assert(cm_stranger_recv(&other, &answer, CM_TEST_WAIT_MS));
	cr_expect_eq(answer.type, WIRE_CM_NAK, "the HELLO says one address and comes from another");
	cr_expect_eq(cm_end_get(&a, &a.prepared), 0);
	cm_stranger_close(&other);
	tear_down();
}

Test(cm_dgram, a_path_that_is_not_offered_is_not_taken)
{
	struct wire_cm_pkt hello;

	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_SHM, { WIRE_CM_PATH_SHM } };
	node = cm_test_node(NULL, TIMEOUT_MS);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_stranger_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
	{
		struct wire_cm_pkt ack, answer;

		cr_assert(cm_stranger_ask(&s, &to, &ack));
		cr_expect_eq(ack.ack.paths, WIRE_CM_PATH_SHM);
		cm_stranger_hello(&s, &ack, &hello);
		cm_stranger_send(&s, &to, &hello);
		cr_assert(cm_stranger_recv(&s, &answer, CM_TEST_WAIT_MS));
		cr_expect_eq(answer.type, WIRE_CM_NAK);
		cr_expect_eq(answer.nak.err, FI_EOPNOTSUPP);
	}
	cr_expect_eq(cm_end_get(&a, &a.prepared), 0);
	tear_down();
}

Test(cm_dgram, a_hello_that_is_repeated_is_answered_again_and_prepared_once)
{
	struct wire_cm_pkt hello, first, again;

	set_up();
	first = hello_answer(&hello);
	cr_assert_eq(first.type, WIRE_CM_WELCOME);
	cm_stranger_send(&s, &to, &hello);
	again = cm_stranger_await(&s, WIRE_CM_WELCOME);
	cr_expect_eq(again.nonce, first.nonce);
	cr_expect_eq(cm_end_get(&a, &a.prepared), 1);
	tear_down();
}

Test(cm_dgram, a_welcome_is_repeated_until_ready_and_given_up_in_time)
{
	struct wire_cm_pkt hello;
	unsigned downs = 0;

	set_up();
	cr_assert_eq(hello_answer(&hello).type, WIRE_CM_WELCOME);
	cm_stranger_await(&s, WIRE_CM_WELCOME);
	cm_stranger_await(&s, WIRE_CM_WELCOME);
	for (int i = 0; i < CM_TEST_WAIT_MS && !downs; i++) {
		cm_test_sleep_ms(1);
		downs = cm_end_reap(&a);
	}
	cr_expect_eq(downs, 1, "it is down");
	cr_expect_eq(cm_end_get(&a, &a.up), 0);
	say(WIRE_CM_READY, s.nonce);
	cm_stranger_await(&s, WIRE_CM_BYE);
	tear_down();
}

Test(cm_dgram, a_ping_says_ready_when_that_was_lost)
{
	struct wire_cm_pkt hello;

	set_up();
	cr_assert_eq(hello_answer(&hello).type, WIRE_CM_WELCOME);
	say(WIRE_CM_PING, s.nonce);
	cm_stranger_await(&s, WIRE_CM_PONG);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	tear_down();
}

Test(cm_dgram, ready_is_said_again_whenever_welcome_comes_again)
{
	struct wire_cm_pkt req, hello, ack = { .type = WIRE_CM_ACK };
	struct wire_cm_pkt welcome = { .type = WIRE_CM_WELCOME,
				       .welcome.half.path = WIRE_CM_PATH_NIC };

	set_up();
	cr_assert(!cm_connect(a.agent, &s.addr.sa));
	req = cm_stranger_await(&s, WIRE_CM_REQ);
	cr_expect_eq(req.req.paths, WIRE_CM_PATH_NIC);
	ack.nonce = req.nonce;
	ack.dst_inc = req.src_inc;
	ack.ack.paths = WIRE_CM_PATH_NIC;
	memset(ack.ack.name, 'a', WIRE_CM_NAME_LEN);
	cm_stranger_send(&s, &to, &ack);
	hello = cm_stranger_await(&s, WIRE_CM_HELLO);
	cr_expect_eq(cm_stranger_await(&s, WIRE_CM_HELLO).nonce, hello.nonce, "it is repeated");
	welcome.nonce = hello.nonce;
	welcome.dst_inc = hello.src_inc;
	for (unsigned i = 0; i < 3; i++) {
		cm_stranger_send(&s, &to, &welcome);
		cm_stranger_await(&s, WIRE_CM_READY);
	}
	cr_expect_eq(cm_end_get(&a, &a.up), 1);
	cr_expect_eq(cm_end_get(&a, &a.established), 1);
	tear_down();
}

Test(cm_dgram, what_names_no_connection_is_answered_with_bye_and_a_bye_with_nothing)
{
	static const enum wire_cm_type asks[] = { WIRE_CM_WELCOME, WIRE_CM_READY, WIRE_CM_PING };
	struct wire_cm_pkt pkt;

	set_up();
	for (unsigned i = 0; i < 3; i++) {
		say(asks[i], 77 + i);
		pkt = cm_stranger_await(&s, WIRE_CM_BYE);
		cr_expect_eq(pkt.nonce, 77 + i);
		cr_expect_eq(pkt.dst_inc, s.inc);
	}
	say(WIRE_CM_BYE, 80);
	say(WIRE_CM_PONG, 81);
	say(WIRE_CM_CROSSED, 82);
	cr_expect_not(cm_stranger_recv(&s, &pkt, 50));
	cr_expect_eq(cm_end_stats(&a).rx_stale, 6);
	tear_down();
}

Test(cm_dgram, packets_of_other_attempts_change_nothing)
{
	struct wire_cm_pkt hello;

	set_up();
	come_up(&hello);
	for (enum wire_cm_type t = WIRE_CM_READY; t <= WIRE_CM_PONG; t++)
		say(t, s.nonce + 1);
	say(WIRE_CM_READY, s.nonce);
	say(WIRE_CM_CROSSED, s.nonce);
	say(WIRE_CM_PING, s.nonce);
	cm_stranger_await(&s, WIRE_CM_PONG);
	cr_expect_eq(cm_end_get(&a, &a.down), 0);
	tear_down();
}

Test(cm_dgram, a_silent_peer_is_asked_and_fails_after_the_timeout)
{
	struct wire_cm_pkt hello;
	uint64_t start, ms;

	set_up();
	start = util_clock_ns();
	come_up(&hello);
	cm_stranger_await(&s, WIRE_CM_PING);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_expect_eq(a.down_err, -FI_ETIMEDOUT);
	cr_expect(ms >= TIMEOUT_MS, "%lu ms", ms);
	tear_down();
}

/* Stopped, swapped out, in a debugger: what the peer said meanwhile lies unread. */
Test(cm_dgram, a_standstill_of_our_own_is_not_the_peers_silence)
{
	struct wire_cm_pkt hello;
	uint64_t pings;

	set_up();
	come_up(&hello);
	cm_node_lock(node);
	pings = a.agent->stats.tx_pings;
	usleep(3 * TIMEOUT_MS / 2 * 1000);
	cm_node_unlock(node);
	do {
		cm_stranger_await(&s, WIRE_CM_PING);
		say(WIRE_CM_PONG, s.nonce);
	} while (cm_end_stats(&a).tx_pings <= pings);
	cr_expect_eq(cm_end_get(&a, &a.down), 0);
	tear_down();
}

Test(cm_dgram, a_peer_that_answers_lives)
{
	struct wire_cm_pkt hello;
	uint64_t start, pings, ms;

	set_up();
	start = util_clock_ns();
	come_up(&hello);
	while (util_clock_ns() - start < 3 * TIMEOUT_MS / 2 * UTIL_NS_PER_MS) {
		cm_stranger_await(&s, WIRE_CM_PING);
		say(WIRE_CM_PONG, s.nonce);
	}
	cr_expect_eq(cm_end_get(&a, &a.down), 0);
	pings = cm_end_stats(&a).tx_pings;
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_expect_leq(pings, 1 + ms / (PING_MS - PING_MS / 4), "at a low rate");
	tear_down();
}

Test(cm_dgram, a_closed_port_is_a_death_before_the_timeout)
{
	struct wire_cm_pkt hello;

	nic_only();
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_stranger_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
	come_up(&hello);
	close(s.udp);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.down_err, -FI_ECONNRESET);
	s.udp = open("/dev/null", O_RDONLY);
	tear_down();
}

Test(cm_dgram, another_incarnation_at_the_address_ends_the_old_connection)
{
	struct wire_cm_pkt hello;
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE, .src_inc = 4711 };

	set_up();
	come_up(&hello);
	bye.dst_inc = a.agent->inc;
	bye.nonce = s.nonce;
	cm_stranger_send(&s, &to, &bye);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.down_err, -FI_ECONNABORTED);
	tear_down();
}

Test(cm_dgram, without_the_key_nothing_changes)
{
	struct wire_cm_pkt hello, pkt;
	struct cm_mac_key none = { .is_set = false };

	nic_only();
	node = cm_test_node("key", TIMEOUT_MS);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_stranger_open(&s, "127.0.0.1", "key");
	to = cm_test_addr_of(&a);
	come_up(&hello);
	s.key = none;
	say(WIRE_CM_BYE, s.nonce);
	say(WIRE_CM_PING, 1234);
	while (cm_stranger_recv(&s, &pkt, 30))
		cr_expect_eq(pkt.type, WIRE_CM_PING);
	cr_expect_eq(cm_end_get(&a, &a.down), 0);
	cr_expect_eq(cm_end_stats(&a).rx_bad_mac, 2);
	tear_down();
}

/** However many peers there are, asking them takes little; and each is asked before its time is over. */
Test(cm_dgram, many_peers_are_asked_less_often)
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
