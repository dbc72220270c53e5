/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Flush policy, row by row. (ring_flush.h) */
#include <criterion/criterion.h>

#include "ring/ring_flush.h"

static const struct ring_flush_cfg doorbell = { .best_len = 512, .cheap_signal = false };
static const struct ring_flush_cfg store = { .best_len = 512, .cheap_signal = true };

Test(ring_flush, a_single_message_leaves_at_once)
{
	cr_expect(ring_flush_now(&doorbell, 0, 64, false, false));
	cr_expect(ring_flush_now(&store, 0, 64, false, false));
}

Test(ring_flush, a_message_behind_others_is_deferred_where_a_doorbell_is_expensive)
{
	cr_expect_not(ring_flush_now(&doorbell, 0, 64, false, true));
	cr_expect_not(ring_flush_now(&doorbell, 0, 511, false, true));
}

Test(ring_flush, a_message_is_never_deferred_where_signalling_is_cheap)
{
	cr_expect(ring_flush_now(&store, 0, 64, false, true));
}

Test(ring_flush, fi_more_defers_a_message)
{
	cr_expect_not(ring_flush_now(&doorbell, 0, 64, true, false));
	cr_expect_not(ring_flush_now(&store, 0, 64, true, false));
	cr_expect_not(ring_flush_now(&store, 0, 511, true, true));
}

Test(ring_flush, a_message_that_would_start_a_packet_flushes_the_batch)
{
	static const struct ring_flush_cfg cfg = { .best_len = 512, .packet_len = 512 };

	cr_expect_not(ring_flush_before(&cfg, 448, 64), "it fills the packet");
	cr_expect(ring_flush_before(&cfg, 480, 64));
	cr_expect(ring_flush_before(&cfg, 288, 256));
	cr_expect_not(ring_flush_before(&cfg, 256, 256));
	cr_expect_not(ring_flush_before(&cfg, 480, 288),
		      "large messages take several packets anyway");
	cr_expect_not(ring_flush_before(&cfg, 0, 64));
}

Test(ring_flush, a_batch_of_the_best_size_leaves_unconditionally)
{
	cr_expect(ring_flush_now(&doorbell, 0, 512, true, true));
	cr_expect(ring_flush_now(&doorbell, 0, 544, false, true));
	cr_expect(ring_flush_now(&store, 0, 512, true, false));
}

Test(ring_flush, the_head_behind_a_full_batch_is_in_the_second_half_of_a_line)
{
	static const struct ring_flush_cfg cfg = { .best_len = 544, .head_bits = 32 };
	uint64_t start;

	for (start = 0; start < 256; start += 32) {
		cr_expect_eq(ring_flush_full(&cfg, start) % 64, 32);
		cr_expect_geq(ring_flush_full(&cfg, start), start + 544);
		cr_expect_leq(ring_flush_full(&cfg, start), start + 576);
	}
	cr_expect_not(ring_flush_now(&cfg, 32, 576, false, true));
	cr_expect(ring_flush_now(&cfg, 32, 608, false, true));
	cr_expect(ring_flush_now(&cfg, UINT64_MAX - 31, 544, false, true),
		  "a lap of all positions");
	cr_expect_not(ring_flush_now(&cfg, UINT64_MAX - 31, 512, false, true));
	cr_expect_eq(ring_flush_full(&doorbell, 64), 576, "elsewhere anywhere");
}
