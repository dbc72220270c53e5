/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Biased lock: costs a thread without competitors plain loads and stores, no atomic instruction.
 *
 * A thread that acquires the lock UTIL_BIAS_TURNS_MIN times in a row becomes the lock owner. The
 * owner stores `inside` in its slot and then checks that it still owns the lock. Another thread
 * locks the mutex, revokes the ownership and then checks `inside`. At least one of the two sees the
 * other's store: the other thread calls membarrier(2), which runs a barrier on all threads of the
 * process.
 *
 *   owner                          other thread
 *   slot.inside = 1                lock mutex, slot = none
 *   (compiler barrier)             membarrier
 *   slot unchanged? locked.        !slot.inside? locked.
 *
 * A former owner may set `inside` before it notices the revocation, so a slot belongs to one thread
 * for good. Without an owner, or with all slots assigned, the lock is the mutex. Each revocation
 * doubles the number of acquisitions that make an owner: contended locks stay mutexes. A transient
 * lock leaves the ownership unchanged.
 *
 * Slots are released and acquired, so race detectors see every ordering. Tested by
 * test/unit/util/test_bias.c and test/stress/stress_bias.c.
 */
#ifndef UTIL_BIAS_H
#define UTIL_BIAS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bits.h"

/* Acquisitions in a row that make a thread the owner: initial number and upper bound. */
#define UTIL_BIAS_TURNS_MIN 64u
#define UTIL_BIAS_TURNS_MAX 65536u
/* Number of threads that can ever own one lock. */
#define UTIL_BIAS_SLOTS 8

struct util_bias_slot {
	uintptr_t thread; /* owning thread, set once; atomic; 0: free */
	uint32_t inside;  /* atomic; the thread has the lock, or is checking its ownership */
};

struct util_bias {
	struct util_bias_slot *slot; /* the owner's, or `none`; atomic; written under the mutex */
	struct util_bias_slot *held; /* slot of the lock holder; NULL: the mutex is locked */
	/* Under the mutex from here on; `last` is also read without it, atomically. */
	uintptr_t last;              /* last thread that locked the mutex */
	uint32_t turns;              /* consecutive acquisitions by `last` */
	uint32_t needed;             /* acquisitions that make `last` the owner; 0: never */
	struct util_bias_slot *host; /* during a transient lock: owner to restore at unlock */
	pthread_mutex_t mutex;
	struct util_bias_slot none;
	struct util_bias_slot slots[UTIL_BIAS_SLOTS];
};

/**
 * Registers the process with the kernel, once, for the locks that get an owner. Without this call
 * the first of them does: in a process with several threads it takes 10 ms (membarrier.h).
 */
void util_bias_prepare(void);

void util_bias_init(struct util_bias *bias);
void util_bias_fini(struct util_bias *bias);

/** Returns a nonzero identifier of the calling thread, constant for its lifetime. */
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

/** Locks without waiting. Returns false if another thread holds or is acquiring the lock. */
bool util_bias_trylock(struct util_bias *bias);

/**
 * Returns whether the calling thread took the lock last, transient locks aside. A hint: another
 * thread may take it at any time.
 */
bool util_bias_is_mine(const struct util_bias *bias);

/** Locks once without changing the ownership; released by util_bias_unlock. */
void util_bias_lock_transient(struct util_bias *bias);

#endif
