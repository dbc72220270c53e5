/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Does the gauge find out which way is quicker, soon, at little cost, again when that changes, and not by one mishap? */
#include <criterion/criterion.h>
#include <stdint.h>

#include "core/msg/core_tx_selector.h"
#include "support/rng.h"

#define KIB      1024u
#define LEN      (24 * KIB)
#define NEAR_NS  30u /* for a KiB */
#define FAR_NS   72u
#define MESSAGES 4000

/* A message goes; `kib_ns` is how long a KiB takes. True: in parts. */
static bool send_one(struct core_tx_selector *g, uint64_t kib_ns, unsigned *looks)
{
	bool parts = core_tx_selector_is_pipelined(g);

	cr_assert_eq(core_tx_selector_is_pipelined(g),
		     parts); /* it found no room, and is asked again */
	core_tx_selector_started(g);
	if (parts && core_tx_selector_samples(g)) {
		core_tx_selector_add_sample(g, kib_ns * LEN / KIB, LEN);
		++*looks;
	}
	return parts;
}

/* Of so many messages, how many go in parts. */
static unsigned send_many(struct core_tx_selector *g, uint64_t kib_ns, unsigned cnt,
			  unsigned *looks)
{
	unsigned parts = 0;

	for (unsigned i = 0; i < cnt; i++)
		parts += send_one(g, kib_ns, looks);
	return parts;
}

Test(core_tx_selector, messages_are_fetched_until_it_has_looked)
{
	struct core_tx_selector g = { 0 };
	unsigned looks = 0, most = CORE_TX_SELECTOR_FIRST * CORE_TX_SELECTOR_SAMPLES;

	cr_assert_eq(send_many(&g, NEAR_NS, CORE_TX_SELECTOR_FIRST - 1, &looks), 0);
	cr_assert_leq(send_many(&g, NEAR_NS, most, &looks),
		      CORE_TX_SELECTOR_SAMPLES + CORE_TX_SELECTOR_FIRST);
	cr_assert(core_tx_selector_is_near(&g), "it has looked %u times", looks);
}

Test(core_tx_selector, near_all_go_in_parts_and_one_in_eight_is_timed)
{
	struct core_tx_selector g = { 0 };
	unsigned looks = 0;

	send_many(&g, NEAR_NS, 64, &looks);
	looks = 0;
	cr_assert_eq(send_many(&g, NEAR_NS, MESSAGES, &looks), MESSAGES);
	cr_assert_leq(looks, MESSAGES / CORE_TX_SELECTOR_NEAR + 1);
}

Test(core_tx_selector, far_one_in_thirty_two_goes_in_parts)
{
	struct core_tx_selector g = { 0 };
	unsigned looks = 0, parts;

	send_many(&g, FAR_NS, 64, &looks);
	parts = send_many(&g, FAR_NS, MESSAGES, &looks);
	cr_assert_leq(parts, MESSAGES / CORE_TX_SELECTOR_FAR + 1);
	cr_assert_geq(parts, MESSAGES / CORE_TX_SELECTOR_FAR - 1);
}

Test(core_tx_selector, a_peer_that_moves_is_noticed)
{
	struct core_tx_selector g = { 0 };
	unsigned looks = 0;

	for (int round = 0; round < 3; round++) {
		send_many(&g, NEAR_NS, 16 * CORE_TX_SELECTOR_FAR, &looks);
		cr_assert(core_tx_selector_is_near(&g));
		send_many(&g, FAR_NS, 16 * CORE_TX_SELECTOR_NEAR, &looks);
		cr_assert(!core_tx_selector_is_near(&g));
	}
}

Test(core_tx_selector, one_that_lost_its_processor_is_no_peer_that_moved)
{
	struct core_tx_selector g = { 0 };
	unsigned looks = 0;

	send_many(&g, NEAR_NS, 64, &looks);
	for (int i = 0; i < 20; i++) {
		core_tx_selector_add_sample(&g, 10000000, LEN);
		cr_assert(core_tx_selector_is_near(&g), "after %d mishaps", i + 1);
		send_many(&g, NEAR_NS, 4 * CORE_TX_SELECTOR_NEAR, &looks);
	}
}

/* One in twenty that are seen takes anything up to ten times as long. */
Test(core_tx_selector, noise_hardly_ever_turns_it)
{
	struct rng rng = { .state = 3 };
	struct core_tx_selector g = { 0 };
	unsigned wrong = 0, looks = 0;

	for (int i = 0; i < MESSAGES; i++) {
		uint64_t kib_ns = NEAR_NS - 5 + rng_below(&rng, 10);

		if (rng_chance(&rng, 1, 20))
			kib_ns += rng_below(&rng, 9 * NEAR_NS);
		wrong += !send_one(&g, kib_ns, &looks);
	}
	cr_assert_lt(wrong, MESSAGES / 20, "%u of %d were fetched", wrong, MESSAGES);
}

Test(core_tx_selector, any_time_and_any_length_stay_in_bounds)
{
	struct core_tx_selector g = { 0 };

	core_tx_selector_add_sample(&g, UINT64_MAX >> 14, 1);
	cr_assert_leq(g.kib_ns16, 24 * CORE_TX_SELECTOR_NEAR_NS);
	for (int i = 0; i < 64; i++)
		core_tx_selector_add_sample(&g, 0, 1 << 20);
	cr_assert_leq(g.kib_ns16, 16u);
	for (int i = 0; i < 70000; i++)
		core_tx_selector_started(&g);
	cr_assert(core_tx_selector_samples(&g));
}
