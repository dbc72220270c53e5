/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Positions, offsets, and spans that go to the next lap. (ring_flow.h) */
#include <criterion/criterion.h>

#include "ring/ring_flow.h"
#include "support/rng.h"

#define C 1024ull

/** Laps below and at which positions are tested: small, and where 32 and 63 bits overflow. */
static const uint64_t laps[] = { 0, C, 3 * C, 1ull << 32, 1ull << 63, -C };

#define EACH_LAP(lap) for (unsigned i_ = 0; i_ < 6 && ((lap) = laps[i_], true); i_++)

Test(ring_pos, offset_is_position_modulo_ring)
{
	uint64_t lap;

	EACH_LAP(lap)
	{
		cr_expect_eq(ring_off(lap, C), 0);
		cr_expect_eq(ring_off(lap + 32, C), 32);
		cr_expect_eq(ring_off(lap + C - 32, C), C - 32);
		cr_expect_eq(ring_off(lap - 32, C), C - 32);
	}
}

Test(ring_pos, a_span_that_would_end_exactly_at_the_end_wraps)
{
	uint64_t lap;

	EACH_LAP(lap)
	{
		cr_expect_not(ring_must_wrap(lap + C - 96, 64, C));
		cr_expect(ring_must_wrap(lap + C - 64, 64, C));
		cr_expect(ring_must_wrap(lap + C - 32, 64, C));
		cr_expect(ring_must_wrap(lap + C - 32, 32, C));
	}
}

Test(ring_pos, the_start_of_a_lap_never_wraps)
{
	uint64_t lap;

	EACH_LAP(lap)
	{
		cr_expect_not(ring_must_wrap(lap, 32, C));
		cr_expect_not(ring_must_wrap(lap, C - 32, C));
		cr_expect_eq(ring_skip(lap, C), 0);
		cr_expect_eq(ring_move(lap, 64, C), 64);
	}
}

Test(ring_pos, the_skip_ends_at_the_next_lap)
{
	uint64_t lap, off;

	EACH_LAP(lap)
	for (off = 32; off < C; off += 32) {
		cr_assert_eq(ring_skip(lap + off, C), C - off);
		cr_assert_eq(ring_off(lap + off + ring_skip(lap + off, C), C), 0);
	}
}

Test(ring_pos, a_move_is_the_span_and_the_skip_if_it_wraps)
{
	cr_expect_eq(ring_move(C - 128, 96, C), 96);
	cr_expect_eq(ring_move(C - 128, 128, C), 128 + 128);
	cr_expect_eq(ring_move(C - 32, 64, C), 32 + 64);
}

Test(ring_pos, the_skip_is_at_most_the_span)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 1) };
	unsigned i;

	for (i = 0; i < 200000; i++) {
		uint64_t len = C << rng_below(&r, 12);
		uint64_t pos = rng_next(&r) & ~31ull;
		uint64_t span = 32 + 32 * rng_below(&r, len / 128);
		uint64_t move = ring_move(pos, span, len);

		cr_assert(move >= span && move <= 2 * span, "pos %#lx span %lu", pos, span);
		/* A moved span stands in one piece and leaves space for a marker. */
		cr_assert(ring_off(pos + move - span, len) + span < len, "pos %#lx span %lu", pos,
			  span);
	}
}
