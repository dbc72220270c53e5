/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of tag matching, written by hand: events, WQEs that are given back, what the device
 * learns in turn, and peers and devices that break the rules. The suite is that of test_m5_tm.c.
 */
#include "dev/mlx5/m5_tm.h"

#include <rdma/fi_errno.h>

#include "bytes.h"
#include "tm_device.h"

static void expect_down(int status)
{
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_DOWN);
	cr_expect_eq(ev.peer, peer);
	cr_expect_eq(ev.status, status);
	cr_expect_not(poll_one(), "reported once");
	cr_expect_eq(m5_tm_send(peer, &send, 1, 4096, 1, 100), status);
}

Test(m5_tm, a_match_and_then_its_bytes, .init = setup, .fini = teardown)
{
	uint8_t head[32];

	append_recv();
	fill_head(head, M5_TMH_REQUEST, 1, 100);
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, recv.entry, 0, head);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_EXPECTED, recv.entry, 100, NULL);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_MATCHED);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(recv.tag, 0x55);
	cr_expect_eq(m5_tm_remove(tm, &recv, false), -FI_EALREADY);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.len, 100);
	cr_expect_eq(ev.status, 0);
	cr_expect_not(poll_one());
	cr_expect_eq(be32toh(cq.record[0]), 2, "the CQEs are given back");
}

Test(m5_tm, a_message_of_one_packet_is_match_and_bytes, .init = setup, .fini = teardown)
{
	uint8_t head[32];

	append_recv();
	fill_head(head, M5_TMH_EAGER, 1, 0);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_CONSUMED_MSG, recv.entry, 77, head);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.len, 77);
	cr_expect_eq(recv.tag, 0x55);
}

Test(m5_tm, a_match_whose_bytes_do_not_come_ends_with_an_error, .init = setup, .fini = teardown)
{
	uint8_t head[32] = { 1 };

	append_recv();
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, recv.entry, 0, head);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_CANCELED, recv.entry, 0, NULL);
	cr_assert(poll_one());
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.status, -FI_EIO);
}

Test(m5_tm, a_request_longer_than_the_buffer_is_read_from_it, .init = setup, .fini = teardown)
{
	append_recv();
	fill_head(user_buf, M5_TMH_REQUEST, 7, 201);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_TOO_LONG, recv.entry, 32, user_buf);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_TOO_LONG);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(ev.request.peer, peer);
	cr_expect_eq(ev.request.len, 201);
	cr_expect_eq(ev.request.addr, 0x7f0000001000);
}

Test(m5_tm, a_removal_ends_the_receive_or_says_nothing, .init = setup, .fini = teardown)
{
	uint8_t head[32] = { 1 };

	append_recv();
	cr_assert_eq(m5_tm_remove(tm, &recv, false), 0);
	cr_expect_eq(m5_tm_remove(tm, &recv, false), -FI_EALREADY);
	cr_expect_eq(op_at(1)[17], 0xc0, "reports");
	complete(M5_CQE_NO_PACKET, COMMAND, 1, M5_APP_REMOVE, recv.entry, 0, success);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_REMOVED);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(m5_sq_in_flight(&tm->sq), 0);

	append_recv();
	cr_assert_eq(m5_tm_remove(tm, &recv, false), 0);
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, recv.entry, 0, head);
	complete(M5_CQE_NO_PACKET, COMMAND, 3, M5_APP_REMOVE, recv.entry, 0, NULL);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_MATCHED);
	cr_expect_not(poll_one());
	cr_expect_eq(tm->err, 0);
}

/* A NOP says so, where an entry may be stored and no other operation has. */
Test(m5_tm, the_device_learns_of_handled_requests_when_nothing_is_left, .init = setup,
     .fini = teardown)
{
	arrive(M5_APP_UNEXPECTED, RX, 0, M5_TMH_REQUEST, 1, 500);
	cr_assert(poll_one());
	cr_expect_not(poll_one());
	cr_expect_eq(tm->sq.pi, 0, "nothing is listed");
	append_recv();
	cr_expect_eq(op_at(0)[23], 1, "counted");
	cr_expect_not(poll_one());
	cr_expect_eq(tm->sq.pi, 1, "known already");
	arrive(M5_APP_UNEXPECTED, RX, 1, M5_TMH_REQUEST, 2, 500);
	arrive(M5_APP_UNEXPECTED, RX, 2, M5_TMH_REQUEST, 3, 500);
	cr_assert(poll_one());
	cr_assert(poll_one());
	cr_expect_eq(ev.request.id, 3);
	cr_expect_eq(tm->sq.pi, 1);
	cr_expect_not(poll_one());
	cr_expect_eq(tm->sq.pi, 2);
	EXPECT_AT(op_at(1) + 16, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03);
	cr_expect_eq(be32toh(command.record[M5_DBR_SEND]), 2);
	cr_expect_not(poll_one());
	cr_expect_eq(tm->sq.pi, 2);
}

Test(m5_tm, the_device_learns_of_many_requests_without_receives, .init = setup, .fini = teardown)
{
	tm->handled = 0x3fff;
	arrive(M5_APP_UNEXPECTED, RX, 0, M5_TMH_REQUEST, 1, 500);
	cr_assert(poll_one());
	cr_expect_not(poll_one());
	EXPECT_AT(op_at(0) + 16, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00);
}

Test(m5_tm, receive_wqes_are_given_back, .init = setup, .fini = teardown)
{
	for (uint16_t n = 0; n < 5 * WQES; n++) {
		arrive(M5_APP_UNEXPECTED, RX, n % WQES, M5_TMH_REQUEST, n, 500);
		cr_assert(poll_one());
		cr_expect_eq(ev.request.id, n);
		cr_assert_geq(m5_recv_posted(&tm->srq.recv), WQES / 2);
	}
	cr_expect_eq(tm->handled, 5 * WQES);
	cr_expect_eq(tm->err, 0);
}

Test(m5_tm, the_end_of_a_send_comes_by_either_queue_pair, .init = setup, .fini = teardown)
{
	static const uint32_t qpn[] = { TX, RX };

	for (uint16_t i = 0; i < 2; i++) {
		cr_assert_eq(m5_tm_send(peer, &send, 1, 4096, 1, 100), 0);
		arrive(M5_APP_NO_TAG, qpn[i], i, M5_TMH_FIN, send.id, 100);
		cr_assert(poll_one());
		cr_expect_eq(ev.kind, M5_TM_SENT);
		cr_expect_eq(ev.send, &send);
		cr_expect(util_list_is_empty(&peer->sends));
	}
	cr_expect_eq(tm->handled, 0, "these do not count");
	arrive(M5_APP_NO_TAG, TX, 2, M5_TMH_FIN, send.id, 100);
	expect_down(-FI_EIO); /* a second end of the same send */
}

Test(m5_tm, the_send_of_another_peer_cannot_be_ended, .init = setup, .fini = teardown)
{
	struct m5_tm_peer other = *peer;

	util_list_init(&other.in_tm);
	util_list_init(&other.sends);
	cr_assert_eq(m5_tm_send(&other, &send, 1, 4096, 1, 100), 0);
	arrive(M5_APP_NO_TAG, TX, 0, M5_TMH_FIN, send.id, 100);
	expect_down(-FI_EIO);
	cr_expect_eq(other.err, 0);
}

static void expect_violation(uint8_t app_op, uint8_t op, uint32_t bytes, uint32_t len)
{
	setup();
	fill_head(bufs, op, 1, len);
	complete(M5_CQE_RESP_SEND, RX, 0, app_op, 0, bytes, NULL);
	expect_down(-FI_EIO);
	cr_expect_eq(tm->err, 0);
	cr_expect_eq(m5_recv_posted(&tm->srq.recv), WQES - 2, "its WQE is free");
	teardown();
}

Test(m5_tm, messages_that_are_no_requests_end_their_peer)
{
	expect_violation(M5_APP_UNEXPECTED, M5_TMH_EAGER, 40, 1);
	expect_violation(M5_APP_UNEXPECTED, M5_TMH_REQUEST, 31, 1);
	expect_violation(M5_APP_UNEXPECTED, M5_TMH_REQUEST, 32, 0);
	expect_violation(M5_APP_UNEXPECTED, M5_TMH_REQUEST, 32, M5_TM_LEN_MAX + 1);
	expect_violation(M5_APP_NO_TAG, M5_TMH_NO_TAG, 1, 1);
	expect_violation(M5_APP_NO_TAG, M5_TMH_FIN, 15, 1);
	expect_violation(M5_APP_NO_TAG, M5_TMH_FIN, 32, 1);
}

Test(m5_tm, what_a_dead_peer_sent_is_dropped_and_counted, .init = setup, .fini = teardown)
{
	m5_tm_peer_fail(peer, -FI_ETIMEDOUT);
	arrive(M5_APP_UNEXPECTED, RX, 0, M5_TMH_REQUEST, 1, 500);
	arrive(M5_APP_UNEXPECTED, 0x333333, 1, M5_TMH_REQUEST, 1, 500);
	expect_down(-FI_ETIMEDOUT);
	cr_expect_eq(tm->handled, 2);
	cr_expect_eq(m5_recv_posted(&tm->srq.recv), WQES - 3);
}

/* Of two matches of a closed peer, one has its bytes in the queue. */
Test(m5_tm, what_a_closed_peer_matched_ends_behind_its_completions, .init = setup, .fini = teardown)
{
	const uint8_t head[16] = { 1 };
	struct m5_tm_recv more;

	append_recv();
	cr_assert_eq(m5_tm_append(tm, &more, 1, 0, user_buf, 32, 1, false), 0);
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, recv.entry, 0, head);
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, more.entry, 0, head);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_EXPECTED, more.entry, 32, NULL);
	util_list_push_back(&tm->closing, &peer->in_tm); /* no kernel would reset its queue pairs */
	cr_assert(poll_one());
	cr_assert(poll_one());
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.recv, &more);
	cr_expect_eq(ev.status, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(ev.status, -FI_ECONNABORTED);
	cr_expect_eq(tm->tags.free_cnt, CNT);
}

Test(m5_tm, an_error_completion_ends_its_peer, .init = setup, .fini = teardown)
{
	uint8_t *cqe = cq_device_at(&cq, 0);

	cr_assert_eq(m5_tm_send(peer, &send, 1, 4096, 1, 100), 0);
	cq_device_write(&cq, M5_CQE_REQ_ERR << 4, TX, 0, 0);
	cqe[55] = 0x15; /* retries exceeded */
	expect_down(-FI_ETIMEDOUT);
}

Test(m5_tm, an_error_of_the_command_queue_pair_ends_all, .init = setup, .fini = teardown)
{
	append_recv();
	cq_device_write(&cq, M5_CQE_REQ_ERR << 4, COMMAND, 0, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_DOWN);
	cr_expect_null(ev.peer);
	cr_expect_not(poll_one());
	cr_expect_eq(m5_tm_append(tm, &recv, 1, 1, user_buf, 32, 1, false), -FI_EIO);
	cr_expect_eq(m5_tm_remove(tm, &recv, false), -FI_EIO);
}

Test(m5_tm, completions_that_contradict_the_list_end_all)
{
	static const uint8_t ops[] = { M5_APP_CONSUMED,     M5_APP_EXPECTED,
				       M5_APP_CANCELED,     M5_APP_TOO_LONG,
				       M5_APP_CONSUMED_MSG, M5_APP_APPEND,
				       M5_APP_REMOVE,       0x0d };

	for (unsigned i = 0; i < sizeof(ops); i++) {
		setup();
		complete(M5_CQE_RESP_SEND, RX, 0, ops[i], 2, 32, NULL);
		cr_assert(poll_one(), "%u", ops[i]);
		cr_expect_eq(ev.kind, M5_TM_DOWN);
		cr_expect_null(ev.peer);
		teardown();
	}
}
