/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callee side: requests arrive in order and keep their bytes until the reply; replies are possible
 * in any order; a used handle is refused.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rpc/core_rpc_post.h"
#include "support/core_pair.h"

#define CALLS 5

static struct node nodes[3];
static uint8_t resp[CALLS][16];

static void setup(void)
{
	nodes_open_plain(nodes, 3);
}

static void teardown(void)
{
	nodes_close(nodes, 3);
}

TestSuite(core_rpc_serve, .init = setup, .fini = teardown);

/* Calls with the byte i. The response goes to resp[i]. */
static void call(struct node *n, uint8_t i, size_t resp_max)
{
	struct iovec iov = { .iov_base = &i, .iov_len = 1 };
	struct core_rpc_request request = { .iov = &iov,
					    .iov_cnt = 1,
					    .len = 1,
					    .resp = resp[i],
					    .resp_max = resp_max,
					    .context = resp[i],
					    .comp_flags = 1 };

	cr_assert_eq(core_rpc_call(&n->ep, 1, &request), 0);
}

static ssize_t reply_to(struct core_rpc_handle *handle, uint64_t seq, size_t len)
{
	static const char zeros[100];
	struct iovec iov[2] = { { (void *)(uintptr_t)zeros, len / 2 },
				{ (void *)(uintptr_t)zeros, len - len / 2 } };

	return core_rpc_reply(&nodes[1].ep, handle, seq, iov, 2, len, 0);
}

Test(core_rpc_serve, requests_arrive_in_order_and_are_replied_to_in_any)
{
	struct core_rpc_handle *handle[CALLS];
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	for (uint8_t i = 0; i < CALLS; i++)
		call(&nodes[0], i, 8);
	nodes_settle(nodes, 3);
	for (uint8_t i = 0; i < CALLS; i++) {
		handle[i] = node_take(&nodes[1]);
		cr_assert_eq(*handle[i]->data, i);
		cr_assert_eq(handle[i]->len, 1);
		cr_assert_eq(handle[i]->resp_max, 8);
	}
	cr_assert_null(node_take(&nodes[1]));
	for (int i = CALLS - 1; i >= 0; i--)
		cr_assert_eq(reply_to(handle[i], handle[i]->seq, (size_t)i), 0);
	nodes_settle(nodes, 3);
	for (int i = CALLS - 1; i >= 0; i--) {
		cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
		cr_assert_eq(e.e.op_context, resp[i]);
		cr_assert_eq(e.e.len, (size_t)i);
	}
	cr_assert_eq(fake_engine_retained(), 0);
}

Test(core_rpc_serve, bytes_stay_until_the_reply)
{
	struct core_rpc_handle *handle;

	call(&nodes[0], 3, 8);
	nodes_settle(nodes, 3);
	cr_assert_eq(fake_engine_retained(), 1);
	handle = node_take(&nodes[1]);
	nodes_settle(nodes, 3);
	cr_assert_eq(*handle->data, 3);
	cr_assert_eq(reply_to(handle, handle->seq, 1), 0);
	cr_assert_eq(fake_engine_retained(), 0);
}

Test(core_rpc_serve, released_bytes_are_freed_and_the_reply_is_still_due)
{
	struct core_rpc_handle *handle;
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	call(&nodes[0], 3, 8);
	nodes_settle(nodes, 3);
	handle = node_take(&nodes[1]);
	cr_assert_eq(core_rpc_release(&nodes[1].ep, handle, handle->seq), 0);
	cr_assert_eq(fake_engine_retained(), 0);
	cr_assert_eq(core_rpc_release(&nodes[1].ep, handle, handle->seq), 0);
	cr_assert_eq(reply_to(handle, handle->seq, 1), 0);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
}

Test(core_rpc_serve, a_reply_beyond_the_maximum_is_refused_and_another_one_accepted)
{
	struct core_rpc_handle *handle;

	call(&nodes[0], 0, 8);
	nodes_settle(nodes, 3);
	handle = node_take(&nodes[1]);
	cr_assert_eq(reply_to(handle, handle->seq, 9), -FI_EMSGSIZE);
	cr_assert_eq(reply_to(handle, handle->seq, 8), 0);
}

Test(core_rpc_serve, a_handle_works_once)
{
	struct core_rpc_handle *handle;
	uint32_t seq;

	call(&nodes[0], 0, 8);
	call(&nodes[0], 1, 8);
	nodes_settle(nodes, 3);
	handle = node_take(&nodes[1]);
	seq = handle->seq;
	cr_assert_eq(reply_to(handle, seq + 1, 1), -FI_EINVAL);
	cr_assert_eq(reply_to(handle, 0, 1), -FI_EINVAL);
	cr_assert_eq(reply_to(handle, seq, 1), 0);
	cr_assert_eq(reply_to(handle, seq, 1), -FI_EINVAL);
	cr_assert_eq(core_rpc_release(&nodes[1].ep, handle, seq), -FI_EINVAL);
	/* The record is reused with another sequence number. */
	call(&nodes[0], 2, 8);
	nodes_settle(nodes, 3);
	cr_assert_not_null(node_take(&nodes[1]));
	cr_assert_not_null(node_take(&nodes[1]));
	cr_assert_eq(reply_to(handle, seq, 1), -FI_EINVAL);
}

Test(core_rpc_serve, requests_wake_threads_that_sleep_on_the_receive_queue)
{
	call(&nodes[0], 0, 8);
	nodes_settle(nodes, 3);
	cr_assert_eq(nodes[1].cq.intake_cnt, 0, "the user takes no requests yet");
	core_rpc_listen(&nodes[1].ep);
	core_rpc_listen(&nodes[1].ep);
	cr_assert_eq(nodes[1].cq.intake_cnt, 1);
	call(&nodes[0], 1, 8);
	call(&nodes[2], 2, 8);
	nodes_settle(nodes, 3);
	cr_assert_eq(nodes[1].cq.intake_cnt, 3);
	node_take(&nodes[1]);
	cr_assert_eq(nodes[1].cq.intake_cnt, 2);
	fake_engine_kill(&nodes[1].ep, &nodes[2].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	cr_assert_eq(nodes[1].cq.intake_cnt, 1);
	core_rpc_unlisten(&nodes[1].ep);
	cr_assert_eq(nodes[1].cq.intake_cnt, 0);
}

Test(core_rpc_serve, malformed_requests_fail_the_channel)
{
	struct core_call_ref ref = { .resp_max = 20 };
	const uint32_t words[] = { wire_rpc_word(21), WIRE_OP_RPC | 0x10, WIRE_OP_RPC | 1u << 31 };
	struct core_chan *chan;
	size_t request, resp_max;

	core_rpc_limits(&nodes[0].ep, 1, &request, &resp_max);
	nodes_settle(nodes, 3);
	chan = core_peer_get(&nodes[0].ep, 1)->chan;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint8_t data[sizeof(words[0])];

		memcpy(data, &words[i], sizeof(data));
		cr_assert_eq(core_rpc_on_call(chan, ref, data, sizeof(data), 0), CORE_RX_BAD);
	}
	cr_assert_null(node_take(&nodes[0]));
}
