/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loopback channel: an endpoint that is its own peer behaves like any other (fi_endpoint(3)). */
#include "core/core_self.h"

#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_mr.h"
#include "core/rma/core_rma.h"
#include "core/rpc/core_rpc.h"
#include "support/core_pair.h"
#include "support/pool_used.h"
#include "unit/core/must.h"
#include "unit/core/no_memory.h"

#define EAGER_MAX 64u
#define FETCH_MIN 256u
#define BYTES     4096u
#define KEY       5

static struct node node;
static uint8_t from[BYTES], to[BYTES + 1];

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = EAGER_MAX,
					    .single_copy_min = FETCH_MIN,
					    .unexpected_mem = 1 << 20 };
	nodes_open(&node, 1);
	node.ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
}

static void teardown(void)
{
	nodes_close(&node, 1);
}

TestSuite(core_self, .init = setup, .fini = teardown);

/* Makes progress and returns the completion, which must be a good one. */
static struct core_cqe completion(void)
{
	struct fi_cq_err_entry err;
	struct core_cqe e = { 0 };

	nodes_settle(&node, 1);
	MUST(node_poll(&node, &e, &err) == 1);
	return e;
}

static void post_recv(size_t len, bool tagged)
{
	MUST(!node_recv(&node, FI_ADDR_UNSPEC, to, len, tagged, 7, 0, 0, to));
}

static void post_send(size_t len, bool tagged, uint64_t flags)
{
	MUST(!node_send(&node, 0, from, len, tagged, 7, flags, from));
}

static void exchange(size_t len, bool posted, bool tagged, uint64_t flags)
{
	unsigned received = 0, sent = 0;

	node_fill(from, len, (uint32_t)len);
	memset(to, 0xA5, sizeof(to));
	if (posted)
		post_recv(len, tagged);
	post_send(len, tagged, flags);
	nodes_settle(&node, 1);
	if (!posted)
		post_recv(len, tagged);
	for (unsigned i = 0; i < 2; i++) {
		struct core_cqe e = completion();

		received += e.e.op_context == to && e.e.len == len;
		sent += e.e.op_context == from;
	}
	MUST(received == 1 && sent == 1);
	MUST(node_check(to, len, (uint32_t)len) && to[len] == 0xA5);
}

Test(core_self, messages_of_each_protocol_arrive_before_and_after_the_receive)
{
	static const size_t lens[] = { 0,    1, EAGER_MAX, EAGER_MAX + 1, FETCH_MIN, FETCH_MIN + 1,
				       BYTES };
	static const uint64_t flags[] = { 0, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE };

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (unsigned j = 0; j < 12; j++)
			exchange(lens[i], j & 1, j & 2, flags[j >> 2]);
	cr_assert_eq(pool_used(&node.ep.unexps), 0);
}

Test(core_self, order_is_that_of_the_sends)
{
	uint8_t out[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, in[8];

	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(node_send(&node, 0, &out[i], 1, false, 0, 0, &out[i]), 0);
	nodes_settle(&node, 1);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(node_recv(&node, FI_ADDR_UNSPEC, &in[i], 1, false, 0, 0, 0, &in[i]),
			     0);
	for (unsigned i = 0; i < 16; i++)
		completion();
	cr_assert_arr_eq(in, out, sizeof(out));
}

static void reach(bool write, size_t len)
{
	struct iovec iov = { to, len };
	struct fi_rma_iov remote = { .len = len, .key = KEY };
	struct core_rma r = { .write = write,
			      .iov = &iov,
			      .iov_cnt = 1,
			      .len = len,
			      .rma_iov = &remote,
			      .rma_cnt = 1,
			      .context = to,
			      .flags = FI_COMPLETION };

	MUST(!core_rma_post(&node.ep, &r));
	MUST(completion().e.op_context == to);
}

Test(core_self, regions_are_read_and_written_at_any_length)
{
	static const size_t lens[] = { 0, 1, EAGER_MAX + 1, FETCH_MIN, BYTES };
	struct core_mr mr = { .key = KEY,
			      .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
			      .len = BYTES,
			      .iov_cnt = 1,
			      .iov[0] = { from, BYTES } };

	cr_assert_eq(core_mr_add(&node.dom, &mr, false), 0);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		node_fill(from, BYTES, 1 + i);
		memset(to, 0xA5, sizeof(to));
		reach(false, lens[i]);
		MUST(node_check(to, lens[i], 1 + i) && to[lens[i]] == 0xA5);
		node_fill(to, lens[i], 100 + i);
		reach(true, lens[i]);
		MUST(node_check(from, lens[i], 100 + i));
	}
	core_mr_remove(&node.dom, &mr);
}

/* A caller cannot wait for a response that will not come. */
Test(core_self, a_response_without_memory_fails_its_call)
{
	static uint8_t resp[1 << 20];
	struct iovec iov[2] = { { from, 1 }, { resp, sizeof(resp) - 1 } };
	struct core_rpc_request request = { .iov = iov,
					    .iov_cnt = 1,
					    .len = 1,
					    .resp = resp,
					    .resp_max = sizeof(resp),
					    .context = resp,
					    .comp_flags = 1 };
	struct fi_cq_err_entry err = { 0 };
	struct core_rpc_handle *handle;
	struct core_cqe e;
	ssize_t ret;

	if (!NO_MEMORY_WORKS)
		cr_skip_test("a sanitizer needs memory itself");
	MUST(!core_rpc_call(&node.ep, 0, &request));
	handle = UTIL_CONTAINER_OF(node.ep.rpc.intake.next, struct core_rpc_handle, link);
	core_rpc_unlist(&node.ep, handle);
	no_memory_limit(no_memory_mapped());
	ret = core_rpc_reply(&node.ep, handle, handle->seq, iov, 2, sizeof(resp), 0);
	no_memory_limit(RLIM_INFINITY);
	cr_assert_eq(ret, 0);
	nodes_settle(&node, 1);
	cr_assert_eq(node_poll(&node, &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ENOMEM);
	cr_expect_eq(err.op_context, resp);
}

/* For a leak checker: memory of each protocol is freed with the endpoint. */
Test(core_self, unexpected_messages_are_freed_with_the_endpoint)
{
	static const size_t lens[] = { 0, EAGER_MAX, EAGER_MAX + 1, FETCH_MIN };

	for (unsigned i = 0; i < 4; i++)
		post_send(lens[i], i & 1, 0);
	nodes_settle(&node, 1);
	cr_assert_eq(pool_used(&node.ep.unexps), 4);
}
