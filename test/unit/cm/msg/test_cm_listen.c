/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Listeners under load and invalid input, checked against docs/connections.md, section 5. */
#include "cm/msg/cm_listen.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "unit/cm/msg/msg_fixture.h"
#include "util/clock.h"

static struct msg_fixture h;

static unsigned pending(void)
{
	unsigned cnt;

	cm_node_lock(h.node);
	cnt = h.listener->pending_cnt;
	cm_node_unlock(h.node);
	return cnt;
}

static bool pending_become(unsigned cnt, int ms)
{
	while (pending() != cnt && ms-- > 0)
		cm_test_sleep_ms(1);
	return pending() == cnt;
}

static int open_silent(void)
{
	union cm_addr addr;
	int fd;

	cr_assert_eq(cm_addr_import((struct sockaddr *)&h.addr, &addr), 0);
	fd = cm_stream_connect(&addr);
	cr_assert_geq(fd, 0);
	return fd;
}

/* Waits until the other end has closed the stream. */
static bool is_closed(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char buf[256];
	ssize_t got;

	do {
		if (poll(&pfd, 1, ms) != 1)
			return false;
		got = read(fd, buf, sizeof(buf));
	} while (got > 0);
	return true;
}

/* Opens silent streams, then a correct request. Returns the time until the request was reported. */
static uint64_t request_delay_ms(int caller)
{
	int fds[3 * CM_LISTEN_PENDING_MAX];
	struct cm_connreq *connreq;
	uint64_t start = util_clock_ns(), took;

	for (unsigned i = 0; i < 3 * CM_LISTEN_PENDING_MAX; i++)
		fds[i] = open_silent();
	cr_assert_eq(msg_request(&h, caller, "request"), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	took = util_clock_ns() - start;
	cr_assert_not_null(connreq);
	cr_expect_leq(pending(), CM_LISTEN_PENDING_MAX);
	cr_assert_eq(cm_connreq_accept(connreq, h.passive[caller].cep, NULL, 0), 0);
	cr_assert(cm_end_wait(&h.active[caller], &h.active[caller].up, 1, CM_TEST_WAIT_MS));
	for (unsigned i = 0; i < 2 * CM_LISTEN_PENDING_MAX; i++)
		cr_expect(is_closed(fds[i], CM_TEST_WAIT_MS), "the oldest was not closed");
	for (unsigned i = 0; i < 3 * CM_LISTEN_PENDING_MAX; i++)
		close(fds[i]);
	cr_expect(pending_become(0, CM_TEST_WAIT_MS));
	return took / UTIL_NS_PER_MS;
}

/* If silent streams blocked a request, it would not be reported before CM_LISTEN_WAIT_MS. */
Test(cm_listen, silent_streams_are_bounded_and_do_not_block_requests)
{
	uint64_t took = UINT64_MAX;

	msg_fixture_open(&h, NULL, 0, 8);
	for (int i = 0; i < MSG_ENDS && took >= CM_LISTEN_WAIT_MS; i++)
		took = request_delay_ms(i);
	cr_expect_lt(took, CM_LISTEN_WAIT_MS);
	msg_fixture_close(&h);
}

Test(cm_listen, a_silent_stream_is_closed_after_two_seconds)
{
	int fd;

	msg_fixture_open(&h, NULL, 0, 8);
	fd = open_silent();
	cr_assert(pending_become(1, CM_TEST_WAIT_MS));
	cr_expect(is_closed(fd, 2 * CM_LISTEN_WAIT_MS));
	cr_expect(pending_become(0, CM_TEST_WAIT_MS));
	close(fd);
	msg_fixture_close(&h);
}

Test(cm_listen, invalid_bytes_end_only_their_stream)
{
	static const char noise[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct cm_connreq *connreq;
	int fd;

	msg_fixture_open(&h, NULL, 0, 8);
	fd = open_silent();
	cr_assert_eq(write(fd, noise, sizeof(noise)), (ssize_t)sizeof(noise));
	cr_expect(is_closed(fd, CM_TEST_WAIT_MS));
	close(fd);
	cr_expect_eq(h.reported, 0);
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cm_connreq_reject(connreq, -FI_EBUSY, NULL, 0);
	msg_fixture_close(&h);
}

Test(cm_listen, requests_beyond_the_backlog_wait_in_order)
{
	struct cm_connreq *connreq;

	msg_fixture_open(&h, NULL, 0, 2);
	for (int i = 0; i < MSG_ENDS; i++)
		cr_assert_eq(msg_request(&h, i, ""), 0);
	cm_test_sleep_ms(100);
	pthread_mutex_lock(&h.lock);
	cr_expect_leq(h.reported, 2 + CM_LISTEN_PENDING_MAX);
	pthread_mutex_unlock(&h.lock);
	for (int i = 0; i < MSG_ENDS; i++) {
		connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
		cr_assert_not_null(connreq, "call %d", i);
		cr_assert_eq(cm_connreq_accept(connreq, h.passive[i].cep, NULL, 0), 0);
	}
	for (int i = 0; i < MSG_ENDS; i++) {
		cr_expect(cm_end_wait(&h.active[i], &h.active[i].up, 1, CM_TEST_WAIT_MS));
		cr_expect(cm_end_wait(&h.passive[i], &h.passive[i].up, 1, CM_TEST_WAIT_MS));
	}
	msg_fixture_close(&h);
}

/* Sends a request and closes the endpoint. Returns whether the request was reported within `ms`. */
static bool request_and_close(int ms)
{
	unsigned before = h.reported, now = before;

	cr_assert_eq(msg_request(&h, 0, ""), 0);
	for (; now == before && ms > 0; ms--) {
		cm_test_sleep_ms(1);
		pthread_mutex_lock(&h.lock);
		now = h.reported;
		pthread_mutex_unlock(&h.lock);
	}
	cm_end_close(&h.active[0]);
	cm_end_open(&h.active[0], h.node, "127.0.0.1", 0);
	cm_ep_make_private(h.active[0].cep);
	return now != before;
}

Test(cm_listen, requests_that_were_closed_count_until_the_application_replies)
{
	enum { BACKLOG = 4 };
	struct cm_connreq *connreq;
	unsigned cnt = 0;

	msg_fixture_open(&h, NULL, 0, BACKLOG);
	while (cnt < 10 * BACKLOG && request_and_close(cnt < BACKLOG ? CM_TEST_WAIT_MS : 200))
		cnt++;
	cr_expect_eq(cnt, BACKLOG);
	for (unsigned i = 0; i < cnt; i++) {
		connreq = msg_take_request(&h, 0);
		cr_assert_not_null(connreq);
		cr_expect_neq(cm_connreq_accept(connreq, h.passive[0].cep, NULL, 0), 0);
		cm_connreq_reject(connreq, -FI_EBUSY, NULL, 0);
	}
	cr_expect(request_and_close(CM_TEST_WAIT_MS), "accepting did not go on");
	msg_fixture_close(&h);
}

Test(cm_listen, an_application_may_accept_after_the_peer_timeout)
{
	struct cm_connreq *connreq;

	msg_fixture_open(&h, NULL, 5000, 8);
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cm_test_sleep_ms(5500);
	cr_expect_eq(cm_end_get(&h.active[0], &h.active[0].refused), 0);
	cr_expect_eq(cm_connreq_accept(connreq, h.passive[0].cep, NULL, 0), 0);
	msg_fixture_close(&h);
}

Test(cm_listen, accepting_a_request_of_a_closed_endpoint_fails)
{
	struct cm_connreq *connreq;
	int ret = 0;

	msg_fixture_open(&h, NULL, 0, 8);
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cm_end_close(&h.active[0]);
	cm_test_sleep_ms(50);
	cm_node_lock(h.node);
	cm_node_wait_pass(h.node);
	cm_node_wait_pass(h.node);
	cm_node_unlock(h.node);
	ret = cm_connreq_accept(connreq, h.passive[0].cep, NULL, 0);
	cr_expect_eq(ret, -FI_ECONNABORTED);
	cm_connreq_reject(connreq, -FI_EBUSY, NULL, 0);
	cm_end_open(&h.active[0], h.node, "127.0.0.1", 0);
	msg_fixture_close(&h);
}

Test(cm_listen, an_endpoint_that_closes_after_accept_ends_the_request_at_both_ends)
{
	struct cm_connreq *connreq;

	msg_fixture_open(&h, NULL, 0, 8);
	h.active[0].prepare_ret = -FI_ENOMEM; /* makes the handshake fail */
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cr_assert_eq(cm_connreq_accept(connreq, h.passive[0].cep, NULL, 0), 0);
	cr_assert(cm_end_wait(&h.active[0], &h.active[0].failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[0].failed_err, -FI_ENOMEM);
	cr_assert(cm_end_wait(&h.passive[0], &h.passive[0].refused, 1, CM_TEST_WAIT_MS),
		  "refused was not reported");
	cr_expect_eq(h.passive[0].refused_err, -FI_ENOMEM);
	msg_fixture_close(&h);
}

Test(cm_listen, a_request_that_cannot_be_reported_is_rejected)
{
	msg_fixture_open(&h, NULL, 0, 8);
	h.report_ret = -FI_ENOMEM;
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	cr_assert(cm_end_wait(&h.active[0], &h.active[0].refused, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[0].refused_err, -FI_ENOMEM);
	msg_fixture_close(&h);
}
