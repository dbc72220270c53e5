/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a user refers to stays valid until it is released, whatever happens to its channel,
 * and is freed with the last reference.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rpc/core_rpc_post.h"
#include "support/core_pair.h"

static struct node nodes[2];

static void setup(void)
{
	nodes_open_plain(nodes, 2);
}

TestSuite(core_rpc, .init = setup);

static void call(unsigned flags)
{
	struct iovec iov = { .iov_base = "request", .iov_len = 7 };
	struct core_rpc_request request = { .iov = &iov,
					    .iov_cnt = 1,
					    .len = 7,
					    .resp_max = 10,
					    .context = &nodes,
					    .comp_flags = CORE_RPC_RETAIN,
					    .flags = flags };

	cr_assert_eq(core_rpc_call(&nodes[0].ep, 1, &request), 0);
}

static ssize_t reply_to(struct core_rpc_handle *handle)
{
	struct iovec iov = { .iov_base = "result", .iov_len = 6 };

	return core_rpc_reply(&nodes[1].ep, handle, handle->seq, &iov, 1, 6, 0);
}

static void kill_channel(void)
{
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
}

Test(core_rpc, a_request_outlives_its_caller_and_its_reply_reports_the_loss)
{
	struct core_rpc_handle *a, *b;

	call(0);
	call(0);
	call(0);
	nodes_settle(nodes, 2);
	a = node_take(&nodes[1]);
	b = node_take(&nodes[1]);
	kill_channel();
	cr_assert_null(node_take(&nodes[1]), "the caller is gone");
	cr_assert_arr_eq(a->data, "request", 7);
	cr_assert(!util_list_is_empty(&nodes[1].ep.stopped));
	cr_assert_eq(reply_to(a), -FI_ECONNRESET);
	cr_assert_arr_eq(b->data, "request", 7);
	cr_assert_eq(core_rpc_release(&nodes[1].ep, b, b->seq), 0);
	cr_assert(!util_list_is_empty(&nodes[1].ep.stopped));
	cr_assert_eq(reply_to(b), -FI_ECONNRESET);
	cr_assert(util_list_is_empty(&nodes[1].ep.stopped));
	cr_assert_eq(fake_engine_retained(), 0);
	nodes_close(nodes, 2);
}

Test(core_rpc, a_retained_response_outlives_its_callee)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	call(0);
	nodes_settle(nodes, 2);
	cr_assert_eq(reply_to(node_take(&nodes[1])), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
	kill_channel();
	cr_assert_arr_eq(e.e.buf, "result", 6);
	cr_assert_eq(core_rpc_release_resp(&nodes[0].ep, e.e.data), 0);
	cr_assert(util_list_is_empty(&nodes[0].ep.stopped));
	nodes_close(nodes, 2);
}

Test(core_rpc, a_new_channel_does_not_wait_for_memory_of_the_old_one)
{
	struct core_rpc_handle *old, *new;

	call(0);
	nodes_settle(nodes, 2);
	old = node_take(&nodes[1]);
	kill_channel();
	call(0);
	nodes_settle(nodes, 2);
	new = node_take(&nodes[1]);
	cr_assert_eq(reply_to(old), -FI_ECONNRESET);
	cr_assert_eq(reply_to(new), 0);
	nodes_close(nodes, 2);
}

Test(core_rpc, an_endpoint_closes_channels_with_retained_memory)
{
	call(0);
	call(0);
	nodes_settle(nodes, 2);
	node_take(&nodes[1]);
	kill_channel();
	call(0);
	call(0);
	nodes_settle(nodes, 2);
	node_take(&nodes[1]);
	nodes_close(nodes, 2);
}
