/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Guard of the inbox against surplus posts (shm_guard.h). */
#include "dev/shm/shm_guard.h"

const struct shm_inbox shm_guard_empty;

void shm_guard_count(struct shm_guard *guard, bool surplus)
{
	if (!surplus)
		guard->surplus -= guard->surplus > 0;
	else if (guard->closed || ++guard->surplus == SHM_GUARD_SURPLUS)
		shm_guard_close(guard, SHM_GUARD_TICKS);
}

void shm_guard_close(struct shm_guard *guard, uint32_t ticks)
{
	if (guard->closed < ticks)
		guard->closed = ticks;
}

bool shm_guard_tick(struct shm_guard *guard)
{
	if (--guard->closed)
		return !(guard->closed % SHM_GUARD_LOOK);
	guard->surplus = 0;
	return true;
}
