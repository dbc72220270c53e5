/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocation of ids: see idmap.h.
 *
 * Free slots form a FIFO through `next`. A release advances the slot's generation at once, so the
 * old id finds nothing and a lookup needs no other check. The table doubles when no slot is free.
 */
#include "util/idmap.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#define UTIL_IDMAP_MIN 64u

void util_idmap_init(struct util_idmap *map)
{
	*map = (struct util_idmap){
		.free_head = UTIL_IDMAP_NONE,
		.free_tail = UTIL_IDMAP_NONE,
	};
}

void util_idmap_fini(struct util_idmap *map)
{
	free(map->slots);
	util_idmap_init(map);
}

int util_idmap_grow_cold(struct util_idmap *map)
{
	uint32_t cnt = map->slot_cnt ? 2 * map->slot_cnt : UTIL_IDMAP_MIN;
	struct util_idmap_slot *slots;

	if (map->slot_cnt == UTIL_IDMAP_MAX)
		return -FI_EAGAIN;
	slots = realloc(map->slots, cnt * sizeof(*slots));
	if (!slots)
		return -FI_ENOMEM;
	map->slots = slots;
	for (uint32_t i = map->slot_cnt; i < cnt; i++) {
		slots[i].gen = 0;
		util_idmap_push_free(map, i);
	}
	map->slot_cnt = cnt;
	return 0;
}
