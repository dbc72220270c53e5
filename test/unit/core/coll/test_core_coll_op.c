/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective operations: each member gets the right bytes, once, whatever the transport does and in
 * any order of the calls.
 */
#include "core/coll/core_coll_op.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/rng.h"
#include "unit/core/coll/coll_world.h"
#include "unit/core/must.h"

TestSuite(core_coll_op, .init = coll_world_setup, .fini = coll_world_close, .timeout = 200);

static uint32_t element(unsigned member, size_t at, uint32_t round)
{
	return (uint32_t)(member * 7919u + at * 31u + round * 104729u);
}

static uint32_t get(const uint8_t *bytes, size_t at)
{
	uint32_t v;

	memcpy(&v, bytes + at * sizeof(v), sizeof(v));
	return v;
}

static void fill(uint32_t round)
{
	for (unsigned me = 0; me < COLL_NODES; me++) {
		for (size_t i = 0; i < sizeof(coll_world.buf[0]) / 4; i++) {
			uint32_t v = element(me, i, round);

			memcpy(coll_world.buf[me] + i * 4, &v, 4);
		}
		memset(coll_world.result[me], 0xEE, sizeof(coll_world.result[me]));
	}
}

static uint32_t sum_of(size_t at, uint32_t round)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < COLL_NODES; i++)
		sum += element(i, at, round);
	return sum;
}

static void check(enum fi_collective_op coll, unsigned root, size_t count, unsigned me,
		  uint32_t round)
{
	const uint8_t *result = coll_world.result[me];

	for (size_t i = 0; i < count; i++) {
		if (coll == FI_BROADCAST)
			MUST(get(coll_world.buf[me], i) == element(root, i, round));
		if (coll == FI_ALLREDUCE || (coll == FI_REDUCE && me == root))
			MUST(get(result, i) == sum_of(i, round));
		if (coll == FI_REDUCE_SCATTER)
			MUST(get(result, i) == sum_of(me * count + i, round));
		if (coll == FI_SCATTER)
			MUST(get(result, i) == element(root, me * count + i, round));
		for (unsigned from = 0; from < COLL_NODES; from++) {
			if (coll == FI_ALLTOALL)
				MUST(get(result, from * count + i) ==
				     element(from, me * count + i, round));
			if (coll == FI_ALLGATHER || (coll == FI_GATHER && me == root))
				MUST(get(result, from * count + i) == element(from, i, round));
		}
	}
}

/* Runs a random operation, posted by the members in a random order. */
static void one_round(struct rng *r, uint32_t round)
{
	enum fi_collective_op coll = (enum fi_collective_op)rng_below(r, FI_GATHER + 1);
	unsigned root = (unsigned)rng_below(r, COLL_NODES),
		 first = (unsigned)rng_below(r, COLL_NODES);
	size_t count = rng_chance(r, 1, 2) ? rng_below(r, 20) : rng_below(r, COLL_LEN / 4);

	fill(round);
	for (unsigned i = 0; i < COLL_NODES; i++) {
		unsigned me = (first + i) % COLL_NODES;

		MUST(!coll_post(me, coll, root, coll == FI_BARRIER ? 0 : count,
				&coll_world.nodes[me]));
		if (rng_chance(r, 1, 2))
			nodes_settle(coll_world.nodes, COLL_NODES);
	}
	nodes_settle(coll_world.nodes, COLL_NODES);
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES; me++) {
		MUST(!coll_ended(me, &coll_world.nodes[me]));
		MUST(coll_ended(me, NULL) == 1);
		check(coll, root, coll == FI_BARRIER ? 0 : count, me, round);
	}
}

Test(core_coll_op, random_operations_have_their_results_with_any_room)
{
	struct rng r = { .state = rng_env("SEED", 3) };

	for (uint32_t round = 0; round < 300; round++) {
		fake_engine_reset();
		if (round % 3 == 1)
			fake_engine_cfg.room = 1 + (unsigned)rng_below(&r, 3);
		if (round % 3 == 2)
			fake_engine_cfg.credit = 1 + (unsigned)rng_below(&r, 2);
		one_round(&r, round);
	}
}

Test(core_coll_op, operations_overlap_and_end_once_each)
{
	for (uint32_t i = 0; i < 40; i++)
		MUST(!coll_post(0, FI_BARRIER, 0, 0, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(coll_ended(0, &coll_world) == 1);
	for (unsigned me = 1; me < COLL_NODES; me++)
		for (uint32_t i = 0; i < 40; i++)
			MUST(!coll_post(me, FI_BARRIER, 0, 0, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES; me++) {
		for (uint32_t i = 0; i < 40; i++)
			MUST(!coll_ended(me, &coll_world));
		MUST(coll_ended(me, &coll_world) == 1);
	}
}

Test(core_coll_op, lack_of_memory_for_unexpected_messages_aborts_the_group)
{
	coll_world_close();
	coll_world_open(sizeof(struct core_coll_unexp) * 8);
	coll_world_join();
	/* Only node 1 posts: each gather is a message of a kilobyte to the root. */
	MUST(!coll_post(1, FI_GATHER, 0, 256, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(coll_ended(1, &coll_world) == -FI_ENOMEM);
	for (unsigned me = 0; me < COLL_NODES; me++)
		MUST(coll_post(me, FI_BARRIER, 0, 0, &coll_world) == -FI_ENOMEM);
}

Test(core_coll_op, different_counts_are_an_error_at_all_members)
{
	for (unsigned me = 0; me < COLL_NODES; me++)
		MUST(!coll_post(me, FI_ALLREDUCE, 0, me == 3 ? 5 : 4, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES; me++) {
		MUST(coll_ended(me, &coll_world) == -FI_EINVAL);
		MUST(coll_ended(me, &coll_world) == 1);
		MUST(coll_post(me, FI_BARRIER, 0, 0, &coll_world) == -FI_EINVAL);
	}
}

Test(core_coll_op, a_member_may_shut_down_after_its_part)
{
	for (unsigned me = 0; me < COLL_NODES; me++)
		if (me != 2)
			MUST(!coll_post(me, FI_BROADCAST, 4, 20, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(!coll_ended(4, &coll_world));
	for (unsigned me = 0; me < COLL_NODES - 1; me++)
		fake_engine_kill(&coll_world.nodes[me].ep, &coll_world.nodes[4].ep, -FI_ESHUTDOWN);
	nodes_settle(coll_world.nodes, COLL_NODES);
	MUST(!coll_post(2, FI_BROADCAST, 4, 20, &coll_world));
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned me = 0; me < COLL_NODES - 1; me++)
		MUST(!coll_ended(me, &coll_world));
}

Test(core_coll_op, a_group_of_one_completes_alone)
{
	core_coll_leave(&coll_world.groups[0]);
	cr_assert_eq(coll_join(0, 1, 0, false), 0);
	cr_expect_eq(coll_world.joined[0], 0);
	fill(1);
	MUST(!coll_post(0, FI_REDUCE_SCATTER, 0, 100, &coll_world));
	MUST(!coll_ended(0, &coll_world));
	cr_expect_eq(memcmp(coll_world.result[0], coll_world.buf[0], 400), 0);
}
