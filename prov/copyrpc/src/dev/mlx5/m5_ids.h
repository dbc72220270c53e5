/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ids of the links that may be reached by DC. Called by m5_link.c and m5_dct.c.
 *
 * Writes of all DC peers arrive at one target, so each carries the id that its link has here. An
 * id is taken by a new link. It is retired when the link is connected by a queue pair, or when
 * its memory is deregistered: after either, no write with it is accepted. Those that have arrived
 * may be in the receive CQ, so the polling thread removes the id from there before it frees it.
 * Free ids are used in turn.
 *
 * Protected by the device's lock. Tests: test/unit/dev/mlx5/test_m5_ids.c.
 */
#ifndef DEV_MLX5_M5_IDS_H
#define DEV_MLX5_M5_IDS_H

#include <stdint.h>

#define M5_IDS_CNT   65536u /* 0 is no id */
#define M5_IDS_WORDS (M5_IDS_CNT / 64)

struct m5_ids {
	uint32_t next; /* where the search for a free id begins */
	uint32_t retired_cnt;
	uint64_t used[M5_IDS_WORDS];    /* bits of the ids that are not free */
	uint64_t retired[M5_IDS_WORDS]; /* bits of those that no link has any more */
};

/** Starts with all ids free. */
void m5_ids_init(struct m5_ids *ids);
/** Takes a free id: 1 to M5_IDS_CNT - 1. Returns 0 if there is none. */
uint32_t m5_ids_take(struct m5_ids *ids);
/** Marks an id as retired. */
void m5_ids_retire(struct m5_ids *ids, uint32_t id);
/** Returns a retired id, which the caller passes to m5_ids_free() in the end, or 0. */
uint32_t m5_ids_retired(struct m5_ids *ids);
void m5_ids_free(struct m5_ids *ids, uint32_t id);

#endif
