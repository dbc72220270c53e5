/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a user refers to is there until it is given back, whatever becomes of the channel it
 * came by; and is given back with the last reference.
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

static void ask(unsigned flags)
{
	struct iovec iov = { .iov_base = "request", .iov_len = 7 };
	struct core_rpc_request a = { .iov = &iov,
				      .iov_cnt = 1,
				      .len = 7,
				      .resp_max = 10,
				      .context = &nodes,
				      .comp_flags = CORE_RPC_RETAIN,
				      .flags = flags };

	cr_assert_eq(core_rpc_call(&nodes[0].ep, 1, &a), 0);
}

static ssize_t answer(struct core_rpc_handle *handle)
{
	struct iovec iov = { .iov_base = "answer", .iov_len = 6 };

	return core_rpc_reply(&nodes[1].ep, handle, handle->seq, &iov, 1, 6, 0);
}

static void kill_channel(void)
{
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
}

Test(core_rpc, a_request_outlives_its_caller_and_its_answer_says_so)
{
	struct core_rpc_handle *a, *b;

	ask(0);
	ask(0);
	ask(0);
	nodes_settle(nodes, 2);
	a = node_take(&nodes[1]);
	b = node_take(&nodes[1]);
	kill_channel();
	cr_assert_null(node_take(&nodes[1]), "nobody waits for it any more");
	cr_assert_arr_eq(a->data, "request", 7);
	cr_assert(!util_list_is_empty(&nodes[1].ep.rpc.stopped));
	cr_assert_eq(answer(a), -FI_ECONNRESET);
	cr_assert_arr_eq(b->data, "request", 7);
	cr_assert_eq(core_rpc_release(&nodes[1].ep, b, b->seq), 0);
	cr_assert(!util_list_is_empty(&nodes[1].ep.rpc.stopped));
	cr_assert_eq(answer(b), -FI_ECONNRESET);
	cr_assert(util_list_is_empty(&nodes[1].ep.rpc.stopped));
	cr_assert_eq(fake_engine_held(), 0);
	nodes_close(nodes, 2);
}

Test(core_rpc, a_lent_answer_outlives_its_callee)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	ask(0);
	nodes_settle(nodes, 2);
	cr_assert_eq(answer(node_take(&nodes[1])), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
	kill_channel();
	cr_assert_arr_eq(e.e.buf, "answer", 6);
	cr_assert_eq(core_rpc_release_resp(&nodes[0].ep, e.e.data), 0);
	cr_assert(util_list_is_empty(&nodes[0].ep.rpc.stopped));
	nodes_close(nodes, 2);
}

Test(core_rpc, a_new_channel_does_not_wait_for_the_old_ones_memory)
{
	struct core_rpc_handle *old, *new;

	ask(0);
	nodes_settle(nodes, 2);
	old = node_take(&nodes[1]);
	kill_channel();
	ask(0);
	nodes_settle(nodes, 2);
	new = node_take(&nodes[1]);
	cr_assert_eq(answer(old), -FI_ECONNRESET);
	cr_assert_eq(answer(new), 0);
	nodes_close(nodes, 2);
}

Test(core_rpc, an_endpoint_closes_whatever_is_still_referred_to)
{
	ask(0);
	ask(0);
	nodes_settle(nodes, 2);
	node_take(&nodes[1]);
	kill_channel();
	ask(0);
	ask(0);
	nodes_settle(nodes, 2);
	node_take(&nodes[1]);
	nodes_close(nodes, 2);
}
