/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of the biased lock: two threads must never own it at once.
 *
 * Threads lock it in bursts, by all its functions: long bursts that make the thread its owner, and
 * short ones that revoke the bias of another thread. The lock guards two numbers that are equal
 * while it is free, and a sum.
 *
 * The suite builds the test with TSan. Without TSan it detects reordering by the store buffer: it
 * fails if util_bias_barrier does nothing.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/bias.h"
#include "util/clock.h"

#define THREADS    3
#define BURSTS     20000
#define TRANSIENTS 200000
#define LIMIT_NS   (60 * UTIL_NS_PER_S)

static struct util_bias bias;
static volatile uint64_t one, other; /* guarded by the lock */
static uint64_t plain;               /* guarded by the lock: turns without the mutex */
static bool stop;                    /* atomic */

static void turn(void)
{
	if (one != other) {
		fprintf(stderr, "two have the lock\n");
		exit(1);
	}
	one++;
	plain += bias.held != NULL;
	other++;
}

/* Locks by function number `way`. Returns false if the lock was not free. */
static bool enter(int way)
{
	if (way == 0)
		util_bias_lock_transient(&bias);
	else if (way > 1)
		util_bias_lock(&bias);
	else
		return util_bias_trylock(&bias);
	return true;
}

static void *run_bursts(void *arg)
{
	uint64_t *turns = arg;
	unsigned seed = (unsigned)*turns;

	*turns = 0;
	for (int i = 0; i < BURSTS; i++) {
		int left = rand_r(&seed) % 8 ? rand_r(&seed) % 3 : rand_r(&seed) % 400;
		int way = rand_r(&seed) % 4;

		for (; left; left--) {
			if (!enter(way))
				continue;
			turn();
			/* Yields, so that another thread can become the owner. */
			if (!bias.held && bias.needed)
				bias.needed = UTIL_BIAS_TURNS_MIN;
			util_bias_unlock(&bias);
			++*turns;
		}
	}
	return NULL;
}

/* Runs the owner, which locks and unlocks all the time. */
static void *run_owner(void *arg)
{
	uint64_t *turns = arg;

	for (*turns = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); ++*turns) {
		util_bias_lock(&bias);
		turn();
		util_bias_unlock(&bias);
	}
	return NULL;
}

/*
 * Runs until the other thread has been the owner, since with few processors that thread may start
 * late.
 */
static void *run_transient(void *arg)
{
	uint64_t *turns = arg, limit_ns = util_clock_ns() + LIMIT_NS;
	bool met = false;

	for (*turns = 0; *turns < TRANSIENTS || (!met && util_clock_ns() < limit_ns); ++*turns) {
		util_bias_lock_transient(&bias);
		turn();
		met = plain || !bias.needed;
		util_bias_unlock(&bias);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	return NULL;
}

/* Runs all threads at once. Returns 0 if each turn was counted and the owner had some of them. */
static int run(void *(*const runs[])(void *), unsigned cnt)
{
	uint64_t turns[THREADS], sum = 0;
	pthread_t threads[THREADS];

	one = other = plain = 0;
	util_bias_init(&bias);
	for (unsigned i = 0; i < cnt; i++) {
		turns[i] = i + 1;
		if (pthread_create(&threads[i], NULL, runs[i], &turns[i]))
			return 1;
	}
	for (unsigned i = 0; i < cnt; i++) {
		pthread_join(threads[i], NULL);
		sum += turns[i];
	}
	util_bias_fini(&bias);
	printf("stress_bias: %ju turns, %ju of them without the mutex\n", (uintmax_t)sum,
	       (uintmax_t)plain);
	return sum != one || one != other || (bias.needed && !plain);
}

int main(void)
{
	void *(*const bursts[])(void *) = { run_bursts, run_bursts, run_bursts };
	void *(*const transients[])(void *) = { run_owner, run_transient };

	return run(bursts, THREADS) || run(transients, 2);
}
