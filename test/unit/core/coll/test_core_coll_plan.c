/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plans of collective operations: executed by all members, they end with the results of
 * fi_collective(3).
 */
#include "core/coll/core_coll_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/rng.h"
#include "unit/core/must.h"

#define MEMBERS 17u
#define SLICE   8u /* one number */

struct member {
	struct core_coll_plan plan;
	size_t next; /* index in plan.moves */
	uint64_t buf[MEMBERS];
	uint64_t result[MEMBERS];
};

static struct member members[MEMBERS];
/* Messages in flight, from the first index to the second. */
static uint64_t wire[MEMBERS][MEMBERS][MEMBERS];
static bool wired[MEMBERS][MEMBERS];
static uint32_t cnt;

static uint64_t number(uint32_t member, uint32_t slice)
{
	return member * 1000u + slice + 1;
}

static void send_now(uint32_t me, struct core_coll_move *move)
{
	MUST(move->member < cnt && move->member != me);
	MUST(!wired[me][move->member]); /* one message for each other member */
	wired[me][move->member] = true;
	if (move->len)
		memcpy(wire[me][move->member], move->buf, move->len);
	move->state = CORE_COLL_DONE;
}

static bool receive_now(uint32_t me, struct core_coll_move *move)
{
	uint64_t *sum = (uint64_t *)(void *)move->buf, *from = wire[move->member][me];

	if (!wired[move->member][me])
		return false;
	if (move->kind == CORE_COLL_RECV && move->len)
		memcpy(move->buf, from, move->len);
	for (size_t i = 0; move->kind == CORE_COLL_REDUCE && i < move->len / SLICE; i++)
		sum[i] += from[i];
	move->state = CORE_COLL_DONE;
	return true;
}

/* Executes one phase of a member as far as possible. Returns true if the phase ended. */
static bool step(uint32_t me)
{
	struct member *m = &members[me];
	uint32_t phase;
	bool all = true;

	if (m->next == m->plan.cnt)
		return false;
	phase = m->plan.moves[m->next].phase;
	for (size_t i = m->next; i < m->plan.cnt && m->plan.moves[i].phase == phase; i++) {
		struct core_coll_move *move = &m->plan.moves[i];

		if (move->state == CORE_COLL_DONE)
			continue;
		if (move->kind == CORE_COLL_SEND) {
			send_now(me, move);
		} else if (move->kind == CORE_COLL_COPY) {
			memcpy(move->buf, move->from, move->len);
			move->state = CORE_COLL_DONE;
		} else if (!receive_now(me, move)) {
			all = false;
		}
	}
	while (all && m->next < m->plan.cnt && m->plan.moves[m->next].phase == phase)
		m->next++;
	return all;
}

/* Runs all members, in a random order, until no phase ends any more. */
static void run_all(struct rng *r)
{
	unsigned idle = 0;

	while (idle < 40 * cnt)
		idle = step((uint32_t)rng_below(r, cnt)) ? 0 : idle + 1;
}

static void begin(enum fi_collective_op coll, uint32_t root)
{
	memset(members, 0, sizeof(members));
	memset(wired, 0, sizeof(wired));
	for (uint32_t me = 0; me < cnt; me++) {
		struct member *m = &members[me];
		struct core_coll_call call = {
			.coll = coll,
			.me = me,
			.cnt = cnt,
			.root = root,
			.buf = (uint8_t *)m->buf,
			.result = (uint8_t *)m->result,
			.len = coll == FI_BARRIER ? 0 : SLICE,
		};

		for (uint32_t i = 0; i < cnt; i++)
			m->buf[i] = number(me, i);
		MUST(!core_coll_plan_make(&m->plan, &call));
	}
}

static void check_all_plans_ended(void)
{
	for (uint32_t me = 0; me < cnt; me++)
		MUST(members[me].next == members[me].plan.cnt);
}

static uint64_t sum_of(uint32_t slice)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cnt; i++)
		sum += number(i, slice);
	return sum;
}

static void check(enum fi_collective_op coll, uint32_t root, uint32_t me)
{
	const struct member *m = &members[me];

	for (uint32_t i = 0; i < cnt; i++) {
		if (coll == FI_ALLTOALL)
			MUST(m->result[i] == number(i, me));
		if (coll == FI_ALLGATHER || (coll == FI_GATHER && me == root))
			MUST(m->result[i] == number(i, 0));
	}
	if (coll == FI_BROADCAST)
		MUST(m->buf[0] == number(root, 0));
	if (coll == FI_SCATTER)
		MUST(m->result[0] == number(root, me));
	if (coll == FI_ALLREDUCE || (coll == FI_REDUCE && me == root))
		MUST(m->result[0] == sum_of(0));
	if (coll == FI_REDUCE_SCATTER)
		MUST(m->result[0] == sum_of(me));
	/* Inputs are unchanged, and results are written at receivers only. */
	if (coll != FI_BROADCAST || me == root)
		MUST(m->buf[0] == number(me, 0) && m->buf[cnt - 1] == number(me, cnt - 1));
	if ((coll == FI_REDUCE || coll == FI_GATHER) && me != root)
		MUST(!m->result[0]);
}

Test(core_coll_plan, any_number_of_members_gets_the_specified_results)
{
	struct rng r = { .state = rng_env("SEED", 7) };

	for (cnt = 1; cnt <= MEMBERS; cnt++) {
		for (unsigned coll = FI_BARRIER; coll <= FI_GATHER; coll++) {
			uint32_t root = (uint32_t)rng_below(&r, cnt);

			begin((enum fi_collective_op)coll, root);
			run_all(&r);
			check_all_plans_ended();
			for (uint32_t me = 0; me < cnt; me++)
				check((enum fi_collective_op)coll, root, me);
			for (uint32_t me = 0; me < cnt; me++)
				core_coll_plan_free(&members[me].plan);
		}
	}
}

Test(core_coll_plan, a_barrier_waits_for_all_members)
{
	for (cnt = 2; cnt <= MEMBERS; cnt++) {
		uint32_t missing = cnt / 2;

		begin(FI_BARRIER, 0);
		for (unsigned round = 0; round < 40 * cnt; round++)
			if (round % cnt != missing)
				step(round % cnt);
		for (uint32_t me = 0; me < cnt; me++) {
			MUST(members[me].next < members[me].plan.cnt);
			core_coll_plan_free(&members[me].plan);
		}
	}
}

Test(core_coll_plan, a_buffer_may_be_its_own_result)
{
	uint64_t number_of_mine = 5;
	struct core_coll_plan plan;
	struct core_coll_call call = { .coll = FI_ALLREDUCE,
				       .cnt = 1,
				       .buf = (uint8_t *)&number_of_mine,
				       .result = (uint8_t *)&number_of_mine,
				       .len = SLICE };

	cr_assert_eq(core_coll_plan_make(&plan, &call), 0);
	cr_expect_eq(plan.cnt, 0);
	cr_expect_eq(number_of_mine, 5);
	core_coll_plan_free(&plan);
}
