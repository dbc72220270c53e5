/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When does a batch leave? The policy, row by row. (ring_flush.h) */
#include <criterion/criterion.h>

#include "ring/ring_flush.h"

static const struct ring_flush_cfg doorbell = { .best_len = 512, .cheap = false };
static const struct ring_flush_cfg store = { .best_len = 512, .cheap = true };

Test(ring_flush, a_lone_message_leaves_at_once)
{
	cr_expect(ring_flush_now(&doorbell, 64, false, false));
	cr_expect(ring_flush_now(&store, 64, false, false));
}

Test(ring_flush, behind_others_it_waits_for_progress_where_a_doorbell_is_dear)
{
	cr_expect_not(ring_flush_now(&doorbell, 64, false, true));
	cr_expect_not(ring_flush_now(&doorbell, 511, false, true));
}

Test(ring_flush, it_never_waits_where_signalling_is_cheap)
{
	cr_expect(ring_flush_now(&store, 64, false, true));
}

Test(ring_flush, more_to_come_holds_it)
{
	cr_expect_not(ring_flush_now(&doorbell, 64, true, false));
	cr_expect_not(ring_flush_now(&store, 64, true, false));
	cr_expect_not(ring_flush_now(&store, 511, true, true));
}

Test(ring_flush, a_message_that_would_begin_a_packet_with_its_end_has_the_batch_leave)
{
	static const struct ring_flush_cfg cfg = { .best_len = 512, .packet_len = 512 };

	cr_expect_not(ring_flush_before(&cfg, 448, 64), "it fills the packet");
	cr_expect(ring_flush_before(&cfg, 480, 64));
	cr_expect(ring_flush_before(&cfg, 288, 256));
	cr_expect_not(ring_flush_before(&cfg, 256, 256));
	cr_expect_not(ring_flush_before(&cfg, 480, 288), "large ones take several packets anyway");
	cr_expect_not(ring_flush_before(&cfg, 0, 64));
}

Test(ring_flush, a_batch_of_the_best_size_leaves_whatever_holds)
{
	cr_expect(ring_flush_now(&doorbell, 512, true, true));
	cr_expect(ring_flush_now(&doorbell, 544, false, true));
	cr_expect(ring_flush_now(&store, 512, true, false));
}
