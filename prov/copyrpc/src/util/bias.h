/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a lock cost a thread that nobody competes with?
 *
 * Plain loads and stores: no atomic instruction, no call. A biased lock has an owner, the thread that
 * took it some dozens of times in a row. The owner says that it is inside and looks whether it is the
 * owner still; who wants the lock from it takes the mutex and the ownership away, and looks whether
 * it is inside. One of the two must see the other. What orders the owner's store before its load is
 * membarrier(2), called by the other: all threads of the process pass a barrier.
 *
 *   owner                          another
 *   seat.inside = 1                lock mutex, seat = none
 *   (compiler barrier)             membarrier
 *   still my seat? in.             !seat.inside? in.
 *
 * A thread that lost its seat may notice late, and then takes back what it said: so it has a seat for
 * good, and nobody else writes there. Without an owner, or when all seats are given away, it is the
 * mutex. Who loses ownership takes twice as many turns to get it again: threads that take turns pay
 * for a mutex. A visit is for what changes now and then: the owner is one again afterwards.
 *
 * Race detectors see all of it: seats are released and acquired.
 * Shown by test/unit/util/test_bias.c and test/stress/stress_bias.c.
 */
#ifndef UTIL_BIAS_H
#define UTIL_BIAS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bits.h"

/* Turns in a row that make an owner: at first, and at most. */
#define UTIL_BIAS_TURNS_MIN 64u
#define UTIL_BIAS_TURNS_MAX 65536u
/* Threads that can ever own a lock. */
#define UTIL_BIAS_SLOTS 8

struct util_bias_slot {
	uintptr_t thread; /* whose it is, for good; atomic; 0: nobody's */
	uint32_t inside;  /* atomic: it has the lock, or will find that it has not */
};

struct util_bias {
	struct util_bias_slot *slot; /* the owner's, or `none`; atomic, changes under the mutex */
	struct util_bias_slot *held; /* of who has the lock; NULL: it has the mutex */
	uintptr_t last;  /* who had the mutex; atomic; like all below: under the mutex */
	uint32_t turns;  /* of `last`, in a row */
	uint32_t needed; /* to make it the owner; 0: never */
	struct util_bias_slot *host; /* a visitor has the lock: who is the owner afterwards */
	pthread_mutex_t mutex;
	struct util_bias_slot none;
	struct util_bias_slot slots[UTIL_BIAS_SLOTS];
};

void util_bias_init(struct util_bias *bias);
void util_bias_fini(struct util_bias *bias);

/** Not 0, and the same for all of a thread's life. */
static inline uintptr_t util_bias_self(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	uintptr_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)pthread_self();
#endif
}

void util_bias_lock_cold(struct util_bias *bias);
void util_bias_unlock_cold(struct util_bias *bias);

static inline void util_bias_lock(struct util_bias *bias)
{
	struct util_bias_slot *slot = __atomic_load_n(&bias->slot, __ATOMIC_ACQUIRE);

	if (UTIL_LIKELY(__atomic_load_n(&slot->thread, __ATOMIC_RELAXED) == util_bias_self())) {
		__atomic_store_n(&slot->inside, 1, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (UTIL_LIKELY(__atomic_load_n(&bias->slot, __ATOMIC_ACQUIRE) == slot)) {
			bias->held = slot;
			return;
		}
		__atomic_store_n(&slot->inside, 0, __ATOMIC_RELEASE);
	}
	util_bias_lock_cold(bias);
}

static inline void util_bias_unlock(struct util_bias *bias)
{
	struct util_bias_slot *slot = bias->held;

	if (UTIL_LIKELY(slot != NULL))
		__atomic_store_n(&slot->inside, 0, __ATOMIC_RELEASE);
	else
		util_bias_unlock_cold(bias);
}

/** False if somebody has it, or tries to. */
bool util_bias_trylock(struct util_bias *bias);

/** Was the caller the last who took it, visits aside? For a guess: others may take it meanwhile. */
bool util_bias_is_mine(const struct util_bias *bias);

/** As util_bias_lock, for once. */
void util_bias_lock_transient(struct util_bias *bias);

#endif
