/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plan of a collective operation: one member's moves, in phases. Made by core_coll_op_post.
 *
 * All moves of a phase run concurrently. All must have ended before the next phase begins. The SEND
 * of member a to b pairs with the RECV or REDUCE of b from a. An operation has at most one such
 * pair for each a and b: a message finds its move by operation and member.
 *
 *   barrier            dissemination: ceil(log2 n) phases
 *   broadcast, reduce  binomial trees
 *   allreduce          reduce to member 0, then broadcast: all members get identical bits
 *   reduce-scatter     reduce to member 0, then scatter
 *   the others         directly, each to each
 *
 * Local slices that are available at once are copied when the plan is made. Pure functions.
 */
#ifndef CORE_COLL_CORE_COLL_PLAN_H
#define CORE_COLL_CORE_COLL_PLAN_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum core_coll_kind {
	CORE_COLL_SEND,
	CORE_COLL_RECV,
	CORE_COLL_REDUCE, /* bytes received are combined with `buf` */
	CORE_COLL_COPY,   /* this member's own slice, from `from` */
};

enum core_coll_state { CORE_COLL_WAITING, CORE_COLL_OPEN, CORE_COLL_DONE };

struct core_coll_move {
	enum core_coll_kind kind;
	enum core_coll_state state;
	uint32_t phase;
	uint32_t member; /* the other member */
	uint8_t *buf;
	const uint8_t *from;
	size_t len;
	size_t served;  /* SEND: bytes sent with the announcement, or read */
	bool announced; /* SEND: announcement without its response */
	bool reading;   /* a long message is being read */
};

struct core_coll_plan {
	struct core_coll_move *moves; /* by phase */
	size_t cnt;
	uint8_t *scratch; /* intermediate results of a reduction, or NULL */
};

/** Arguments of one member. */
struct core_coll_call {
	enum fi_collective_op coll;
	uint32_t me, cnt; /* this member's rank, and the number of members */
	uint32_t root;    /* rank */
	uint8_t *buf;     /* input; for a broadcast also the result */
	uint8_t *result;
	size_t len; /* bytes of a slice, from one member for one other */
};

/**
 * Makes a plan. Returns 0 or -FI_ENOMEM. The plan refers to both buffers until the operation ends.
 */
int core_coll_plan_make(struct core_coll_plan *plan, const struct core_coll_call *call);
void core_coll_plan_free(struct core_coll_plan *plan);

#endif
