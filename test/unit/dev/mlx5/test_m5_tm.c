/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching on queues in memory: work requests by golden bytes, completions by hand. The layouts
 * are those of rdma-core (test_m5_layout.c). Objects are made, and matching is done, on the device
 * model: test/integ/dev/dev_tag.
 */
#include "dev/mlx5/m5_tm.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "bytes.h"
#include "cq_device.h"
#include "dev/mlx5/m5_dev.h"
#include "sq_device.h"

TestSuite(m5_tm, .timeout = 200);

#define CNT     4u /* entries: one more than receives */
#define WQES    8u
#define BLOCKS  16u
#define COMMAND 0x123456u /* number that sq_device has */
#define TX      0x111111u
#define RX      0x222222u

static struct m5_dev dev;
static struct m5_tm *tm;
static struct m5_tm_peer *peer;
static struct cq_device cq;
static struct sq_device command, tx;
static uint8_t *srq_buf, bufs[WQES * M5_TM_BUF], user_buf[256];
static uint32_t srq_record;
static struct m5_tags_entry entry[CNT];
static uint64_t words[BLOCKS];
static struct ibv_qp qps[2];
static struct m5_tm_event ev;
static struct m5_tm_recv recv;
static struct m5_tm_send send;
static const uint8_t success[16] = { 0x80 }; /* of a REMOVE */

static void setup(void)
{
	strcpy(dev.ib.name, "fake_0:1");
	cq_device_init(&cq, 32, 64, 0);
	sq_device_init(&command, BLOCKS, 256, 0);
	sq_device_init(&tx, BLOCKS, 256, 0);
	srq_buf = guard_alloc(WQES * 32);
	tm = calloc(1, sizeof(*tm));
	tm->dev = &dev;
	tm->cq = cq.cq;
	m5_srq_init(&tm->srq, srq_buf, WQES, 32, &srq_record, 0);
	m5_srq_post(&tm->srq);
	m5_tags_init(&tm->tags, entry, CNT);
	tm->sq = command.sq;
	tm->sq.uar = &command.uar;
	tm->mem.addr = bufs;
	util_list_init(&tm->failed);
	util_list_init(&tm->closing);
	util_idmap_init(&tm->sends);
	peer = calloc(1, sizeof(*peer));
	peer->tm = tm;
	peer->sq = tx.sq;
	peer->sq.uar = &tx.uar;
	peer->sq.qpn = TX;
	m5_sparse_init(&peer->users, words, BLOCKS);
	util_list_init(&peer->in_tm);
	util_list_init(&peer->sends);
	qps[0].qp_num = TX;
	qps[1].qp_num = RX;
	peer->tx = &qps[0];
	peer->rx = &qps[1];
	cr_assert_eq(ib_qpns_set(&tm->peers, TX, peer), 0);
	cr_assert_eq(ib_qpns_set(&tm->peers, RX, peer), 0);
}

static void teardown(void)
{
	util_idmap_fini(&tm->sends);
	ib_qpns_fini(&tm->peers);
	free(peer);
	free(tm);
	guard_free(srq_buf, WQES * 32);
	sq_device_fini(&tx);
	sq_device_fini(&command);
	cq_device_fini(&cq);
}

static const uint8_t *op_at(unsigned counter)
{
	return command.buf + (size_t)(counter % BLOCKS) * 64;
}

/* Completes something of the list: 0 to 15 of the CQE from `head`, if there is one. */
static void complete(uint8_t opcode, uint32_t qpn, uint16_t counter, uint8_t app_op, uint16_t index,
		     uint32_t len, const void *head)
{
	uint8_t *cqe = cq_device_at(&cq, cq.pi);

	cq_device_write(&cq, (uint8_t)(opcode << 4), qpn, counter, 0);
	cqe[40] = 1;
	cqe[41] = app_op;
	cqe[42] = (uint8_t)(index >> 8);
	cqe[43] = (uint8_t)index;
	len = htobe32(len);
	memcpy(cqe + 44, &len, 4);
	if (head)
		memcpy(cqe, head, 16);
}

static bool poll_one(void)
{
	return m5_tm_poll(tm, &ev);
}

static void append_recv(void)
{
	cr_assert_eq(m5_tm_append(tm, &recv, 0x0102030405060708, 0x00000000ffffffff, user_buf, 200,
				  0x00c0ffee, false),
		     0);
}

/* Headers of a request, or of its FIN. */
static void fill_head(uint8_t *at, uint8_t op, uint32_t id, uint32_t len)
{
	const struct m5_tmh tmh = { .op = op, .ctx = htobe32(id), .tag = htobe64(0x55) };
	const struct m5_rvh rvh = { htobe64(0x7f0000001000), htobe32(0xabcd), htobe32(len) };

	memcpy(at, &tmh, 16);
	memcpy(at + 16, &rvh, 16);
}

/* The next message takes receive WQE `idx`. */
static void arrive(uint8_t app_op, uint32_t qpn, uint16_t idx, uint8_t op, uint32_t id,
		   uint32_t len)
{
	fill_head(bufs + (size_t)idx * 64, op, id, len);
	complete(M5_CQE_RESP_SEND, qpn, idx, app_op, 0, 32, NULL);
}

static void expect_down(int status)
{
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_DOWN);
	cr_expect_eq(ev.peer, peer);
	cr_expect_eq(ev.status, status);
	cr_expect_not(poll_one(), "reported once");
	cr_expect_eq(m5_tm_send(peer, &send, 1, 4096, 1, 100), status);
}

/* ---- work requests ---- */

Test(m5_tm, append_names_the_next_entry_and_states_what_was_handled, .init = setup,
     .fini = teardown)
{
	uint64_t addr = htobe64((uintptr_t)user_buf);

	tm->handled = 0x0304;
	append_recv();
	cr_expect_eq(recv.entry, 0);
	EXPECT_AT(op_at(0),
		  /* control: counter 0, opcode 0x28; QP number, 4 units; no signal here */
		  0x00, 0x00, 0x00, 0x28, 0x12, 0x34, 0x56, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
		  0x00, 0x00, 0x00,
		  /* APPEND, count valid and no CQE, next entry, count */
		  0x10, 0x40, 0x00, 0x01, 0x00, 0x00, 0x03, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
		  0x00, 0x00, 0x00,
		  /* tag, mask */
		  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x00, 0x00, 0x00, 0x00, 0xff,
		  0xff, 0xff, 0xff,
		  /* length, key */
		  0x00, 0x00, 0x00, 0xc8, 0x00, 0xc0, 0xff, 0xee);
	cr_expect_eq(memcmp(op_at(0) + 56, &addr, 8), 0);
	cr_expect_eq(be32toh(command.record[M5_DBR_SEND]), 1, "one doorbell");
}

Test(m5_tm, receives_of_a_burst_share_a_doorbell, .init = setup, .fini = teardown)
{
	struct m5_tm_recv more[3];

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(m5_tm_append(tm, &more[i], i, ~0ull, user_buf, 32, 1, true), 0);
	cr_expect_eq(be32toh(command.record[M5_DBR_SEND]), 0);
	cr_expect_eq(m5_tm_append(tm, &recv, 3, ~0ull, user_buf, 32, 1, true), -FI_EAGAIN,
		     "the list is full");
	cr_expect_not(poll_one());
	cr_expect_eq(be32toh(command.record[M5_DBR_SEND]), 3);
	cr_expect_eq(m5_tm_append(tm, &recv, 3, ~0ull, user_buf, 31, 1, true), -FI_EINVAL);
}

/* Every fourth operation reports: with 4 entries and 16 blocks, one sure REMOVE of two. */
Test(m5_tm, operations_report_once_a_quarter_of_the_queue, .init = setup, .fini = teardown)
{
	for (uint16_t i = 0; i < 5 * BLOCKS; i += 2) {
		append_recv();
		cr_assert_eq(m5_tm_remove(tm, &recv, true), 0);
		EXPECT_AT(op_at(i + 1) + 3, 0x28, 0x12, 0x34, 0x56, 0x03);
		cr_expect_eq(op_at(i + 1)[16], 0x20, "REMOVE");
		cr_expect_eq(op_at(i + 1)[19], recv.entry);
		cr_expect_eq(op_at(i)[17], 0x40);
		cr_expect_eq(op_at(i + 1)[17], i % 4 ? 0xc0 : 0x40);
		if (i % 4)
			complete(M5_CQE_NO_PACKET, COMMAND, (uint16_t)(i + 1), M5_APP_REMOVE,
				 recv.entry, 0, success);
		cr_expect_not(poll_one(), "the receive has ended before");
		cr_expect_eq(m5_sq_in_flight(&tm->sq), i % 4 ? 0 : 2);
	}
	cr_expect_eq(tm->err, 0);
}

Test(m5_tm, without_room_operations_wait, .init = setup, .fini = teardown)
{
	tm->sq.pi = BLOCKS;
	cr_expect_eq(m5_tm_append(tm, &recv, 1, 1, user_buf, 32, 1, false), -FI_EAGAIN);
	cr_expect_eq(m5_tm_remove(tm, &recv, false), -FI_EAGAIN);
	peer->sq.pi = BLOCKS - 1;
	ev.request = (struct m5_tm_request){ .peer = peer, .len = 100 };
	cr_expect_eq(m5_tm_fetch(&ev.request, &recv, user_buf, 32, 1), -FI_EAGAIN, "two blocks");
	peer->sq.pi = BLOCKS;
	cr_expect_eq(m5_tm_send(peer, &send, 1, 4096, 1, 100), -FI_EAGAIN);
	cr_expect_eq(tm->sends.used_cnt, 0);
}

Test(m5_tm, a_request_is_one_block, .init = setup, .fini = teardown)
{
	uint8_t id[4];

	cr_assert_eq(m5_tm_send(peer, &send, 0x0102030405060708, 0x1122334455667788, 0xaabbccdd,
				0x10000),
		     0);
	for (unsigned i = 0; i < 4; i++)
		id[i] = (uint8_t)(send.id >> 8 * (3 - i));
	EXPECT_AT(tx.buf,
		  /* control: SEND, 4 units */
		  0x00, 0x00, 0x00, 0x0a, 0x11, 0x11, 0x11, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
		  0x00, 0x00, 0x00,
		  /* 32 bytes inline: request */
		  0x80, 0x00, 0x00, 0x20, 0x01, 0x00, 0x00, 0x00);
	EXPECT_AT(tx.buf + 28,
		  /* tag; address, key, length */
		  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x11, 0x22, 0x33, 0x44, 0x55,
		  0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x01, 0x00, 0x00);
	cr_expect_eq(memcmp(tx.buf + 24, id, 4), 0);
	cr_expect_eq(be32toh(tx.record[M5_DBR_SEND]), 1);
	cr_expect_eq(m5_tm_send(peer, &send, 1, 1, 1, 0), -FI_EINVAL);
	cr_expect_eq(m5_tm_send(peer, &send, 1, 1, 1, M5_TM_LEN_MAX + 1), -FI_EINVAL);
}

Test(m5_tm, a_fetch_reads_and_then_tells_the_sender, .init = setup, .fini = teardown)
{
	arrive(M5_APP_UNEXPECTED, RX, 0, M5_TMH_REQUEST, 0x01020304, 500);
	cr_assert(poll_one());
	cr_assert_eq(ev.kind, M5_TM_UNEXPECTED);
	cr_expect_eq(m5_tm_fetch(&ev.request, &recv, user_buf, 501, 1), -FI_EINVAL);
	cr_assert_eq(m5_tm_fetch(&ev.request, &recv, user_buf, 200, 0x00c0ffee), 0);
	EXPECT_AT(tx.buf,
		  /* READ, 3 units; remote address, key */
		  0x00, 0x00, 0x00, 0x10, 0x11, 0x11, 0x11, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00,
		  0x00, 0x00, 0x00, 0x00, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00,
		  0xab, 0xcd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc8, 0x00, 0xc0, 0xff,
		  0xee);
	EXPECT_AT(tx.buf + 64,
		  /* SEND, 4 units, fence and signal; FIN with the headers of the request */
		  0x00, 0x00, 0x01, 0x0a, 0x11, 0x11, 0x11, 0x04, 0x00, 0x00, 0x00, 0x88, 0x00,
		  0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x20, 0x02, 0x00, 0x00, 0x00, 0x01, 0x02,
		  0x03, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x55, 0x00, 0x00, 0x7f,
		  0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0xab, 0xcd, 0x00, 0x00, 0x01, 0xf4);
	cr_expect_eq(be32toh(tx.record[M5_DBR_SEND]), 2, "one doorbell");
	cq_device_write(&cq, M5_CQE_REQ << 4, TX, 1, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, M5_TM_RECEIVED);
	cr_expect_eq(ev.recv, &recv);
	cr_expect_eq(ev.len, 200);
	cr_expect_eq(recv.tag, 0x55);
}

/* ---- completions ---- */

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
