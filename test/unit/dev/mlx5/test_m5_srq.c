/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device here follows the list from place to place, up to the record, so a broken list shows at
 * once.
 */
#include "dev/mlx5/m5_srq.h"

#include <stdlib.h>

#include "bytes.h"
#include "support/guard.h"
#include "support/rng.h"

TestSuite(m5_srq, .timeout = 200);

struct taker {
	struct m5_srq srq;
	uint8_t *buf;
	uint32_t places, record, out;
	uint16_t head;  /* place to take next */
	uint16_t taken; /* counter */
	uint16_t retained[32];
};

static struct taker t;

static void setup(uint32_t places, uint16_t counter)
{
	memset(&t, 0, sizeof(t));
	t.places = places;
	t.buf = guard_alloc((size_t)places * 32);
	t.taken = counter;
	t.record = htobe32(counter);
	m5_srq_init(&t.srq, t.buf, places, 32, &t.record, counter);
}

static void teardown(void)
{
	guard_free(t.buf, (size_t)t.places * 32);
}

/** Takes one WQE. Returns false if none is posted. */
static bool take(void)
{
	const uint8_t *wqe = t.buf + t.head * 32;

	if (t.taken == (uint16_t)be32toh(t.record))
		return false;
	t.retained[t.out++] = t.head;
	t.head = (uint16_t)(wqe[2] << 8 | wqe[3]);
	t.taken++;
	return true;
}

/** Gives back the i-th WQE taken. */
static void give(uint32_t i)
{
	cr_assert_lt(i, t.out);
	cr_assert(m5_srq_give(&t.srq, t.retained[i]));
	t.retained[i] = t.retained[--t.out];
}

Test(m5_srq, wqes_are_of_zero_length_and_linked)
{
	setup(4, 0);
	EXPECT_AT(t.buf, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		  /* no bytes, the key of nothing */
		  0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	EXPECT_AT(t.buf + 3 * 32, 0, 0, 0, 0);
	teardown();
}

Test(m5_srq, all_but_one_can_be_posted)
{
	setup(8, 0);
	cr_expect(!take(), "nothing is posted at first");
	cr_expect(m5_srq_is_due(&t.srq));
	m5_srq_post(&t.srq);
	EXPECT_AT(&t.record, 0, 0, 0, 7);
	while (take())
		;
	cr_expect_eq(t.out, 7);
	cr_expect_eq(t.head, t.srq.tail, "the list ends at the tail");
	teardown();
}

Test(m5_srq, refill_is_due_when_fewer_than_two_thirds_are_posted)
{
	unsigned given = 0;

	setup(16, 0);
	m5_srq_post(&t.srq);
	while (take())
		;
	while (!m5_srq_is_due(&t.srq)) {
		give(0);
		given++;
	}
	cr_expect_eq(given, 5); /* of 15 */
	m5_srq_post(&t.srq);
	cr_expect(!m5_srq_is_due(&t.srq));
	teardown();
}

Test(m5_srq, an_unposted_or_illegal_place_is_refused)
{
	setup(4, 0);
	cr_expect(!m5_srq_give(&t.srq, 0));
	m5_srq_post(&t.srq);
	cr_expect(!m5_srq_give(&t.srq, 4));
	cr_expect(!m5_srq_give(&t.srq, 0xffff));
	cr_expect(m5_srq_give(&t.srq, 0));
	teardown();
}

/* Completions of different QPs come in any order, and so do places. */
static void shuffle(uint32_t places, uint16_t counter, uint64_t seed)
{
	struct rng r = { seed };
	unsigned step, laps = 0;

	setup(places, counter);
	m5_srq_post(&t.srq);
	for (step = 0; step < 20000; step++) {
		uint64_t what = rng_below(&r, 5);

		if (what < 2) {
			laps += take();
		} else if (what < 4 && t.out) {
			give((uint32_t)rng_below(&r, t.out));
		} else if (m5_srq_is_due(&t.srq)) {
			m5_srq_post(&t.srq);
		}
		cr_assert_eq(m5_recv_posted(&t.srq.recv) + t.srq.free, places - 1, "seed %lu",
			     seed);
		cr_assert_leq(t.out + (uint16_t)(be32toh(t.record) - t.taken), places - 1);
	}
	cr_assert_gt(laps, 3 * places);
	teardown();
}

Test(m5_srq, list_stays_whole_over_many_laps_in_any_order)
{
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 11);

	shuffle(4, 0, seed);
	shuffle(16, 0, seed + 1);
	shuffle(32, 0xfff0, seed + 2); /* the counter passes 16 bits */
}
