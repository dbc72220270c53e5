/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For looks of any length: spinning ends in time, yields the processor in time, and reads the clock
 * rarely.
 */
#include "ofi/queue/cpr_look.h"

#include <criterion/criterion.h>

#define START 1000000000ull

struct run {
	unsigned looks, asks, yields;
	uint64_t took_ns, give_gap_ns;
};

/** Runs looks of look_ns each until the end. */
static struct run run(uint64_t look_ns)
{
	uint64_t now_ns = START, yielded_ns = START, gap_ns;
	enum cpr_look_next next = CPR_LOOK_AGAIN;
	struct run r = { 0 };
	struct cpr_look l;

	cpr_look_init(&l);
	while (next != CPR_LOOK_OVER) {
		now_ns += look_ns;
		r.looks++;
		if (!cpr_look_is_clock_due(&l))
			continue;
		r.asks++;
		next = cpr_look_at(&l, now_ns);
		if (next == CPR_LOOK_AGAIN)
			continue;
		r.yields += next == CPR_LOOK_YIELD;
		gap_ns = now_ns - yielded_ns;
		r.give_gap_ns = gap_ns > r.give_gap_ns ? gap_ns : r.give_gap_ns;
		yielded_ns = now_ns;
	}
	r.took_ns = now_ns - START;
	return r;
}

Test(cpr_look, spinning_ends_in_time)
{
	uint64_t look_ns;

	for (look_ns = 10; look_ns < 20000; look_ns += 7) {
		struct run r = run(look_ns);

		cr_assert_geq(r.took_ns, CPR_LOOK_SPIN_NS);
		cr_assert_leq(r.took_ns, CPR_LOOK_SPIN_NS + 3 * CPR_LOOK_YIELD_NS + 6 * look_ns,
			      "looks of %lu ns: %lu ns", look_ns, r.took_ns);
	}
}

Test(cpr_look, the_processor_is_yielded_in_time)
{
	uint64_t look_ns;

	for (look_ns = 10; look_ns < 5000; look_ns += 7) {
		struct run r = run(look_ns);

		cr_assert_geq(r.yields, 2);
		cr_assert_leq(r.give_gap_ns, 4 * CPR_LOOK_YIELD_NS + 6 * look_ns,
			      "looks of %lu ns: %lu ns", look_ns, r.give_gap_ns);
	}
}

Test(cpr_look, cheap_looks_read_the_clock_rarely)
{
	struct run r = run(20);

	cr_expect_leq(r.asks, r.looks / 50);
}
