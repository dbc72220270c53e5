/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hash from keys of fixed length to numbers: addresses, and names of senders.
 *
 * Open addressing, linear probing, at most half full; erasing closes the gap. A slot is a cache
 * line: the receive side finds a sender with one miss. Not locked.
 */
#ifndef DGRAM_DGRAM_MAP_H
#define DGRAM_DGRAM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DGRAM_KEY_WORDS 6u
#define DGRAM_NONE      UINT64_MAX /* Equals FI_ADDR_NOTAVAIL */

/** Key, padded with zeros. */
struct dgram_key {
	uint64_t word[DGRAM_KEY_WORDS];
};

struct dgram_map_slot {
	struct dgram_key key;
	uint64_t value;
	uint64_t used;
};

/** Hash table; a zeroed one is empty. */
struct dgram_map {
	struct dgram_map_slot *slots;
	size_t mask; /* Number of slots - 1 */
	size_t cnt;
};

void dgram_map_fini(struct dgram_map *map);

/** Returns the number of `key`, or DGRAM_NONE. */
uint64_t dgram_map_get(const struct dgram_map *map, const struct dgram_key *key);
/** Sets or replaces the number of `key`. Returns 0 or -FI_ENOMEM. */
int dgram_map_put(struct dgram_map *map, const struct dgram_key *key, uint64_t value);
/** Removes `key`. Returns false if there was no such key. */
bool dgram_map_erase(struct dgram_map *map, const struct dgram_key *key);

#endif
