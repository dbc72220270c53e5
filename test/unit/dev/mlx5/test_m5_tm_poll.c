/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of tag matching, written by hand: events, WQEs that are given back, what the device
 * learns in turn, and peers and devices that break the rules. The suite is that of test_m5_tm.c.
 */
#include "dev/mlx5/m5_tm.h"

#include <rdma/fi_errno.h>

#include "bytes.h"
#include "fake_dev.h"
#include "tm_device.h"

/* Writes the bytes of a header that name the send. */
static void name_send(uint8_t *head, uint32_t id, bool has_data)
{
	head[1] = (uint8_t)(id >> 16 | (has_data ? 0x80 : 0));
	head[2] = (uint8_t)(id >> 8);
	head[3] = (uint8_t)id;
}

/* Simulates the arrival of a notice to a send. */
static void arrive_notice(uint32_t qpn, uint16_t idx, enum m5_tmh_op op, uint32_t id)
{
	arrive(M5_APP_NO_TAG, qpn, idx, op, 0, 100);
	name_send(bufs + (size_t)idx * 64, id, false);
}

static void arrive_fin(uint32_t qpn, uint16_t idx, uint32_t id)
{
	arrive_notice(qpn, idx, M5_TMH_FIN, id);
}

static void expect_down(int status)
{
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_DOWN);
	cr_expect_eq(ev.peer, peer);
	cr_expect_eq(ev.status, status);
	cr_expect_not(poll_one(), "reported once");
	cr_expect_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), status);
}

Test(m5_tm, a_match_and_then_its_bytes, .init = setup, .fini = teardown)
{
	uint8_t head[32];

	append_recv();
	fill_head(head, M5_TMH_REQUEST, 0xc0de1234, 100);
	name_send(head, 0x7fffff, true);
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, recv.entry, 0, head);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_EXPECTED, recv.entry, 100, NULL);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_MATCHED);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(ev.peer, peer);
	cr_expect(ev.has_data);
	cr_expect_eq(ev.data, 0xc0de1234);
	cr_expect_eq(recv.tag, 0x55);
	cr_expect_eq(m5_tm_remove(tm, &recv, false), -FI_EALREADY);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.len, 100);
	cr_expect_eq(ev.status, 0);
	cr_expect_not(poll_one());
	cr_expect_eq(be32toh(cq.record[0]), 2, "the CQEs are given back");
}

Test(m5_tm, a_match_without_data_or_by_a_closed_peer, .init = setup, .fini = teardown)
{
	uint8_t head[32];

	append_recv();
	fill_head(head, M5_TMH_REQUEST, 0xc0de1234, 100);
	name_send(head, 0x7fffff, false);
	complete(M5_CQE_NO_PACKET, RX, 0, M5_APP_CONSUMED, recv.entry, 0, head);
	peer->is_closed = true;
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_MATCHED);
	cr_expect_null(ev.peer);
	cr_expect_not(ev.has_data);
	cr_expect_eq(ev.data, 0);
}

Test(m5_tm, a_message_of_one_packet_is_match_and_bytes, .init = setup, .fini = teardown)
{
	uint8_t head[32];

	append_recv();
	fill_head(head, M5_TMH_EAGER, 99, 0);
	name_send(head, 1, true);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_CONSUMED_MSG, recv.entry, 77, head);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.len, 77);
	cr_expect_eq(ev.peer, peer);
	cr_expect(ev.has_data);
	cr_expect_eq(ev.data, 99);
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
	fill_head(user_buf, M5_TMH_REQUEST, 77, 201);
	name_send(user_buf, 0x123456, true);
	complete(M5_CQE_RESP_SEND, RX, 0, M5_APP_TOO_LONG, recv.entry, 32, user_buf);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_TOO_LONG);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(ev.request.peer, peer);
	cr_expect_eq(ev.request.len, 201);
	cr_expect_eq(ev.request.addr, 0x7f0000001000);
	cr_expect_eq(ev.request.id, 0x123456);
	cr_expect(ev.has_data && ev.request.has_data);
	cr_expect_eq(ev.data, 77);
	cr_expect_eq(ev.request.data, 77);
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
	cr_expect_eq(ev.request.peer, peer);
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
		arrive(M5_APP_UNEXPECTED, RX, n % WQES, M5_TMH_REQUEST, 0, 500);
		name_send(bufs + (size_t)(n % WQES) * 64, n, false);
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
		cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), 0);
		arrive_fin(qpn[i], i, send.id);
		cr_assert(poll_one());
		cr_expect_eq(ev.kind, M5_TM_SENT);
		cr_expect_eq(ev.send, &send);
		cr_expect(util_list_is_empty(&peer->sends));
		cr_expect_null(m5_tm_find(peer, send.id));
	}
	cr_expect_eq(tm->handled, 0, "these do not count");
	arrive_fin(TX, 2, send.id);
	expect_down(-FI_EIO); /* a second end of the same send */
}

Test(m5_tm, a_send_that_is_kept_stays_open, .init = setup, .fini = teardown)
{
	cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), 0);
	arrive_notice(RX, 0, M5_TMH_NO_TAG, send.id);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_KEPT);
	cr_expect_eq(ev.send, &send);
	cr_expect_eq(m5_tm_find(peer, send.id), &send);
	arrive_fin(RX, 1, send.id);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_SENT);
	arrive_notice(RX, 2, M5_TMH_NO_TAG, send.id);
	expect_down(-FI_EIO);
}

Test(m5_tm, the_send_of_another_peer_cannot_be_ended, .init = setup, .fini = teardown)
{
	struct m5_tm_peer other = *peer;

	util_list_init(&other.in_tm);
	util_list_init(&other.sends);
	cr_assert_eq(m5_tm_send(&other, &send, 1, false, 0, 4096, 1, 100), 0);
	arrive_fin(TX, 0, send.id);
	expect_down(-FI_EIO);
	cr_expect_eq(other.err, 0);
}

Test(m5_tm, a_send_is_found_while_it_is_open, .init = setup, .fini = teardown)
{
	struct m5_tm_peer other = *peer;
	struct m5_tm_send more;

	util_list_init(&other.sends);
	cr_expect_null(m5_tm_find(peer, 0), "no table yet");
	cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), 0);
	cr_assert_eq(m5_tm_send(peer, &more, 1, true, 1, 4096, 1, 100), 0);
	cr_expect_eq(m5_tm_find(peer, send.id), &send);
	cr_expect_eq(m5_tm_find(peer, more.id), &more);
	cr_expect_null(m5_tm_find(&other, send.id));
	cr_expect_null(m5_tm_find(peer, send.id | 1u << M5_TM_ID_BITS));
	cr_expect_null(m5_tm_find(peer, send.id ^ 1u << UTIL_IDMAP_SLOT_BITS));
	cr_expect_null(m5_tm_find(peer, UTIL_IDMAP_MAX - 1));
	arrive_fin(TX, 0, send.id);
	cr_assert(poll_one());
	cr_expect_null(m5_tm_find(peer, send.id));
	cr_expect_eq(m5_tm_find(peer, more.id), &more);
}

/* The map's ids have more bits than a header: each reuse of a slot changes both. */
Test(m5_tm, ids_of_a_slot_differ_and_release_it, .init = setup, .fini = teardown)
{
	uint32_t last = UINT32_MAX, slots;

	cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), 0);
	slots = tm->sends.slot_cnt;
	for (uint32_t i = 0; i < 20 * slots; i++) {
		arrive_fin(TX, (uint16_t)(i % WQES), send.id);
		cr_assert(poll_one());
		cr_assert_eq(ev.send, &send);
		peer->sq.ci = peer->sq.pi;
		last = send.id;
		cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), 0);
		cr_assert_neq(send.id, last);
	}
	cr_expect_eq(tm->sends.slot_cnt, slots);
	arrive_fin(TX, (uint16_t)(20 * slots % WQES), last);
	expect_down(-FI_EIO);
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

	cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), 0);
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

/* ---- sleeping ---- */

/* Puts the list into a device. */
static struct fake_dev *sleep_setup(void)
{
	struct fake_dev *f;

	setup();
	f = fake_dev_make();
	util_list_init(&f->dev.tms);
	util_list_push_back(&f->dev.tms, &tm->in_dev);
	return f;
}

static void sleep_teardown(struct fake_dev *f)
{
	fake_dev_free(f);
	teardown();
}

Test(m5_tm, a_completion_keeps_the_device_awake)
{
	struct fake_dev *f = sleep_setup();
	struct dev *base = (struct dev *)&f->dev;

	cr_expect_eq(m5_dev_arm(base), 0);
	cr_expect_neq(cq.page[4], 0, "the arm register");
	append_recv();
	arrive(M5_APP_UNEXPECTED, RX, 0, M5_TMH_REQUEST, 1, 500);
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN);
	cr_assert(poll_one());
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN, "WQEs are to be given back");
	m5_cq_publish(&tm->cq);
	tm->published = tm->cq.ci;
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN, "the device does not know of the request");
	cr_expect_not(poll_one());
	cr_expect_eq(m5_dev_arm(base), 0);
	cr_assert_eq(m5_tm_append(tm, &recv, 1, 1, user_buf, 32, 1, true), 0);
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN, "a doorbell is due");
	cr_expect_not(poll_one());
	cr_expect_eq(m5_dev_arm(base), 0);
	sleep_teardown(f);
}

Test(m5_tm, what_no_completion_announces_keeps_the_device_awake)
{
	struct fake_dev *f = sleep_setup();
	struct dev *base = (struct dev *)&f->dev;

	m5_tm_peer_fail(peer, -FI_ETIMEDOUT);
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN, "a peer has failed");
	expect_down(-FI_ETIMEDOUT);
	cr_expect_eq(m5_dev_arm(base), 0);
	util_list_push_back(&tm->closing, &peer->in_tm);
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN, "a peer is to be freed");
	util_list_remove(&peer->in_tm);
	append_recv();
	tm->handled++;
	tm->err = -FI_EIO;
	cr_expect_eq(m5_dev_arm(base), -FI_EAGAIN, "the end of all is to be reported");
	cr_assert(poll_one());
	cr_expect_null(ev.peer);
	cr_expect_eq(m5_dev_arm(base), 0);
	sleep_teardown(f);
}
