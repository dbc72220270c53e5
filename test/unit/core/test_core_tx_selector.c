/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protocol selector: finds the faster protocol soon and at little cost, and tolerates outliers. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "core/core_tx_selector.h"
#include "support/rng.h"

#define KIB      1024u
#define LEN      (24 * KIB)
#define NEAR_NS  30u /* per KiB */
#define FAR_NS   72u
#define MESSAGES 4000

/* Sends a message at `kib_ns` per KiB. Returns true if it is pipelined. */
static bool send_one(struct core_tx_selector *sel, uint64_t kib_ns, unsigned *samples)
{
	bool pipelined = core_tx_selector_is_pipelined(sel);

	cr_assert_eq(core_tx_selector_is_pipelined(sel), pipelined); /* retried send */
	core_tx_selector_started(sel);
	if (pipelined && core_tx_selector_samples(sel)) {
		core_tx_selector_add_sample(sel, kib_ns * LEN / KIB, LEN);
		++*samples;
	}
	return pipelined;
}

/* Sends `cnt` messages. Returns how many are pipelined. */
static unsigned send_many(struct core_tx_selector *sel, uint64_t kib_ns, unsigned cnt,
			  unsigned *samples)
{
	unsigned pipelined = 0;

	for (unsigned i = 0; i < cnt; i++)
		pipelined += send_one(sel, kib_ns, samples);
	return pipelined;
}

Test(core_tx_selector, rendezvous_is_used_until_enough_samples)
{
	struct core_tx_selector sel = { 0 };
	unsigned samples = 0, most = CORE_TX_SELECTOR_FIRST * CORE_TX_SELECTOR_SAMPLES;

	cr_assert_eq(send_many(&sel, NEAR_NS, CORE_TX_SELECTOR_FIRST - 1, &samples), 0);
	cr_assert_leq(send_many(&sel, NEAR_NS, most, &samples),
		      CORE_TX_SELECTOR_SAMPLES + CORE_TX_SELECTOR_FIRST);
	cr_assert(core_tx_selector_is_near(&sel), "after %u samples", samples);
}

Test(core_tx_selector, a_near_peer_gets_pipelined_messages_and_one_in_eight_is_timed)
{
	struct core_tx_selector sel = { 0 };
	unsigned samples = 0;

	send_many(&sel, NEAR_NS, 64, &samples);
	samples = 0;
	cr_assert_eq(send_many(&sel, NEAR_NS, MESSAGES, &samples), MESSAGES);
	cr_assert_leq(samples, MESSAGES / CORE_TX_SELECTOR_NEAR + 1);
}

Test(core_tx_selector, a_far_peer_gets_one_pipelined_message_in_thirty_two)
{
	struct core_tx_selector sel = { 0 };
	unsigned samples = 0, pipelined;

	send_many(&sel, FAR_NS, 64, &samples);
	pipelined = send_many(&sel, FAR_NS, MESSAGES, &samples);
	cr_assert_leq(pipelined, MESSAGES / CORE_TX_SELECTOR_FAR + 1);
	cr_assert_geq(pipelined, MESSAGES / CORE_TX_SELECTOR_FAR - 1);
}

Test(core_tx_selector, a_changed_distance_changes_the_protocol)
{
	struct core_tx_selector sel = { 0 };
	unsigned samples = 0;

	for (int round = 0; round < 3; round++) {
		send_many(&sel, NEAR_NS, 16 * CORE_TX_SELECTOR_FAR, &samples);
		cr_assert(core_tx_selector_is_near(&sel));
		send_many(&sel, FAR_NS, 16 * CORE_TX_SELECTOR_NEAR, &samples);
		cr_assert(!core_tx_selector_is_near(&sel));
	}
}

Test(core_tx_selector, a_preempted_sample_does_not_change_the_protocol)
{
	struct core_tx_selector sel = { 0 };
	unsigned samples = 0;

	send_many(&sel, NEAR_NS, 64, &samples);
	for (int i = 0; i < 20; i++) {
		core_tx_selector_add_sample(&sel, 10000000, LEN);
		cr_assert(core_tx_selector_is_near(&sel), "after %d mishaps", i + 1);
		send_many(&sel, NEAR_NS, 4 * CORE_TX_SELECTOR_NEAR, &samples);
	}
}

/* One sample in twenty takes up to ten times as long. */
Test(core_tx_selector, noise_hardly_ever_changes_the_protocol)
{
	struct rng rng = { .state = 3 };
	struct core_tx_selector sel = { 0 };
	unsigned wrong = 0, samples = 0;

	for (int i = 0; i < MESSAGES; i++) {
		uint64_t kib_ns = NEAR_NS - 5 + rng_below(&rng, 10);

		if (rng_chance(&rng, 1, 20))
			kib_ns += rng_below(&rng, 9 * NEAR_NS);
		wrong += !send_one(&sel, kib_ns, &samples);
	}
	cr_assert_lt(wrong, MESSAGES / 20, "%u of %d by rendezvous", wrong, MESSAGES);
}

Test(core_tx_selector, any_sample_stays_in_bounds)
{
	struct core_tx_selector sel = { 0 };

	core_tx_selector_add_sample(&sel, UINT64_MAX >> 14, 1);
	cr_assert_leq(sel.kib_ns16, 24 * CORE_TX_SELECTOR_NEAR_NS);
	for (int i = 0; i < 64; i++)
		core_tx_selector_add_sample(&sel, 0, 1 << 20);
	cr_assert_leq(sel.kib_ns16, 16u);
	for (int i = 0; i < 70000; i++)
		core_tx_selector_started(&sel);
	cr_assert(core_tx_selector_samples(&sel));
}
