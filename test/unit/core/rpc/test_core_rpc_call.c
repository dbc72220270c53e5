/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Caller side: an accepted call ends exactly once, a refused one changes nothing, and no bytes are
 * written to the buffer of a call that has ended.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rpc/core_rpc_post.h"
#include "support/core_pair.h"
#include "support/pool_used.h"

static struct node nodes[2];
static uint8_t resp[64];
static int ctx[8];

static void setup(void)
{
	nodes_open_plain(nodes, 2);
	memset(resp, 0xA5, sizeof(resp));
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_rpc_call, .init = setup, .fini = teardown);

static ssize_t call(unsigned to, const void *buf, size_t len, size_t resp_max, void *context,
		    uint64_t comp_flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_rpc_request request = { .iov = &iov,
					    .iov_cnt = 1,
					    .len = len,
					    .resp = resp,
					    .resp_max = resp_max,
					    .context = context,
					    .comp_flags = 1ull << 60 | comp_flags };

	return core_rpc_call(&nodes[0].ep, to, &request);
}

static void connect_both(void)
{
	size_t request, resp_max;

	cr_assert_eq(core_rpc_limits(&nodes[0].ep, 1, &request, &resp_max), -FI_EAGAIN);
	nodes_settle(nodes, 2);
	cr_assert_eq(core_rpc_limits(&nodes[0].ep, 1, &request, &resp_max), 0);
	cr_assert_eq(request, 4096);
	cr_assert_eq(resp_max, 4096);
}

static ssize_t reply_to(struct core_rpc_handle *handle, const void *buf, size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return core_rpc_reply(&nodes[1].ep, handle, handle->seq, &iov, 1, len, 0);
}

static void assert_error(void *context, int err)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	cr_assert_eq(node_poll(&nodes[0], &e, &bad), -FI_EAVAIL);
	cr_assert_eq(bad.op_context, context);
	cr_assert_eq(bad.err, err);
	cr_assert_eq(bad.flags, 1ull << 60);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 0);
}

static void assert_nothing(void)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 0);
}

Test(core_rpc_call, a_response_completes_with_the_context_of_the_call)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	connect_both();
	cr_assert_eq(call(1, "question", 8, 10, &ctx[0], 0), 0);
	assert_nothing();
	nodes_settle(nodes, 2);
	cr_assert_eq(reply_to(node_take(&nodes[1]), "result", 6), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
	cr_assert_eq(e.e.op_context, &ctx[0]);
	cr_assert_eq(e.e.flags, 1ull << 60);
	cr_assert_eq(e.e.len, 6);
	cr_assert_eq(e.src, 1);
	cr_assert_arr_eq(resp, "result\xA5", 7);
	assert_nothing();
}

Test(core_rpc_call, without_credit_a_call_is_refused_and_changes_nothing)
{
	connect_both();
	fake_engine_cfg.credit = 1;
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	cr_assert_eq(core_rpc_room(&nodes[0].ep, 1, 1, 10), 0);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[1], 0), -FI_EAGAIN);
	nodes_settle(nodes, 2);
	cr_assert_eq(reply_to(node_take(&nodes[1]), "", 0), 0);
	cr_assert_null(node_take(&nodes[1]));
	nodes_settle(nodes, 2);
	cr_assert_eq(core_rpc_room(&nodes[0].ep, 1, 1, 10), 1);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[1], 0), 0);
}

static void assert_refused(enum core_shortage shortage, uint64_t cnt)
{
	for (int i = 0; i < CORE_SHORT_CNT; i++)
		cr_assert_eq(nodes[0].ep.rpc.refused[i], i == (int)shortage ? cnt : 0, "%d", i);
}

Test(core_rpc_call, a_call_refused_for_lack_of_credit_is_counted_as_such)
{
	connect_both();
	fake_engine_cfg.credit = 1;
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_NONE);
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	assert_refused(CORE_SHORT_NONE, 0);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_CREDIT);
	assert_refused(CORE_SHORT_NONE, 0);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[1], 0), -FI_EAGAIN);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[1], 0), -FI_EAGAIN);
	assert_refused(CORE_SHORT_CREDIT, 2);
	nodes_settle(nodes, 2);
	cr_assert_eq(reply_to(node_take(&nodes[1]), "", 0), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_NONE);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[1], 0), 0);
	assert_refused(CORE_SHORT_CREDIT, 2);
}

Test(core_rpc_call, a_call_refused_for_lack_of_space_is_counted_as_such)
{
	connect_both();
	fake_engine_cfg.room = 1;
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_SPACE);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[1], 0), -FI_EAGAIN);
	assert_refused(CORE_SHORT_SPACE, 1);
	nodes_settle(nodes, 2);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_NONE);
}

/* A queued operation goes first: the call is refused although the channel would accept it. */
Test(core_rpc_call, a_call_refused_behind_queued_operations_is_counted_as_such)
{
	struct util_list waiting;

	connect_both();
	util_list_init(&waiting);
	util_list_push_back(&nodes[0].ep.peers[1]->tx_queue, &waiting);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_QUEUE);
	core_peer_set_eager(nodes[0].ep.peers[1]);
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), -FI_EAGAIN);
	assert_refused(CORE_SHORT_QUEUE, 1);
	util_list_remove(&waiting);
	core_peer_set_eager(nodes[0].ep.peers[1]);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_NONE);
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
}

Test(core_rpc_call, calls_that_wait_for_a_connection_are_bounded_by_their_bytes)
{
	size_t len = CORE_RPC_QUEUE_BYTES / 4;
	uint8_t *buf = calloc(1, len);

	fake_engine_cfg.lazy_up = 1000000;
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, len, 10), CORE_SHORT_NONE);
		cr_assert_eq(call(1, buf, len, 10, &ctx[i], 0), 0);
	}
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 10), CORE_SHORT_CONNECTION);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 0, 10), CORE_SHORT_NONE);
	cr_assert_eq(call(1, buf, 1, 10, &ctx[4], 0), -FI_EAGAIN);
	assert_refused(CORE_SHORT_CONNECTION, 1);
	free(buf);
}

Test(core_rpc_call, the_shortage_of_an_impossible_call_is_an_error)
{
	connect_both();
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 9, 1, 10), -FI_EINVAL);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 4097, 10), -FI_EMSGSIZE);
	cr_assert_eq(core_rpc_shortage(&nodes[0].ep, 1, 1, 4097), -FI_EMSGSIZE);
	assert_refused(CORE_SHORT_NONE, 0);
}

Test(core_rpc_call, calls_beyond_the_limits_are_refused_as_too_long)
{
	static uint8_t big[5000];

	connect_both();
	cr_assert_eq(call(1, big, 4096, 10, &ctx[0], 0), 0);
	cr_assert_eq(call(1, big, 4097, 10, &ctx[0], 0), -FI_EMSGSIZE);
	cr_assert_eq(call(1, big, 1, 4097, &ctx[0], 0), -FI_EMSGSIZE);
	cr_assert_eq(core_rpc_room(&nodes[0].ep, 1, 4097, 0), -FI_EMSGSIZE);
	cr_assert_eq(call(7, big, 1, 1, &ctx[0], 0), -FI_EINVAL);
}

Test(core_rpc_call, calls_before_the_connection_are_queued_with_their_bytes)
{
	char question[] = "first";
	struct core_rpc_handle *handle;

	fake_engine_cfg.lazy_up = 5;
	cr_assert_eq(call(1, question, 5, 10, &ctx[0], 0), 0);
	memset(question, 'x', 5);
	cr_assert_eq(call(1, "second", 6, 10, &ctx[1], 0), 0);
	nodes_settle(nodes, 2);
	handle = node_take(&nodes[1]);
	cr_assert_eq(handle->len, 5);
	cr_assert_arr_eq(handle->data, "first", 5);
	handle = node_take(&nodes[1]);
	cr_assert_arr_eq(handle->data, "second", 6);
	cr_assert_eq(nodes[0].ep.rpc.queue_bytes, 0);
}

Test(core_rpc_call, a_queued_call_that_proves_too_long_ends_with_an_error)
{
	static uint8_t big[5000];

	fake_engine_cfg.lazy_up = 5;
	cr_assert_eq(call(1, big, 4097, 10, &ctx[0], 0), 0);
	nodes_settle(nodes, 2);
	assert_error(&ctx[0], FI_EMSGSIZE);
	cr_assert_eq(nodes[0].ep.rpc.queue_bytes, 0);
}

Test(core_rpc_call, a_failed_connect_ends_the_queued_calls)
{
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	nodes_settle(nodes, 2);
	assert_error(&ctx[0], FI_ECONNREFUSED);
}

Test(core_rpc_call, the_death_of_the_peer_ends_all_open_calls)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	connect_both();
	for (int i = 0; i < 3; i++)
		cr_assert_eq(call(1, "a", 1, 10, &ctx[i], 0), 0);
	nodes_settle(nodes, 2);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(node_poll(&nodes[0], &e, &bad), -FI_EAVAIL);
		cr_assert_eq(bad.err, FI_ECONNRESET);
	}
	assert_nothing();
	cr_assert_eq(pool_used(&nodes[0].ep.rpc.calls), 0);
}

Test(core_rpc_call, a_cancelled_call_ends_once_and_its_response_is_dropped)
{
	connect_both();
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(core_rpc_cancel(&nodes[0].ep, &ctx[0]), 0);
	assert_error(&ctx[0], FI_ECANCELED);
	cr_assert_eq(core_rpc_cancel(&nodes[0].ep, &ctx[0]), -FI_ENOENT);
	cr_assert_eq(reply_to(node_take(&nodes[1]), "late", 4), 0);
	nodes_settle(nodes, 2);
	assert_nothing();
	for (size_t i = 0; i < sizeof(resp); i++)
		cr_assert_eq(resp[i], 0xA5);
	cr_assert_eq(pool_used(&nodes[0].ep.rpc.calls), 0);
}

Test(core_rpc_call, a_cancelled_call_does_not_complete_again_when_the_peer_dies)
{
	connect_both();
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(core_rpc_cancel(&nodes[0].ep, &ctx[0]), 0);
	assert_error(&ctx[0], FI_ECANCELED);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 2);
	assert_nothing();
}

Test(core_rpc_call, a_queued_call_is_cancelled_at_once)
{
	fake_engine_cfg.lazy_up = 5;
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	cr_assert_eq(core_rpc_cancel(&nodes[0].ep, &ctx[0]), 0);
	assert_error(&ctx[0], FI_ECANCELED);
	cr_assert_eq(nodes[0].ep.tx_open, 0);
	nodes_settle(nodes, 2);
	cr_assert_null(node_take(&nodes[1]));
}

Test(core_rpc_call, a_retained_response_stays_until_it_is_released)
{
	struct fi_cq_err_entry bad;
	struct core_cqe e;

	connect_both();
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], CORE_RPC_RETAIN), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(reply_to(node_take(&nodes[1]), "kept", 4), 0);
	nodes_settle(nodes, 2);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
	cr_assert_eq(e.e.len, 4);
	cr_assert_arr_eq(e.e.buf, "kept", 4);
	cr_assert_eq(resp[0], 0xA5);
	cr_assert_eq(fake_engine_retained(), 1);
	cr_assert_eq(core_rpc_release_resp(&nodes[0].ep, e.e.data + (1ull << 32)), -FI_EINVAL);
	cr_assert_eq(core_rpc_release_resp(&nodes[0].ep, e.e.data), 0);
	cr_assert_eq(core_rpc_release_resp(&nodes[0].ep, e.e.data), -FI_EINVAL);
	cr_assert_eq(fake_engine_retained(), 0);
}

Test(core_rpc_call, a_call_to_the_endpoint_itself_works_with_a_retained_response)
{
	struct fi_cq_err_entry bad;
	struct core_rpc_handle *handle;
	struct core_cqe e;
	struct iovec iov = { .iov_base = "self", .iov_len = 4 };

	cr_assert_eq(call(0, "to me", 5, 10, &ctx[0], CORE_RPC_RETAIN), 0);
	handle = node_take(&nodes[0]);
	cr_assert_arr_eq(handle->data, "to me", 5);
	cr_assert_eq(core_rpc_reply(&nodes[0].ep, handle, handle->seq, &iov, 1, 4, 0), 0);
	cr_assert_eq(node_poll(&nodes[0], &e, &bad), 1);
	cr_assert_arr_eq(e.e.buf, "self", 4);
	cr_assert_eq(core_rpc_release_resp(&nodes[0].ep, e.e.data), 0);
}

Test(core_rpc_call, open_calls_do_not_keep_an_endpoint_busy)
{
	connect_both();
	cr_assert_eq(call(1, "a", 1, 10, &ctx[0], 0), 0);
	nodes_settle(nodes, 2);
	cr_assert(!core_ep_is_busy(&nodes[0].ep));
}

Test(core_rpc_call, calls_and_sends_keep_their_order_while_a_connection_is_made)
{
	struct core_rpc_handle *handle;
	uint8_t buf[8];

	fake_engine_cfg.lazy_up = 5;
	cr_assert_eq(node_recv(&nodes[1], FI_ADDR_UNSPEC, buf, 8, true, 1, 0, 0, &ctx[7]), 0);
	cr_assert_eq(node_send(&nodes[0], 1, "abcdefgh", 8, true, 1, 0, &ctx[6]), 0);
	cr_assert_eq(call(1, "b", 1, 10, &ctx[0], 0), 0);
	nodes_settle(nodes, 2);
	handle = node_take(&nodes[1]);
	cr_assert_not_null(handle);
	cr_assert_arr_eq(buf, "abcdefgh", 8);
}
