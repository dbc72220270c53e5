/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The RTO follows the round trip, backs off without responses, and stays within its bounds. */
#include "erpc/pace/erpc_rto.h"

#include <criterion/criterion.h>

#include "support/rng.h"

#define US 1000ull
#define MS 1000000ull

static struct erpc_rto r;

static void setup(void)
{
	erpc_rto_init(&r, 5 * MS, 100 * US, 80 * MS);
}

Test(erpc_rto, settles_above_a_steady_round_trip, .init = setup)
{
	int i;

	cr_expect_eq(erpc_rto_ns(&r), 5 * MS);
	for (i = 0; i < 100; i++)
		erpc_rto_sample(&r, 400 * US);
	cr_expect_geq(erpc_rto_ns(&r), 600 * US, "responses may be a little late");
	cr_expect_leq(erpc_rto_ns(&r), 610 * US);
	cr_expect_geq(erpc_rto_rack_ns(&r), 500 * US);
	cr_expect_leq(erpc_rto_rack_ns(&r), 510 * US);
}

Test(erpc_rto, stays_above_round_trips_that_vary, .init = setup)
{
	struct rng rng = { 3 };
	int i, late = 0;
	uint64_t rtt;

	for (i = 0; i < 10000; i++) {
		rtt = 300 * US + rng_below(&rng, 200 * US);
		late += i > 100 && rtt > erpc_rto_ns(&r);
		erpc_rto_sample(&r, rtt);
	}
	cr_expect_lt(late, 100, "%d of 10000 would have counted as lost", late);
	cr_expect_leq(erpc_rto_ns(&r), MS, "and not by far");
}

Test(erpc_rto, backs_off_to_its_bound, .init = setup)
{
	unsigned losses;

	erpc_rto_sample(&r, US);
	cr_expect_eq(erpc_rto_ns(&r), 100 * US, "the lower bound");
	cr_expect_eq(erpc_rto_after(&r, 0), erpc_rto_ns(&r));
	for (losses = 1; losses < 100; losses++) {
		uint64_t before = erpc_rto_after(&r, losses - 1), rto = erpc_rto_after(&r, losses);
		bool flat = losses > ERPC_RTO_EARLY && losses <= ERPC_RTO_EARLY + ERPC_RTO_FLAT;

		cr_expect(rto == (flat ? before : 2 * before) || rto == 80 * MS, "%u", losses);
	}
	cr_expect_eq(erpc_rto_after(&r, 65535), 80 * MS);
	cr_expect_eq(erpc_rto_after(&r, ERPC_RTO_EARLY + ERPC_RTO_FLAT), 6400 * US);
	erpc_rto_sample(&r, 10000 * MS);
	cr_expect_eq(erpc_rto_ns(&r), 80 * MS, "the upper bound");
}

Test(erpc_rto, early_doublings_have_a_bound_in_time)
{
	erpc_rto_init(&r, 5 * MS, 100 * US, 1000 * MS);
	cr_expect_eq(erpc_rto_after(&r, 3), 40 * MS);
	cr_expect_eq(erpc_rto_after(&r, 4), ERPC_RTO_FLAT_NS);
	cr_expect_eq(erpc_rto_after(&r, ERPC_RTO_EARLY + ERPC_RTO_FLAT), ERPC_RTO_FLAT_NS);
	cr_expect_eq(erpc_rto_after(&r, ERPC_RTO_EARLY + ERPC_RTO_FLAT + 1), 640 * MS);
	cr_expect_eq(erpc_rto_after(&r, ERPC_RTO_EARLY + ERPC_RTO_FLAT + 2), 1000 * MS);
}

/** A pause of a process makes a timeout long: early losses wait for it, and no longer. */
Test(erpc_rto, early_losses_do_not_double_a_long_timeout)
{
	unsigned losses;

	erpc_rto_init(&r, 5 * MS, 100 * US, 1000 * MS);
	erpc_rto_sample(&r, US);
	erpc_rto_sample(&r, 100 * MS);
	erpc_rto_keep(&r, ERPC_RTO_DOUBLINGS_MAX);
	cr_expect_gt(erpc_rto_ns(&r), ERPC_RTO_FLAT_NS);
	for (losses = 0; losses + r.kept <= ERPC_RTO_EARLY + ERPC_RTO_FLAT; losses++)
		cr_expect_eq(erpc_rto_after(&r, losses), erpc_rto_ns(&r), "%u", losses);
	cr_expect_eq(erpc_rto_after(&r, losses), 1000 * MS, "an absent peer");
}

/** If all packets are repeated nothing is measured, and all would be repeated for ever. */
Test(erpc_rto, doublings_remain_until_a_sample, .init = setup)
{
	erpc_rto_sample(&r, US);
	erpc_rto_keep(&r, 3);
	cr_expect_eq(erpc_rto_after(&r, 0), 800 * US);
	cr_expect_eq(erpc_rto_after(&r, 1), 1600 * US);
	erpc_rto_keep(&r, 1);
	cr_expect_eq(erpc_rto_after(&r, 0), 800 * US, "fewer losses do not reduce it");
	erpc_rto_keep(&r, 60000);
	cr_expect_eq(erpc_rto_after(&r, 0), 1600 * US, "at most ERPC_RTO_DOUBLINGS_MAX");
	erpc_rto_sample(&r, US);
	cr_expect_eq(erpc_rto_after(&r, 0), 100 * US);
}

/** The peer is farther away than the timeout is long: both responses come, and none is a sample. */
Test(erpc_rto, second_responses_double_the_first_timeouts)
{
	uint64_t before, longest;

	erpc_rto_init(&r, 5 * MS, 100 * US, 1000 * MS);
	before = erpc_rto_after(&r, 0);
	longest = erpc_rto_after(&r, ERPC_RTO_EARLY);
	erpc_rto_twice(&r);
	cr_expect_eq(erpc_rto_after(&r, 0), before, "nothing was repeated: a copy by the network");
	for (unsigned i = 1; i < 3; i++) {
		erpc_rto_repeated(&r);
		for (unsigned copies = 0; copies < 5; copies++)
			erpc_rto_twice(&r);
		cr_expect_eq(erpc_rto_after(&r, 0), before << i, "%u", i);
		cr_expect_eq(erpc_rto_after(&r, ERPC_RTO_EARLY), longest << i, "its bound, too");
	}
	for (unsigned i = 0; i < 100; i++) {
		erpc_rto_repeated(&r);
		erpc_rto_twice(&r);
	}
	cr_expect_leq(erpc_rto_after(&r, 0), r.max_ns);
	erpc_rto_sample(&r, 300 * MS);
	cr_expect_eq(erpc_rto_after(&r, 0), erpc_rto_ns(&r));
}

/** A network that becomes slower repeats all, so nothing is measured; pauses do so for a while. */
Test(erpc_rto, many_second_responses_without_a_sample_double_a_known_timeout)
{
	uint64_t longest;

	erpc_rto_init(&r, 5 * MS, 100 * US, 1000 * MS);
	erpc_rto_sample(&r, MS);
	longest = erpc_rto_after(&r, ERPC_RTO_EARLY);
	for (unsigned i = 1; i < ERPC_RTO_CHANCE + 3; i++) {
		unsigned doublings = i > ERPC_RTO_CHANCE ? i - ERPC_RTO_CHANCE : 0;

		erpc_rto_repeated(&r);
		erpc_rto_twice(&r);
		cr_expect_eq(erpc_rto_after(&r, 0), erpc_rto_ns(&r) << doublings, "%u", i);
		cr_expect_eq(erpc_rto_after(&r, ERPC_RTO_EARLY), longest << doublings, "%u", i);
	}
	erpc_rto_sample(&r, MS);
	cr_expect_eq(erpc_rto_after(&r, 0), erpc_rto_ns(&r));
	erpc_rto_repeated(&r);
	erpc_rto_twice(&r);
	cr_expect_eq(erpc_rto_after(&r, 0), erpc_rto_ns(&r), "counted from the sample on");
}

/** Sessions that lost packets at the same moment repeat them at different times, none earlier. */
Test(erpc_rto, repetitions_of_a_common_loss_are_spread)
{
	uint64_t lot, wait, early = 0, late = 0;

	for (lot = 0; lot < 1000; lot++) {
		wait = erpc_rto_spread(MS, lot);
		cr_assert(wait >= MS && wait <= MS + MS / 2);
		early += wait < MS + MS / 8;
		late += wait > MS + 3 * MS / 8;
	}
	cr_expect(early > 150 && early < 350, "a quarter of them in the first quarter: %lu", early);
	cr_expect(late > 150 && late < 350, "a quarter of them in the last: %lu", late);
	cr_expect_eq(erpc_rto_spread(0, 5), 0);
}

Test(erpc_rto, a_zero_round_trip_is_a_sample, .init = setup)
{
	erpc_rto_sample(&r, 0);
	erpc_rto_sample(&r, 400 * US);
	cr_expect_lt(r.srtt_ns, 100 * US, "moves by an eighth");
}

Test(erpc_rto, probe_intervals_never_shrink, .init = setup)
{
	unsigned losses;

	erpc_rto_sample(&r, US);
	for (losses = 1; losses < 1000; losses++)
		cr_assert_geq(erpc_rto_probe(&r, losses), erpc_rto_probe(&r, losses - 1), "%u",
			      losses);
	cr_expect_eq(erpc_rto_probe(&r, UINT16_MAX), 80 * MS);
}
