/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work requests of tag matching, by golden bytes, on queues in memory. Completions are in
 * test_m5_tm_poll.c. Objects are made, and matching is done, on the device model:
 * test/integ/dev/dev_tag.
 */
#include "dev/mlx5/m5_tm.h"

#include <rdma/fi_errno.h>

#include "bytes.h"
#include "tm_device.h"

TestSuite(m5_tm, .timeout = 200);

/* Checks the three bytes behind the opcode of a header. */
static void expect_note(const uint8_t *head, uint32_t id, bool has_data)
{
	cr_expect_lt(id, 1u << M5_TM_ID_BITS);
	cr_expect_eq(head[1], id >> 16 | (has_data ? 0x80 : 0));
	cr_expect_eq(head[2], (uint8_t)(id >> 8));
	cr_expect_eq(head[3], (uint8_t)id);
}

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
	cr_expect_eq(m5_tm_finish(&ev.request), -FI_EAGAIN);
	cr_expect_eq(m5_tm_keep(&ev.request), -FI_EAGAIN);
	cr_expect_eq(m5_tm_send(peer, &send, 1, false, 0, 4096, 1, 100), -FI_EAGAIN);
	cr_expect_eq(tm->sends.used_cnt, 0);
	cr_expect_eq(peer->sq.pi, BLOCKS);
}

Test(m5_tm, appends_leave_half_of_the_queue_to_removals, .init = setup, .fini = teardown)
{
	struct m5_tm_recv more;

	tm->sq.pi = tm->sq.rung = BLOCKS / 2 - 1; /* in flight */
	append_recv();
	cr_expect_eq(m5_tm_append(tm, &more, 1, 1, user_buf, 32, 1, false), -FI_EAGAIN);
	cr_expect_eq(tm->tags.listed_cnt, 1);
	cr_expect_eq(m5_tm_remove(tm, &recv, false), 0);
	tm->sq.ci = 2;
	cr_expect_eq(m5_tm_append(tm, &more, 1, 1, user_buf, 32, 1, false), 0);
}

/* With full appends, notices do not take the room of removals, which all find some. */
Test(m5_tm, each_receive_can_be_removed_surely, .init = setup, .fini = teardown)
{
	struct m5_tm_recv more[CNT - 1];
	uint16_t last;

	tm->sq.pi = tm->sq.rung = BLOCKS / 2 - (CNT - 1); /* in flight */
	for (unsigned i = 0; i < CNT - 1; i++)
		cr_assert_eq(m5_tm_append(tm, &more[i], 1, 1, user_buf, 32, 1, false), 0);
	tm->handled = 1;
	last = tm->sq.pi;
	cr_expect_not(poll_one());
	cr_expect_eq(tm->sq.pi, last, "no notice");
	for (unsigned i = 0; i < CNT - 1; i++)
		cr_expect_eq(m5_tm_remove(tm, &more[i], true), 0);
}

Test(m5_tm, a_request_is_one_block, .init = setup, .fini = teardown)
{
	cr_assert_eq(m5_tm_send(peer, &send, 0x0102030405060708, true, 0xc0de1234,
				0x1122334455667788, 0xaabbccdd, 0x10000),
		     0);
	EXPECT_AT(tx.buf,
		  /* control: SEND, 4 units */
		  0x00, 0x00, 0x00, 0x0a, 0x11, 0x11, 0x11, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,
		  0x00, 0x00, 0x00,
		  /* 32 bytes inline: request */
		  0x80, 0x00, 0x00, 0x20, 0x01);
	expect_note(tx.buf + 20, send.id, true);
	EXPECT_AT(tx.buf + 24,
		  /* data; tag; address, key, length */
		  0xc0, 0xde, 0x12, 0x34, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x11,
		  0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x01,
		  0x00, 0x00);
	cr_expect_eq(be32toh(tx.record[M5_DBR_SEND]), 1);
	cr_expect_eq(m5_tm_send(peer, &send, 1, false, 0, 1, 1, 0), -FI_EINVAL);
	cr_expect_eq(m5_tm_send(peer, &send, 1, false, 0, 1, 1, M5_TM_LEN_MAX + 1), -FI_EINVAL);
}

Test(m5_tm, a_request_without_data_has_no_bytes_of_them, .init = setup, .fini = teardown)
{
	cr_assert_eq(m5_tm_send(peer, &send, 1, false, 0xc0de1234, 4096, 1, 100), 0);
	expect_note(tx.buf + 20, send.id, false);
	EXPECT_AT(tx.buf + 24, 0x00, 0x00, 0x00, 0x00, 0x00);
}

Test(m5_tm, a_fetch_reads_and_then_tells_the_sender, .init = setup, .fini = teardown)
{
	static const uint8_t note[3] = { 0x92, 0x34, 0x56 };

	arrive(M5_APP_UNEXPECTED, RX, 0, M5_TMH_REQUEST, 0x01020304, 500);
	memcpy(bufs + 1, note, 3);
	cr_assert(poll_one());
	cr_assert_eq(ev.kind, M5_TM_UNEXPECTED);
	cr_expect_eq(ev.request.id, 0x123456);
	cr_expect(ev.request.has_data);
	cr_expect_eq(ev.request.data, 0x01020304);
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
		  0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x20, 0x02, 0x92, 0x34, 0x56, 0x01, 0x02,
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

/* A notice reports only where the queue needs a report, and then ends no receive. */
Test(m5_tm, a_notice_tells_the_sender_and_reads_nothing, .init = setup, .fini = teardown)
{
	const struct m5_tm_request request = { peer, 0x55, 0x7f0000001000, 0xabcd, 500, 7, 0, 0 };

	for (uint16_t i = 0; i < 2 * BLOCKS; i++) {
		const uint8_t *wqe = tx.buf + (size_t)(i % BLOCKS) * 64;

		cr_assert_eq(i % 2 ? m5_tm_finish(&request) : m5_tm_keep(&request), 0);
		cr_expect_eq(wqe[3], M5_OP_SEND);
		cr_expect_eq(wqe[11], i % 4 == 3 ? M5_CTRL_SIGNAL : 0);
		EXPECT_AT(wqe + 16, 0x80, 0x00, 0x00, 0x20); /* 32 bytes inline */
		cr_expect_eq(wqe[20], i % 2 ? M5_TMH_FIN : M5_TMH_NO_TAG);
		EXPECT_AT(wqe + 21,
			  /* id, no data; tag; address, key, length */
			  0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			  0x00, 0x00, 0x55, 0x00, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00,
			  0x00, 0xab, 0xcd, 0x00, 0x00, 0x01, 0xf4);
		cr_expect_eq(be32toh(tx.record[M5_DBR_SEND]), i + 1u);
		if (i % 4 == 3)
			cq_device_write(&cq, M5_CQE_REQ << 4, TX, i, 0);
		cr_expect_not(poll_one());
	}
	cr_expect_eq(m5_sq_in_flight(&peer->sq), 0);
	m5_tm_peer_fail(peer, -FI_EIO);
	cr_expect_eq(m5_tm_finish(&request), -FI_EIO);
}
