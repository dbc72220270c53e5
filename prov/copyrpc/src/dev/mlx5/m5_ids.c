/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids of the links that may be reached by DC (m5_ids.h). */
#include "dev/mlx5/m5_ids.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

void m5_ids_init(struct m5_ids *ids)
{
	memset(ids, 0, sizeof(*ids));
	ids->used[0] = 1;
	ids->next = 1;
}

static bool m5_ids_is_set(const uint64_t *bits, uint32_t id)
{
	return bits[id / 64] >> (id % 64) & 1;
}

uint32_t m5_ids_take(struct m5_ids *ids)
{
	for (uint32_t i = 0; i < M5_IDS_CNT; i++) {
		uint32_t id = (ids->next + i) % M5_IDS_CNT;

		if (m5_ids_is_set(ids->used, id))
			continue;
		ids->used[id / 64] |= 1ull << (id % 64);
		ids->next = (id + 1) % M5_IDS_CNT;
		return id;
	}
	return 0;
}

void m5_ids_retire(struct m5_ids *ids, uint32_t id)
{
	assert(id && m5_ids_is_set(ids->used, id) && !m5_ids_is_set(ids->retired, id));
	ids->retired[id / 64] |= 1ull << (id % 64);
	ids->retired_cnt++;
}

uint32_t m5_ids_retired(struct m5_ids *ids)
{
	for (uint32_t i = 0; ids->retired_cnt && i < M5_IDS_WORDS; i++)
		if (ids->retired[i])
			return i * 64 + (uint32_t)__builtin_ctzll(ids->retired[i]);
	return 0;
}

void m5_ids_free(struct m5_ids *ids, uint32_t id)
{
	assert(m5_ids_is_set(ids->retired, id));
	ids->retired[id / 64] &= ~(1ull << (id % 64));
	ids->used[id / 64] &= ~(1ull << (id % 64));
	ids->retired_cnt--;
}
