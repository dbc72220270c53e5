/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Admission and grants. (ring_flow.h) */
#include <criterion/criterion.h>

#include "ring/ring_flow.h"
#include "support/rng.h"

static const uint64_t starts[] = { 0, (1ull << 32) - 512, (1ull << 63) - 512, -512ull };

#define EACH_START(pos) for (unsigned i_ = 0; i_ < 4 && ((pos) = starts[i_], true); i_++)

/** Returns a ring of 1 KiB, R = R_max = 128, at `pos`, with `in_flight` unreleased bytes. */
static struct ring_flow flow_at(uint64_t pos, uint64_t in_flight)
{
	return (struct ring_flow){
		.cap = 1024,
		.producer = pos + in_flight,
		.remote_consumer = pos,
		.granted = 128,
		.grant_max = 128,
	};
}

Test(ring_credit, a_message_leaves_space_for_all_responses_twice_and_for_control)
{
	struct ring_flow f;
	uint64_t pos;

	EACH_START(pos)
	{
		f = flow_at(pos, 0);
		cr_expect(ring_flow_admits(&f, 1024 - 256 - 64));
		cr_expect_not(ring_flow_admits(&f, 1024 - 256 - 64 + 32));
		f = flow_at(pos, 512);
		cr_expect(ring_flow_admits(&f, 192));
		cr_expect_not(ring_flow_admits(&f, 224));
	}
}

Test(ring_credit, used_credit_makes_no_space_for_messages)
{
	struct ring_flow f = flow_at(0, 512);

	f.granted = 0;
	cr_expect(ring_flow_admits(&f, 192));
	cr_expect_not(ring_flow_admits(&f, 224));
}

Test(ring_credit, an_admitted_message_leaves_space_for_the_full_grant)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 1) };
	unsigned i;

	for (i = 0; i < 100000; i++) {
		struct ring_flow f = flow_at(rng_next(&r) & ~31ull, 32 * rng_below(&r, 33));
		uint64_t move = 32 * rng_below(&r, 33);

		f.granted = 32 * rng_below(&r, 5);
		if (!ring_flow_admits(&f, move))
			continue;
		f.producer += move;
		f.granted += ring_flow_grantable(&f);
		cr_assert_eq(f.granted, f.grant_max, "saturated traffic starves calls");
		cr_assert(ring_flow_holds(&f));
	}
}

Test(ring_credit, two_control_batches_fit_behind_the_last_message)
{
	struct ring_flow f;
	uint64_t pos;

	EACH_START(pos)
	{
		f = flow_at(pos, 704);
		cr_expect_not(ring_flow_admits(&f, 32));
		cr_expect(ring_flow_admits_control(&f, 32));
		f.producer += 32;
		cr_expect(ring_flow_admits_control(&f, 32));
		f.producer += 32;
		cr_expect(ring_flow_holds(&f));
		cr_expect_not(ring_flow_admits_control(&f, 32));
	}
}

/** Free space in blocks: 704 bytes are 0 blocks more than a full grant needs. */
Test(ring_credit, a_grant_is_what_fits_beside_the_reserve)
{
	static const uint64_t used[] = { 704, 768, 959, 896, 992, 1024 };
	static const uint64_t grant[] = { 128, 96, 0, 32, 0, 0 };
	unsigned i;

	for (i = 0; i < 6; i++) {
		struct ring_flow f = flow_at(0, used[i]);

		f.granted = 0;
		cr_expect_eq(ring_flow_grantable(&f), grant[i], "%lu used", used[i]);
	}
}

Test(ring_credit, a_grant_in_the_middle_of_an_admitted_message_leaves_its_space)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 2) };
	unsigned i;

	for (i = 0; i < 100000; i++) {
		struct ring_flow f = flow_at(rng_next(&r) & ~31ull, 32 * rng_below(&r, 33));
		uint64_t move = 32 * rng_below(&r, 33), first;

		f.granted = 32 * rng_below(&r, 5);
		if (!ring_flow_admits(&f, move))
			continue;
		first = 32 * rng_below(&r, move / 32 + 1);
		f.producer += first;
		f.granted += ring_flow_grantable(&f);
		f.producer += move - first;
		cr_assert(ring_flow_holds(&f));
	}
}

Test(ring_credit, a_grant_never_goes_beyond_the_maximum)
{
	struct ring_flow f = flow_at(0, 0);

	cr_expect_eq(ring_flow_grantable(&f), 0);
	f.granted = 96;
	cr_expect_eq(ring_flow_grantable(&f), 32);
	f.grant_max = 0;
	f.granted = 0;
	cr_expect_eq(ring_flow_grantable(&f), 0);
}

Test(ring_credit, a_grant_is_whole_blocks)
{
	struct ring_flow f = flow_at(0, 0);

	f.granted = 0;
	f.producer = 1024 - 64 - 2 * 95;
	cr_expect_eq(ring_flow_grantable(&f), 64);
	f.grant_max = 100;
	f.producer = 0;
	cr_expect_eq(ring_flow_grantable(&f), 96);
}

Test(ring_credit, a_full_ring_grants_nothing)
{
	struct ring_flow f = flow_at(0, 1024);

	f.granted = 0;
	cr_expect_eq(ring_flow_grantable(&f), 0);
	cr_expect_not(ring_flow_grant_due(&f));
}

Test(ring_credit, a_grant_is_due_below_half_when_a_quarter_can_be_granted)
{
	struct ring_flow f = flow_at(0, 0);

	cr_expect_not(ring_flow_grant_due(&f), "all is granted");
	f.granted = 64;
	cr_expect_not(ring_flow_grant_due(&f), "half is left");
	f.granted = 32;
	cr_expect(ring_flow_grant_due(&f));
	f.producer = 1024 - 64 - 64 - 32;
	cr_expect_not(ring_flow_grant_due(&f), "no space");
	f.producer = 1024 - 64 - 64 - 64;
	cr_expect(ring_flow_grant_due(&f));
}

Test(ring_credit, a_due_grant_fits_a_batch_of_its_own)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 1) };
	unsigned i;

	for (i = 0; i < 200000; i++) {
		struct ring_flow f = flow_at(0, 32 * rng_below(&r, 33));

		f.granted = 32 * rng_below(&r, 5);
		if (!ring_flow_holds(&f) || !ring_flow_grant_due(&f))
			continue;
		cr_assert(ring_flow_admits_control(&f, WIRE_META_LEN));
		f.producer += WIRE_META_LEN;
		f.granted += ring_flow_grantable(&f);
		cr_assert(ring_flow_holds(&f));
	}
}

Test(ring_credit, claims_beyond_the_grant_are_an_invalid_state)
{
	struct ring_flow f = flow_at(0, 0);

	f.claimed = 128;
	cr_expect(ring_flow_holds(&f));
	f.claimed = 160;
	cr_expect_not(ring_flow_holds(&f));
	f.claimed = 0;
	f.producer = 1024 - 256 + 32;
	cr_expect_not(ring_flow_holds(&f));
}
