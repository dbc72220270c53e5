/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rounds and their parts (shm_round.h). */
#include "dev/shm/shm_round.h"

#include "util/bits.h"

#define SHM_PART_ALIGN 4096u

/**
 * Halves for a short round, where a call costs as much as its bytes. Quarters for a long one, where
 * one end may start late.
 */
uint32_t shm_round_cut(uint32_t cnt, uint64_t len)
{
	if (len < SHM_ROUND_MIN)
		return 1;
	if (cnt > 1 || len <= SHM_ROUND_HALVES)
		return 2;
	if (len <= 4 * SHM_PART_MAX)
		return 4;
	return (uint32_t)((len + SHM_PART_MAX - 1) / SHM_PART_MAX);
}

uint32_t shm_round_cut_local(uint64_t len)
{
	return (uint32_t)((len + SHM_PART_LOCAL - 1) / SHM_PART_LOCAL);
}

void shm_part_of(uint64_t len, uint32_t parts, uint32_t idx, uint64_t *from, uint64_t *to)
{
	uint64_t part = util_align_up((len + parts - 1) / parts, SHM_PART_ALIGN);
	uint64_t at = part * idx;

	*from = at < len ? at : len;
	*to = len - *from < part ? len : *from + part;
}

bool shm_round_is_sound(uint32_t cnt, uint32_t parts, uint64_t len)
{
	return cnt > 0 && cnt <= SHM_ROUND_GETS && parts > 1 && parts <= SHM_ROUND_PARTS &&
	       cnt * (parts - 1) < SHM_ROUND_PARTS && len <= (uint64_t)parts * SHM_PART_MAX;
}

void shm_round_part(const struct shm_round *round, uint32_t idx, struct shm_vec *vec)
{
	vec->cnt = 0;
	vec->len = 0;
	for (uint32_t i = 0; i < round->cnt; i++) {
		const struct shm_stretch *s = &round->of[i];
		uint64_t from, to;

		shm_part_of(s->len, round->parts, idx, &from, &to);
		if (from == to)
			continue;
		vec->local[vec->cnt].iov_base = (void *)(uintptr_t)(s->dst + from);
		vec->remote[vec->cnt].iov_base = (void *)(uintptr_t)(s->src + from);
		vec->local[vec->cnt].iov_len = to - from;
		vec->remote[vec->cnt++].iov_len = to - from;
		vec->len += to - from;
	}
}
