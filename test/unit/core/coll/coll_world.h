/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints over the simulated engine (core_pair.h), each a member of one group. Used by the tests
 * of core_coll.c and core_coll_op.c.
 */
#ifndef TEST_COLL_WORLD_H
#define TEST_COLL_WORLD_H

#include "core/coll/core_coll.h"
#include "support/core_pair.h"

#define COLL_NODES 5u
#define COLL_LEN   9000u /* most bytes of a slice: more than one message carries */

struct coll_world {
	struct node nodes[COLL_NODES];
	struct core_coll_group groups[COLL_NODES];
	int joined[COLL_NODES]; /* result of the join; 1: pending */
	uint8_t buf[COLL_NODES][COLL_NODES * COLL_LEN];
	uint8_t result[COLL_NODES][COLL_NODES * COLL_LEN];
};

extern struct coll_world coll_world;

/** Joins node `me` to a group of the first `cnt` nodes. Returns the result of core_coll_join. */
int coll_join(unsigned me, unsigned cnt, uint64_t parent, bool managed);
void coll_world_open(size_t unexpected_mem);
/** Joins all nodes to one group and waits until it is complete. */
void coll_world_join(void);
/** Opens the world with enough memory for unexpected messages, and joins all nodes. */
void coll_world_setup(void);
/** Closes the world and checks that no unexpected message is left. */
void coll_world_close(void);
/** Posts an operation of node `me` on `count` words, which reductions add. */
int coll_post(unsigned me, enum fi_collective_op coll, uint32_t root, size_t count, void *context);
/** Returns the error of the node's only completion, 0 if it is a good one, 1 if there is none. */
int coll_ended(unsigned me, void *context);

#endif
