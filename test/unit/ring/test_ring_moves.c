/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that get a queue pair, and those that lose it. (ring_moves.h) */
#include "ring/ring_moves.h"

#include <criterion/criterion.h>
#include <string.h>

#define CONNS 40u
#define BUSY  (1u << 20)

TestSuite(ring_moves, .timeout = 200);

static struct ring_moves_conn conns[CONNS];
static uint64_t totals[CONNS];
static bool own[CONNS];
static struct ring_move chosen[RING_MOVES_MAX];
static uint32_t free_cnt, move_cnt;

/* `own_cnt` of the connections begin with a queue pair, and all have rested. */
static void start(uint32_t own_cnt)
{
	memset(conns, 0, sizeof(conns));
	memset(totals, 0, sizeof(totals));
	for (uint32_t i = 0; i < CONNS; i++) {
		own[i] = conns[i].is_own = i < own_cnt;
		conns[i].age = RING_MOVES_REST;
	}
	free_cnt = 0;
}

static uint32_t look(const uint64_t *bytes)
{
	struct ring_moves seen;

	ring_moves_begin(&seen);
	for (uint32_t i = 0; i < CONNS; i++) {
		totals[i] += bytes[i];
		ring_moves_see(&seen, &conns[i], totals[i], own[i]);
	}
	return ring_moves_decide(&seen, free_cnt, chosen);
}

/* One look with traffic of these bytes; what it chooses is done until the next one. */
static uint32_t look_and_move(const uint64_t *bytes)
{
	uint32_t cnt = look(bytes);

	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t at = (uint32_t)(chosen[i].conn - conns);

		cr_assert_neq(own[at], chosen[i].own);
		ring_moves_asked(chosen[i].conn);
		own[at] = chosen[i].own;
		cr_assert(free_cnt || !own[at]);
		free_cnt += own[at] ? -1u : 1u;
	}
	move_cnt += cnt;
	return cnt;
}

Test(ring_moves, a_free_queue_pair_goes_to_the_busiest)
{
	uint64_t bytes[CONNS] = { [5] = BUSY, [7] = 2 * BUSY, [9] = BUSY / 2 };

	start(0);
	free_cnt = 2;
	cr_assert_eq(look(bytes), 2);
	cr_expect(chosen[0].conn == &conns[7] && chosen[0].own);
	cr_expect(chosen[1].conn == &conns[5] && chosen[1].own);
}

Test(ring_moves, without_traffic_nothing_moves)
{
	uint64_t bytes[CONNS];

	start(3);
	free_cnt = 3;
	for (uint32_t i = 0; i < CONNS; i++)
		bytes[i] = RING_MOVES_LEAST - 1;
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(look(bytes), 0);
}

Test(ring_moves, the_idlest_gives_its_queue_pair_to_a_busier_one)
{
	uint64_t bytes[CONNS] = { [0] = BUSY, [1] = 100, [2] = BUSY, [20] = BUSY };

	start(3);
	cr_assert_eq(look_and_move(bytes), 1);
	cr_expect(chosen[0].conn == &conns[1] && !chosen[0].own, "first it is given up");
	cr_assert_eq(look_and_move(bytes), 1);
	cr_expect(chosen[0].conn == &conns[20] && chosen[0].own, "then it is taken");
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(look_and_move(bytes), 0);
}

Test(ring_moves, while_one_is_given_up_no_second_one_is)
{
	uint64_t bytes[CONNS] = { [20] = BUSY };

	start(3);
	cr_assert_eq(look(bytes), 1);
	ring_moves_asked(chosen[0].conn);
	cr_expect_eq(look(bytes), 0);
}

Test(ring_moves, new_connections_give_nothing_up)
{
	uint64_t bytes[CONNS] = { [0] = BUSY / 4, [10] = BUSY };

	start(1);
	for (uint32_t i = 20; i < CONNS; i++)
		conns[i].age = 0;
	cr_assert_eq(look(bytes), 1);
	cr_expect(chosen[0].conn == &conns[0] && !chosen[0].own);
}

Test(ring_moves, twice_the_traffic_is_not_enough)
{
	uint64_t bytes[CONNS] = { [0] = BUSY, [20] = 2 * BUSY };

	start(1);
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(look_and_move(bytes), 0);
	bytes[20] = 2 * BUSY + 100;
	for (unsigned i = 0; i < 30 && !own[20]; i++)
		look_and_move(bytes);
	cr_expect(own[20]);
}

Test(ring_moves, a_look_moves_few)
{
	uint64_t bytes[CONNS];

	start(20);
	for (uint32_t i = 0; i < CONNS; i++)
		bytes[i] = i < 20 ? 0 : BUSY;
	cr_expect_eq(look_and_move(bytes), RING_MOVES_MAX);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_leq(look_and_move(bytes), RING_MOVES_MAX);
	for (uint32_t i = 0; i < CONNS; i++)
		cr_expect_eq(own[i], i >= 20, "all have moved");
}

Test(ring_moves, one_that_is_refused_is_asked_ever_more_rarely)
{
	uint64_t bytes[CONNS] = { [3] = BUSY };
	unsigned asked = 0;

	start(0);
	free_cnt = 1;
	for (unsigned i = 0; i < 1000; i++)
		if (look(bytes)) {
			ring_moves_asked(chosen[0].conn);
			asked++;
		}
	cr_expect_leq(asked, 1000 / RING_MOVES_REST_MAX + 6);
	cr_expect_geq(asked, 1000 / RING_MOVES_REST_MAX);
}

/* Loads that change by less than a factor of 1.4 either way do not reverse a choice. */
Test(ring_moves, noise_moves_nothing)
{
	uint64_t bytes[CONNS], seed = 1;

	start(8);
	move_cnt = 0;
	for (unsigned turn = 0; turn < 2000; turn++) {
		for (uint32_t i = 0; i < CONNS; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			bytes[i] = BUSY + (seed >> 33) % (BUSY * 4 / 10);
		}
		look_and_move(bytes);
	}
	cr_expect_eq(move_cnt, 0);
}

/* Random loads of several phases: no more queue pairs than there are; the busiest have them. */
Test(ring_moves, after_each_phase_the_busiest_have_the_queue_pairs)
{
	uint64_t bytes[CONNS], seed = 7;

	start(8);
	for (unsigned phase = 0; phase < 50; phase++) {
		uint32_t owners = 0;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		for (uint32_t i = 0; i < CONNS; i++)
			bytes[i] = (i + (seed >> 40)) % CONNS < 8 ? 8 * BUSY : BUSY;
		for (unsigned turn = 0; turn < 40; turn++)
			look_and_move(bytes);
		for (uint32_t i = 0; i < CONNS; i++) {
			owners += own[i];
			cr_assert_eq(own[i], bytes[i] > BUSY, "phase %u, connection %u", phase, i);
		}
		cr_assert_eq(owners, 8);
	}
}
