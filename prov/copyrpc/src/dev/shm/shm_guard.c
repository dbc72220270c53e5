/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Guard of the inbox against surplus posts (shm_guard.h). */
#include "dev/shm/shm_guard.h"

struct shm_inbox shm_guard_empty;

void shm_guard_add(struct shm_guard *guard, uint32_t id)
{
	guard->ids[id / 64] |= 1ull << (id % 64);
	guard->leaves |= 1ull << (id / 64);
}

void shm_guard_remove(struct shm_guard *guard, uint32_t id)
{
	guard->ids[id / 64] &= ~(1ull << (id % 64));
	if (!guard->ids[id / 64])
		guard->leaves &= ~(1ull << (id / 64));
}

void shm_guard_count(struct shm_guard *guard, bool surplus)
{
	if (!surplus) {
		guard->surplus -= guard->surplus > 0;
		return;
	}
	guard->surplus += guard->surplus < SHM_GUARD_SURPLUS;
	if (guard->surplus == SHM_GUARD_SURPLUS)
		guard->closed = SHM_GUARD_TICKS;
}

bool shm_guard_tick(struct shm_guard *guard)
{
	if (--guard->closed)
		return !(guard->closed % SHM_GUARD_LOOK);
	guard->surplus = 0;
	return true;
}
