/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RPC extension through libfabric: each behaviour documented in fi_copyrpc_rpc(3). */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_ext_copyrpc.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;
static struct fi_copyrpc_ops *rpc;
static char resp[64];
static int ctx;

static void open_with(const struct ofi_options *opts)
{
	ofi_pair_open(&p, opts);
	cr_assert_eq(fi_copyrpc_open(&p.ep[0]->fid, &rpc), 0);
	cr_assert_eq(fi_copyrpc_open(&p.ep[1]->fid, &rpc), 0);
	memset(resp, 0x5A, sizeof(resp));
}

static void open_plain(void)
{
	struct ofi_options opts = { 0 };

	open_with(&opts);
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_rpc, .fini = teardown);

static ssize_t call(const char *text, size_t resp_max, uint64_t flags)
{
	return OFI_RETRY(&p, fi_copyrpc_call(rpc, p.ep[0], text, strlen(text),
					     flags & FI_COPYRPC_RETAIN ? NULL : resp, resp_max,
					     p.addr[1], &ctx, flags));
}

static struct fi_copyrpc_request take(void)
{
	struct fi_copyrpc_request req;
	ssize_t ret;

	do {
		ofi_pair_progress(&p);
		ret = fi_copyrpc_recv(rpc, p.ep[1], &req, 1, 0);
	} while (ret == -FI_EAGAIN);
	cr_assert_eq(ret, 1);
	return req;
}

Test(cpr_rpc, the_table_is_opened_by_its_name_only)
{
	void *ops = NULL;

	open_plain();
	cr_assert_eq(fi_open_ops(&p.ep[0]->fid, "copyrpc_rpc_ops_9", 0, &ops, NULL), -FI_ENOSYS);
	cr_assert_eq(fi_open_ops(&p.ep[0]->fid, FI_COPYRPC_RPC_OPS_1, 1, &ops, NULL),
		     -FI_EBADFLAGS);
	cr_assert_null(ops);
	cr_assert_eq(fi_open_ops(&p.domain->fid, FI_COPYRPC_RPC_OPS_1, 0, &ops, NULL), 0);
	cr_assert_eq(ops, rpc);
	cr_assert_geq(rpc->size, sizeof(*rpc));
	cr_assert(FI_COPYRPC_OPS_HAS(rpc, room));
}

Test(cpr_rpc, refused_calls_are_counted_by_their_shortage)
{
	uint64_t counts[FI_COPYRPC_SHORT_CNT + 1];
	struct fi_copyrpc_limits limits;
	int made = 0;

	open_plain();
	while (fi_copyrpc_query(rpc, p.ep[0], p.addr[1], &limits) == -FI_EAGAIN)
		ofi_pair_progress(&p);
	cr_assert_eq(fi_copyrpc_shortage(rpc, p.ep[0], p.addr[1], 4, 40), FI_COPYRPC_SHORT_NONE);
	while (!fi_copyrpc_call(rpc, p.ep[0], "what", 4, resp, 40, p.addr[1], &ctx, FI_MORE))
		made++;
	cr_assert_gt(made, 10);
	cr_assert_eq(fi_copyrpc_shortage(rpc, p.ep[0], p.addr[1], 4, 40), FI_COPYRPC_SHORT_CREDIT);
	cr_assert_eq(fi_copyrpc_shortage(rpc, p.ep[0], 77, 4, 40), -FI_EINVAL);
	memset(counts, 0xFF, sizeof(counts));
	cr_assert_eq(fi_copyrpc_refused(rpc, p.ep[0], counts, FI_COPYRPC_SHORT_CNT + 1), 0);
	for (int i = 0; i <= FI_COPYRPC_SHORT_CNT; i++)
		cr_assert_eq(counts[i], i == FI_COPYRPC_SHORT_CREDIT, "cause %d", i);
	counts[FI_COPYRPC_SHORT_CREDIT] = 7;
	cr_assert_eq(fi_copyrpc_refused(rpc, p.ep[0], counts, FI_COPYRPC_SHORT_CREDIT), 0);
	cr_assert_eq(counts[FI_COPYRPC_SHORT_CREDIT], 7, "beyond the count nothing is written");
}

/* A program compiled with this header and run with the table of an earlier version. */
Test(cpr_rpc, a_table_without_the_newer_operations_is_recognized)
{
	struct fi_copyrpc_ops old;
	uint64_t count = 5;

	open_plain();
	old = *rpc;
	old.size = offsetof(struct fi_copyrpc_ops, shortage);
	cr_assert(FI_COPYRPC_OPS_HAS(&old, room));
	cr_assert_eq(fi_copyrpc_shortage(&old, p.ep[0], p.addr[1], 4, 4), -FI_ENOSYS);
	cr_assert_eq(fi_copyrpc_refused(&old, p.ep[0], &count, 1), -FI_ENOSYS);
	cr_assert_eq(count, 5);
}

Test(cpr_rpc, a_response_arrives_as_a_completion)
{
	struct fi_cq_tagged_entry entry;
	struct fi_copyrpc_request req;

	open_plain();
	cr_assert_eq(call("what?", 10, 0), 0);
	req = take();
	cr_assert_eq(req.len, 5);
	cr_assert_arr_eq(req.data, "what?", 5);
	cr_assert_eq(req.resp_max, 10);
	cr_assert_eq(req.src_addr, p.addr[0]);
	cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, resp, 11, 0), -FI_EMSGSIZE);
	cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, req.data, req.len, 0), 0);
	cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, "", 0, 0), -FI_EINVAL);
	cr_assert_eq(fi_copyrpc_release(rpc, p.ep[1], &req), -FI_EINVAL);
	cr_assert_eq(ofi_pair_read(&p, 0, &entry), 1);
	cr_assert_eq(entry.op_context, &ctx);
	cr_assert_eq(entry.flags, FI_COPYRPC_CALL);
	cr_assert_eq(entry.len, 5);
	cr_assert_arr_eq(resp, "what?\x5A", 6);
}

Test(cpr_rpc, selective_completion_does_not_apply_to_calls)
{
	struct ofi_options opts = { .bind_flags = FI_SELECTIVE_COMPLETION };
	struct fi_cq_tagged_entry entry;
	struct fi_copyrpc_request req;

	open_with(&opts);
	cr_assert_eq(call("", 0, 0), 0);
	req = take();
	cr_assert_eq(fi_copyrpc_replyv(rpc, p.ep[1], &req, NULL, 0, 0), 0);
	cr_assert_eq(ofi_pair_read(&p, 0, &entry), 1);
	cr_assert_eq(entry.len, 0);
}

Test(cpr_rpc, invalid_arguments_are_refused)
{
	struct iovec iov[64] = { { 0 } };
	struct fi_copyrpc_msg msg = { .msg_iov = iov, .iov_count = 64, .addr = p.addr[1] };
	struct fi_copyrpc_limits limits;
	struct fi_copyrpc_request req;
	static char big[1 << 20];

	open_plain();
	while (fi_copyrpc_query(rpc, p.ep[0], p.addr[1], &limits) == -FI_EAGAIN)
		ofi_pair_progress(&p);
	cr_assert_eq(fi_copyrpc_call(rpc, p.ep[0], big, limits.max_request + 1, resp, 1, p.addr[1],
				     NULL, 0),
		     -FI_EMSGSIZE);
	cr_assert_eq(fi_copyrpc_call(rpc, p.ep[0], big, 1, big, limits.max_response + 1, p.addr[1],
				     NULL, 0),
		     -FI_EMSGSIZE);
	cr_assert_eq(fi_copyrpc_room(rpc, p.ep[0], p.addr[1], 0, limits.max_response + 1),
		     -FI_EMSGSIZE);
	cr_assert_gt(fi_copyrpc_room(rpc, p.ep[0], p.addr[1], 32, 32), 100);
	cr_assert_eq(fi_copyrpc_call(rpc, p.ep[0], big, 1, resp, 1, 77, NULL, 0), -FI_EINVAL);
	cr_assert_eq(fi_copyrpc_call(rpc, p.ep[0], big, 1, resp, 1, p.addr[1], NULL, FI_INJECT),
		     -FI_EBADFLAGS);
	cr_assert_eq(fi_copyrpc_call(rpc, p.ep[0], big, 1, NULL, 1, p.addr[1], NULL, 0),
		     -FI_EINVAL);
	cr_assert_eq(
		fi_copyrpc_call(rpc, p.ep[0], big, 1, resp, 1, p.addr[1], NULL, FI_COPYRPC_RETAIN),
		-FI_EINVAL);
	cr_assert_eq(fi_copyrpc_callmsg(rpc, p.ep[0], &msg, 0), -FI_EINVAL);
	cr_assert_eq(fi_copyrpc_recv(rpc, p.ep[0], &req, 1, 1), -FI_EBADFLAGS);
	cr_assert_eq(fi_copyrpc_recv(rpc, p.ep[0], &req, 1, 0), -FI_EAGAIN);
	cr_assert_eq(fi_copyrpc_release_response(rpc, p.ep[0], 5), -FI_EINVAL);
	cr_assert_eq(fi_copyrpc_flush(rpc, p.ep[0], 77), -FI_EINVAL);
	cr_assert_eq(fi_copyrpc_flush(rpc, p.ep[0], FI_ADDR_UNSPEC), 0);
}

Test(cpr_rpc, lengths_that_no_message_has_are_refused)
{
	const size_t half = SIZE_MAX / 2 + 1;
	struct iovec iov[2] = { { resp, half }, { resp, half } };
	struct fi_copyrpc_msg msg = { .msg_iov = iov, .iov_count = 2 };
	struct fi_copyrpc_request req;
	struct fi_cq_tagged_entry entry;

	open_plain();
	msg.addr = p.addr[1];
	cr_expect_eq(fi_copyrpc_callmsg(rpc, p.ep[0], &msg, 0), -FI_EMSGSIZE, "unconnected");
	cr_assert_eq(call("", 0, 0), 0);
	req = take();
	cr_expect_eq(fi_copyrpc_replyv(rpc, p.ep[1], &req, iov, 2, 0), -FI_EMSGSIZE);
	cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, NULL, 0, 0), 0);
	cr_assert_eq(ofi_pair_read(&p, 0, &entry), 1);
	cr_expect_eq(fi_copyrpc_callmsg(rpc, p.ep[0], &msg, 0), -FI_EMSGSIZE);
	for (size_t len = half; len; len = len < SIZE_MAX ? SIZE_MAX : 0)
		cr_expect_eq(fi_copyrpc_call(rpc, p.ep[0], resp, len, resp, 1, p.addr[1], NULL, 0),
			     -FI_EMSGSIZE);
}

Test(cpr_rpc, a_response_is_retained_only_with_an_address_in_the_completion)
{
	struct ofi_options opts = { .format = FI_CQ_FORMAT_MSG };

	open_with(&opts);
	cr_assert_eq(
		fi_copyrpc_call(rpc, p.ep[0], "", 0, NULL, 8, p.addr[1], NULL, FI_COPYRPC_RETAIN),
		-FI_EINVAL);
}

Test(cpr_rpc, a_retained_response_is_read_in_place)
{
	struct fi_cq_tagged_entry entry;
	struct fi_copyrpc_request req;

	open_plain();
	cr_assert_eq(call("keep", 10, FI_COPYRPC_RETAIN), 0);
	req = take();
	cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, "kept", 4, FI_MORE), 0);
	cr_assert_eq(fi_copyrpc_flush(rpc, p.ep[1], p.addr[0]), 0);
	cr_assert_eq(ofi_pair_read(&p, 0, &entry), 1);
	cr_assert_eq(entry.flags, FI_COPYRPC_CALL | FI_COPYRPC_RETAIN);
	cr_assert_arr_eq(entry.buf, "kept", 4);
	cr_assert_eq(fi_copyrpc_release_response(rpc, p.ep[0], entry.data), 0);
	cr_assert_eq(fi_copyrpc_release_response(rpc, p.ep[0], entry.data), -FI_EINVAL);
}

Test(cpr_rpc, a_call_is_cancelled_once)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct fi_copyrpc_request req;

	open_plain();
	cr_assert_eq(call("a", 10, 0), 0);
	cr_assert_eq(fi_cancel(&p.ep[0]->fid, &ctx), 0);
	cr_assert_eq(fi_cancel(&p.ep[0]->fid, &ctx), -FI_ENOENT);
	cr_assert_eq(ofi_pair_read(&p, 0, &entry), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(p.cq[0], &err, 0), 1);
	cr_assert_eq(err.err, FI_ECANCELED);
	cr_assert_eq(err.op_context, &ctx);
	if (fi_copyrpc_recv(rpc, p.ep[1], &req, 1, 0) == 1)
		cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, "late", 4, 0), 0);
	for (int i = 0; i < 1000; i++)
		ofi_pair_progress(&p);
	cr_assert_eq(fi_cq_read(p.cq[0], &entry, 1), -FI_EAGAIN);
	cr_assert_eq(resp[0], 0x5A);
}

Test(cpr_rpc, requests_wake_sleepers_on_the_receive_queue)
{
	struct ofi_options opts = { .wait_obj = FI_WAIT_FD };
	struct fid *fids[1];
	struct fi_copyrpc_request req;
	struct fi_cq_tagged_entry entry;

	open_with(&opts);
	fids[0] = &p.cq[1]->fid;
	cr_assert_eq(fi_cq_sread(p.cq[1], &entry, 1, NULL, 1), -FI_EAGAIN);
	cr_assert_eq(call("wake up", 10, 0), 0);
	cr_assert_eq(fi_cq_sread(p.cq[1], &entry, 1, NULL, 60000), -FI_EAGAIN);
	cr_assert_eq(fi_trywait(p.fabric, fids, 1), -FI_EAGAIN);
	req = take();
	cr_assert_eq(fi_copyrpc_reply(rpc, p.ep[1], &req, "", 0, 0), 0);
	cr_assert_eq(fi_cq_sread(p.cq[1], &entry, 1, NULL, 1), -FI_EAGAIN);
}

Test(cpr_rpc, nothing_works_before_the_endpoint_is_enabled)
{
	struct fi_copyrpc_ops *early;
	struct fi_copyrpc_request req;
	struct fid_ep *ep;

	open_plain();
	cr_assert_eq(fi_endpoint(p.domain, p.info, &ep, NULL), 0);
	cr_assert_eq(fi_copyrpc_open(&ep->fid, &early), 0);
	cr_assert_eq(fi_copyrpc_recv(early, ep, &req, 1, 0), -FI_EOPBADSTATE);
	cr_assert_eq(fi_copyrpc_call(early, ep, "", 0, NULL, 0, p.addr[1], NULL, 0), -FI_ENOCQ);
	cr_assert_eq(fi_copyrpc_room(early, ep, p.addr[1], 0, 0), -FI_EOPBADSTATE);
	cr_assert_eq(fi_close(&ep->fid), 0);
}

/* The table is opened between fi_ep_bind and fi_enable. */
Test(cpr_rpc, the_table_may_be_opened_before_the_endpoint_is_enabled)
{
	struct fi_copyrpc_ops *early = NULL;
	struct fi_copyrpc_request req;
	struct fid_ep *ep;

	open_plain();
	cr_assert_eq(fi_endpoint(p.domain, p.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &p.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &p.cq[1]->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_copyrpc_open(&ep->fid, &early), 0);
	cr_assert_eq(fi_enable(ep), 0);
	cr_assert_eq(fi_copyrpc_recv(early, ep, &req, 1, 0), -FI_EAGAIN);
	cr_assert_eq(fi_close(&ep->fid), 0);
}

Test(cpr_rpc, an_endpoint_closes_with_calls_and_requests_open)
{
	struct fi_copyrpc_request req;

	open_plain();
	for (int i = 0; i < 3; i++)
		cr_assert_eq(call("x", 10, 0), 0);
	req = take();
	cr_assert_eq(fi_copyrpc_release(rpc, p.ep[1], &req), 0);
}
