/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Active side of connection requests, checked against docs/connections.md. */
#include "cm/msg/cm_msg.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "unit/cm/cm_fixture.h"
#include "unit/cm/msg/msg_fixture.h"

static struct msg_fixture h;

Test(cm_msg, an_accepted_request_connects_two_endpoints_and_carries_data_both_ways)
{
	struct cm_connreq *connreq;

	msg_fixture_open(&h, NULL, 0, 8);
	cr_assert_eq(msg_request(&h, 0, "hello"), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cr_expect_str_eq(h.data, "hello");
	cr_assert_eq(cm_connreq_accept(connreq, h.passive[0].cep, "welcome", 7), 0);
	cr_assert(cm_end_wait(&h.active[0], &h.active[0].up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_wait(&h.passive[0], &h.passive[0].up, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[0].accepted, 1);
	cr_expect_str_eq(h.active[0].data, "welcome");
	cr_expect_eq(h.active[0].refused + h.passive[0].refused, 0);
	cm_end_check_text(&h.active[0], h.passive[0].text);
	msg_fixture_close(&h);
}

Test(cm_msg, a_rejection_carries_its_error_and_data)
{
	struct cm_connreq *connreq;

	msg_fixture_open(&h, "key", 0, 8);
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cm_connreq_reject(connreq, -FI_ECONNREFUSED, "go away", 7);
	cr_assert(cm_end_wait(&h.active[0], &h.active[0].refused, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[0].refused_err, -FI_ECONNREFUSED);
	cr_expect_str_eq(h.active[0].data, "go away");
	cr_expect_eq(h.active[0].up, 0);
	msg_fixture_close(&h);
}

Test(cm_msg, a_request_without_a_listener_is_refused_at_once)
{
	msg_fixture_open(&h, NULL, 0, 8);
	cm_listener_close(h.listener);
	h.listener = NULL;
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	cr_assert(cm_end_wait(&h.active[0], &h.active[0].refused, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[0].refused_err, -FI_ECONNREFUSED);
	msg_fixture_close(&h);
}

Test(cm_msg, a_silent_listener_times_out)
{
	union cm_addr addr;
	struct sockaddr_storage ss;
	int fd;

	msg_fixture_open(&h, NULL, 300, 8);
	cm_test_addr("127.0.0.1", 0, &addr);
	fd = cm_stream_listen(&addr, 4); /* accepts in the kernel and sends nothing */
	cr_assert_geq(fd, 0);
	cm_addr_export(&addr, &ss);
	cr_assert_eq(cm_msg_connect(h.active[0].cep, (struct sockaddr *)&ss, NULL, 0), 0);
	cr_assert(cm_end_wait(&h.active[0], &h.active[0].refused, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[0].refused_err, -FI_ETIMEDOUT);
	/* An application that does not accept or reject times out as well. */
	cr_assert_eq(msg_request(&h, 1, ""), 0);
	cr_assert(cm_end_wait(&h.active[1], &h.active[1].refused, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(h.active[1].refused_err, -FI_ETIMEDOUT);
	close(fd);
	msg_fixture_close(&h);
}

Test(cm_msg, different_job_keys_do_not_connect)
{
	struct cm_node *other = cm_test_node("another", 0);
	struct cm_end foreign;

	msg_fixture_open(&h, "key", 0, 8);
	cm_end_open(&foreign, other, "127.0.0.1", 0);
	cm_ep_make_private(foreign.cep);
	cr_assert_eq(cm_msg_connect(foreign.cep, (struct sockaddr *)&h.addr, NULL, 0), 0);
	cr_assert(cm_end_wait(&foreign, &foreign.refused, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(foreign.refused_err, -FI_EKEYREJECTED);
	cr_expect_eq(h.reported, 0);
	cm_end_close(&foreign);
	cm_node_close(other);
	msg_fixture_close(&h);
}

Test(cm_msg, a_private_endpoint_connects_with_its_peer_only)
{
	struct cm_end foreign;
	struct cm_connreq *connreq;

	msg_fixture_open(&h, NULL, 0, 8);
	cm_end_open(&foreign, h.node, "127.0.0.1", 0);
	cr_assert_eq(cm_end_connect(&foreign, &h.passive[0]), 0);
	cr_assert(cm_end_wait(&foreign, &foreign.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(foreign.failed_err, -FI_EACCES);
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	connreq = msg_take_request(&h, CM_TEST_WAIT_MS);
	cr_assert_not_null(connreq);
	cr_assert_eq(cm_connreq_accept(connreq, h.passive[0].cep, NULL, 0), 0);
	cr_assert(cm_end_wait(&h.passive[0], &h.passive[0].up, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(cm_end_connect(&foreign, &h.passive[0]), 0);
	cr_assert(cm_end_wait(&foreign, &foreign.failed, 2, CM_TEST_WAIT_MS),
		  "nor when it is in use");
	cr_expect_eq(foreign.up, 0);
	cm_end_close(&foreign);
	msg_fixture_close(&h);
}

Test(cm_msg, an_invalid_address_is_refused_at_once)
{
	union cm_addr addr;

	msg_fixture_open(&h, NULL, 0, 8);
	cm_test_addr("127.0.0.1", 0, &addr);
	cr_expect_eq(cm_msg_connect(h.active[0].cep, &addr.sa, NULL, 0), -FI_EINVAL, "no port");
	cm_test_addr("::1", 5, &addr);
	cr_expect_eq(cm_msg_connect(h.active[0].cep, &addr.sa, NULL, 0), -FI_EINVAL, "family");
	cr_assert_eq(msg_request(&h, 0, ""), 0);
	cr_expect_eq(msg_request(&h, 0, ""), -FI_EALREADY);
	msg_fixture_close(&h);
}

Test(cm_msg, a_request_ends_cleanly_whenever_either_side_closes)
{
	unsigned fds;

	for (int round = 0; round < 60; round++) {
		msg_fixture_open(&h, NULL, 0, 8);
		fds = cm_test_fd_count_at_rest(h.node);
		cr_assert_eq(msg_request(&h, 0, "x"), 0);
		if (round % 3 == 1)
			usleep((unsigned)round * 20);
		if (round % 3 == 2) {
			struct cm_connreq *connreq = msg_take_request(&h, CM_TEST_WAIT_MS);

			cr_assert_not_null(connreq);
			cm_connreq_accept(connreq, h.passive[0].cep, NULL, 0);
			usleep((unsigned)round * 20);
		}
		cr_expect_geq(fds, 3);
		if (round & 1) {
			cm_listener_close(h.listener);
			h.listener = NULL;
		}
		msg_fixture_close(&h);
	}
}
