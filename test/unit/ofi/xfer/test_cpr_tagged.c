/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of fi_tagged(3), each to another endpoint and to itself. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "unit/ofi/xfer/msg_fixture.h"

TestSuite(cpr_tagged, .init = setup, .fini = teardown);

/* Expects a receive of tag 5 at `to` to complete after `send` (an expression). */
#define EXPECT_ARRIVES(to, send, want_data)                                                        \
	do {                                                                                       \
		memset(in, 0, sizeof(in));                                                         \
		cr_assert_eq(fi_trecv(p.ep[to], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, in),   \
			     0);                                                                   \
		cr_assert_eq(OFI_RETRY(&p, send), 0);                                              \
		expect_arrived(to, FI_TAGGED, want_data);                                          \
	} while (0)

Test(cpr_tagged, every_send_call_arrives)
{
	struct iovec iov[3] = { { out, 7 }, { out + 7, 3 }, { out + 10, 10 } };
	int to;

	for (to = 1; to >= 0; to--) {
		struct fi_msg_tagged msg = { .msg_iov = iov,
					     .iov_count = 3,
					     .addr = p.addr[to],
					     .tag = 5,
					     .data = 0xFFFFFFFFFFull };
		struct fid_ep *ep = p.ep[0];
		fi_addr_t dest = p.addr[to];

		EXPECT_ARRIVES(to, fi_tsend(ep, out, 20, NULL, dest, 5, NULL), 0);
		EXPECT_ARRIVES(to, fi_tsendv(ep, iov, NULL, 3, dest, 5, NULL), 0);
		EXPECT_ARRIVES(to, fi_tsendmsg(ep, &msg, 0), 0);
		EXPECT_ARRIVES(to, fi_tsendmsg(ep, &msg, FI_REMOTE_CQ_DATA), 0xFFFFFFFFFFull);
		EXPECT_ARRIVES(to, fi_tsendmsg(ep, &msg, FI_INJECT), 0);
		EXPECT_ARRIVES(to, fi_tinject(ep, out, 20, dest, 5), 0);
		EXPECT_ARRIVES(to, fi_tsenddata(ep, out, 20, NULL, 77, dest, 5, NULL), 77);
		EXPECT_ARRIVES(to, fi_tinjectdata(ep, out, 20, 78, dest, 5), 78);
	}
}

Test(cpr_tagged, every_receive_call_receives)
{
	char a[4], b[30];
	struct iovec iov[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .tag = 9, .context = &msg
	};
	struct fi_cq_tagged_entry e;

	cr_assert_eq(fi_trecvv(p.ep[1], iov, NULL, 2, FI_ADDR_UNSPEC, 9, 0, &a), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 10, p.addr[1], 9)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.op_context, &a);
	cr_expect_arr_eq(a, out, 4);
	cr_expect_arr_eq(b, out + 4, 6);
	memset(b, 0, sizeof(b));
	cr_assert_eq(fi_trecvmsg(p.ep[1], &msg, FI_COMPLETION), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 10, p.addr[1], 9)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.op_context, &msg);
	cr_expect_arr_eq(b, out + 4, 6);
}

Test(cpr_tagged, completions_of_sends_are_written_on_request)
{
	struct iovec iov = { out, 20 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.addr[1], .tag = 5, .context = &msg
	};
	static const uint64_t levels[] = { 0,
					   FI_INJECT_COMPLETE,
					   FI_TRANSMIT_COMPLETE,
					   FI_DELIVERY_COMPLETE,
					   FI_MATCH_COMPLETE,
					   FI_INJECT };
	struct fi_cq_tagged_entry e;
	size_t i;

	for (i = 0; i < 6; i++) {
		EXPECT_ARRIVES(1, fi_tsendmsg(p.ep[0], &msg, levels[i]), 0);
		cr_expect_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAGAIN);
		EXPECT_ARRIVES(1, fi_tsendmsg(p.ep[0], &msg, levels[i] | FI_COMPLETION), 0);
		cr_assert_eq(ofi_read(p.cq[0], &e), 1, "level %zu", i);
		cr_expect_eq(e.op_context, &msg);
		cr_expect_eq(e.flags & (FI_SEND | FI_TAGGED), FI_SEND | FI_TAGGED);
	}
}

Test(cpr_tagged, messages_of_all_sizes_arrive)
{
	static const size_t lens[] = { 0,    1,     63,    64,    4096,    8191,         8192,
				       8193, 32767, 32768, 65537, 1 << 20, (4 << 20) + 1 };
	char *big = malloc((4 << 20) + 1), *got = malloc((4 << 20) + 1);
	struct fi_cq_tagged_entry e;
	size_t i, b;

	for (b = 0; b <= 4 << 20; b++)
		big[b] = (char)(b * 7 + b / 251);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		memset(got, 0, lens[i]);
		cr_assert_eq(fi_trecv(p.ep[1], got, lens[i], NULL, FI_ADDR_UNSPEC, i, 0, got), 0);
		cr_assert_eq(
			OFI_RETRY(&p, fi_tsend(p.ep[0], big, lens[i], NULL, p.addr[1], i, NULL)),
			0);
		cr_assert_eq(ofi_read(p.cq[1], &e), 1, "%zu bytes", lens[i]);
		cr_expect_eq(e.len, lens[i]);
		cr_expect(!memcmp(got, big, lens[i]), "%zu bytes", lens[i]);
	}
	free(big);
	free(got);
}

Test(cpr_tagged, a_message_longer_than_its_buffer_is_cut_with_an_error)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };

	cr_assert_eq(fi_trecv(p.ep[1], in, 8, NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinjectdata(p.ep[0], out, 20, 3, p.addr[1], 5)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(p.cq[1], &err, 0), 1);
	cr_expect_eq(err.err, FI_ETRUNC);
	cr_expect_eq(err.op_context, in);
	cr_expect_eq(err.tag, 5);
	cr_expect_eq(err.data, 3);
	cr_expect_eq(err.len, 8);
	cr_expect_eq(err.olen, 12);
	cr_expect_eq(in[8], 0);
}

static ssize_t probe(uint64_t tag, uint64_t flags, void *ctx, struct fi_cq_tagged_entry *e,
		     struct fi_cq_err_entry *err)
{
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = tag, .context = ctx };
	ssize_t ret;

	cr_assert_eq(fi_trecvmsg(p.ep[1], &msg, flags | FI_COMPLETION), 0);
	ret = ofi_read(p.cq[1], e);
	if (ret == -FI_EAVAIL)
		cr_assert_eq(fi_cq_readerr(p.cq[1], err, 0), 1);
	return ret;
}

/* Sends tag 5 and waits until the message is there, unexpected. */
static void send_unexpected(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	int ctx;

	cr_assert_eq(OFI_RETRY(&p, fi_tinjectdata(p.ep[0], out, 20, 3, p.addr[1], 5)), 0);
	while (probe(5, FI_PEEK, &ctx, &e, &err) != 1)
		cr_assert_eq(err.err, FI_ENOMSG);
}

Test(cpr_tagged, a_peek_finds_nothing_or_describes_the_message)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	int ctx;

	cr_expect_eq(probe(6, FI_PEEK, &ctx, &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ENOMSG);
	cr_expect_eq(err.op_context, &ctx);
	send_unexpected();
	cr_expect_eq(probe(5, FI_PEEK, &ctx, &e, &err), 1);
	cr_expect_eq(e.op_context, &ctx);
	cr_expect_eq(e.len, 20);
	cr_expect_eq(e.tag, 5);
	cr_expect_eq(e.data, 3);
	cr_expect(e.flags & FI_REMOTE_CQ_DATA);
	cr_expect_null(e.buf);
}

Test(cpr_tagged, a_claimed_message_waits_for_its_context)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	struct iovec iov = { in, sizeof(in) };
	struct fi_context ctx;
	struct fi_msg_tagged claim = {
		.msg_iov = &iov, .iov_count = 1, .addr = 0, .tag = 99, .context = &ctx
	};

	send_unexpected();
	cr_expect_eq(probe(5, FI_PEEK | FI_CLAIM, &ctx, &e, &err), 1);
	cr_expect_eq(probe(5, FI_PEEK, &e, &e, &err), -FI_EAVAIL, "not found again");
	cr_assert_eq(fi_trecvmsg(p.ep[1], &claim, FI_CLAIM | FI_COMPLETION), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.op_context, &ctx);
	cr_expect_eq(e.len, 20);
	cr_expect_arr_eq(in, out, 20);
	cr_expect_eq(fi_trecvmsg(p.ep[1], &claim, FI_CLAIM | FI_COMPLETION), -FI_EINVAL);
}

Test(cpr_tagged, a_discarded_message_is_gone)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	int ctx;

	send_unexpected();
	cr_expect_eq(probe(5, FI_PEEK | FI_DISCARD, &ctx, &e, &err), 1);
	cr_expect_eq(probe(5, FI_PEEK, &ctx, &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ENOMSG);
}

Test(cpr_tagged, a_claimed_message_can_be_discarded_and_completes)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	struct fi_context ctx;
	struct fi_msg_tagged claim = { .context = &ctx };

	send_unexpected();
	cr_expect_eq(probe(5, FI_PEEK | FI_CLAIM, &ctx, &e, &err), 1);
	cr_assert_eq(fi_trecvmsg(p.ep[1], &claim, FI_CLAIM | FI_DISCARD | FI_COMPLETION), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.op_context, &ctx);
	cr_expect_eq(fi_trecvmsg(p.ep[1], &claim, FI_CLAIM), -FI_EINVAL);
	cr_expect_eq(probe(5, FI_PEEK, &ctx, &e, &err), -FI_EAVAIL);
}

Test(cpr_tagged, a_cancelled_receive_completes_once_as_cancelled)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;

	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
	cr_expect_eq(fi_cancel(&p.ep[1]->fid, in), 0);
	cr_expect_eq(fi_cancel(&p.ep[1]->fid, in), -FI_ENOENT);
	cr_expect_eq(fi_cq_read(p.cq[1], &e, 1), -FI_EAVAIL);
	cr_expect_eq(fi_cq_readerr(p.cq[1], &err, 0), 1);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(err.op_context, in);
	cr_expect_eq(fi_cq_read(p.cq[1], &e, 1), -FI_EAGAIN);
}

Test(cpr_tagged, a_directed_receive_takes_its_sender_only)
{
	struct fi_cq_tagged_entry e;
	char mine[8] = "";

	cr_assert_eq(fi_trecv(p.ep[1], mine, 8, NULL, p.addr[1], 5, 0, mine), 0);
	EXPECT_ARRIVES(1, fi_tinject(p.ep[0], out, 20, p.addr[1], 5), 0);
	cr_expect_eq(mine[0], 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[1], out, 8, p.addr[1], 5)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.op_context, mine);
}

Test(cpr_tagged, bad_arguments_are_refused_at_once)
{
	struct iovec iov[5] = { { out, 1 }, { out, 1 }, { out, 1 }, { out, 1 }, { out, 1 } };
	struct fi_msg_tagged msg = { .msg_iov = iov, .iov_count = 5, .addr = p.addr[1] };
	size_t big = p.info->tx_attr->inject_size + 1;
	char *buf = calloc(1, big);
	struct fid_ep *ep = p.ep[0];

	cr_expect_eq(fi_tinject(ep, buf, big, p.addr[1], 1), -FI_EMSGSIZE);
	cr_expect_eq(fi_tinjectdata(ep, buf, big, 1, p.addr[1], 1), -FI_EMSGSIZE);
	cr_expect_eq(fi_tsend(ep, buf, SIZE_MAX, NULL, p.addr[1], 1, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_tsendmsg(ep, &msg, 0), -FI_EINVAL);
	cr_expect_eq(fi_trecvmsg(ep, &msg, 0), -FI_EINVAL);
	cr_expect_eq(fi_tsend(ep, buf, 1, NULL, 12345, 1, NULL), -FI_EINVAL, "no such address");
	msg.iov_count = 1;
	cr_expect_eq(fi_tsendmsg(ep, &msg, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	cr_expect_eq(fi_trecvmsg(ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_trecvmsg(ep, &msg, FI_DISCARD), -FI_EINVAL);
	iov[0].iov_base = buf;
	iov[0].iov_len = big;
	cr_expect_eq(fi_tsendmsg(ep, &msg, FI_INJECT), -FI_EMSGSIZE);
	free(buf);
}

Test(cpr_tagged, more_bytes_than_max_msg_size_are_refused_towards_anyone)
{
	struct iovec two[2] = { { in, SIZE_MAX }, { in, 1 } };
	struct fi_msg_tagged msg = { .msg_iov = two, .iov_count = 2, .addr = FI_ADDR_UNSPEC };

	cr_expect_eq(fi_trecvv(p.ep[1], two, NULL, 2, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_trecvmsg(p.ep[1], &msg, 0), -FI_EMSGSIZE);
	cr_expect_eq(fi_trecvmsg(p.ep[1], &msg, FI_CLAIM), -FI_EMSGSIZE);
	for (int to = 1; to >= 0; to--) {
		msg.addr = p.addr[to];
		for (size_t i = 0; i < OVERSIZED_CNT; i++) {
			msg.msg_iov = oversized[i].iov;
			msg.iov_count = oversized[i].cnt;
			cr_expect_eq(fi_tsendv(p.ep[0], msg.msg_iov, NULL, msg.iov_count, msg.addr,
					       1, NULL),
				     -FI_EMSGSIZE, "row %zu", i);
			cr_expect_eq(fi_tsendmsg(p.ep[0], &msg, 0), -FI_EMSGSIZE, "row %zu", i);
		}
	}
}

Test(cpr_tagged, a_message_without_buffers_has_no_bytes)
{
	struct fi_msg_tagged msg = { .addr = p.addr[1], .tag = 5 };
	struct fi_cq_tagged_entry e;

	cr_assert_eq(fi_trecv(p.ep[1], NULL, 0, NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsendmsg(p.ep[0], &msg, 0)), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.len, 0);
}

/* The sender need not read a queue either, and both ends have progress of their own. */
Test(cpr_tagged, a_first_injected_message_waits_for_no_call_of_its_peer)
{
	struct ofi_options opts = { .threading = FI_THREAD_SAFE };
	unsigned cnt = 0;
	ssize_t ret;

	teardown();
	ofi_pair_open(&p, &opts);
	while ((ret = fi_tinject(p.ep[0], out, 20, p.addr[1], 5)) == -FI_EAGAIN && cnt++ < 60000)
		poll(NULL, 0, 1);
	cr_assert_eq(ret, 0, "%zd", ret);
	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 5, 0, in), 0);
	expect_arrived(1, FI_TAGGED, 0);
}
