/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nodes with a region each, for atomic operations between them. Used by test_core_atomic.c and
 * test_core_atomic_random.c.
 */
#ifndef TEST_ATOMIC_WORLD_H
#define TEST_ATOMIC_WORLD_H

#include <stdint.h>

#include "core/core_cntr.h"
#include "core/core_mr.h"
#include "support/core_pair.h"

#define NODES    3u
#define PART_LEN 4096u /* bytes of a node's memory for each initiator */
#define KEY      77u

struct atomic_world {
	struct node nodes[NODES];
	struct core_mr mrs[NODES];
	struct core_cntr remote_read[NODES], remote_write[NODES];
	_Alignas(64) uint8_t memory[NODES][(NODES + 1) * PART_LEN];
	_Alignas(64) uint8_t model[NODES][(NODES + 1) * PART_LEN];
};

extern struct atomic_world world;

/** Opens the nodes and their regions; fake_engine_cfg.eager_max 0: 4096. */
void world_open(uint64_t access);
void world_close(void);

#endif
