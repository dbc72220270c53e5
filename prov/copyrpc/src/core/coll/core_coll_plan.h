/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who has to tell whom what, for a collective operation to be done?
 *
 * A plan is one member's part: moves in phases. All moves of a phase run at the same time, and all must
 * have ended before the next phase begins. Member a's SEND to b is b's RECV or REDUCE from a, and there
 * is at most one such pair for each a and b in an operation: that is how messages find their move.
 *
 *   barrier            dissemination: ceil(log2 n) phases
 *   broadcast, reduce  binomial trees
 *   allreduce          reduce to member 0, which tells the result: so everybody has the same, bit by bit
 *   reduce-scatter     reduce to member 0, which hands out slices
 *   the others         directly, each to each
 *
 * What needs no message, and is there already, is copied when the plan is made. Pure; shown by
 * test/unit/core/coll/test_core_coll_plan.c.
 */
#ifndef CORE_COLL_PLAN_H
#define CORE_COLL_PLAN_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum core_coll_kind {
	CORE_COLL_SEND,
	CORE_COLL_RECV,
	CORE_COLL_REDUCE, /* what comes is combined with what is in `buf` */
	CORE_COLL_COPY,   /* this member's own slice, from `from` */
};

enum core_coll_state { CORE_COLL_WAITING, CORE_COLL_OPEN, CORE_COLL_DONE };

struct core_coll_move {
	enum core_coll_kind kind;
	enum core_coll_state state;
	uint32_t phase;
	uint32_t member; /* the other one */
	uint8_t *buf;
	const uint8_t *from;
	size_t len;
	size_t served;  /* SEND: bytes that went with the announcement, or were read */
	bool announced; /* SEND: that is on its way, and not answered yet */
	bool reading;   /* a long message has come, and is being read */
};

struct core_coll_plan {
	struct core_coll_move *moves; /* by phase */
	size_t cnt;
	uint8_t *scratch; /* what is reduced on its way, or NULL */
};

/** One member's call. */
struct core_coll_call {
	enum fi_collective_op coll;
	uint32_t me, cnt; /* this member's place, and of how many */
	uint32_t root;    /* place */
	uint8_t *buf;     /* what the caller gives; for a broadcast also where it arrives */
	uint8_t *result;
	size_t len; /* bytes of a slice: what one member has for one other */
};

/** 0 or -FI_ENOMEM. Both buffers are the plan's until the operation ends. */
int core_coll_plan_make(struct core_coll_plan *plan, const struct core_coll_call *call);
void core_coll_plan_free(struct core_coll_plan *plan);

#endif
