/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives: order, truncation, scatter and FI_MULTI_RECV, after fi_msg(3). */
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/dgram/dgram_pair.h"

static struct dgram_pair p;
static uint8_t out[1024], in[4096];

static void open_with(uint32_t prefix)
{
	memset(&p, 0, sizeof(p));
	p.prefix = prefix;
	fake_net_init(&p.net, 1);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i + 1);
	dgram_pair_open(&p);
}

static void setup(void)
{
	open_with(0);
}

static void setup_prefix(void)
{
	open_with(DGRAM_PREFIX);
}

static void teardown(void)
{
	dgram_pair_close(&p);
}

TestSuite(dgram_rx, .init = setup, .fini = teardown);
TestSuite(dgram_rx_prefix, .init = setup_prefix, .fini = teardown);

static void send_bytes(const void *buf, size_t len)
{
	cr_assert_eq(dgram_pair_send(&p, buf, len, 0), 0);
	dgram_pair_run(&p);
}

Test(dgram_rx, the_oldest_receive_gets_the_oldest_datagram)
{
	struct fi_cq_tagged_entry e;

	dgram_pair_recv(&p, in, 8, 0);
	dgram_pair_recv(&p, in + 8, 8, 0);
	send_bytes(out, 1);
	send_bytes(out + 1, 2);
	e = dgram_pair_take(&p, 1, 0);
	cr_expect_eq(e.op_context, in);
	cr_expect_eq(e.len, 1);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG);
	cr_expect_eq(e.data, p.number[0], "the sender");
	e = dgram_pair_take(&p, 1, 0);
	cr_expect_eq(e.op_context, in + 8);
	cr_expect_eq(in[8], out[1]);
	cr_expect_eq(p.received[1].value, 2);
}

Test(dgram_rx, without_a_receive_datagrams_are_queued_while_buffers_last)
{
	const uint32_t sent = DGRAM_RX_CNT + 40;

	for (uint32_t i = 0; i < sent; i++)
		send_bytes(&out[i % 256], 1);
	cr_expect_eq(p.net.cnt.no_buffer, 40);
	for (uint32_t i = 0; i < DGRAM_RX_CNT; i++) {
		dgram_pair_recv(&p, in, 1, 0);
		cr_assert_eq(dgram_pair_take(&p, 1, 0).len, 1);
		cr_assert_eq(in[0], out[i % 256], "in order");
	}
	dgram_pair_recv(&p, in, 1, 0);
	cr_expect_eq(dgram_pair_left(&p, 1), 0, "the other datagrams are dropped");
	cr_expect_eq(p.ep[1]->dg->rx_retained, 0);
	send_bytes(out, 1);
	cr_expect_eq(dgram_pair_left(&p, 1), 1, "and the next one arrives");
}

Test(dgram_rx, a_truncated_datagram_completes_with_an_error)
{
	struct fi_cq_tagged_entry e;

	memset(in, 0, 64);
	dgram_pair_recv(&p, in, 10, 0);
	send_bytes(out, 16);
	e = dgram_pair_take(&p, 1, FI_ETRUNC);
	cr_expect_eq(e.len, 10);
	cr_expect_eq(e.data, 6);
	cr_expect_arr_eq(in, out, 10);
	cr_expect_eq(in[10], 0);
	cr_expect_eq(p.received[1].errors, 1);
	cr_expect_eq(p.received[1].value, 0);
}

Test(dgram_rx, bytes_are_scattered_over_all_buffers)
{
	struct iovec iov[4] = { { in, 3 }, { in + 100, 0 }, { in + 200, 5 }, { in + 300, 50 } };
	struct dgram_post post = { .iov = iov, .iov_cnt = 4 };

	cr_assert_eq(dgram_rx_post(p.ep[1], &post), 0);
	send_bytes(out, 20);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).len, 20);
	cr_expect_arr_eq(in, out, 3);
	cr_expect_arr_eq(in + 200, out + 3, 5);
	cr_expect_arr_eq(in + 300, out + 8, 12);
}

Test(dgram_rx, a_cancelled_receive_ends_once_and_receives_nothing)
{
	dgram_pair_recv(&p, in, 8, 0);
	dgram_pair_recv(&p, in + 8, 8, 0);
	cr_assert_eq(dgram_rx_cancel(p.ep[1], in), 0);
	cr_expect_eq(dgram_pair_take(&p, 1, FI_ECANCELED).op_context, in);
	cr_expect_eq(dgram_rx_cancel(p.ep[1], in), -FI_ENOENT);
	send_bytes(out, 4);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).op_context, in + 8);
	cr_expect_eq(dgram_pair_left(&p, 1), 0);
}

Test(dgram_rx, a_multi_receive_buffer_takes_many_and_reports_its_end)
{
	struct fi_cq_tagged_entry e;

	p.min_multi_recv = 16;
	dgram_pair_recv(&p, in, 64, FI_MULTI_RECV);
	send_bytes(out, 30);
	e = dgram_pair_take(&p, 1, 0);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG);
	cr_expect_eq(e.buf, in);
	send_bytes(out, 19);
	e = dgram_pair_take(&p, 1, 0);
	cr_expect_eq(e.buf, in + 30);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG | FI_MULTI_RECV, "15 are left");
	cr_expect_eq(e.op_context, in);
	cr_expect_arr_eq(in + 30, out, 19);
}

Test(dgram_rx, a_multi_receive_rest_that_is_too_small_is_returned)
{
	p.min_multi_recv = 1;
	dgram_pair_recv(&p, in, 64, FI_MULTI_RECV);
	dgram_pair_recv(&p, in + 64, 64, FI_MULTI_RECV);
	send_bytes(out, 40);
	send_bytes(out, 40);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).buf, in);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).flags, FI_MULTI_RECV);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).buf, in + 64);
	send_bytes(out, 65);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).flags, FI_MULTI_RECV);
	dgram_pair_recv(&p, in, 64, FI_MULTI_RECV);
	cr_expect_eq(dgram_pair_take(&p, 1, FI_ETRUNC).data, 1, "longer than a whole buffer");
}

Test(dgram_rx, only_requested_completions_are_written)
{
	p.rx[1].selective = true;
	dgram_pair_recv(&p, in, 8, 0);
	dgram_pair_recv(&p, in + 8, 8, FI_COMPLETION);
	send_bytes(out, 1);
	send_bytes(out, 1);
	cr_expect_eq(dgram_pair_left(&p, 1), 1);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).op_context, in + 8);
	cr_expect_eq(p.received[1].value, 2);
}

Test(dgram_rx_prefix, the_prefix_precedes_the_bytes_and_counts)
{
	struct iovec iov[3] = { { in, DGRAM_PREFIX + 2 }, { in + 100, 5 }, { in + 200, 50 } };
	struct dgram_post post = { .iov = iov, .iov_cnt = 3 };

	memset(in, 0xEE, sizeof(in));
	cr_assert_eq(dgram_rx_post(p.ep[1], &post), 0);
	send_bytes(out, DGRAM_PREFIX + 20);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).len, DGRAM_PREFIX + 20);
	cr_expect_arr_eq(in + DGRAM_PREFIX, out + DGRAM_PREFIX, 2);
	cr_expect_arr_eq(in + 100, out + DGRAM_PREFIX + 2, 5);
	cr_expect_arr_eq(in + 200, out + DGRAM_PREFIX + 7, 13);
	cr_expect_eq(in[0] & in[DGRAM_PREFIX - 1], 0xEE, "the entry is unchanged");
}

Test(dgram_rx_prefix, a_truncated_datagram_completes_with_an_error)
{
	struct fi_cq_tagged_entry e;

	dgram_pair_recv(&p, in, DGRAM_PREFIX, 0);
	dgram_pair_recv(&p, in, DGRAM_PREFIX + 10, 0);
	send_bytes(out, DGRAM_PREFIX);
	send_bytes(out, DGRAM_PREFIX + 16);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).len, DGRAM_PREFIX, "an empty message");
	e = dgram_pair_take(&p, 1, FI_ETRUNC);
	cr_expect_eq(e.len, DGRAM_PREFIX + 10);
	cr_expect_eq(e.data, 6);
	cr_expect_arr_eq(in + DGRAM_PREFIX, out + DGRAM_PREFIX, 10);
}

Test(dgram_rx_prefix, a_buffer_shorter_than_the_prefix_is_refused)
{
	struct iovec iov[2] = { { in, DGRAM_PREFIX - 1 }, { in + 100, 50 } };
	struct dgram_post post = { .iov = iov, .iov_cnt = 2 };

	cr_expect_eq(dgram_rx_post(p.ep[1], &post), -FI_EINVAL);
	post.iov_cnt = 0;
	cr_expect_eq(dgram_rx_post(p.ep[1], &post), -FI_EINVAL);
	send_bytes(out, DGRAM_PREFIX + 1);
	cr_expect_eq(p.ep[1]->queued_cnt, 1, "no endpoint received it");
}

Test(dgram_rx_prefix, each_message_of_a_multi_receive_buffer_has_a_prefix)
{
	struct fi_cq_tagged_entry e;

	p.min_multi_recv = 1;
	dgram_pair_recv(&p, in, 2 * (DGRAM_PREFIX + 8) + DGRAM_PREFIX - 1, FI_MULTI_RECV);
	dgram_pair_recv(&p, in + 1000, DGRAM_PREFIX, FI_MULTI_RECV);
	send_bytes(out, DGRAM_PREFIX + 8);
	send_bytes(out, DGRAM_PREFIX + 8);
	send_bytes(out, DGRAM_PREFIX);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).buf, in);
	e = dgram_pair_take(&p, 1, 0);
	cr_expect_eq(e.buf, in + DGRAM_PREFIX + 8);
	cr_expect_eq(e.len, DGRAM_PREFIX + 8);
	cr_expect_arr_eq(in + 2 * DGRAM_PREFIX + 8, out + DGRAM_PREFIX, 8);
	cr_expect_eq(dgram_pair_take(&p, 1, 0).flags, FI_MULTI_RECV, "39 bytes hold no message");
	e = dgram_pair_take(&p, 1, 0);
	cr_expect_eq(e.buf, in + 1000);
	cr_expect_eq(e.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
}
