/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FIFO of retained messages. (ring_retain.h) */
#include <criterion/criterion.h>
#include <string.h>

#include "ring/ring_retain.h"
#include "support/rng.h"

Test(ring_retain, without_retained_messages_all_parsed_bytes_are_released)
{
	struct ring_retained h;

	ring_retained_init(&h);
	cr_expect_eq(ring_retained_consumer(&h, 4096), 4096);
	ring_retained_fini(&h);
}

Test(ring_retain, a_retained_message_keeps_its_bytes_and_all_behind_it)
{
	struct ring_retained h;

	ring_retained_init(&h);
	cr_expect_eq(h.tail, 0, "the number of the next retained message");
	cr_expect_eq(ring_retained_add(&h, 64), 0);
	cr_expect_eq(h.tail, 1);
	cr_expect_eq(ring_retained_consumer(&h, 4096), 64);
	cr_expect(ring_retained_release(&h, 0));
	cr_expect_eq(ring_retained_consumer(&h, 4096), 4096);
	ring_retained_fini(&h);
}

Test(ring_retain, release_is_in_order)
{
	struct ring_retained h;

	ring_retained_init(&h);
	ring_retained_add(&h, 32);
	ring_retained_add(&h, 64);
	ring_retained_add(&h, 128);
	cr_expect_not(ring_retained_release(&h, 1));
	cr_expect_eq(ring_retained_consumer(&h, 256), 32);
	cr_expect(ring_retained_release(&h, 0));
	cr_expect_eq(ring_retained_consumer(&h, 256), 128, "the second was done already");
	cr_expect(ring_retained_release(&h, 2));
	cr_expect_eq(ring_retained_consumer(&h, 256), 256);
	ring_retained_fini(&h);
}

Test(ring_retain, released_and_invalid_numbers_are_refused)
{
	struct ring_retained h;

	ring_retained_init(&h);
	cr_expect_not(ring_retained_release(&h, 0), "no message was ever retained");
	ring_retained_add(&h, 32);
	ring_retained_add(&h, 64);
	cr_expect_not(ring_retained_release(&h, 2));
	cr_expect_not(ring_retained_release(&h, UINT64_MAX));
	cr_expect_not(ring_retained_release(&h, 1));
	cr_expect_not(ring_retained_release(&h, 1), "twice");
	cr_expect(ring_retained_release(&h, 0));
	cr_expect_not(ring_retained_release(&h, 0), "twice");
	cr_expect_eq(h.head, h.tail);
	ring_retained_fini(&h);
}

Test(ring_retain, numbers_wrap_at_64_bits)
{
	struct ring_retained h;
	unsigned i;

	ring_retained_init(&h);
	h.head = h.tail = UINT64_MAX - 20;
	for (i = 0; i < 40; i++)
		cr_assert_eq(ring_retained_add(&h, 32 * i), 0);
	for (i = 39; i > 0; i--)
		cr_assert_not(ring_retained_release(&h, UINT64_MAX - 20 + i));
	cr_expect(ring_retained_release(&h, UINT64_MAX - 20));
	cr_expect_eq(ring_retained_consumer(&h, 4096), 4096);
	ring_retained_fini(&h);
}

/** Compares with a table of all messages. Grows in mid-lap of its own ring. */
Test(ring_retain, the_consumer_is_the_oldest_retained_message)
{
	enum { CNT = 20000, OPEN = 100 };
	static bool open[CNT];
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 1) };
	struct ring_retained h;
	uint64_t oldest = 0, next = 0, seq;
	bool moved;

	memset(open, 0, sizeof(open));
	ring_retained_init(&h);
	while (next < CNT) {
		if (next - oldest < OPEN && rng_chance(&r, 1, 2)) {
			cr_assert_eq(h.tail, next);
			cr_assert_eq(ring_retained_add(&h, 32 * next), 0);
			open[next++] = true;
		} else if (next != oldest) {
			seq = oldest + rng_below(&r, next - oldest);
			moved = ring_retained_release(&h, seq);
			cr_assert_eq(moved, seq == oldest && open[seq]);
			open[seq] = false;
			while (oldest < next && !open[oldest])
				oldest++;
		}
		cr_assert_eq(ring_retained_consumer(&h, 32 * next), 32 * oldest);
	}
	ring_retained_fini(&h);
}
