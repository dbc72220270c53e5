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
