/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of fi_msg(3), multi-receive buffers included. */
#include <stdlib.h>
#include <string.h>

#include "unit/ofi/xfer/msg_fixture.h"

TestSuite(cpr_msg, .init = setup, .fini = teardown);

#define EXPECT_ARRIVES(to, send, want_data)                                                        \
	do {                                                                                       \
		memset(in, 0, sizeof(in));                                                         \
		cr_assert_eq(fi_recv(p.ep[to], in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);      \
		cr_assert_eq(OFI_RETRY(&p, send), 0);                                              \
		expect_arrived(to, FI_MSG, want_data);                                             \
	} while (0)

Test(cpr_msg, every_send_call_arrives)
{
	struct iovec iov[2] = { { out, 7 }, { out + 7, 13 } };
	int to;

	for (to = 1; to >= 0; to--) {
		struct fi_msg msg = {
			.msg_iov = iov, .iov_count = 2, .addr = p.addr[to], .data = 5
		};
		struct fid_ep *ep = p.ep[0];
		fi_addr_t dest = p.addr[to];

		EXPECT_ARRIVES(to, fi_send(ep, out, 20, NULL, dest, NULL), 0);
		EXPECT_ARRIVES(to, fi_sendv(ep, iov, NULL, 2, dest, NULL), 0);
		EXPECT_ARRIVES(to, fi_sendmsg(ep, &msg, 0), 0);
		EXPECT_ARRIVES(to, fi_sendmsg(ep, &msg, FI_REMOTE_CQ_DATA | FI_INJECT), 5);
		EXPECT_ARRIVES(to, fi_inject(ep, out, 20, dest), 0);
		EXPECT_ARRIVES(to, fi_senddata(ep, out, 20, NULL, ~0ull, dest, NULL), ~0ull);
		EXPECT_ARRIVES(to, fi_injectdata(ep, out, 20, 78, dest), 78);
	}
}

Test(cpr_msg, every_receive_call_receives)
{
	char a[4], b[30];
	struct iovec iov[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC };
	struct fi_cq_tagged_entry e;

	cr_assert_eq(fi_recvv(p.ep[1], iov, NULL, 2, FI_ADDR_UNSPEC, &a), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_inject(p.ep[0], out, 10, p.addr[1])), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_arr_eq(a, out, 4);
	cr_expect_arr_eq(b, out + 4, 6);
	cr_assert_eq(fi_recvmsg(p.ep[1], &msg, FI_COMPLETION), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_inject(p.ep[0], out, 10, p.addr[1])), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
}

Test(cpr_msg, tagged_and_untagged_messages_do_not_match)
{
	struct fi_cq_tagged_entry e;
	char tagged[32] = "";

	cr_assert_eq(fi_trecv(p.ep[1], tagged, 32, NULL, FI_ADDR_UNSPEC, 0, ~0ull, tagged), 0);
	EXPECT_ARRIVES(1, fi_inject(p.ep[0], out, 20, p.addr[1]), 0);
	cr_expect_eq(tagged[0], 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 20, p.addr[1], 1)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.op_context, tagged);
}

Test(cpr_msg, a_multi_receive_buffer_is_filled_and_given_back)
{
	char buf[100];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &msg
	};
	struct fi_cq_tagged_entry e = { 0 };
	size_t min = 30;
	char *next = buf;
	bool released = false;
	int cnt = 0;

	cr_assert_eq(
		fi_setopt(&p.ep[1]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
		0);
	cr_assert_eq(fi_recvmsg(p.ep[1], &msg, FI_MULTI_RECV | FI_COMPLETION), 0);
	while (!released) {
		if (cnt < 4)
			cr_assert_eq(OFI_RETRY(&p, fi_inject(p.ep[0], out, 20, p.addr[1])), 0);
		cr_assert_eq(ofi_read(p.cq[1], &e), 1);
		cr_expect_eq(e.op_context, &msg);
		if (e.flags & FI_RECV) {
			cr_expect_eq(e.buf, next);
			cr_expect_eq(e.len, 20);
			cr_expect_arr_eq(e.buf, out, 20);
			next += e.len;
			cnt++;
		}
		released = e.flags & FI_MULTI_RECV;
	}
	cr_expect_eq(cnt, 4, "after the fourth, 20 bytes are left: less than 30");
}

Test(cpr_msg, bad_arguments_are_refused_at_once)
{
	struct iovec iov[2] = { { out, 1 }, { out, 1 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2, .addr = p.addr[1] };
	size_t big = p.info->tx_attr->inject_size + 1;
	char *buf = calloc(1, big);

	cr_expect_eq(fi_inject(p.ep[0], buf, big, p.addr[1]), -FI_EMSGSIZE);
	cr_expect_eq(fi_recvmsg(p.ep[0], &msg, FI_MULTI_RECV), -FI_EINVAL, "one piece only");
	cr_expect_eq(fi_recvmsg(p.ep[0], &msg, FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_MULTICAST), -FI_EBADFLAGS);
	free(buf);
}

Test(cpr_msg, a_multi_receive_buffer_is_one_piece_by_default_flags_too)
{
	struct iovec iov[2] = { { in, 8 }, { in + 8, 8 } };
	uint64_t flags = FI_MULTI_RECV | FI_RECV;

	cr_assert_eq(fi_control(&p.ep[1]->fid, FI_SETOPSFLAG, &flags), 0);
	cr_expect_eq(fi_recvv(p.ep[1], iov, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	cr_expect_eq(fi_recvv(p.ep[1], iov, NULL, 0, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	cr_expect_eq(fi_recvv(p.ep[1], iov, NULL, 1, FI_ADDR_UNSPEC, NULL), 0);
	cr_expect_eq(fi_trecvv(p.ep[1], iov, NULL, 2, FI_ADDR_UNSPEC, 1, 0, NULL), 0,
		     "FI_MULTI_RECV is for untagged messages");
}

Test(cpr_msg, more_bytes_than_max_msg_size_are_refused_towards_anyone)
{
	struct fi_msg msg = { .context = &msg };
	struct fi_cq_tagged_entry e;

	cr_assert_eq(p.info->ep_attr->max_msg_size, HALF - 1);
	for (int to = 1; to >= 0; to--) {
		EXPECT_ARRIVES(to, fi_inject(p.ep[0], out, 20, p.addr[to]), 0);
		cr_expect_eq(fi_send(p.ep[0], out, HALF, NULL, p.addr[to], NULL), -FI_EMSGSIZE);
		for (size_t i = 0; i < OVERSIZED_CNT; i++) {
			msg.msg_iov = oversized[i].iov;
			msg.iov_count = oversized[i].cnt;
			msg.addr = p.addr[to];
			cr_expect_eq(
				fi_sendv(p.ep[0], msg.msg_iov, NULL, msg.iov_count, msg.addr, NULL),
				-FI_EMSGSIZE, "row %zu", i);
			cr_expect_eq(fi_sendmsg(p.ep[0], &msg, 0), -FI_EMSGSIZE, "row %zu", i);
			cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_INJECT), -FI_EMSGSIZE);
		}
		cr_expect_eq(fi_cq_read(p.cq[to], &e, 1), -FI_EAGAIN);
	}
}

Test(cpr_msg, buffers_of_a_receive_whose_sum_overflows_are_refused)
{
	struct iovec iov[2] = { { in, SIZE_MAX }, { in, 1 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC };

	cr_expect_eq(fi_recvv(p.ep[1], iov, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_recvmsg(p.ep[1], &msg, 0), -FI_EMSGSIZE);
	cr_assert_eq(fi_recvv(p.ep[1], iov, NULL, 1, FI_ADDR_UNSPEC, in), 0, "as one buffer");
	cr_assert_eq(OFI_RETRY(&p, fi_inject(p.ep[0], out, 20, p.addr[1])), 0);
	expect_arrived(1, FI_MSG, 0);
}

Test(cpr_msg, default_injection_limits_the_length)
{
	uint64_t flags = FI_TRANSMIT | FI_INJECT;
	size_t big = p.info->tx_attr->inject_size + 1;
	char *buf = calloc(1, big);

	cr_assert_eq(fi_control(&p.ep[0]->fid, FI_SETOPSFLAG, &flags), 0);
	cr_expect_eq(fi_send(p.ep[0], buf, big, NULL, p.addr[1], NULL), -FI_EMSGSIZE);
	EXPECT_ARRIVES(1, fi_send(p.ep[0], out, 20, NULL, p.addr[1], NULL), 0);
	free(buf);
}
