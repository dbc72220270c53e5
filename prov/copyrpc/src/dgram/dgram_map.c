/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hash of keys of fixed length: see dgram_map.h. */
#include "dgram/dgram_map.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

#define DGRAM_MAP_MIN 16u

static_assert(sizeof(struct dgram_map_slot) == UTIL_CACHE_LINE, "a slot is a cache line");

static uint64_t dgram_map_hash(const struct dgram_key *key)
{
	uint64_t h = 0x9E3779B97F4A7C15ull;

	for (unsigned i = 0; i < DGRAM_KEY_WORDS; i++) {
		h = (h ^ key->word[i]) * 0xD1B54A32D192ED03ull;
		h ^= h >> 32;
	}
	return h;
}

static bool dgram_key_is_same(const struct dgram_key *a, const struct dgram_key *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Returns the slot that holds `key`, or the free slot for it. */
static size_t dgram_map_probe(const struct dgram_map *map, const struct dgram_key *key)
{
	size_t at = dgram_map_hash(key) & map->mask;

	while (map->slots[at].used && !dgram_key_is_same(&map->slots[at].key, key))
		at = (at + 1) & map->mask;
	return at;
}

static int dgram_map_resize(struct dgram_map *map, size_t cnt)
{
	struct dgram_map old = *map;
	struct dgram_map_slot *slots = aligned_alloc(UTIL_CACHE_LINE, cnt * sizeof(*slots));

	if (!slots)
		return -FI_ENOMEM;
	memset(slots, 0, cnt * sizeof(*slots));
	map->slots = slots;
	map->mask = cnt - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].used)
			slots[dgram_map_probe(map, &old.slots[i].key)] = old.slots[i];
	free(old.slots);
	return 0;
}

void dgram_map_fini(struct dgram_map *map)
{
	free(map->slots);
	*map = (struct dgram_map){ 0 };
}

uint64_t dgram_map_get(const struct dgram_map *map, const struct dgram_key *key)
{
	const struct dgram_map_slot *slot;

	if (!map->cnt)
		return DGRAM_NONE;
	slot = &map->slots[dgram_map_probe(map, key)];
	return slot->used ? slot->value : DGRAM_NONE;
}

int dgram_map_put(struct dgram_map *map, const struct dgram_key *key, uint64_t value)
{
	struct dgram_map_slot *slot;
	int ret = 0;

	if (!map->slots)
		ret = dgram_map_resize(map, DGRAM_MAP_MIN);
	else if (2 * (map->cnt + 1) > map->mask + 1)
		ret = dgram_map_resize(map, 2 * (map->mask + 1));
	if (ret)
		return ret;
	slot = &map->slots[dgram_map_probe(map, key)];
	map->cnt += !slot->used;
	*slot = (struct dgram_map_slot){ .key = *key, .value = value, .used = 1 };
	return 0;
}

bool dgram_map_erase(struct dgram_map *map, const struct dgram_key *key)
{
	size_t gap, at;

	if (!map->cnt)
		return false;
	gap = dgram_map_probe(map, key);
	if (!map->slots[gap].used)
		return false;
	for (at = (gap + 1) & map->mask; map->slots[at].used; at = (at + 1) & map->mask) {
		size_t home = dgram_map_hash(&map->slots[at].key) & map->mask;

		if (((at - home) & map->mask) < ((at - gap) & map->mask))
			continue;
		map->slots[gap] = map->slots[at];
		gap = at;
	}
	map->slots[gap].used = 0;
	map->cnt--;
	return true;
}
