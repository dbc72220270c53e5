/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Incoming streams: silent and foreign ones, and a lack of descriptors (cm/conn/cm_incoming.c). */
#include "cm/conn/cm_incoming.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

static struct cm_node *node;
static struct cm_end a;
static struct cm_raw_peer s;
static union cm_addr to;

static void set_up(void)
{
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
}

static void tear_down(void)
{
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

static void expect_connect(void)
{
	struct cm_end b;

	cm_end_open(&b, node, "127.0.0.1", 0);
	cr_assert(!cm_end_connect(&b, &a));
	cr_assert(cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS));
	cm_end_close(&b);
}

static unsigned callers(void)
{
	unsigned cnt;

	cm_node_lock(node);
	cnt = a.cep->incoming_cnt;
	cm_node_unlock(node);
	return cnt;
}

/*
 * Returns whether a correct peer connected behind silent streams while some of them were still
 * open.
 */
static bool flood(int *fds, int cnt, const struct wire_cm_pkt *ack)
{
	unsigned waiting;

	for (int i = 0; i < cnt; i++) {
		fds[i] = cm_fd_socket();
		cr_assert(!cm_fd_connect(fds[i], ack->ack.name));
	}
	expect_connect();
	waiting = callers();
	cr_assert(waiting <= CM_INCOMING_MAX);
	return waiting;
}

/* Opens streams that send bytes which are no packet. */
static void talk_garbage(int cnt, const struct wire_cm_pkt *ack)
{
	uint64_t end = util_clock_ns() + CM_TEST_WAIT_MS * UTIL_NS_PER_MS;

	for (int i = 0; i < cnt; i++) {
		int fd = cm_fd_socket();

		cr_assert(!cm_fd_connect(fd, ack->ack.name));
		cm_fd_send(fd, (const uint8_t *)"garbage", 7, NULL, 0);
		while (cm_end_stats(&a).rx_malformed == (uint64_t)i && util_clock_ns() < end)
			cm_test_sleep_ms(1);
		cr_assert_eq(cm_end_stats(&a).rx_malformed, (uint64_t)i + 1);
		close(fd);
	}
}

Test(cm_incoming, a_flood_of_silent_streams_is_bounded_and_does_not_block_correct_peers)
{
	enum { FLOOD = 300 };
	struct wire_cm_pkt ack;
	int fds[FLOOD];
	bool is_unblocked = false;

	set_up();
	cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
	/* Inconclusive on a machine that stalls for longer than the streams may wait. */
	for (int i = 0; i < 10 && !is_unblocked; i++) {
		is_unblocked = flood(fds, FLOOD, &ack);
		cr_assert(cm_end_stats(&a).incoming_evicted >= FLOOD - CM_INCOMING_MAX);
		/* No stream is closed by its sender: the endpoint closes them. */
		for (int ms = 0; ms < CM_TEST_WAIT_MS && callers(); ms++)
			cm_test_sleep_ms(1);
		cr_assert_eq(callers(), 0);
		for (int k = 0; k < FLOOD; k++)
			close(fds[k]);
	}
	cr_assert(is_unblocked);
	/* Streams with garbage are bounded in the same way. */
	talk_garbage(10, &ack);
	expect_connect();
	tear_down();
}

/*
 * Sends a HELLO and lets its time pass while the thread has another event to handle, and cannot
 * yet.
 */
static void send_hello_to_busy(const struct wire_cm_pkt *hello)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ }, copy = *hello;

	req.req.paths = WIRE_CM_PATH_SHM;
	cm_node_lock(node);
	cm_raw_peer_send(&s, &to, &req);
	cm_test_sleep_ms(300); /* the thread has its event, and waits for the lock */
	cm_raw_peer_send_stream(&s, &to, &copy, NULL, 0);
	cm_test_sleep_ms(CM_INCOMING_WAIT_MS);
	cm_node_unlock(node);
}

Test(cm_incoming, a_hello_that_came_while_the_thread_was_busy_is_not_late)
{
	struct wire_cm_pkt ack, hello, pkt;

	set_up();
	cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
	cr_assert(cm_raw_peer_connect(&s, &ack));
	cm_raw_peer_make_hello(&s, &ack, &hello);
	for (int ms = 0; ms < CM_TEST_WAIT_MS && !callers(); ms++)
		cm_test_sleep_ms(1);
	send_hello_to_busy(&hello);
	cr_assert(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) == 1);
	cr_expect_eq(pkt.type, WIRE_CM_WELCOME, "%s", wire_cm_type_name(pkt.type));
	cr_expect_eq(cm_end_stats(&a).incoming_evicted, 0);
	tear_down();
}

/* The first pauses last 50, 100 and 200 ms, so the fourth cannot begin before their sum. */
static void expect_longer_pauses(uint64_t start)
{
	while (cm_end_stats(&a).accept_pauses < 4) {
		cr_assert(util_clock_ns() - start < CM_TEST_WAIT_MS * UTIL_NS_PER_MS);
		cm_test_sleep_ms(1);
	}
	cr_assert_geq(util_clock_ns() - start, 7 * CM_PAUSE_MS * UTIL_NS_PER_MS);
}

Test(cm_incoming, without_descriptors_accepting_pauses_without_spinning)
{
	struct wire_cm_pkt ack, hello, pkt;
	uint64_t start, passes, pauses;

	set_up();
	/* No earlier stream: one that the thread closes late would leave a descriptor. */
	cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
	s.stream = cm_fd_socket();
	cm_test_limit_fds(0);
	passes = cm_test_passes(node);
	start = util_clock_ns();
	cr_assert(!cm_fd_connect(s.stream, ack.ack.name));
	cm_raw_peer_make_hello(&s, &ack, &hello);
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	expect_longer_pauses(start);
	/* The thread wakes only at the beginning and at the end of a pause. */
	passes = cm_test_passes(node) - passes;
	pauses = cm_end_stats(&a).accept_pauses;
	cr_assert(passes <= 4 * pauses + 8, "%lu passes, %lu pauses", passes, pauses);
	cm_test_limit_fds(-1);
	cr_assert(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) == 1 &&
		  pkt.type == WIRE_CM_WELCOME);
	tear_down();
}

/*
 * Sends a sealed HELLO over a new stream while the endpoint is held: a byte to `ask` requests that,
 * one from `locked` confirms it, and a second one to `ask` ends it.
 */
static bool send_hello_meanwhile(const struct wire_cm_pkt *ack, int ask, int locked)
{
	struct wire_cm_pkt hello;
	uint8_t buf[WIRE_CM_MAX];
	size_t len;
	char byte = 0;

	cm_raw_peer_make_hello(&s, ack, &hello);
	hello.src_inc = s.inc;
	hello.nonce = s.nonce;
	len = wire_cm_encode(&hello, buf);
	cm_mac_seal(&s.key, &s.addr, &to, buf, len);
	return write(ask, &byte, 1) == 1 && read(locked, &byte, 1) == 1 &&
	       cm_raw_peer_connect(&s, ack) && !cm_fd_send(s.stream, buf, len, NULL, 0) &&
	       write(ask, &byte, 1) == 1;
}

/* Returns the exit status of a process of another user: 0 if it was refused as it should be. */
static int be_refused(int ask, int locked)
{
	struct wire_cm_pkt ack, pkt;

	if (setgid(65534) || setuid(65534))
		return 1;
	if (!cm_raw_peer_get_ack(&s, &to, &ack))
		return 2;
	/* Readers of /proc can find the name, so a silent stream is refused as well. */
	if (!cm_raw_peer_connect(&s, &ack) ||
	    cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) != 0)
		return 3;
	if (!send_hello_meanwhile(&ack, ask, locked))
		return 4;
	return cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) ? 5 : 0;
}

/*
 * Sends `fd`, whose release waits, in a message to the endpoint while that is held, and keeps no
 * copy.
 */
static int send_stuck(int fd, int ask, int locked)
{
	struct wire_cm_pkt ack;
	char byte = 0;

	if (setgid(65534) || setuid(65534))
		return 1;
	if (!cm_raw_peer_get_ack(&s, &to, &ack))
		return 2;
	if (write(ask, &byte, 1) != 1 || read(locked, &byte, 1) != 1)
		return 3;
	if (!cm_raw_peer_connect(&s, &ack) || cm_fd_send(s.stream, (uint8_t *)&byte, 1, &fd, 1))
		return 4;
	close(fd);
	return write(ask, &byte, 1) == 1 ? 0 : 5;
}

/*
 * Keeps the endpoint from accepting streams while the other process sends its HELLO. Returns false
 * if it has not sent one.
 */
static bool hold_while_sending(int asked, int locked)
{
	bool is_sent;
	char byte;

	if (read(asked, &byte, 1) != 1)
		return false;
	cm_node_lock(node);
	is_sent = write(locked, "", 1) == 1 && read(asked, &byte, 1) == 1;
	cm_node_unlock(node);
	return is_sent;
}

/* The other user does not check the endpoint's user; the endpoint must check. */
Test(cm_incoming, another_user_with_a_valid_cookie_is_refused)
{
	int ask[2], lock[2], status;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root");
	set_up();
	cr_assert(!pipe(ask) && !pipe(lock));
	pid = fork();
	if (!pid) {
		close(lock[1]);
		_exit(be_refused(ask[1], lock[0]));
	}
	close(ask[1]);
	cr_expect(hold_while_sending(ask[0], lock[1]));
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	close(ask[0]);
	close(lock[0]);
	close(lock[1]);
	cr_assert(cm_end_stats(&a).incoming_foreign >= 2);
	cr_assert(!a.prepared);
	expect_connect();
	tear_down();
}

Test(cm_incoming, another_user_cannot_make_the_endpoint_wait)
{
	int ask[2], lock[2], status, fd, reader;
	uint64_t start, took;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root");
	set_up();
	expect_connect();
	cr_assert(!pipe(ask) && !pipe(lock));
	fd = cm_test_stuck_socket(&reader);
	pid = fork();
	if (!pid)
		_exit(send_stuck(fd, ask[1], lock[0]));
	close(fd);
	cr_expect(hold_while_sending(ask[0], lock[1]));
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	start = util_clock_ns();
	expect_connect();
	took = util_clock_ns() - start;
	cr_expect_lt(took, 2 * UTIL_NS_PER_S, "%llu ms", (unsigned long long)took / 1000000);
	cr_expect_eq(cm_end_stats(&a).incoming_foreign, 1);
	close(reader);
	for (int i = 0; i < 2; i++) {
		close(ask[i]);
		close(lock[i]);
	}
	tear_down();
}
