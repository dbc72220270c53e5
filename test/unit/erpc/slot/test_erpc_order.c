/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivery order: batches that arrive in any order are delivered in sequence, each once. */
#include "erpc/slot/erpc_order.h"

#include <criterion/criterion.h>
#include <stdbool.h>

#include "support/rng.h"

#define MESSAGES 20000u

static uint32_t first;
static uint32_t delivered;

static void deliver(uint32_t seq)
{
	cr_assert_eq(seq, first + delivered);
	delivered++;
}

static void arrive(struct erpc_order *o, uint32_t *seqs, uint32_t i, bool fresh)
{
	enum erpc_turn turn = erpc_order_take(o, first + i, &seqs[i]);
	uint32_t *item;

	if (!fresh) {
		cr_assert_eq(turn, ERPC_TURN_TWICE);
		return;
	}
	cr_assert(turn == ERPC_TURN_NOW || turn == ERPC_TURN_KEPT);
	if (turn == ERPC_TURN_KEPT)
		return;
	deliver(first + i);
	while ((item = erpc_order_pop(o)))
		deliver(*item);
}

/** Up to ERPC_SLOTS are in flight, any of them arrives next, some twice; numbers wrap. */
Test(erpc_order, any_order_of_arrival_is_delivered_in_sequence)
{
	static uint32_t seqs[MESSAGES];
	static bool arrived[MESSAGES];
	struct rng rng = { 7 };
	struct erpc_order o;
	uint32_t i, pick;

	first = UINT32_MAX - MESSAGES / 2;
	for (i = 0; i < MESSAGES; i++)
		seqs[i] = first + i;
	erpc_order_init(&o, first);
	while (delivered < MESSAGES) {
		pick = delivered + (uint32_t)rng_below(&rng, ERPC_SLOTS);
		if (pick >= MESSAGES)
			continue;
		arrive(&o, seqs, pick, !arrived[pick]);
		arrived[pick] = true;
		if (delivered && rng_chance(&rng, 1, 4))
			arrive(&o, seqs, delivered - 1, false);
	}
	cr_expect_eq(o.kept_cnt, 0);
	cr_expect_null(erpc_order_first(&o));
}

Test(erpc_order, repeats_and_impossible_numbers_are_distinguished_across_the_wrap)
{
	static const uint32_t nexts[] = { 2, 0, UINT32_MAX, 0x80000000, 0x7FFFFFFF };
	struct erpc_order o;
	int item;

	for (unsigned i = 0; i < sizeof(nexts) / sizeof(nexts[0]); i++) {
		erpc_order_init(&o, nexts[i]);
		cr_expect_eq(erpc_order_take(&o, nexts[i] - 5, &item), ERPC_TURN_TWICE, "%u", i);
		cr_expect_eq(erpc_order_take(&o, nexts[i] + 50, &item), ERPC_TURN_BEYOND, "%u", i);
	}
}

Test(erpc_order, sequence_numbers_beyond_the_slots_are_refused)
{
	struct erpc_order o;
	int item;

	erpc_order_init(&o, 100);
	cr_expect_eq(erpc_order_take(&o, 100 + ERPC_SLOTS, &item), ERPC_TURN_BEYOND);
	cr_expect_eq(erpc_order_take(&o, 99, &item), ERPC_TURN_TWICE);
	cr_expect_eq(erpc_order_take(&o, 100 + ERPC_SLOTS - 1, &item), ERPC_TURN_KEPT);
	cr_expect_eq(erpc_order_take(&o, 100 + ERPC_SLOTS - 1, &item), ERPC_TURN_TWICE);
	cr_expect_null(erpc_order_pop(&o));
	cr_expect_eq(erpc_order_first(&o), &item, "the batch waits");
}
