/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives: cancel, peek, claim, discard, source. The oracle is fi_tagged(3). */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_dom.h"
#include "support/core_pair.h"
#include "support/pool_used.h"

static struct node nodes[3];
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[20000], in[20000];

static void setup(void)
{
	nodes_open_plain(nodes, 3);
}

static void teardown(void)
{
	nodes_close(nodes, 3);
}

TestSuite(core_rx_post, .init = setup, .fini = teardown);

static void send_to_1(unsigned from, size_t len, uint64_t tag)
{
	node_fill(out, len, (uint32_t)tag);
	cr_assert_eq(node_send(&nodes[from], 1, out, len, true, tag, FI_REMOTE_CQ_DATA, NULL), 0);
	nodes_settle(nodes, 3);
}

static ssize_t probe(uint64_t flags, fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct core_recv r = { .src = src,
			       .tag = tag,
			       .ignore = ignore,
			       .context = context,
			       .flags = flags | FI_COMPLETION,
			       .tagged = true };

	return core_rx_peek(&nodes[1].ep, &r);
}

static ssize_t claim(uint64_t flags, size_t len, void *context)
{
	struct iovec iov = { .iov_base = in, .iov_len = len };
	struct core_recv r = { .src = 0,
			       .iov = &iov,
			       .iov_cnt = 1,
			       .context = context,
			       .flags = flags | FI_COMPLETION,
			       .tagged = true };

	return core_rx_claim(&nodes[1].ep, &r);
}

Test(core_rx_post, cancel_gives_exactly_one_completion)
{
	node_recv(&nodes[1], 0, in, 8, true, 1, 0, 0, &in[0]);
	node_recv(&nodes[1], 0, in, 8, true, 1, 0, 0, &in[1]);
	cr_assert_eq(core_rx_cancel(&nodes[1].ep, &in[0]), 0);
	cr_assert_eq(core_rx_cancel(&nodes[1].ep, &in[0]), -FI_ENOENT);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	cr_assert_eq(err.err, FI_ECANCELED);
	cr_assert_eq(err.op_context, &in[0]);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	send_to_1(0, 8, 1);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in[1]);
}

Test(core_rx_post, peek_reports_a_message_and_leaves_it)
{
	static const size_t lens[] = { 0, 8, 1000, 5000, 20000 };
	size_t i;

	for (i = 0; i < 5; i++) {
		cr_assert_eq(probe(FI_PEEK, 0, i, 0, &e), 0);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
		cr_assert_eq(err.err, FI_ENOMSG);
		cr_assert_eq(err.op_context, &e);
		send_to_1(0, lens[i], i);
		cr_assert_eq(probe(FI_PEEK, FI_ADDR_UNSPEC, i, 0, &in), 0);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(e.e.op_context, &in);
		cr_assert_eq(e.e.len, lens[i]);
		cr_assert_eq(e.e.tag, i);
		cr_assert_eq(e.e.data, 3 * i);
		cr_assert_eq(e.src, 0);
		node_recv(&nodes[1], 0, in, sizeof(in), true, i, 0, 0, &in);
		nodes_settle(nodes, 3);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(e.e.len, lens[i]);
		cr_assert(node_check(in, lens[i], (uint32_t)i));
	}
}

Test(core_rx_post, a_claimed_message_matches_no_receive)
{
	static const size_t lens[] = { 0, 8, 1000, 5000, 20000 };
	size_t i;

	for (i = 0; i < 5; i++) {
		send_to_1(0, lens[i], 5);
		cr_assert_eq(probe(FI_PEEK | FI_CLAIM, 0, 5, 0, &in), 0);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(probe(FI_PEEK, 0, 5, 0, &out), 0);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL, "claimed twice");
		cr_assert_eq(claim(FI_CLAIM, sizeof(in), &out), -FI_EINVAL, "not the claimer");
		cr_assert_eq(claim(FI_CLAIM, sizeof(in), &in), 0);
		nodes_settle(nodes, 3);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(e.e.len, lens[i]);
		cr_assert(node_check(in, lens[i], 5));
	}
	cr_assert_eq(pool_used(&nodes[1].ep.unexps), 0);
}

/** Claims a message that is with its sender, and ends that. */
static void claim_lost(size_t len)
{
	send_to_1(0, len, 5);
	cr_assert_eq(probe(FI_PEEK | FI_CLAIM, 0, 5, 0, &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(e.e.len, len);
	fake_engine_kill(&nodes[1].ep, &nodes[0].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
}

Test(core_rx_post, a_claimed_message_that_is_lost_ends_its_receive_with_an_error)
{
	claim_lost(sizeof(out));
	cr_assert_eq(claim(FI_CLAIM, sizeof(in), &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.op_context, &in);
	cr_expect_eq(err.err, FI_ECONNRESET);
	cr_expect_eq(err.tag, 5);
	cr_expect_eq(claim(FI_CLAIM, sizeof(in), &in), -FI_EINVAL, "once");
	cr_expect_eq(pool_used(&nodes[1].ep.unexps), 0);
}

Test(core_rx_post, a_claimed_message_that_is_lost_can_be_discarded)
{
	claim_lost(sizeof(out));
	cr_assert_eq(claim(FI_CLAIM | FI_DISCARD, 0, &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_expect_eq(pool_used(&nodes[1].ep.unexps), 0);
}

Test(core_rx_post, a_claimed_message_of_which_parts_are_lost_ends_its_receive_with_an_error)
{
	fake_engine_cfg.room = 1;
	node_fill(out, 5000, 5);
	cr_assert_eq(node_send(&nodes[0], 1, out, 5000, true, 5, 0, NULL), 0);
	while (!pool_used(&nodes[1].ep.unexps)) {
		core_dom_progress(&nodes[0].dom);
		core_dom_progress(&nodes[1].dom);
	}
	cr_assert_eq(probe(FI_PEEK | FI_CLAIM, 0, 5, 0, &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	fake_engine_kill(&nodes[1].ep, &nodes[0].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	cr_expect_eq(fake_engine_retained(), 0);
	cr_assert_eq(claim(FI_CLAIM, sizeof(in), &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), -FI_EAVAIL);
	cr_expect_eq(err.err, FI_ECONNRESET);
	cr_expect_eq(pool_used(&nodes[1].ep.unexps), 0);
}

Test(core_rx_post, a_discarded_message_completes_at_its_sender)
{
	static const size_t lens[] = { 0, 8, 1000, 5000, 20000 };
	size_t i;

	for (i = 0; i < 5; i++) {
		send_to_1(0, lens[i], 5);
		cr_assert_eq(probe(FI_PEEK | FI_DISCARD, 0, 5, 0, &in), 0);
		nodes_settle(nodes, 3);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
		send_to_1(0, lens[i], 6);
		cr_assert_eq(probe(FI_PEEK | FI_CLAIM, 0, 6, 0, &in), 0);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(claim(FI_CLAIM | FI_DISCARD, 0, &in), 0);
		nodes_settle(nodes, 3);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
		cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	}
	cr_assert_eq(pool_used(&nodes[1].ep.unexps), 0);
	cr_assert_eq(nodes[0].ep.tx_open, 0, "every send has ended");
}

Test(core_rx_post, a_directed_receive_takes_messages_of_its_source_only)
{
	node_recv(&nodes[1], 2, in, 8, true, 1, 0, 0, &in[2]);
	node_recv(&nodes[1], 0, in, 8, true, 1, 0, 0, &in[0]);
	send_to_1(0, 8, 1);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in[0]);
	send_to_1(2, 8, 1);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in[2]);
	cr_assert_eq(node_recv(&nodes[1], 99, in, 8, true, 1, 0, 0, NULL), -FI_EINVAL);
}

Test(core_rx_post, the_rest_of_a_discarded_message_is_dropped)
{
	fake_engine_cfg.room = 1;
	fake_engine_cfg.eager_max = 1000;
	node_fill(out, 5000, 7);
	node_send(&nodes[0], 1, out, 5000, true, 7, 0, NULL);
	for (int i = 0; i < 100 && !nodes[1].dom.unexpected_used; i++) {
		core_dom_progress(&nodes[0].dom);
		core_dom_progress(&nodes[1].dom);
	}
	cr_assert_eq(nodes[1].dom.unexpected_used, 5000);
	cr_assert_eq(nodes[0].tx_cntr.value, 0, "the send has already completed");
	cr_assert_eq(probe(FI_PEEK | FI_DISCARD, 0, 7, 0, &in), 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert_eq(e.e.len, 5000);
	nodes_settle(nodes, 3);
	cr_assert_eq(nodes[0].tx_cntr.value, 1);
	cr_assert_eq(nodes[1].dom.unexpected_used, 0);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 0);
	send_to_1(0, 100, 8);
	node_recv(&nodes[1], 0, in, sizeof(in), true, 8, 0, FI_COMPLETION, NULL);
	cr_assert_eq(node_poll(&nodes[1], &e, &err), 1);
	cr_assert(node_check(in, 100, 8));
}
