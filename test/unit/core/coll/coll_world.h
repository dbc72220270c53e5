/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who takes part in the tests of collective operations?
 *
 * Endpoints over the simulated engine (core_pair.h), each with its end of one group. Shared by the tests of
 * core_coll.c and core_coll_op.c.
 */
#ifndef TEST_COLL_WORLD_H
#define TEST_COLL_WORLD_H

#include "core/coll/core_coll.h"
#include "support/core_pair.h"

#define COLL_NODES 5u
#define COLL_LEN   9000u /* bytes of a slice, at most: more than a message carries */

struct coll_world {
	struct node nodes[COLL_NODES];
	struct core_coll_group groups[COLL_NODES];
	int joined[COLL_NODES]; /* 1: not yet */
	uint8_t buf[COLL_NODES][COLL_NODES * COLL_LEN];
	uint8_t result[COLL_NODES][COLL_NODES * COLL_LEN];
};

extern struct coll_world coll_world;

/** Node `me` joins a group of the first `cnt` nodes: what core_coll_join said. */
int coll_join(unsigned me, unsigned cnt, uint64_t parent, bool managed);
void coll_world_open(size_t unexpected_mem);
/** All join one group, and see it complete. */
void coll_world_join(void);
/** Both, with memory for everything that comes early. */
void coll_world_setup(void);
/** Nothing is kept at the end. */
void coll_world_close(void);
/** An operation on `count` words of node `me`, whose sums are those of 32 bits. */
int coll_post(unsigned me, enum fi_collective_op coll, uint32_t root, size_t count, void *context);
/** The only completion of a node: 0 or its error; 1: there is none. */
int coll_ended(unsigned me, void *context);

#endif
