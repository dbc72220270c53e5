/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_offers.h"

#include <criterion/criterion.h>

#define START_NS    (1000 * UTIL_NS_PER_S)
#define INTERVAL_MS 1000u

static struct m5_offers offers;

static enum m5_offer_verdict see_at_ms(uint64_t ms)
{
	return m5_offers_see(&offers, START_NS + ms * UTIL_NS_PER_MS, INTERVAL_MS);
}

Test(m5_offers, a_peer_of_the_same_interval_is_never_refused)
{
	/* Rests are four looks (ring_moves.h), and a look may come half an interval early. */
	for (uint64_t n = 0; n < 1000; n++)
		cr_assert_eq(see_at_ms(n * INTERVAL_MS * 2), M5_OFFER_TAKE, "offer %u",
			     (unsigned)n);
}

Test(m5_offers, more_than_a_burst_is_refused_and_later_ones_are_accepted)
{
	for (unsigned n = 0; n < M5_OFFERS_BURST; n++)
		cr_assert_eq(see_at_ms(0), M5_OFFER_TAKE);
	cr_expect_eq(see_at_ms(0), M5_OFFER_REFUSE);
	cr_expect_eq(see_at_ms(1999), M5_OFFER_REFUSE);
	cr_expect_eq(see_at_ms(2000), M5_OFFER_TAKE, "refused ones do not count against it");
	cr_expect_eq(see_at_ms(2000), M5_OFFER_REFUSE);
	for (unsigned n = 0; n < M5_OFFERS_BURST; n++)
		cr_assert_eq(see_at_ms(3600000), M5_OFFER_TAKE);
	cr_expect_eq(see_at_ms(3600000), M5_OFFER_REFUSE, "rest does not add up");
}

Test(m5_offers, a_peer_of_the_shortest_interval_is_refused_and_not_ended)
{
	unsigned taken = 0;

	for (uint64_t ms = 0; ms < 60000; ms += 4) {
		enum m5_offer_verdict verdict = see_at_ms(ms);

		cr_assert_neq(verdict, M5_OFFER_END);
		taken += verdict == M5_OFFER_TAKE;
	}
	cr_expect_eq(taken, M5_OFFERS_BURST + 29, "the burst, and one every two seconds");
}

Test(m5_offers, offers_without_pause_end_the_link)
{
	unsigned n = 0;

	while (see_at_ms(0) != M5_OFFER_END)
		cr_assert_leq(++n, 64);
	cr_expect_eq(n, 64);
	cr_expect_eq(see_at_ms(0), M5_OFFER_END);
}

Test(m5_offers, twice_a_millisecond_ends_the_link)
{
	uint64_t now_ns = START_NS;
	unsigned n = 0;

	while (m5_offers_see(&offers, now_ns, INTERVAL_MS) != M5_OFFER_END) {
		cr_assert_leq(++n, 128);
		now_ns += UTIL_NS_PER_MS / 2;
	}
	cr_expect_geq(n, 126);
}

Test(m5_offers, an_interval_of_0_limits_nothing)
{
	for (unsigned n = 0; n < 1000; n++)
		cr_assert_eq(m5_offers_see(&offers, START_NS, 0), M5_OFFER_TAKE);
}

Test(m5_offers, the_longest_interval_does_not_overflow)
{
	for (unsigned n = 0; n < M5_OFFERS_BURST; n++)
		cr_assert_eq(m5_offers_see(&offers, START_NS, 86400000), M5_OFFER_TAKE);
	cr_expect_eq(m5_offers_see(&offers, START_NS, 86400000), M5_OFFER_REFUSE);
}
