/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collective groups: join, identity, and failure of a member. */
#include "core/coll/core_coll.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_failback.h"
#include "core/core_op.h"
#include "core/core_peer.h"
#include "support/rng.h"
#include "unit/core/coll/coll_world.h"
#include "unit/core/must.h"
#include "util/name.h"

TestSuite(core_coll, .init = coll_world_setup, .fini = coll_world_close, .timeout = 200);

Test(core_coll, the_death_of_a_member_ends_operations_that_need_it_at_all_members)
{
	for (unsigned me = 0; me < COLL_NODES - 1; me++)
		MUST(!coll_post(me, FI_ALLREDUCE, 0, 2000, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES - 1; me++)
		fake_engine_kill(&coll_world.nodes[me].ep, &coll_world.nodes[COLL_NODES - 1].ep,
				 -FI_ECONNRESET);
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES - 1; me++) {
		MUST(coll_ended(me, &coll_world) == -FI_ECONNRESET);
		MUST(coll_ended(me, &coll_world) == 1);
		MUST(coll_post(me, FI_BARRIER, 0, 0, &coll_world) == -FI_ECONNRESET);
	}
}

/** The messages of a group wait like all others; no user could post one again. */
Test(core_coll, a_full_queue_of_the_endpoint_delays_an_operation)
{
	coll_world.nodes[0].ep.tx_queued += CORE_OP_QUEUE_MAX;
	for (unsigned me = 0; me < COLL_NODES; me++)
		MUST(!coll_post(me, FI_BARRIER, 0, 0, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES; me++)
		MUST(!coll_ended(me, &coll_world));
	coll_world.nodes[0].ep.tx_queued -= CORE_OP_QUEUE_MAX;
}

Test(core_coll, leaving_ends_open_operations_once)
{
	MUST(!coll_post(0, FI_BARRIER, 0, 0, &coll_world));
	MUST(!coll_post(0, FI_ALLREDUCE, 0, 2000, &coll_world));
	core_coll_leave(&coll_world.groups[0]);
	MUST(coll_ended(0, &coll_world) == -FI_ECANCELED);
	MUST(coll_ended(0, &coll_world) == -FI_ECANCELED);
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(coll_ended(0, &coll_world) == 1);
}

Test(core_coll, a_second_group_of_the_same_members_has_another_id)
{
	uint64_t first = coll_world.groups[0].id;

	for (unsigned me = 0; me < COLL_NODES; me++)
		core_coll_leave(&coll_world.groups[me]);
	coll_world_join();
	cr_expect_neq(coll_world.groups[0].id, first);
	for (unsigned me = 0; me < COLL_NODES; me++)
		core_coll_leave(&coll_world.groups[me]);
	for (unsigned me = 0; me < COLL_NODES; me++)
		cr_assert_eq(coll_join(me, COLL_NODES, first, true), 0);
	for (unsigned me = 0; me < COLL_NODES; me++) {
		cr_expect_eq(coll_world.joined[me], 0, "membership is the application's");
		cr_expect_eq(coll_world.groups[me].id, coll_world.groups[0].id);
	}
	for (unsigned me = 0; me < COLL_NODES; me++)
		MUST(!coll_post(me, FI_ALLREDUCE, 0, 10, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES; me++)
		MUST(!coll_ended(me, &coll_world));
}

static void do_nothing(struct core_coll_group *group, int err)
{
}

Test(core_coll, an_endpoint_is_a_member_by_each_of_its_addresses)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(4711) },
			   further = name;
	struct core_coll_group group = { .joined = do_nothing };
	struct core_ep ep = { .av = core_av_open(0) };
	fi_addr_t members[2] = { 0, 1 };

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	further.sin_addr.s_addr = htonl(0x0A000002);
	util_name_set_others(&name, &further.sin_addr, 1);
	cr_assert_eq(core_ep_open(&ep, &coll_world.nodes[0].dom, (struct sockaddr *)&name), 0);
	cr_assert_eq(core_coll_init(&ep), 0);
	name.sin_port = htons(4712);
	cr_assert_eq(core_av_insert(ep.av, (struct sockaddr *)&name, &members[0]), 0);
	cr_expect_eq(core_coll_join(&ep, &group, members, 1, 0, true), -FI_EINVAL);
	cr_assert_eq(core_av_insert(ep.av, (struct sockaddr *)&further, &members[1]), 0);
	cr_assert_eq(core_coll_join(&ep, &group, members, 2, 0, true), 0);
	cr_expect_eq(group.me, 1);
	core_coll_leave(&group);
	core_ep_close(&ep);
	core_av_close(ep.av);
}

/** Joins nodes 0 and 1 to a group of their own, whose membership the application manages. */
static void join_two(void)
{
	for (unsigned me = 0; me < COLL_NODES; me++)
		core_coll_leave(&coll_world.groups[me]);
	for (unsigned me = 0; me < 2; me++)
		cr_assert_eq(coll_join(me, 2, 0, true), 0);
}

Test(core_coll, messages_of_a_member_end_with_its_process)
{
	uint32_t *got = (void *)coll_world.buf[1];

	join_two();
	memset(coll_world.buf[0], 1, 4);
	MUST(!coll_post(0, FI_BROADCAST, 0, 1, &coll_world));
	nodes_settle(coll_world.nodes, 2);
	MUST(!coll_ended(0, &coll_world));
	MUST(coll_world.nodes[1].dom.unexpected_used);
	/* The successor joins the first of its own groups, which has the same id. */
	core_coll_leave(&coll_world.groups[0]);
	fake_engine_kill(&coll_world.nodes[1].ep, &coll_world.nodes[0].ep, -FI_ESHUTDOWN);
	nodes_settle(coll_world.nodes, 2);
	fake_engine_restart(&coll_world.nodes[0].ep);
	coll_world.nodes[0].ep.coll->join_cnt = 0;
	cr_assert_eq(coll_join(0, 2, 0, true), 0);
	memset(coll_world.buf[0], 2, 4);
	MUST(!coll_post(0, FI_BROADCAST, 0, 1, &coll_world));
	nodes_settle(coll_world.nodes, 2);
	MUST(!coll_ended(0, &coll_world));
	MUST(!coll_post(1, FI_BROADCAST, 0, 1, &coll_world));
	nodes_settle(coll_world.nodes, 2);
	MUST(!coll_ended(1, &coll_world));
	cr_expect_eq(*got, 0x02020202);
}

/** Removes the address of a member from the AV of node 0. */
static void remove_member(unsigned member)
{
	bool gone;

	core_av_remove(coll_world.nodes[0].ep.av, member, &gone);
	cr_assert(gone);
	core_ep_av_removed(&coll_world.nodes[0].ep, member);
}

Test(core_coll, a_removed_address_ends_operations_that_wait_for_its_connection)
{
	join_two();
	fake_engine_kill(&coll_world.nodes[0].ep, &coll_world.nodes[1].ep, -FI_ESHUTDOWN);
	nodes_settle(coll_world.nodes, 2);
	fake_engine_cfg.lazy_up = 1000;
	MUST(!coll_post(0, FI_BROADCAST, 1, 1, &coll_world));
	MUST(coll_ended(0, &coll_world) == 1);
	cr_assert_eq(core_peer_lookup(&coll_world.nodes[0].ep, 1)->state, CORE_PEER_CONNECTING);
	remove_member(1);
	MUST(coll_ended(0, &coll_world) == -FI_ESHUTDOWN);
	MUST(coll_post(0, FI_BARRIER, 0, 0, &coll_world) == -FI_ESHUTDOWN);
	nodes_settle(coll_world.nodes, COLL_NODES);
	cr_expect_eq(coll_world.nodes[0].ep.tx_open, 0);
}

/* No notice of the abort is sent to the address that is being removed. */
Test(core_coll, a_removed_address_that_was_never_connected_ends_operations)
{
	coll_world_close();
	coll_world_open(1 << 20);
	cr_assert_eq(coll_join(0, 4, 0, true), 0);
	cr_assert_not_null(core_peer_get(&coll_world.nodes[0].ep, 2));
	MUST(!coll_post(0, FI_ALLREDUCE, 0, 1, &coll_world));
	cr_assert_eq(core_peer_lookup(&coll_world.nodes[0].ep, 2)->state, CORE_PEER_IDLE);
	remove_member(2);
	MUST(coll_ended(0, &coll_world) == -FI_ESHUTDOWN);
	nodes_settle(coll_world.nodes, COLL_NODES);
	cr_expect_eq(coll_world.nodes[0].ep.tx_open, 0);
}

/*
 * Two members that live lose their connection while one of them waits in an operation. The other
 * one posts it later, and finds out that its group was aborted.
 */
static void break_then_post(enum fi_collective_op coll)
{
	join_two();
	MUST(!coll_post(0, coll, 0, 2000, &coll_world)); /* announced, not read */
	fake_engine_kill(&coll_world.nodes[0].ep, &coll_world.nodes[1].ep, -FI_EIO);
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(coll_ended(0, &coll_world) == -FI_EIO);
	MUST(coll_ended(1, &coll_world) == 1);
	MUST(!coll_post(1, coll, 0, 2000, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(coll_ended(1, &coll_world) == -FI_EIO);
	MUST(coll_post(1, FI_BARRIER, 0, 0, &coll_world) == -FI_EIO);
}

Test(core_coll, a_member_that_posts_after_its_connection_broke_finds_the_group_aborted)
{
	break_then_post(FI_BARRIER);
}

Test(core_coll, a_member_that_only_receives_after_its_connection_broke_is_notified)
{
	break_then_post(FI_BROADCAST);
}

Test(core_coll, a_send_to_an_aborted_group_ends_with_its_error)
{
	join_two();
	core_coll_abort(&coll_world.groups[0], -FI_EIO, false);
	MUST(!coll_post(1, FI_BROADCAST, 1, 1, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(coll_ended(1, &coll_world) == -FI_EIO);
}

Test(core_coll, a_member_is_notified_of_aborts_when_it_connects_before_its_join)
{
	struct node *nodes = coll_world.nodes;

	for (unsigned me = 0; me < COLL_NODES; me++)
		core_coll_leave(&coll_world.groups[me]);
	fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_EIO);
	nodes_settle(nodes, COLL_NODES);
	cr_assert_eq(coll_join(0, 2, 0, true), 0);
	core_coll_abort(&coll_world.groups[0], -FI_EIO, true);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(node_send(&nodes[1], 0, &nodes, 1, false, 0, 0, NULL), 0);
		nodes_settle(nodes, COLL_NODES);
		fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ESHUTDOWN);
		nodes_settle(nodes, COLL_NODES);
	}
	cr_expect_eq(nodes[1].dom.unexpected_used, 0);
	cr_assert_eq(coll_join(1, 2, 0, true), 0);
	MUST(coll_post(1, FI_BARRIER, 0, 0, &coll_world) == -FI_EIO);
}

/** Lets a member ask all peers for a better path, however short ago the last attempt was. */
static void ask_all(unsigned me)
{
	struct core_ep *ep = &coll_world.nodes[me].ep;

	for (unsigned at = 0; at < COLL_NODES; at++)
		if (core_peer_lookup(ep, at))
			core_peer_lookup(ep, at)->failback.last_ns = 0;
	core_failback_look(ep);
}

Test(core_coll, operations_go_on_while_connections_are_replaced)
{
	struct rng rng = { .state = 5 };

	fake_engine_cfg.better = 2;
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned me = 0; me < COLL_NODES; me++)
			MUST(!coll_post(me, FI_ALLREDUCE, 0, 1 + round * 20, &coll_world));
		for (unsigned step = 0; step < 30; step++) {
			if (rng_chance(&rng, 1, 10))
				ask_all((unsigned)rng_below(&rng, COLL_NODES));
			core_dom_progress(&coll_world.nodes[rng_below(&rng, COLL_NODES)].dom);
		}
		nodes_settle(coll_world.nodes, COLL_NODES);
		for (unsigned me = 0; me < COLL_NODES; me++) {
			MUST(!coll_ended(me, &coll_world));
			MUST(coll_ended(me, &coll_world) == 1);
		}
	}
	cr_expect_gt(fake_engine_reconnects(), 100);
}

Test(core_coll, an_endpoint_outside_the_member_list_cannot_join)
{
	fi_addr_t members[] = { 1, 2 }, unknown[] = { 0, 77 };
	struct core_coll_group group = { .joined = coll_world.groups[0].joined };

	cr_expect_eq(core_coll_join(&coll_world.nodes[0].ep, &group, members, 2, 0, false),
		     -FI_EINVAL);
	cr_expect_eq(core_coll_join(&coll_world.nodes[0].ep, &group, unknown, 2, 0, false),
		     -FI_EINVAL);
}
