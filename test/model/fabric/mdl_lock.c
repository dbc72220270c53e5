/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Robust locks in the segment: a process that dies with one does not block the others.
 *
 * The caller need not block signals: the NIC runs with all signals blocked, and signal handlers do
 * not call the border's code that runs under a lock.
 */
#include "model/fabric/mdl_segment.h"

#include <errno.h>
#include <time.h>

#define LOCK_NAP_NS 20000000

void mdl_lock_init(struct mdl_lock *lock)
{
	pthread_mutexattr_t attr;

	if (__atomic_load_n(&lock->ready, __ATOMIC_ACQUIRE))
		return;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	__atomic_store_n(&lock->ready, 1, __ATOMIC_RELEASE);
}

/* Converts the result of taking a mutex. Returns true if the previous owner died. */
static bool taken_over(struct mdl_lock *lock, int err)
{
	if (err != EOWNERDEAD)
		return false;
	pthread_mutex_consistent(&lock->mutex);
	return true;
}

/*
 * Takes a lock with bounded sleeps. A process that is killed between its wake-up and taking the
 * lock consumes the wake-up; the lock is then free while other waiters sleep.
 */
static int lock_patiently(struct mdl_lock *lock)
{
	struct timespec until;
	int err;

	do {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOCK_NAP_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		err = pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until);
	} while (err == ETIMEDOUT);
	return err;
}

bool mdl_lock(struct mdl_lock *lock)
{
	int err = pthread_mutex_trylock(&lock->mutex);

	if (err == EBUSY)
		err = lock_patiently(lock);
	if (err && err != EOWNERDEAD)
		mdl_fatal("a lock of the model cannot be taken (error %d): reset the segment", err);
	return taken_over(lock, err);
}

bool mdl_trylock(struct mdl_lock *lock, bool *taken)
{
	int err = pthread_mutex_trylock(&lock->mutex);

	*taken = !err || err == EOWNERDEAD;
	return taken_over(lock, err);
}

void mdl_unlock(struct mdl_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}
