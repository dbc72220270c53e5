/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective operations between endpoints: do all members get the right bytes, once, whatever the
 * transport does, and do all of them hear of it when one is lost?
 */
#include "core/coll/core_coll.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/core_pair.h"
#include "support/rng.h"
#include "unit/core/must.h"

#define NODES 5u
#define LEN   9000u /* bytes of a slice, at most: more than a message carries */

struct world {
	struct node nodes[NODES];
	struct core_coll_group groups[NODES];
	int joined[NODES]; /* 1: not yet */
	uint8_t buf[NODES][NODES * LEN];
	uint8_t result[NODES][NODES * LEN];
};

static struct world w;

static void on_joined(struct core_coll_group *group, int err)
{
	w.joined[group - w.groups] = err;
}

static int join(unsigned me, unsigned cnt, uint64_t parent, bool managed)
{
	fi_addr_t members[NODES];

	for (unsigned i = 0; i < cnt; i++)
		members[i] = i;
	memset(&w.groups[me], 0, sizeof(w.groups[me]));
	w.groups[me].joined = on_joined;
	w.joined[me] = 1;
	return core_coll_join(&w.nodes[me].ep, &w.groups[me], members, cnt, parent, managed);
}

static void world_open(size_t unexpected_mem)
{
	node_limits = (struct core_limits){ .eager_max = 1024,
					    .single_copy_min = SIZE_MAX,
					    .unexpected_mem = unexpected_mem };
	memset(&w, 0, sizeof(w));
	nodes_open(w.nodes, NODES);
	for (unsigned i = 0; i < NODES; i++)
		cr_assert_eq(core_coll_init(&w.nodes[i].ep), 0);
}

static void world_join(void)
{
	for (unsigned i = 0; i < NODES; i++)
		cr_assert_eq(join(i, NODES, 0, false), 0);
	nodes_settle(w.nodes, NODES);
	for (unsigned i = 0; i < NODES; i++) {
		cr_assert_eq(w.joined[i], 0);
		cr_assert_eq(w.groups[i].id, w.groups[0].id);
		cr_assert_eq(w.groups[i].me, i);
	}
}

static void setup(void)
{
	fake_engine_reset();
	world_open(1 << 20);
	world_join();
}

static void world_close(void)
{
	for (unsigned i = 0; i < NODES; i++)
		if (w.groups[i].members)
			core_coll_leave(&w.groups[i]);
	nodes_close(w.nodes, NODES);
	for (unsigned i = 0; i < NODES; i++)
		cr_expect_eq(w.nodes[i].dom.unexpected_used, 0);
}

TestSuite(core_coll, .init = setup, .fini = world_close, .timeout = 200);

static int post(unsigned me, enum fi_collective_op coll, uint32_t root, size_t count, void *context)
{
	struct core_coll_args args = {
		.call = { .coll = coll,
			  .root = root,
			  .buf = w.buf[me],
			  .result = w.result[me],
			  .len = count * sizeof(uint32_t) },
		.reduce = core_atomic_math(FI_UINT32, FI_SUM),
		.size = sizeof(uint32_t),
		.context = context,
	};

	return (int)core_coll_post(&w.groups[me], &args);
}

/* The only completion of a node: 0 or its error; 1: there is none. */
static int ended(unsigned me, void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct core_cqe e = { 0 };
	int ret = node_poll(&w.nodes[me], &e, &err);

	if (!ret)
		return 1;
	MUST((ret == 1 ? e.e.op_context : err.op_context) == context);
	MUST((ret == 1 ? e.e.flags : err.flags) == FI_COLLECTIVE);
	return ret == 1 ? 0 : -err.err;
}

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
	for (unsigned me = 0; me < NODES; me++) {
		for (size_t i = 0; i < sizeof(w.buf[0]) / 4; i++) {
			uint32_t v = element(me, i, round);

			memcpy(w.buf[me] + i * 4, &v, 4);
		}
		memset(w.result[me], 0xEE, sizeof(w.result[me]));
	}
}

static uint32_t sum_of(size_t at, uint32_t round)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < NODES; i++)
		sum += element(i, at, round);
	return sum;
}

static void check(enum fi_collective_op coll, unsigned root, size_t count, unsigned me,
		  uint32_t round)
{
	const uint8_t *result = w.result[me];

	for (size_t i = 0; i < count; i++) {
		if (coll == FI_BROADCAST)
			MUST(get(w.buf[me], i) == element(root, i, round));
		if (coll == FI_ALLREDUCE || (coll == FI_REDUCE && me == root))
			MUST(get(result, i) == sum_of(i, round));
		if (coll == FI_REDUCE_SCATTER)
			MUST(get(result, i) == sum_of(me * count + i, round));
		if (coll == FI_SCATTER)
			MUST(get(result, i) == element(root, me * count + i, round));
		for (unsigned from = 0; from < NODES; from++) {
			if (coll == FI_ALLTOALL)
				MUST(get(result, from * count + i) ==
				     element(from, me * count + i, round));
			if (coll == FI_ALLGATHER || (coll == FI_GATHER && me == root))
				MUST(get(result, from * count + i) == element(from, i, round));
		}
	}
}

/* A random operation, called by the members in a random order. */
static void one_round(struct rng *r, uint32_t round)
{
	enum fi_collective_op coll = (enum fi_collective_op)rng_below(r, FI_GATHER + 1);
	unsigned root = (unsigned)rng_below(r, NODES), first = (unsigned)rng_below(r, NODES);
	size_t count = rng_chance(r, 1, 2) ? rng_below(r, 20) : rng_below(r, LEN / 4);

	fill(round);
	for (unsigned i = 0; i < NODES; i++) {
		unsigned me = (first + i) % NODES;

		MUST(!post(me, coll, root, coll == FI_BARRIER ? 0 : count, &w.nodes[me]));
		if (rng_chance(r, 1, 2))
			nodes_settle(w.nodes, NODES);
	}
	nodes_settle(w.nodes, NODES);
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES; me++) {
		MUST(!ended(me, &w.nodes[me]));
		MUST(ended(me, NULL) == 1);
		check(coll, root, coll == FI_BARRIER ? 0 : count, me, round);
	}
}

Test(core_coll, random_operations_have_their_results_whatever_the_room)
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

Test(core_coll, operations_overlap_and_end_once_each)
{
	for (uint32_t i = 0; i < 40; i++)
		MUST(!post(0, FI_BARRIER, 0, 0, &w));
	nodes_settle(w.nodes, NODES);
	MUST(ended(0, &w) == 1);
	for (unsigned me = 1; me < NODES; me++)
		for (uint32_t i = 0; i < 40; i++)
			MUST(!post(me, FI_BARRIER, 0, 0, &w));
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES; me++) {
		for (uint32_t i = 0; i < 40; i++)
			MUST(!ended(me, &w));
		MUST(ended(me, &w) == 1);
	}
}

Test(core_coll, who_has_no_memory_for_early_messages_says_so_to_all)
{
	world_close();
	world_open(sizeof(struct core_coll_early) * 8);
	world_join();
	/* Nobody else has called: each gather is a message of a kilobyte to the root. */
	MUST(!post(1, FI_GATHER, 0, 256, &w));
	nodes_settle(w.nodes, NODES);
	MUST(ended(1, &w) == -FI_ENOMEM);
	for (unsigned me = 0; me < NODES; me++)
		MUST(post(me, FI_BARRIER, 0, 0, &w) == -FI_ENOMEM);
}

Test(core_coll, different_counts_are_an_error_at_all_members)
{
	for (unsigned me = 0; me < NODES; me++)
		MUST(!post(me, FI_ALLREDUCE, 0, me == 3 ? 5 : 4, &w));
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES; me++) {
		MUST(ended(me, &w) == -FI_EINVAL);
		MUST(ended(me, &w) == 1);
		MUST(post(me, FI_BARRIER, 0, 0, &w) == -FI_EINVAL);
	}
}

Test(core_coll, the_death_of_a_member_ends_what_needs_it_everywhere)
{
	for (unsigned me = 0; me < NODES - 1; me++)
		MUST(!post(me, FI_ALLREDUCE, 0, 2000, &w));
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES - 1; me++)
		fake_engine_kill(&w.nodes[me].ep, &w.nodes[NODES - 1].ep, -FI_ECONNRESET);
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES - 1; me++) {
		MUST(ended(me, &w) == -FI_ECONNRESET);
		MUST(ended(me, &w) == 1);
		MUST(post(me, FI_BARRIER, 0, 0, &w) == -FI_ECONNRESET);
	}
}

Test(core_coll, who_has_done_its_part_may_go)
{
	for (unsigned me = 0; me < NODES; me++)
		if (me != 2)
			MUST(!post(me, FI_BROADCAST, 4, 20, &w));
	nodes_settle(w.nodes, NODES);
	MUST(!ended(4, &w));
	for (unsigned me = 0; me < NODES - 1; me++)
		fake_engine_kill(&w.nodes[me].ep, &w.nodes[4].ep, -FI_ESHUTDOWN);
	nodes_settle(w.nodes, NODES);
	MUST(!post(2, FI_BROADCAST, 4, 20, &w));
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES - 1; me++)
		MUST(!ended(me, &w));
}

Test(core_coll, leaving_ends_what_is_open_once)
{
	MUST(!post(0, FI_BARRIER, 0, 0, &w));
	MUST(!post(0, FI_ALLREDUCE, 0, 2000, &w));
	core_coll_leave(&w.groups[0]);
	MUST(ended(0, &w) == -FI_ECANCELED);
	MUST(ended(0, &w) == -FI_ECANCELED);
	nodes_settle(w.nodes, NODES);
	MUST(ended(0, &w) == 1);
}

Test(core_coll, a_second_group_of_the_same_members_is_another_one)
{
	uint64_t first = w.groups[0].id;

	for (unsigned me = 0; me < NODES; me++)
		core_coll_leave(&w.groups[me]);
	world_join();
	cr_expect_neq(w.groups[0].id, first);
	for (unsigned me = 0; me < NODES; me++)
		core_coll_leave(&w.groups[me]);
	for (unsigned me = 0; me < NODES; me++)
		cr_assert_eq(join(me, NODES, first, true), 0);
	for (unsigned me = 0; me < NODES; me++) {
		cr_expect_eq(w.joined[me], 0, "membership is the application's");
		cr_expect_eq(w.groups[me].id, w.groups[0].id);
	}
	for (unsigned me = 0; me < NODES; me++)
		MUST(!post(me, FI_ALLREDUCE, 0, 10, &w));
	nodes_settle(w.nodes, NODES);
	for (unsigned me = 0; me < NODES; me++)
		MUST(!ended(me, &w));
}

Test(core_coll, who_is_not_a_member_cannot_join)
{
	fi_addr_t members[] = { 1, 2 }, unknown[] = { 0, 77 };
	struct core_coll_group group = { .joined = on_joined };

	cr_expect_eq(core_coll_join(&w.nodes[0].ep, &group, members, 2, 0, false), -FI_EINVAL);
	cr_expect_eq(core_coll_join(&w.nodes[0].ep, &group, unknown, 2, 0, false), -FI_EINVAL);
}

Test(core_coll, a_group_of_one_needs_nobody)
{
	core_coll_leave(&w.groups[0]);
	cr_assert_eq(join(0, 1, 0, false), 0);
	cr_expect_eq(w.joined[0], 0);
	fill(1);
	MUST(!post(0, FI_REDUCE_SCATTER, 0, 100, &w));
	MUST(!ended(0, &w));
	cr_expect_eq(memcmp(w.result[0], w.buf[0], 400), 0);
}
