/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Evidence that a peer takes a shared line away from polls (shm_theft.h). */
#include "dev/shm/shm_theft.h"

bool shm_theft_add(uint32_t *sum, const struct shm_times *times, uint64_t counts)
{
	uint64_t extra = counts > times->own ? counts - times->own : 0;
	uint64_t allowed = times->tick / SHM_THEFT_SHARE;

	if (allowed < SHM_THEFT_ALLOWED)
		allowed = SHM_THEFT_ALLOWED;
	if (extra > SHM_THEFT_MOST)
		extra = SHM_THEFT_MOST;
	extra += *sum;
	*sum = extra > allowed ? (uint32_t)(extra - allowed) : 0;
	if (*sum < SHM_THEFT_SUM)
		return false;
	*sum = 0;
	return true;
}
