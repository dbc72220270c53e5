/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sq_device.h"

#include "support/rng.h"

TestSuite(m5_sq, .timeout = 200);

static struct sq_device d;

static void post_ring_run(uint16_t bb)
{
	cr_assert(sq_device_post(&d, bb));
	m5_sq_ring(&d.sq);
	sq_device_run(&d);
}

Test(m5_sq, first_lap_and_exact_wrap_need_no_nop)
{
	unsigned i;

	sq_device_init(&d, 8, 256, 0);
	for (i = 0; i < 3 * 8; i++) {
		post_ring_run(1);
		while (sq_device_complete(&d))
			;
	}
	cr_expect_eq(d.nops, 0);
	cr_expect_eq(d.wqes, 24);
	for (i = 0; i < 3 * 2; i++) {
		post_ring_run(4);
		while (sq_device_complete(&d))
			;
	}
	cr_expect_eq(d.nops, 0);
	sq_device_fini(&d);
}

Test(m5_sq, wqe_that_would_cross_the_end_is_preceded_by_one_nop)
{
	uint16_t at;

	for (at = 5; at < 8; at++) {
		unsigned i;

		sq_device_init(&d, 8, 256, 0);
		for (i = 0; i < at; i++)
			post_ring_run(1);
		while (sq_device_complete(&d))
			;
		d.sq.ci = d.sq.pi; /* the rest was not signalled */
		post_ring_run(4);
		cr_expect_eq(d.nops, 1);
		cr_expect_eq(d.sq.pi, 8 + 4);
		sq_device_fini(&d);
	}
}

Test(m5_sq, a_full_queue_has_no_block_left)
{
	unsigned i;

	sq_device_init(&d, 8, 256, 0);
	for (i = 0; i < 8; i++)
		cr_assert(sq_device_post(&d, 1));
	cr_expect(!sq_device_post(&d, 1));
	cr_expect_eq(m5_sq_in_flight(&d.sq), 8);
	m5_sq_ring(&d.sq);
	sq_device_run(&d);
	cr_expect(sq_device_complete(&d));
	cr_expect(sq_device_post(&d, 1));
	sq_device_fini(&d);
}

/* Guarantee for a caller that gets "no room". */
Test(m5_sq, without_room_for_the_largest_wqe_one_outstanding_reports)
{
	static const uint32_t sizes[] = { 8, 16, 64 };
	struct rng r = { rng_env("COPYRPC_TEST_SEED", 20) };
	size_t s;
	unsigned step;

	for (s = 0; s < 3; s++) {
		sq_device_init(&d, sizes[s], 256, (uint16_t)rng_next(&r));
		for (step = 0; step < 20000; step++) {
			uint16_t bb = (uint16_t)(1 + rng_below(&r, 4));

			if (sq_device_post(&d, bb)) {
				if (rng_chance(&r, 1, 2))
					m5_sq_ring(&d.sq);
				continue;
			}
			m5_sq_ring(&d.sq);
			sq_device_run(&d);
			cr_assert(sq_device_complete(&d), "seed %lu, step %u", r.state, step);
		}
		cr_assert_gt(d.wqes, 1000);
		sq_device_fini(&d);
	}
}

Test(m5_sq, counters_wrap_at_16_bits)
{
	unsigned i;

	sq_device_init(&d, 8, 256, 0xfffb);
	for (i = 0; i < 40; i++) {
		while (!sq_device_post(&d, (uint16_t)(1 + i % 4)))
			cr_assert(sq_device_complete(&d));
		m5_sq_ring(&d.sq);
		sq_device_run(&d);
	}
	cr_expect_lt(d.sq.pi, 0x1000);
	sq_device_fini(&d);
}

Test(m5_sq, signal_is_counted_in_blocks_and_in_wqes)
{
	unsigned i;

	sq_device_init(&d, 256, 256, 0);
	for (i = 1; i < 16; i++) {
		cr_expect_eq(m5_sq_signal(&d.sq, 4), 0, "after %u WQEs of 4 blocks", i);
		cr_assert(sq_device_post(&d, 4));
	}
	cr_expect_eq(m5_sq_signal(&d.sq, 4), M5_CTRL_SIGNAL);
	sq_device_fini(&d);
	sq_device_init(&d, 1024, 256, 0);
	for (i = 1; i < 64; i++) {
		cr_expect_eq(m5_sq_signal(&d.sq, 1), 0);
		cr_assert(sq_device_post(&d, 1));
	}
	cr_expect_eq(m5_sq_signal(&d.sq, 1), M5_CTRL_SIGNAL);
	sq_device_fini(&d);
}

Test(m5_sq, completion_retires_all_before_it)
{
	unsigned i;

	sq_device_init(&d, 16, 256, 0xfffe);
	for (i = 0; i < 4; i++)
		post_ring_run(i == 3 ? 4 : 1);
	cr_expect_eq(d.done[0], 1);
	cr_expect(m5_sq_retire(&d.sq, 1));
	cr_expect_eq(m5_sq_in_flight(&d.sq), 0);
	sq_device_fini(&d);
}

Test(m5_sq, completion_of_an_unrung_or_retired_wqe_is_refused)
{
	sq_device_init(&d, 8, 256, 100);
	cr_expect(!m5_sq_retire(&d.sq, 100));
	cr_assert(sq_device_post(&d, 1));
	cr_expect(!m5_sq_retire(&d.sq, 100), "built, not rung");
	m5_sq_ring(&d.sq);
	cr_expect(!m5_sq_retire(&d.sq, 101));
	cr_expect(!m5_sq_retire(&d.sq, 99));
	cr_expect(m5_sq_retire(&d.sq, 100));
	cr_expect(!m5_sq_retire(&d.sq, 100));
	sq_device_fini(&d);
}

Test(m5_sq, batch_that_fits_the_register_goes_by_one_blueflame)
{
	sq_device_init(&d, 16, 256, 0);
	cr_assert(sq_device_post(&d, 1));
	cr_assert(sq_device_post(&d, 2));
	cr_assert(sq_device_post(&d, 1));
	m5_sq_ring(&d.sq);
	cr_expect_eq(sq_device_rings(&d), 1);
	cr_expect_arr_eq(d.reg, d.buf, 256);
	sq_device_run(&d);
	cr_expect_eq(d.wqes, 3);
	sq_device_fini(&d);
}

Test(m5_sq, larger_batch_goes_by_eight_bytes_of_the_last_wqe)
{
	sq_device_init(&d, 16, 256, 0);
	cr_assert(sq_device_post(&d, 2));
	cr_assert(sq_device_post(&d, 2));
	cr_assert(sq_device_post(&d, 3));
	m5_sq_ring(&d.sq);
	cr_expect_eq(sq_device_rings(&d), 1);
	cr_expect_arr_eq(d.reg, d.buf + 4 * 64, 8);
	cr_expect_eq(d.reg[8], 0);
	sq_device_run(&d);
	cr_expect_eq(d.wqes, 3);
	sq_device_fini(&d);
}

Test(m5_sq, batch_across_the_end_is_not_copied)
{
	sq_device_init(&d, 8, 256, 7);
	cr_assert(sq_device_post(&d, 1));
	cr_assert(sq_device_post(&d, 1));
	m5_sq_ring(&d.sq);
	cr_expect_eq(be32toh(d.record[M5_DBR_SEND]), 9);
	cr_expect_arr_eq(d.reg, d.buf, 8);
	cr_expect_arr_eq(d.reg + 8, (uint8_t[56]){ 0 }, 56, "no BlueFlame");
	sq_device_fini(&d);
}

Test(m5_sq, ringing_without_a_new_wqe_does_nothing)
{
	sq_device_init(&d, 8, 256, 0);
	m5_sq_ring(&d.sq);
	cr_expect_eq(sq_device_rings(&d), 0);
	post_ring_run(1);
	m5_sq_ring(&d.sq);
	cr_expect_eq(sq_device_rings(&d), 1);
	sq_device_fini(&d);
}
