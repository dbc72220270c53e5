/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Taking a biased lock from its owner, and becoming one: see bias.h. */
#include "util/bias.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Looks at an owner that is inside: pausing, then giving the processor away, then napping. */
#define UTIL_BIAS_PAUSES 64u
#define UTIL_BIAS_YIELDS 64u
#define UTIL_BIAS_NAP_NS 50000

/* No store takes that long to be seen. */
#define UTIL_BIAS_SEEN_NS 10000000

static bool util_bias_has_barrier;

static long util_bias_membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* The kernel wants to be told before it is asked; one that refuses leaves us with mutexes. */
static void util_bias_register(void)
{
	util_bias_has_barrier = !util_bias_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static void util_bias_nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Every thread passes a barrier; by time, should the call have been forbidden since it was registered. */
static void util_bias_barrier(void)
{
	if (util_bias_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		util_bias_nap(UTIL_BIAS_SEEN_NS);
}

void util_bias_init(struct util_bias *bias)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, util_bias_register);
	*bias = (struct util_bias){ .needed = util_bias_has_barrier ? UTIL_BIAS_TURNS_MIN : 0 };
	bias->seat = &bias->none;
	pthread_mutex_init(&bias->mutex, NULL);
}

void util_bias_fini(struct util_bias *bias)
{
	pthread_mutex_destroy(&bias->mutex);
}

static bool util_bias_is_inside(const struct util_bias_seat *seat)
{
	return __atomic_load_n(&seat->inside, __ATOMIC_ACQUIRE);
}

static void util_bias_wait_outside(const struct util_bias_seat *seat)
{
	for (unsigned looks = 0; util_bias_is_inside(seat); looks++) {
		if (looks < UTIL_BIAS_PAUSES)
			util_cpu_relax();
		else if (looks < UTIL_BIAS_PAUSES + UTIL_BIAS_YIELDS)
			sched_yield();
		else
			util_bias_nap(UTIL_BIAS_NAP_NS);
	}
}

/* --- ownership; with the mutex -------------------------------------------------------------- */

static void util_bias_crown(struct util_bias *bias, struct util_bias_seat *seat)
{
	__atomic_store_n(&bias->seat, seat, __ATOMIC_RELEASE);
}

/* Nobody is the owner from now on; who was may be inside still. Returns its seat, or `none`. */
static struct util_bias_seat *util_bias_depose(struct util_bias *bias)
{
	struct util_bias_seat *seat = bias->seat;

	if (seat != &bias->none) {
		util_bias_crown(bias, &bias->none);
		util_bias_barrier();
	}
	return seat;
}

/* The thread's seat, if need be a free one; NULL: there is none. */
static struct util_bias_seat *util_bias_seat_of(struct util_bias *bias, uintptr_t thread)
{
	for (size_t i = 0; i < UTIL_BIAS_SEATS; i++) {
		struct util_bias_seat *seat = &bias->seats[i];

		if (!seat->thread)
			__atomic_store_n(&seat->thread, thread, __ATOMIC_RELAXED);
		if (seat->thread == thread)
			return seat;
	}
	return NULL;
}

/* One more turn of the caller, which has the lock. */
static void util_bias_count(struct util_bias *bias)
{
	uintptr_t self = util_bias_self();
	struct util_bias_seat *seat;

	if (bias->last != self) {
		__atomic_store_n(&bias->last, self, __ATOMIC_RELAXED);
		bias->turns = 0;
	}
	if (++bias->turns != bias->needed)
		return;
	bias->turns = 0;
	seat = util_bias_seat_of(bias, self);
	if (seat)
		util_bias_crown(bias, seat);
}

static bool util_bias_is_owner(const struct util_bias *bias)
{
	return bias->seat->thread == util_bias_self();
}

bool util_bias_is_mine(const struct util_bias *bias)
{
	const struct util_bias_seat *seat = __atomic_load_n(&bias->seat, __ATOMIC_ACQUIRE);

	if (seat == &bias->none)
		return __atomic_load_n(&bias->last, __ATOMIC_RELAXED) == util_bias_self();
	return __atomic_load_n(&seat->thread, __ATOMIC_RELAXED) == util_bias_self();
}

/* --- the lock ------------------------------------------------------------------------------- */

void util_bias_lock_cold(struct util_bias *bias)
{
	struct util_bias_seat *seat;

	pthread_mutex_lock(&bias->mutex);
	/* It can have become the owner again while it waited for a visitor. */
	if (!util_bias_is_owner(bias)) {
		seat = util_bias_depose(bias);
		if (seat != &bias->none && bias->needed < UTIL_BIAS_TURNS_MAX)
			bias->needed *= 2;
		util_bias_wait_outside(seat);
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
	struct util_bias_seat *seat;

	if (pthread_mutex_trylock(&bias->mutex))
		return false;
	seat = util_bias_is_owner(bias) ? bias->seat : util_bias_depose(bias);
	if (util_bias_is_inside(seat)) {
		util_bias_crown(bias, seat);
		pthread_mutex_unlock(&bias->mutex);
		return false;
	}
	util_bias_count(bias);
	bias->held = NULL;
	return true;
}

void util_bias_visit(struct util_bias *bias)
{
	pthread_mutex_lock(&bias->mutex);
	bias->host = util_bias_depose(bias);
	util_bias_wait_outside(bias->host);
	bias->held = NULL;
}
