/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Missing disorder proves nothing about a barrier. These tests show that the compiler moves no
 * store below and no load above a barrier. test/lint/doorbell checks the instructions.
 */
#include "dev/mlx5/m5_barrier.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

TestSuite(m5_barrier, .timeout = 200);

#define ROUNDS 20000u

struct box {
	volatile uint32_t owner;
	uint32_t data[15]; /* not volatile: only the barriers order them */
	volatile uint32_t taken;
};

static struct box box;

/* Yields, as the other thread may not be running. */
static void wait_until(const volatile uint32_t *word, uint32_t value)
{
	unsigned spins = 0;

	while (*word != value)
		if (++spins % 200 == 0)
			sched_yield();
}

static void *device(void *arg)
{
	uint32_t round, i;

	for (round = 1; round <= ROUNDS; round++) {
		wait_until(&box.taken, round - 1);
		for (i = 0; i < 15; i++)
			box.data[i] = round;
		m5_barrier_to_device();
		box.owner = round;
	}
	return NULL;
}

Test(m5_barrier, data_written_before_the_owner_bit_is_visible_after_it)
{
	uint32_t round, i, bad = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, device, NULL), 0);
	for (round = 1; round <= ROUNDS; round++) {
		wait_until(&box.owner, round);
		m5_barrier_from_device();
		for (i = 0; i < 15; i++)
			bad += box.data[i] != round;
		m5_barrier_mmio_flush();
		box.taken = round;
	}
	pthread_join(thread, NULL);
	cr_assert_eq(bad, 0);
}
