/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers that come, go, die and return: every operation ends, exactly once. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/core_pair.h"

static struct node nodes[3];
static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t out[20000], in[20000];

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 1000,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes, 3);
}

static void teardown(void)
{
	nodes_close(nodes, 3);
}

static void ends_with(struct node *n, void *context, int code)
{
	cr_assert_eq(node_poll(n, &e, &err), -FI_EAVAIL);
	cr_assert_eq(err.err, code, "error %d", err.err);
	cr_assert_eq(err.op_context, context);
}

Test(core_peer, a_refused_handshake_ends_what_waits_for_it, .init = setup, .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_EHOSTUNREACH;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	cr_assert_eq(node_send(&nodes[0], 1, out, 20000, true, 1, 0, &out[1]), 0);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &out[0], FI_EHOSTUNREACH);
	ends_with(&nodes[0], &out[1], FI_EHOSTUNREACH);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0);
	cr_assert_eq(nodes[0].tx_cntr.errors, 2);
	fake_engine_cfg.connect_err = 0;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, &out[0]), 0);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1, "the next use tries again");
}

Test(core_peer, injected_messages_wait_outside, .init = setup, .fini = teardown)
{
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), 0);
	cr_assert_eq(node_send(&nodes[0], 2, out, 0, true, 1, FI_INJECT, NULL), 0,
		     "nothing to keep: it may wait inside");
}

Test(core_peer, an_injected_message_is_told_that_nobody_is_there, .init = setup, .fini = teardown)
{
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_ECONNREFUSED);
	fake_engine_cfg.connect_err = 0;
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), -FI_EAGAIN,
		     "the next use tries again");
	nodes_settle(nodes, 3);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, FI_INJECT, NULL), 0);
}

Test(core_peer, a_death_ends_open_sends_and_directed_receives, .init = setup, .fini = teardown)
{
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	node_send(&nodes[0], 2, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	while (node_poll(&nodes[0], &e, &err) == 1)
		;
	node_send(&nodes[0], 1, out, 20000, true, 2, 0, &out[0]); /* announced, nobody fetches */
	node_send(&nodes[0], 1, out, 8, true, 2, FI_DELIVERY_COMPLETE, &out[1]);
	node_send(&nodes[0], 2, out, 20000, true, 2, 0, &out[2]); /* to another peer */
	node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in[0]);
	node_recv(&nodes[0], 2, in, 8, true, 1, 0, 0, &in[1]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 1, 0, 0, &in[2]);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in[0], FI_ECONNRESET);
	ends_with(&nodes[0], &out[0], FI_ECONNRESET);
	ends_with(&nodes[0], &out[1], FI_ECONNRESET);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "the others go on");
	cr_assert_eq(nodes[0].ep.tx_open, 1);
	node_send(&nodes[2], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in[1]);
}

Test(core_peer, a_broken_connection_ends_one_receive_from_anybody, .init = setup, .fini = teardown)
{
	node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	while (node_poll(&nodes[0], &e, &err) == 1)
		;
	node_recv(&nodes[0], 2, in, 8, true, 1, 0, 0, &in[0]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 1, 0, 0, &in[1]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 2, 0, 0, &in[2]);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, false, 0, 0, 0, &in[3]);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in[1], FI_EIO);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL, "of each kind");
	cr_expect_eq(err.op_context, &in[3]);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "the others stay");
}

Test(core_peer, what_arrived_before_a_death_is_delivered_after_it, .init = setup, .fini = teardown)
{
	unsigned i;

	nodes[0].dom.limits.unexpected_mem = 1500; /* some of it held in the ring */
	for (i = 0; i < 5; i++) {
		node_fill(out, 700, i);
		node_send(&nodes[1], 0, out, 700, true, i, 0, NULL);
		nodes_settle(nodes, 3);
	}
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	cr_assert_eq(fake_engine_held(), 0);
	for (i = 0; i < 5; i++) {
		node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 700, true, i, 0, 0, &in);
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
		cr_assert(node_check(in, 700, i));
	}
}

Test(core_peer, a_half_received_message_ends_with_its_sender, .init = setup, .fini = teardown)
{
	fake_engine_cfg.room = 3;
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, sizeof(in), true, 1, 0, 0, &in);
	node_send(&nodes[1], 0, out, 9999, true, 1, 0, NULL);
	core_dom_progress(&nodes[1].dom); /* up */
	core_dom_progress(&nodes[1].dom); /* three frames of four */
	core_dom_progress(&nodes[0].dom);
	cr_assert_eq(nodes[0].ep.rx_reqs.used_cnt, 0, "it has begun");
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), -FI_EAVAIL);
	cr_assert_eq(err.op_context, &in);
}

Test(core_peer, after_a_goodbye_receives_wait_for_the_next_life, .init = setup, .fini = teardown)
{
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], 1, in, 8, true, 2, 0, 0, &in);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0);
	node_send(&nodes[1], 0, out, 8, true, 2, 0, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.e.op_context, &in);
}

Test(core_peer, a_receive_directed_at_the_dead_ends_too, .init = setup, .fini = teardown)
{
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	fake_engine_cfg.connect_err = -FI_ECONNREFUSED;
	node_recv(&nodes[0], 1, in, 8, true, 2, 0, 0, &in);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in, FI_ECONNREFUSED);
}

/* Nobody watches a process that we were never connected to; from the first connection on, we do. */
Test(core_peer, a_receive_directed_at_one_never_met_waits_until_it_was_met, .init = setup,
     .fini = teardown)
{
	node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in);
	nodes_settle(nodes, 3);
	cr_expect_eq(nodes[0].ep.peers[1]->state, CORE_PEER_IDLE, "a receive connects nobody");
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 0);
	node_send(&nodes[1], 0, out, 8, true, 2, 0, NULL);
	nodes_settle(nodes, 3);
	cr_expect_eq(node_poll(&nodes[0], &e, &err), 0, "another tag");
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
	nodes_settle(nodes, 3);
	ends_with(&nodes[0], &in, FI_ECONNRESET);
}

Test(core_peer, a_stranger_gets_its_name_when_the_av_learns_it, .init = setup, .fini = teardown)
{
	struct sockaddr_storage addr;
	uint64_t idx;
	bool gone;

	core_av_remove(nodes[0].ep.av, 1, &gone);
	cr_assert(gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 1, 0, 0, &in);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.src, FI_ADDR_NOTAVAIL);
	core_ep_addr(&nodes[1].ep, &addr);
	core_av_insert(nodes[0].ep.av, (struct sockaddr *)&addr, &idx);
	core_ep_av_inserted(&nodes[0].ep, idx);
	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], idx, in, 8, true, 1, 0, 0, &in);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_assert_eq(e.src, idx);
}

Test(core_peer, removing_an_address_ends_what_is_open_towards_it, .init = setup, .fini = teardown)
{
	bool gone;

	node_send(&nodes[0], 1, out, 20000, true, 1, 0, &out);
	nodes_settle(nodes, 3);
	core_av_remove(nodes[0].ep.av, 1, &gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	ends_with(&nodes[0], &out, FI_ESHUTDOWN);
	cr_assert_eq(nodes[0].ep.tx_open, 0);
	cr_assert_eq(node_send(&nodes[0], 1, out, 8, true, 1, 0, NULL), -FI_EINVAL);
}

Test(core_peer, what_a_removed_peer_had_sent_is_received, .init = setup, .fini = teardown)
{
	bool gone;

	node_send(&nodes[1], 0, out, 8, true, 1, 0, NULL);
	nodes_settle(nodes, 3);
	node_recv(&nodes[0], 1, in, 8, true, 1, 0, 0, &in[0]);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	fake_engine_cfg.hold_delivery = true;
	node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, 2, 0, 0, &in[2]);
	for (uint64_t tag = 2; tag < 5; tag++)
		node_send(&nodes[1], 0, out + tag, 8, true, tag, 0, NULL);
	nodes_settle(nodes, 3);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 0, "unread");
	core_av_remove(nodes[0].ep.av, 1, &gone);
	core_ep_av_removed(&nodes[0].ep, 1);
	cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
	cr_expect_eq(e.e.op_context, &in[2], "a receive that waited has it");
	for (uint64_t tag = 3; tag < 5; tag++) {
		node_recv(&nodes[0], FI_ADDR_UNSPEC, in, 8, true, tag, 0, 0, &in[tag]);
		cr_assert_eq(node_poll(&nodes[0], &e, &err), 1);
		cr_expect_eq(e.e.op_context, &in[tag], "and one that comes later");
		cr_expect_eq(e.src, FI_ADDR_NOTAVAIL);
	}
}

Test(core_peer, a_merely_known_address_costs_no_peer, .init = setup, .fini = teardown)
{
	cr_assert_eq(nodes[0].ep.peer_cnt, 0);
	cr_assert(util_list_is_empty(&nodes[0].ep.known));
}
