/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ownership and mutual exclusion of the biased lock. Threads under load: test/stress/stress_bias.c.
 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "util/bias.h"

static struct util_bias bias;

/* Locks and unlocks n times. Returns the number of times the mutex was not needed. */
static unsigned take(unsigned n)
{
	unsigned plain = 0;

	while (n--) {
		util_bias_lock(&bias);
		plain += bias.held != NULL;
		util_bias_unlock(&bias);
	}
	return plain;
}

static void setup(void)
{
	util_bias_init(&bias);
	take(UTIL_BIAS_TURNS_MIN);
	if (!bias.needed)
		cr_skip_test("the kernel has no membarrier");
	util_bias_fini(&bias);
	util_bias_init(&bias);
}

static void teardown(void)
{
	util_bias_fini(&bias);
}

TestSuite(bias, .init = setup, .fini = teardown);

static void *run_take(void *arg)
{
	unsigned *n = arg;

	*n = take(*n);
	return NULL;
}

static unsigned take_elsewhere(unsigned n)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, run_take, &n), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return n;
}

static void *run_trylock(void *arg)
{
	*(bool *)arg = util_bias_trylock(&bias);
	if (*(bool *)arg)
		util_bias_unlock(&bias);
	return NULL;
}

static bool is_free_elsewhere(void)
{
	pthread_t thread;
	bool taken;

	cr_assert_eq(pthread_create(&thread, NULL, run_trylock, &taken), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return taken;
}

Test(bias, a_thread_that_locks_often_enough_becomes_the_owner)
{
	cr_expect_eq(take(UTIL_BIAS_TURNS_MIN), 0);
	cr_expect_eq(take(100), 100);
}

Test(bias, another_thread_revokes_ownership_and_can_become_the_owner)
{
	take(UTIL_BIAS_TURNS_MIN);
	cr_expect_eq(take_elsewhere(1), 0);
	cr_expect_eq(take(2 * UTIL_BIAS_TURNS_MIN + 10), 10);
	cr_expect_eq(take_elsewhere(4 * UTIL_BIAS_TURNS_MIN + 10), 10);
}

Test(bias, repeated_revocation_raises_the_threshold_to_its_maximum_only)
{
	for (int i = 0; i < 20; i++) {
		take(UTIL_BIAS_TURNS_MAX);
		take_elsewhere(1);
	}
	cr_expect_eq(take(UTIL_BIAS_TURNS_MAX + 10), 10);
}

Test(bias, no_other_thread_gets_a_lock_that_is_held)
{
	util_bias_lock(&bias);
	cr_expect_not(is_free_elsewhere());
	util_bias_unlock(&bias);
	cr_expect(is_free_elsewhere());
	take(UTIL_BIAS_TURNS_MAX);
	util_bias_lock(&bias);
	cr_expect_neq(bias.held, NULL);
	cr_expect_not(is_free_elsewhere());
	cr_expect_not(util_bias_trylock(&bias));
	util_bias_unlock(&bias);
	cr_expect(util_bias_trylock(&bias));
	cr_expect_not(is_free_elsewhere());
	util_bias_unlock(&bias);
	cr_expect_eq(take(1), 1, "an attempt of another thread has cost the owner its lock");
	cr_expect(is_free_elsewhere());
	cr_expect_eq(take(1), 0);
}

static void *run_transient(void *arg)
{
	util_bias_lock_transient(&bias);
	cr_expect_not(is_free_elsewhere());
	util_bias_unlock(&bias);
	return NULL;
}

Test(bias, a_transient_lock_leaves_the_ownership_unchanged)
{
	pthread_t thread;

	take(UTIL_BIAS_TURNS_MIN);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, run_transient, NULL), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_expect_eq(take(1), 1);
	}
	run_transient(NULL);
	cr_expect_eq(take(1), 1);
}

Test(bias, without_a_free_slot_the_lock_is_a_mutex)
{
	for (uintptr_t i = 0; i < UTIL_BIAS_SLOTS; i++)
		bias.slots[i].thread = 1 + i; /* no thread's id */
	cr_expect_eq(take(3 * UTIL_BIAS_TURNS_MAX), 0);
	cr_expect(is_free_elsewhere());
}

Test(bias, without_membarrier_the_lock_is_a_mutex)
{
	bias.needed = 0;
	cr_expect_eq(take(3 * UTIL_BIAS_TURNS_MAX), 0);
	cr_expect_eq(take_elsewhere(10), 0);
}

static void *run_is_mine(void *arg)
{
	*(bool *)arg = util_bias_is_mine(&bias);
	return NULL;
}

static bool is_mine_elsewhere(void)
{
	pthread_t thread;
	bool mine;

	cr_assert_eq(pthread_create(&thread, NULL, run_is_mine, &mine), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return mine;
}

/* Covers a thread that locked once and one that owns the lock. */
Test(bias, is_mine_is_true_for_the_last_thread_that_locked)
{
	cr_expect_not(util_bias_is_mine(&bias));
	for (unsigned turns = 1; turns <= UTIL_BIAS_TURNS_MIN; turns *= UTIL_BIAS_TURNS_MIN) {
		take(turns);
		cr_expect(util_bias_is_mine(&bias));
		cr_expect_not(is_mine_elsewhere());
	}
	take_elsewhere(1);
	cr_expect_not(util_bias_is_mine(&bias));
	take(1);
	cr_expect(util_bias_is_mine(&bias));
}
