/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Active side of the handshake, from ACK to WELCOME: cm/conn/cm_attempt.c. */
#include "cm/conn/cm_attempt.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

static struct cm_node *node;
static struct cm_end a;
static struct cm_raw_peer s;
static union cm_addr to;
static char name[WIRE_CM_NAME_LEN + 1]; /* of the raw peer's listener */

static void set_up_timeout(int ms)
{
	node = cm_test_node(NULL, ms);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
	cm_mac_random_name(name, sizeof(name));
}

static void tear_down(void)
{
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

/* Waits for a REQ of `a` and replies with an ACK that names `name`; skips repetitions. */
static void invite(uint64_t features, uint32_t paths)
{
	static uint64_t replied_to;
	struct wire_cm_pkt req, ack = { .type = WIRE_CM_ACK, .features = features };

	do
		cr_assert(cm_raw_peer_recv(&s, &req, CM_TEST_WAIT_MS));
	while (req.type != WIRE_CM_REQ || req.nonce == replied_to);
	replied_to = ack.nonce = req.nonce;
	ack.dst_inc = req.src_inc;
	ack.ack.paths = paths;
	memcpy(ack.ack.name, name, WIRE_CM_NAME_LEN);
	cm_raw_peer_send(&s, &to, &ack);
}

static void request_raw_peer(void)
{
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
}

static void expect_failure(int err, const char *why)
{
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.failed_err, err, "%s", a.why);
	cr_assert(strstr(a.why, why), "%s", a.why);
	cr_assert(!a.up);
}

Test(cm_attempt, an_unreachable_name_twice_in_a_row_means_another_host)
{
	set_up_timeout(0);
	request_raw_peer();
	invite(0, WIRE_CM_PATH_SHM);
	cr_assert(!cm_end_wait(&a, &a.failed, 1, 5));
	invite(0, WIRE_CM_PATH_SHM);
	expect_failure(-FI_EHOSTUNREACH, "another host or in another network namespace");
	cr_assert(!a.prepared);
	tear_down();
}

Test(cm_attempt, a_peer_that_replied_and_ended_is_refused_long_before_the_timeout)
{
	set_up_timeout(1000000);
	request_raw_peer();
	invite(0, WIRE_CM_PATH_SHM);
	cm_raw_peer_close(&s);
	expect_failure(-FI_ECONNREFUSED, "it has ended");
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	tear_down();
}

/** Opens a node with a job key, whose peers need no stream, and requests the raw peer. */
static void request_with_key(void)
{
	static const char key[] = "secret";

	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC,
					   { WIRE_CM_PATH_SHM, WIRE_CM_PATH_NIC } };
	node = cm_test_node(key, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", key);
	to = cm_test_addr_of(&a);
	cm_mac_random_name(name, sizeof(name));
	request_raw_peer();
}

/* Expects a HELLO for the other path. Returns the REQs before it. */
static unsigned expect_hello(void)
{
	struct wire_cm_pkt pkt;
	unsigned reqs = 0;

	for (;;) {
		cr_assert(cm_raw_peer_recv(&s, &pkt, CM_TEST_WAIT_MS));
		if (pkt.type == WIRE_CM_HELLO)
			break;
		reqs += pkt.type == WIRE_CM_REQ;
	}
	cr_expect_eq(pkt.hello.params.path, WIRE_CM_PATH_NIC);
	cr_expect_eq(cm_end_get(&a, &a.prepared), 1);
	cr_expect_eq(cm_end_get(&a, &a.failed), 0);
	return reqs;
}

/** The peer may have ended after its ACK: one failure is no reason to change the path. */
Test(cm_attempt, another_path_is_used_after_the_name_was_unreachable_twice)
{
	request_with_key();
	invite(0, WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC);
	invite(0, WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC); /* `a` has sent REQ again, and no HELLO */
	expect_hello();
	tear_down();
}

Test(cm_attempt, another_path_is_used_at_once_if_the_address_is_of_another_host)
{
	cm_test_apart = true;
	request_with_key();
	invite(0, WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC);
	cr_expect_eq(expect_hello(), 0);
	tear_down();
}

Test(cm_attempt, unknown_required_features_and_no_common_path_are_refused)
{
	set_up_timeout(0);
	request_raw_peer();
	invite(1ull << 63, WIRE_CM_PATH_SHM);
	expect_failure(-FI_ENOPROTOOPT, "install the same copyrpc");
	a.failed = 0;
	request_raw_peer();
	invite(0, 0);
	expect_failure(-FI_EOPNOTSUPP, "FI_COPYRPC_PATHS");
	cr_assert(!a.prepared);
	tear_down();
}

/* Accepts the stream at the raw peer and receives the HELLO of `a`. */
static int listener = -1;

static void take_hello(struct wire_cm_pkt *hello)
{
	do
		s.stream = cm_fd_accept(listener);
	while (s.stream == -FI_EAGAIN);
	cr_assert(s.stream >= 0);
	cr_assert(cm_raw_peer_recv_stream(&s, hello, CM_TEST_WAIT_MS) == 1);
	cr_assert(hello->type == WIRE_CM_HELLO && hello->src_inc == a.cep->inc);
	cr_assert(hello->dst_inc == s.inc);
}

static void accept_hello_with(uint64_t features, struct wire_cm_pkt *hello)
{
	invite(features, WIRE_CM_PATH_SHM);
	take_hello(hello);
}

static void accept_hello(struct wire_cm_pkt *hello)
{
	accept_hello_with(0, hello);
}

static void set_up_listener(int ms)
{
	set_up_timeout(ms);
	listener = cm_fd_listen(name);
	cr_assert(listener >= 0);
	request_raw_peer();
}

Test(cm_attempt, a_peer_that_never_finishes_the_handshake_times_out)
{
	struct wire_cm_pkt hello;

	set_up_listener(3000);
	accept_hello(&hello);
	expect_failure(-FI_ETIMEDOUT, "did not finish the handshake in time");
	cr_expect(strstr(a.why, "lower FI_COPYRPC_RING_SIZE or FI_COPYRPC_MEM"), "%s", a.why);
	cr_assert_eq(cm_end_reap(&a), 1);
	tear_down();
}

/* An older peer does not offer moves, a newer one may offer what this end does not know. */
Test(cm_attempt, the_engine_prepares_with_the_features_that_both_have)
{
	struct wire_cm_pkt hello;

	set_up_listener(0);
	accept_hello_with(WIRE_CM_FEATURE_IDENTITY, &hello);
	cr_expect_eq(a.features, WIRE_CM_FEATURE_IDENTITY);
	cr_expect_eq(hello.features, WIRE_CM_FEATURE_IDENTITY);
	close(s.stream);
	accept_hello_with(WIRE_CM_FEATURE_MOVES | 1u << 20, &hello);
	cr_expect_eq(a.features, WIRE_CM_FEATURE_MOVES);
	cr_expect_eq(hello.features, WIRE_CM_FEATURE_MOVES);
	close(s.stream);
	cr_assert_leq(cm_end_reap(&a), 2);
	tear_down();
}

Test(cm_attempt, an_attempt_with_an_ended_stream_is_retried)
{
	struct wire_cm_pkt hello, first;

	set_up_listener(0);
	accept_hello(&first);
	close(s.stream);
	accept_hello(&hello);
	cr_assert(hello.nonce != first.nonce);
	cr_assert(!a.failed);
	cr_assert_eq(cm_end_reap(&a), 1);
	tear_down();
}

/* Closes the stream of `a` at the raw peer, as an acceptor does that has waited for HELLO. */
static void close_stream(struct cm_end *end)
{
	int fd;

	end->on_prepare = NULL;
	do
		fd = cm_fd_accept(listener);
	while (fd == -FI_EAGAIN);
	CM_CHECK(fd >= 0);
	close(fd);
	if (end->arg)
		close(*(int *)end->arg);
}

Test(cm_attempt, a_stream_that_ended_while_the_engine_prepared_is_replaced, .timeout = 100)
{
	struct wire_cm_pkt hello,
		welcome = { .type = WIRE_CM_WELCOME, .welcome.params.path = WIRE_CM_PATH_SHM };

	set_up_timeout(0);
	listener = cm_fd_listen(name);
	cr_assert(listener >= 0);
	a.on_prepare = close_stream;
	request_raw_peer();
	invite(0, WIRE_CM_PATH_SHM);
	cr_assert(cm_end_wait(&a, &a.prepared, 1, CM_TEST_WAIT_MS));
	take_hello(&hello);
	welcome.nonce = hello.nonce;
	welcome.dst_inc = hello.src_inc;
	cm_raw_peer_send_stream(&s, &to, &welcome, NULL, 0);
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(cm_end_get(&a, &a.prepared), 1);
	tear_down();
}

/* The listener is closed as well: the peer has ended, and there is no stream to be had. */
Test(cm_attempt, a_stream_that_cannot_be_replaced_is_a_failed_attempt)
{
	struct wire_cm_pkt hello;
	unsigned before;

	set_up_timeout(0);
	listener = cm_fd_listen(name);
	before = cm_test_fd_count_at_rest(node);
	a.arg = &listener;
	a.on_prepare = close_stream;
	request_raw_peer();
	invite(0, WIRE_CM_PATH_SHM);
	cr_assert(cm_end_wait(&a, &a.prepared, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(cm_test_fd_count_at_rest(node), before - 1); /* the listener */
	listener = cm_fd_listen(name);
	accept_hello(&hello);
	cr_expect_eq(cm_end_get(&a, &a.prepared), 2);
	cr_expect_eq(cm_end_get(&a, &a.failed), 0);
	tear_down();
}

Test(cm_attempt, a_welcome_with_unannounced_descriptors_is_refused)
{
	unsigned before;
	struct wire_cm_pkt hello,
		welcome = { .type = WIRE_CM_WELCOME, .welcome.params.path = WIRE_CM_PATH_SHM }, nak;
	int fds[2] = { cm_test_memfd("x"), cm_test_memfd("y") };

	set_up_listener(0);
	accept_hello(&hello);
	before = cm_test_fd_count_at_rest(node);
	welcome.nonce = hello.nonce;
	welcome.dst_inc = hello.src_inc;
	welcome.welcome.params.fd_cnt = 1;
	cm_raw_peer_send_stream(&s, &to, &welcome, fds, 2);
	expect_failure(-FI_EINVAL, "using the peer's connection parameters failed here");
	cr_assert(cm_raw_peer_recv_stream(&s, &nak, CM_TEST_WAIT_MS) == 1);
	cr_assert(nak.type == WIRE_CM_NAK && nak.nak.err == FI_EINVAL);
	cr_assert(!a.established);
	cr_assert_eq(cm_test_fd_count_at_rest(node), before - 1); /* stream of `a` */
	tear_down();
}

Test(cm_attempt, packets_of_other_attempts_change_nothing)
{
	struct wire_cm_pkt hello,
		welcome = { .type = WIRE_CM_WELCOME, .welcome.params.path = WIRE_CM_PATH_SHM };

	set_up_listener(0);
	accept_hello(&hello);
	welcome.dst_inc = hello.src_inc;
	welcome.nonce = hello.nonce + 1;
	cm_raw_peer_send_stream(&s, &to, &welcome, NULL, 0);
	welcome.nonce = hello.nonce;
	welcome.src_inc = s.inc + 1;
	cm_raw_peer_send_stream(&s, &to, &welcome, NULL, 0);
	cr_assert(!cm_end_wait(&a, &a.up, 1, 50));
	cr_assert_eq(cm_end_stats(&a).rx_stale, 2);
	welcome.src_inc = s.inc;
	cm_raw_peer_send_stream(&s, &to, &welcome, NULL, 0);
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_raw_peer_recv_stream(&s, &hello, CM_TEST_WAIT_MS) == 1 &&
		  hello.type == WIRE_CM_READY);
	tear_down();
}

Test(cm_attempt, crossed_delays_the_next_req)
{
	struct wire_cm_pkt hello, crossed = { .type = WIRE_CM_CROSSED };
	uint64_t start;

	set_up_listener(0);
	accept_hello(&hello);
	crossed.nonce = hello.nonce;
	crossed.dst_inc = hello.src_inc;
	start = util_clock_ns();
	cm_raw_peer_send_stream(&s, &to, &crossed, NULL, 0);
	invite(0, WIRE_CM_PATH_SHM);
	cr_assert(util_clock_ns() - start >= 400 * UTIL_NS_PER_MS);
	cr_assert(!a.failed);
	tear_down();
}

Test(cm_attempt, without_descriptors_the_request_retries_and_reports_the_limit)
{
	struct cm_end b;
	uint64_t passes;

	set_up_timeout(3000);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cm_test_limit_fds(0);
	passes = cm_test_passes(node);
	cr_assert(!cm_end_connect(&a, &b));
	expect_failure(-FI_EMFILE, "ulimit -n");
	/* A dozen attempts of a few packets each. */
	passes = cm_test_passes(node) - passes;
	cr_assert(passes < 300, "%lu", passes);
	/* The request continues if descriptors become free before its deadline. */
	cr_assert(!cm_end_connect(&a, &b));
	cm_test_sleep_ms(100);
	cm_test_limit_fds(-1);
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cm_end_close(&b);
	tear_down();
}

Test(cm_attempt, any_shortage_of_descriptors_delays_the_request_and_leaks_none)
{
	unsigned before;
	struct cm_end b;

	set_up_timeout(0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	before = cm_test_fd_count_at_rest(node);
	/*
	 * One process needs at most eight: stream, both memfds, their copies, the accepted stream.
	 */
	for (unsigned room = 0; room < 10; room++) {
		cr_assert(!cm_end_connect(&a, &b));
		cm_test_limit_fds((int)room);
		cm_test_sleep_ms(60);
		cm_test_limit_fds(-1);
		cr_assert(cm_end_wait(&a, &a.requested, room + 1, CM_TEST_WAIT_MS), "room %u",
			  room);
		cr_assert(cm_end_wait(&b, &b.up, room + 1, CM_TEST_WAIT_MS));
		cr_assert(cm_end_put_live(&a));
		cr_assert(cm_end_wait(&b, &b.down, room + 1, CM_TEST_WAIT_MS));
		cm_end_reap(&a);
		cm_end_reap(&b);
		cr_assert_eq(cm_test_fd_count_at_rest(node), before, "room %u", room);
	}
	cm_end_close(&b);
	tear_down();
}

/*
 * Runs the control thread in another network namespace than the datagram sockets: packets arrive,
 * but abstract names are unreachable, like in a container with its own network.
 */
Test(cm_attempt, another_network_namespace_is_another_host)
{
	struct cm_node *here, *there;
	struct cm_end b;
	int home;

	if (geteuid())
		cr_skip_test("needs root");
	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	here = cm_test_node(NULL, 0);
	cr_assert(home >= 0);
	if (unshare(CLONE_NEWNET))
		cr_skip_test("no network namespaces");
	there = cm_test_node(NULL, 0);
	cr_assert(!setns(home, CLONE_NEWNET));
	cm_end_open(&a, there, "127.0.0.1", 0);
	cm_end_open(&b, here, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&a, &b));
	expect_failure(-FI_EHOSTUNREACH, "another network namespace (container)");
	cr_assert(!b.prepared);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(here);
	cm_node_close(there);
}

/* The peer may belong to another user of this host, which only a stream would show. */
Test(cm_attempt, without_descriptors_no_hello_is_sent_to_an_address_of_this_host)
{
	char ip[CM_ADDR_TEXT_MAX];
	struct wire_cm_pkt pkt;

	cm_test_own_address(ip);
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC, { WIRE_CM_PATH_NIC } };
	node = cm_test_node(NULL, 1000);
	cm_end_open(&a, node, ip, 0);
	cm_raw_peer_open(&s, ip, NULL);
	to = cm_test_addr_of(&a);
	cm_mac_random_name(name, sizeof(name));
	request_raw_peer();
	cm_test_limit_fds(0);
	invite(0, WIRE_CM_PATH_NIC);
	cr_expect(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cm_test_limit_fds(-1);
	while (cm_raw_peer_recv(&s, &pkt, 0))
		cr_expect_eq(pkt.type, WIRE_CM_REQ, "%s", wire_cm_type_name(pkt.type));
	cr_expect_eq(cm_end_get(&a, &a.prepared), 0);
	tear_down();
}
