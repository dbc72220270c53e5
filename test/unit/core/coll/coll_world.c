/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Five endpoints and a group of them. See coll_world.h. */
#include "unit/core/coll/coll_world.h"

#include <criterion/criterion.h>
#include <string.h>

#include "unit/core/must.h"

struct coll_world coll_world;

static void on_joined(struct core_coll_group *group, int err)
{
	coll_world.joined[group - coll_world.groups] = err;
}

int coll_join(unsigned me, unsigned cnt, uint64_t parent, bool managed)
{
	fi_addr_t members[COLL_NODES];

	for (unsigned i = 0; i < cnt; i++)
		members[i] = i;
	memset(&coll_world.groups[me], 0, sizeof(coll_world.groups[me]));
	coll_world.groups[me].joined = on_joined;
	coll_world.joined[me] = 1;
	return core_coll_join(&coll_world.nodes[me].ep, &coll_world.groups[me], members, cnt,
			      parent, managed);
}

void coll_world_open(size_t unexpected_mem)
{
	node_limits = (struct core_limits){ .eager_max = 1024,
					    .single_copy_min = SIZE_MAX,
					    .unexpected_mem = unexpected_mem };
	memset(&coll_world, 0, sizeof(coll_world));
	nodes_open(coll_world.nodes, COLL_NODES);
	for (unsigned i = 0; i < COLL_NODES; i++)
		cr_assert_eq(core_coll_init(&coll_world.nodes[i].ep), 0);
}

void coll_world_join(void)
{
	for (unsigned i = 0; i < COLL_NODES; i++)
		cr_assert_eq(coll_join(i, COLL_NODES, 0, false), 0);
	nodes_settle(coll_world.nodes, COLL_NODES);
	for (unsigned i = 0; i < COLL_NODES; i++) {
		cr_assert_eq(coll_world.joined[i], 0);
		cr_assert_eq(coll_world.groups[i].id, coll_world.groups[0].id);
		cr_assert_eq(coll_world.groups[i].me, i);
	}
}

void coll_world_setup(void)
{
	fake_engine_reset();
	coll_world_open(1 << 20);
	coll_world_join();
}

void coll_world_close(void)
{
	for (unsigned i = 0; i < COLL_NODES; i++)
		if (coll_world.groups[i].members)
			core_coll_leave(&coll_world.groups[i]);
	nodes_close(coll_world.nodes, COLL_NODES);
	for (unsigned i = 0; i < COLL_NODES; i++)
		cr_expect_eq(coll_world.nodes[i].dom.unexpected_used, 0);
}

int coll_post(unsigned me, enum fi_collective_op coll, uint32_t root, size_t count, void *context)
{
	struct core_coll_args args = {
		.call = { .coll = coll,
			  .root = root,
			  .buf = coll_world.buf[me],
			  .result = coll_world.result[me],
			  .len = count * sizeof(uint32_t) },
		.reduce = core_atomic_math(FI_UINT32, FI_SUM),
		.type = FI_UINT32,
		.size = sizeof(uint32_t),
		.context = context,
	};

	return (int)core_coll_post(&coll_world.groups[me], &args);
}

int coll_ended(unsigned me, void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct core_cqe e = { 0 };
	int ret = node_poll(&coll_world.nodes[me], &e, &err);

	if (!ret)
		return 1;
	MUST((ret == 1 ? e.e.op_context : err.op_context) == context);
	MUST((ret == 1 ? e.e.flags : err.flags) == FI_COLLECTIVE);
	return ret == 1 ? 0 : -err.err;
}
