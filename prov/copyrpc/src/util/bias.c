/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cold side of the biased lock: taking the lock from its owner, and granting ownership. See bias.h.
 */
#include "util/bias.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/membarrier.h"

/* Stages of waiting for an owner inside the lock: pause instructions, yields, then naps. */
#define UTIL_BIAS_PAUSES 64u
#define UTIL_BIAS_YIELDS 64u
#define UTIL_BIAS_NAP_NS 50000

/* Upper bound on the time until a store of another thread is visible, if membarrier(2) fails. */
#define UTIL_BIAS_SEEN_NS 10000000

static bool util_bias_has_barrier;

/* Registers for membarrier(2). If the kernel refuses, every lock stays a plain mutex. */
static void util_bias_register(void)
{
	util_bias_has_barrier = util_membarrier_register_private();
}

static void util_bias_nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/*
 * Runs a memory barrier on all threads of the process; sleeps instead if the call is now forbidden.
 */
static void util_bias_barrier(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		util_bias_nap(UTIL_BIAS_SEEN_NS);
}

void util_bias_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, util_bias_register);
}

void util_bias_init(struct util_bias *bias)
{
	*bias = (struct util_bias){ .needed = UTIL_BIAS_TURNS_MIN };
	bias->slot = &bias->none;
	pthread_mutex_init(&bias->mutex, NULL);
}

void util_bias_fini(struct util_bias *bias)
{
	pthread_mutex_destroy(&bias->mutex);
}

static bool util_bias_is_inside(const struct util_bias_slot *slot)
{
	return __atomic_load_n(&slot->inside, __ATOMIC_ACQUIRE);
}

static void util_bias_wait_outside(const struct util_bias_slot *slot)
{
	for (unsigned looks = 0; util_bias_is_inside(slot); looks++) {
		if (looks < UTIL_BIAS_PAUSES)
			util_cpu_relax();
		else if (looks < UTIL_BIAS_PAUSES + UTIL_BIAS_YIELDS)
			sched_yield();
		else
			util_bias_nap(UTIL_BIAS_NAP_NS);
	}
}

/* --- ownership; call with the mutex locked -------------------------------------------------- */

static void util_bias_crown(struct util_bias *bias, struct util_bias_slot *slot)
{
	__atomic_store_n(&bias->slot, slot, __ATOMIC_RELEASE);
}

/* Revokes ownership. The former owner may still be inside; returns its slot, or `none`. */
static struct util_bias_slot *util_bias_depose(struct util_bias *bias)
{
	struct util_bias_slot *slot = bias->slot;

	if (slot != &bias->none) {
		util_bias_crown(bias, &bias->none);
		util_bias_barrier();
	}
	return slot;
}

/* Returns the thread's slot, a free one assigned to it, or NULL if all slots are assigned. */
static struct util_bias_slot *util_bias_slot_of(struct util_bias *bias, uintptr_t thread)
{
	for (size_t i = 0; i < UTIL_BIAS_SLOTS; i++) {
		struct util_bias_slot *slot = &bias->slots[i];

		if (!slot->thread)
			__atomic_store_n(&slot->thread, thread, __ATOMIC_RELAXED);
		if (slot->thread == thread)
			return slot;
	}
	return NULL;
}

/* Counts one more acquisition by the calling thread, which holds the mutex. */
static void util_bias_count(struct util_bias *bias)
{
	uintptr_t self = util_bias_self();
	struct util_bias_slot *slot;

	if (bias->last != self) {
		__atomic_store_n(&bias->last, self, __ATOMIC_RELAXED);
		bias->turns = 0;
	}
	if (++bias->turns != bias->needed)
		return;
	bias->turns = 0;
	util_bias_prepare();
	if (!util_bias_has_barrier) {
		bias->needed = 0;
		return;
	}
	slot = util_bias_slot_of(bias, self);
	if (slot)
		util_bias_crown(bias, slot);
}

static bool util_bias_is_owner(const struct util_bias *bias)
{
	return bias->slot->thread == util_bias_self();
}

bool util_bias_is_mine(const struct util_bias *bias)
{
	const struct util_bias_slot *slot = __atomic_load_n(&bias->slot, __ATOMIC_ACQUIRE);

	if (slot == &bias->none)
		return __atomic_load_n(&bias->last, __ATOMIC_RELAXED) == util_bias_self();
	return __atomic_load_n(&slot->thread, __ATOMIC_RELAXED) == util_bias_self();
}

/* --- the lock ------------------------------------------------------------------------------- */

void util_bias_lock_cold(struct util_bias *bias)
{
	struct util_bias_slot *slot;

	pthread_mutex_lock(&bias->mutex);
	/* While this thread waited for a transient lock, ownership may have returned to it. */
	if (!util_bias_is_owner(bias)) {
		slot = util_bias_depose(bias);
		if (slot != &bias->none && bias->needed < UTIL_BIAS_TURNS_MAX)
			bias->needed *= 2;
		util_bias_wait_outside(slot);
		util_bias_count(bias);
	}
	bias->held = NULL;
}

void util_bias_unlock_cold(struct util_bias *bias)
{
	if (bias->host)
		util_bias_crown(bias, bias->host);
	bias->host = NULL;
	pthread_mutex_unlock(&bias->mutex);
}

bool util_bias_trylock(struct util_bias *bias)
{
	struct util_bias_slot *slot;

	if (pthread_mutex_trylock(&bias->mutex))
		return false;
	slot = util_bias_is_owner(bias) ? bias->slot : util_bias_depose(bias);
	if (util_bias_is_inside(slot)) {
		util_bias_crown(bias, slot);
		pthread_mutex_unlock(&bias->mutex);
		return false;
	}
	util_bias_count(bias);
	bias->held = NULL;
	return true;
}

void util_bias_lock_transient(struct util_bias *bias)
{
	pthread_mutex_lock(&bias->mutex);
	bias->host = util_bias_depose(bias);
	util_bias_wait_outside(bias->host);
	bias->held = NULL;
}
