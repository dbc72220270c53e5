/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protocol selector: finds the faster protocol soon and at little cost, and tolerates outliers. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "core/core_tx_selector.h"
#include "support/rng.h"

#define KIB      1024u
#define LEN      (32 * KIB)
#define LONG     (200 * KIB)
#define MESSAGES 4000u

/* Times of single messages, in nanoseconds per KiB: near, pipelining is faster; far, it is not. */
struct place {
	uint64_t kib_ns[CORE_TX_PROTOCOLS];
};

static const struct place near = { { [CORE_TX_GET] = 160, [CORE_TX_PARTS] = 90 } };
static const struct place far = { { [CORE_TX_GET] = 200, [CORE_TX_PARTS] = 360 } };

/* Numbers of messages that were sent by each protocol, and of those that were timed. */
struct tally {
	unsigned by[CORE_TX_PROTOCOLS];
	unsigned timed;
};

static enum core_tx_protocol send_one(struct core_tx_selector *sel, const struct place *place,
				      size_t len, struct tally *tally)
{
	struct core_tx_choice choice = core_tx_selector_choose(sel, len, true);
	struct core_tx_choice again = core_tx_selector_choose(sel, len, true);

	cr_assert(choice.protocol == again.protocol && choice.timed == again.timed, "retried");
	core_tx_selector_started(sel, len, choice);
	if (choice.timed)
		core_tx_selector_add(sel, len, choice.protocol,
				     place->kib_ns[choice.protocol] * len / KIB);
	tally->by[choice.protocol]++;
	tally->timed += choice.timed;
	return choice.protocol;
}

static struct tally send_many(struct core_tx_selector *sel, const struct place *place, size_t len,
			      unsigned cnt)
{
	struct tally tally = { .timed = 0 };

	for (unsigned i = 0; i < cnt; i++)
		send_one(sel, place, len, &tally);
	return tally;
}

Test(core_tx_selector, the_first_messages_time_both_protocols)
{
	struct core_tx_selector sel = { .ahead = 0 };
	struct tally tally = send_many(&sel, &near, LEN, 2 * CORE_TX_SELECTOR_FIRST);

	cr_assert_eq(tally.by[CORE_TX_GET], CORE_TX_SELECTOR_FIRST);
	cr_assert_eq(tally.by[CORE_TX_PARTS], CORE_TX_SELECTOR_FIRST);
	cr_assert_eq(tally.timed, 2 * CORE_TX_SELECTOR_FIRST);
}

Test(core_tx_selector, the_faster_protocol_carries_nearly_all)
{
	struct core_tx_selector sel = { .ahead = 0 };
	struct tally tally;

	send_many(&sel, &near, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	tally = send_many(&sel, &near, LEN, MESSAGES);
	cr_assert_geq(tally.by[CORE_TX_GET], MESSAGES / CORE_TX_SELECTOR_OTHER - 2);
	cr_assert_leq(tally.by[CORE_TX_GET], MESSAGES / CORE_TX_SELECTOR_OTHER + 1);
	cr_assert_leq(tally.timed,
		      MESSAGES / CORE_TX_SELECTOR_AGAIN + MESSAGES / CORE_TX_SELECTOR_OTHER + 2);

	sel = (struct core_tx_selector){ .ahead = 0 };
	send_many(&sel, &far, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	tally = send_many(&sel, &far, LEN, MESSAGES);
	cr_assert_leq(tally.by[CORE_TX_PARTS], MESSAGES / CORE_TX_SELECTOR_OTHER + 1);
}

Test(core_tx_selector, a_protocol_that_is_twice_as_slow_is_tried_less_often)
{
	struct place slow = { { [CORE_TX_GET] = 100, [CORE_TX_PARTS] = 300 } };
	struct core_tx_selector sel = { .ahead = 0 };
	struct tally tally;

	send_many(&sel, &slow, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	tally = send_many(&sel, &slow, LEN, MESSAGES);
	cr_assert_leq(tally.by[CORE_TX_PARTS], MESSAGES / CORE_TX_SELECTOR_SLOW + 1);
	cr_assert_geq(tally.by[CORE_TX_PARTS], MESSAGES / CORE_TX_SELECTOR_SLOW - 1);
}

Test(core_tx_selector, a_changed_distance_changes_the_protocol)
{
	struct core_tx_selector sel = { .ahead = 0 };
	struct tally tally;

	for (int round = 0; round < 3; round++) {
		send_many(&sel, &near, LEN, 2 * CORE_TX_SELECTOR_SLOW);
		tally = send_many(&sel, &near, LEN, CORE_TX_SELECTOR_OTHER / 2);
		cr_assert_geq(tally.by[CORE_TX_PARTS], CORE_TX_SELECTOR_OTHER / 2 - 1);
		send_many(&sel, &far, LEN, 16 * CORE_TX_SELECTOR_AGAIN);
		tally = send_many(&sel, &far, LEN, CORE_TX_SELECTOR_OTHER / 2);
		cr_assert_geq(tally.by[CORE_TX_GET], CORE_TX_SELECTOR_OTHER / 2 - 1);
	}
}

Test(core_tx_selector, a_late_reply_does_not_change_the_protocol)
{
	struct core_tx_selector sel = { .ahead = 0 };

	send_many(&sel, &near, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	for (int i = 0; i < 20; i++) {
		core_tx_selector_add(&sel, LEN, CORE_TX_PARTS, 10000000);
		cr_assert_eq(core_tx_selector_faster(sel.times[0], true), CORE_TX_PARTS);
		send_many(&sel, &near, LEN, 4 * CORE_TX_SELECTOR_AGAIN);
	}
}

/* Where receives are late, pipelined messages are copied twice, and gets take any time. */
Test(core_tx_selector, late_receives_are_served_by_gets)
{
	struct core_tx_selector sel = { .ahead = 0 };
	unsigned pipelined = 0;

	for (unsigned i = 0; i < MESSAGES; i++) {
		struct core_tx_choice choice = core_tx_selector_choose(&sel, LEN, true);

		core_tx_selector_started(&sel, LEN, choice);
		if (choice.timed)
			core_tx_selector_add_late(&sel, LEN, choice.protocol);
		pipelined += choice.protocol == CORE_TX_PARTS;
	}
	cr_expect_eq(pipelined, 0, "no get was timed");
	send_many(&sel, &near, LEN, 4 * CORE_TX_SELECTOR_FIRST);
	cr_expect_eq(core_tx_selector_faster(sel.times[0], true), CORE_TX_PARTS);
	for (unsigned i = 0; i < 8; i++)
		core_tx_selector_add_late(&sel, LEN, CORE_TX_PARTS);
	cr_expect_eq(core_tx_selector_faster(sel.times[0], true), CORE_TX_GET);
}

/* One reply in five comes up to ten times as late, whatever the protocol. */
Test(core_tx_selector, noise_hardly_ever_changes_the_protocol)
{
	struct rng rng = { .state = 3 };
	struct core_tx_selector sel = { .ahead = 0 };
	struct tally tally = { .timed = 0 };

	for (unsigned i = 0; i < MESSAGES; i++) {
		struct place place = near;

		if (rng_chance(&rng, 1, 5))
			for (unsigned p = 0; p < CORE_TX_PROTOCOLS; p++)
				place.kib_ns[p] *= 1 + rng_below(&rng, 10);
		send_one(&sel, &place, LEN, &tally);
	}
	cr_assert_lt(tally.by[CORE_TX_GET], MESSAGES / 20);
}

Test(core_tx_selector, a_stream_is_pipelined_only_where_that_is_clearly_faster)
{
	struct place close = { { [CORE_TX_GET] = 100, [CORE_TX_PARTS] = 90 } };
	struct core_tx_selector sel = { .ahead = 0 };
	struct core_tx_choice choice = core_tx_selector_choose(&sel, LEN, false);

	cr_assert(choice.protocol == CORE_TX_GET && !choice.timed, "nothing is known");
	send_many(&sel, &close, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	cr_assert_eq(core_tx_selector_choose(&sel, LEN, false).protocol, CORE_TX_GET);
	cr_assert_eq(core_tx_selector_choose(&sel, LEN, true).protocol, CORE_TX_PARTS);

	sel = (struct core_tx_selector){ .ahead = 0 };
	send_many(&sel, &near, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	choice = core_tx_selector_choose(&sel, LEN, false);
	cr_assert(choice.protocol == CORE_TX_PARTS && !choice.timed);
}

Test(core_tx_selector, classes_of_lengths_are_independent)
{
	struct core_tx_selector sel = { .ahead = 0 };

	send_many(&sel, &near, LEN, 2 * CORE_TX_SELECTOR_FIRST);
	send_many(&sel, &far, 64 * KIB + 1, 2 * CORE_TX_SELECTOR_FIRST);
	cr_assert_eq(core_tx_selector_choose(&sel, LEN, true).protocol, CORE_TX_PARTS);
	cr_assert_eq(core_tx_selector_choose(&sel, 64 * KIB, true).protocol, CORE_TX_PARTS);
	cr_assert_eq(core_tx_selector_choose(&sel, 128 * KIB, true).protocol, CORE_TX_GET);
	cr_assert_eq(sel.times[1][CORE_TX_GET].cnt, CORE_TX_SELECTOR_FIRST);
	cr_assert_eq(sel.times[2][CORE_TX_GET].cnt, 0);
}

Test(core_tx_selector, a_peer_that_sends_no_long_messages_is_not_filled_with_them)
{
	struct core_tx_selector sel = { .ahead = 0 };
	struct tally tally = send_many(&sel, &near, LONG, MESSAGES);

	cr_assert_eq(tally.by[CORE_TX_PARTS], CORE_TX_SELECTOR_AHEAD);
	core_tx_selector_received(&sel, CORE_TX_SELECTOR_LONG);
	tally = send_many(&sel, &near, LONG, MESSAGES);
	cr_assert_eq(tally.by[CORE_TX_PARTS], 0);
	core_tx_selector_received(&sel, LONG);
	tally = send_many(&sel, &near, LONG, MESSAGES);
	cr_assert_eq(tally.by[CORE_TX_PARTS], CORE_TX_SELECTOR_AHEAD);
	tally = send_many(&sel, &near, LEN, MESSAGES);
	cr_assert_gt(tally.by[CORE_TX_PARTS], MESSAGES / 2, "shorter ones are not limited");
}

Test(core_tx_selector, any_time_stays_in_bounds)
{
	struct core_tx_selector sel = { .ahead = 0 };
	struct core_tx_time *time = &sel.times[0][CORE_TX_GET];

	core_tx_selector_add(&sel, LEN, CORE_TX_GET, UINT64_MAX);
	for (int i = 0; i < 200; i++) {
		uint32_t before = time->kib_ns;

		core_tx_selector_add(&sel, LEN, CORE_TX_GET, i % 3 ? UINT64_MAX : 0);
		cr_assert_leq(time->kib_ns / 2, before);
	}
	for (int i = 0; i < 70000; i++)
		core_tx_selector_started(&sel, LEN, (struct core_tx_choice){ .timed = false });
	cr_assert_eq(time->since, UINT16_MAX);
	cr_assert_eq(time->cnt, CORE_TX_SELECTOR_FIRST);
}
