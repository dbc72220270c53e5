/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive contexts: matching, sources, completions. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/msg/core_srx.h"
#include "support/core_pair.h"
#include "support/pool_used.h"

/* Nodes 0 and 2 send to node 1, which uses srx. */
#define NODES 3
static struct node nodes[NODES];
static struct core_ep srx;
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[20000], in[20000];

static void setup(void)
{
	nodes_open_plain(nodes, NODES);
	memset(&srx, 0, sizeof(srx));
	srx.directed = true;
	srx.min_multi_recv = 64;
	cr_assert_eq(core_srx_open(&srx, &nodes[1].dom), 0);
	core_srx_join(&srx, &nodes[1].ep);
}

static void teardown(void)
{
	nodes_close(nodes, NODES);
	core_srx_close(&srx);
}

TestSuite(core_srx, .init = setup, .fini = teardown);

static void post(fi_addr_t from, void *buf, size_t len, bool tagged, uint64_t tag, uint64_t flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct core_recv recv = { .src = from,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .tag = tagged ? tag : 0,
				  .context = buf,
				  .flags = flags,
				  .tagged = tagged };

	cr_assert_eq(core_rx_post(&srx, &recv), 0);
}

static void expect_message(void *buf, size_t len)
{
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.op_context, buf);
	cr_expect_eq(e.e.len, len);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 0);
}

Test(core_srx, messages_of_all_lengths_complete_in_the_endpoints_queue)
{
	static const size_t lens[] = { 0, 1, 100, 1000, 1001, 9999, 10000, 20000 };
	size_t i;

	for (i = 0; i < 4 * sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i / 4];
		bool first = i & 1, tagged = i & 2;

		node_fill(out, len, (uint32_t)i);
		memset(in, 0xEE, sizeof(in));
		if (first)
			post(FI_ADDR_UNSPEC, in, len, tagged, 7, 0);
		node_send(&nodes[0], 1, out, len, tagged, 7, 0, NULL);
		nodes_settle(nodes, NODES);
		if (!first)
			post(FI_ADDR_UNSPEC, in, len, tagged, 7, 0);
		nodes_settle(nodes, NODES);
		cr_assert_eq(nodes[1].rx_cntr.value, i + 1, "case %zu", i);
		expect_message(in, len);
		cr_assert(node_check(in, len, (uint32_t)i), "case %zu", i);
	}
	cr_expect_eq(nodes[1].rx_cntr.value, i);
	cr_expect_eq(pool_used(&srx.rx_reqs), 0);
	cr_expect_eq(pool_used(&nodes[1].ep.rx_reqs), 0);
}

Test(core_srx, a_source_is_the_same_address_for_all_endpoints)
{
	post(2, &in[2], 4, true, 7, 0);
	post(0, &in[0], 4, true, 7, 0);
	node_send(&nodes[0], 1, out, 4, true, 7, 0, NULL);
	nodes_settle(nodes, NODES);
	expect_message(&in[0], 4);
	node_send(&nodes[2], 1, out, 4, true, 7, 0, NULL);
	nodes_settle(nodes, NODES);
	expect_message(&in[2], 4);
	/* Messages first, receives after them. */
	node_send(&nodes[0], 1, out, 4, true, 7, 0, NULL);
	node_send(&nodes[2], 1, out, 4, true, 7, 0, NULL);
	nodes_settle(nodes, NODES);
	post(2, &in[2], 4, true, 7, 0);
	expect_message(&in[2], 4);
	post(0, &in[0], 4, true, 7, 0);
	expect_message(&in[0], 4);
}

Test(core_srx, a_multi_receive_buffer_takes_messages_until_it_is_full)
{
	size_t i;

	for (i = 0; i < 3; i++) /* unexpected */
		node_send(&nodes[0], 1, out, 100, false, 0, 0, NULL);
	nodes_settle(nodes, NODES);
	post(FI_ADDR_UNSPEC, in, 500, false, 0, FI_MULTI_RECV);
	for (i = 0; i < 2; i++)
		node_send(&nodes[2], 1, out, 100, false, 0, 0, NULL);
	nodes_settle(nodes, NODES);
	for (i = 0; i < 5; i++) {
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_expect_eq(e.e.buf, in + 100 * i);
		cr_expect_eq(!!(e.e.flags & FI_MULTI_RECV), i == 4);
	}
	cr_expect_eq(pool_used(&srx.rx_reqs), 0);
	/* A buffer with too little room for the next message completes without one. */
	post(FI_ADDR_UNSPEC, in, 500, false, 0, FI_MULTI_RECV);
	node_send(&nodes[0], 1, out, 400, false, 0, 0, NULL);
	node_send(&nodes[0], 1, out, 200, false, 0, 0, NULL);
	nodes_settle(nodes, NODES);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.flags, FI_MULTI_RECV);
	cr_expect_eq(pool_used(&srx.rx_reqs), 0);
}

Test(core_srx, a_cancelled_receive_completes_in_the_first_endpoints_queue)
{
	post(FI_ADDR_UNSPEC, in, 4, true, 7, 0);
	cr_expect_eq(core_rx_cancel(&srx, out), -FI_ENOENT);
	cr_expect_eq(core_rx_cancel(&srx, in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(err.op_context, in);
}

Test(core_srx, peek_and_claim_work_as_on_an_endpoint)
{
	struct iovec iov = { .iov_base = in, .iov_len = 100 };
	struct core_recv recv = { .src = FI_ADDR_UNSPEC,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .tag = 7,
				  .context = &e,
				  .flags = FI_PEEK | FI_CLAIM,
				  .tagged = true };

	node_fill(out, 100, 1);
	cr_assert_eq(core_rx_peek(&srx, &recv), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ENOMSG);
	node_send(&nodes[0], 1, out, 100, true, 7, 0, NULL);
	nodes_settle(nodes, NODES);
	cr_assert_eq(core_rx_peek(&srx, &recv), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(e.e.len, 100);
	recv.flags = FI_CLAIM;
	cr_assert_eq(core_rx_claim(&srx, &recv), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect(node_check(in, 100, 1));
}

/** Messages for the endpoint may be lost, and one of them might have been for this receive. */
Test(core_srx, a_receive_from_any_source_ends_with_the_loss_of_unknown_messages)
{
	post(0, &in[0], 4, true, 7, 0);
	post(FI_ADDR_UNSPEC, &in[1], 4, true, 7, 0);
	post(FI_ADDR_UNSPEC, &in[2], 4, true, 7, 0);
	core_rx_fail_lost(&nodes[1].ep, -FI_ENOMEM);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.op_context, &in[1]);
	cr_expect_eq(err.err, FI_ENOMEM);
	cr_expect_eq(node_poll(&nodes[1], &e, &err), 0, "one is enough");
	cr_expect_eq(pool_used(&srx.rx_reqs), 2);
}

Test(core_srx, receives_stay_after_an_endpoint_is_closed)
{
	static const size_t lens[] = { 10, 500, 5000, 20000 };
	size_t i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		node_send(&nodes[0], 1, out, lens[i], true, i, 0, NULL);
	nodes_settle(nodes, NODES);
	cr_expect_eq(srx.tagged->unexpected_cnt, 4);
	post(FI_ADDR_UNSPEC, in, 4, true, 77, 0);
	nodes_close(nodes, NODES);
	cr_expect_eq(srx.tagged->unexpected_cnt, 0);
	cr_expect_eq(pool_used(&srx.rx_reqs), 1);
	cr_expect_null(srx.rx.cq, "no endpoint is left that has a queue");
	core_srx_close(&srx);
	setup(); /* for teardown */
}

/** The receive is not the user's before it has ended, and the context outlives its endpoints. */
Test(core_srx, a_receive_that_a_closed_endpoint_has_taken_ends_in_the_contexts_queue)
{
	static const uint64_t flags[] = { 0, FI_MULTI_RECV };

	for (int i = 0; i < 2; i++) {
		struct node own = { 0 };

		cr_assert_eq(core_cq_init(&own.cq, 0), 0);
		srx.rx = (struct core_comp){ .cq = &own.cq };
		srx.rx_owner = NULL;
		fake_engine_cfg.room = 1;
		node_send(&nodes[0], 1, out, 5000, false, 0, 0, NULL);
		post(FI_ADDR_UNSPEC, in, 5000, false, 0, flags[i]);
		while (!pool_used(&nodes[1].ep.unexps)) {
			core_dom_progress(&nodes[0].dom);
			core_dom_progress(&nodes[1].dom);
		}
		nodes_close(nodes, NODES);
		cr_assert_eq(node_poll(&own, &e, &err), -FI_EAVAIL);
		cr_expect_eq(err.op_context, in);
		cr_expect_eq(err.err, FI_ESHUTDOWN);
		cr_expect_eq(err.flags, FI_RECV | FI_MSG | flags[i]);
		cr_expect_eq(pool_used(&srx.rx_reqs), 0);
		core_srx_close(&srx);
		core_cq_fini(&own.cq);
		setup();
	}
}

Test(core_srx, its_receives_are_shown_in_the_row_of_one_endpoint)
{
	struct copyrpc_stats_endpoint *row = nodes[1].ep.stats;

	post(FI_ADDR_UNSPEC, in, 8, true, 1, 0);
	post(FI_ADDR_UNSPEC, in, 8, true, 2, 0);
	core_ep_show(&nodes[1].ep);
	cr_expect_eq(row->posted_now, 2);
	cr_expect_eq(row->posted_most, 2);
	srx.shown_by = &nodes[0].ep; /* another one that joined first */
	core_ep_show(&nodes[1].ep);
	cr_expect_eq(row->posted_now, 0);
	srx.shown_by = &nodes[1].ep;
	core_srx_leave(&nodes[1].ep);
	cr_expect_null(srx.shown_by, "no other endpoint uses it");
	core_ep_show(&nodes[1].ep);
	cr_expect_eq(row->posted_now, 0);
	cr_expect_eq(row->posted_most, 2, "the highest number stays");
}
