/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who owns a biased lock, when, and can two have it? (Threads that try hard: stress_bias.) */
#include <criterion/criterion.h>
#include <pthread.h>

#include "util/bias.h"

static struct util_bias bias;

static void setup(void)
{
	util_bias_init(&bias);
	if (!bias.needed)
		cr_skip_test("the kernel has no membarrier");
}

static void teardown(void)
{
	util_bias_fini(&bias);
}

TestSuite(bias, .init = setup, .fini = teardown);

/* Takes it n times; returns how often without the mutex. */
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

Test(bias, who_takes_it_often_enough_owns_it)
{
	cr_expect_eq(take(UTIL_BIAS_TURNS_MIN), 0);
	cr_expect_eq(take(100), 100);
}

Test(bias, another_thread_takes_ownership_away_and_may_get_it)
{
	take(UTIL_BIAS_TURNS_MIN);
	cr_expect_eq(take_elsewhere(1), 0);
	cr_expect_eq(take(2 * UTIL_BIAS_TURNS_MIN + 10), 10);
	cr_expect_eq(take_elsewhere(4 * UTIL_BIAS_TURNS_MIN + 10), 10);
}

Test(bias, losing_it_again_and_again_takes_no_longer_than_the_most)
{
	for (int i = 0; i < 20; i++) {
		take(UTIL_BIAS_TURNS_MAX);
		take_elsewhere(1);
	}
	cr_expect_eq(take(UTIL_BIAS_TURNS_MAX + 10), 10);
}

Test(bias, nobody_else_has_it_meanwhile)
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

static void *run_visit(void *arg)
{
	(void)arg;
	util_bias_lock_transient(&bias);
	cr_expect_not(is_free_elsewhere());
	util_bias_unlock(&bias);
	return NULL;
}

Test(bias, a_visit_leaves_the_owner_what_it_is)
{
	pthread_t thread;

	take(UTIL_BIAS_TURNS_MIN);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, run_visit, NULL), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_expect_eq(take(1), 1);
	}
	run_visit(NULL);
	cr_expect_eq(take(1), 1);
}

Test(bias, without_a_seat_it_is_a_mutex)
{
	for (uintptr_t i = 0; i < UTIL_BIAS_SLOTS; i++)
		bias.slots[i].thread = 1 + i; /* no thread's */
	cr_expect_eq(take(3 * UTIL_BIAS_TURNS_MAX), 0);
	cr_expect(is_free_elsewhere());
}

Test(bias, without_a_barrier_it_is_a_mutex)
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

/* Whether it took it once, or owns it. */
Test(bias, it_is_his_who_took_it_last)
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
