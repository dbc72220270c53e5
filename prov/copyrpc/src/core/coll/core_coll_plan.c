/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Plans of collective operations. See core_coll_plan.h. */
#include "core/coll/core_coll_plan.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns a bound of the moves: two for each member and for each doubling of their number. */
static size_t core_coll_plan_max(uint32_t cnt)
{
	return 2 * ((size_t)cnt + 32);
}

static void core_coll_add(struct core_coll_plan *plan, uint32_t phase, enum core_coll_kind kind,
			  uint32_t member, uint8_t *buf, size_t len)
{
	plan->moves[plan->cnt++] = (struct core_coll_move){
		.kind = kind,
		.phase = phase,
		.member = member,
		.buf = buf,
		.len = len,
	};
}

static uint32_t core_coll_next_phase(const struct core_coll_plan *plan)
{
	return plan->cnt ? plan->moves[plan->cnt - 1].phase + 1 : 0;
}

static void core_coll_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	if (len && to != from)
		memmove(to, from, len);
}

/* Ranks of a tree count from the root. */
static uint32_t core_coll_rank(const struct core_coll_call *call, uint32_t root)
{
	return (call->me + call->cnt - root) % call->cnt;
}

static uint32_t core_coll_member(const struct core_coll_call *call, uint32_t root, uint32_t rank)
{
	return (uint32_t)(((uint64_t)rank + root) % call->cnt);
}

static void core_coll_barrier(struct core_coll_plan *plan, const struct core_coll_call *call)
{
	uint64_t step;
	uint32_t phase = 0;

	for (step = 1; step < call->cnt; step *= 2, phase++) {
		core_coll_add(plan, phase, CORE_COLL_SEND,
			      (uint32_t)((call->me + step) % call->cnt), NULL, 0);
		core_coll_add(plan, phase, CORE_COLL_RECV,
			      (uint32_t)((call->me + call->cnt - step) % call->cnt), NULL, 0);
	}
}

/* Sends `len` bytes of the root's `buf` down the tree. */
static void core_coll_broadcast(struct core_coll_plan *plan, const struct core_coll_call *call,
				uint32_t root, uint8_t *buf, size_t len)
{
	uint32_t rank = core_coll_rank(call, root), phase = core_coll_next_phase(plan);
	uint64_t bit = 1;

	while (bit < call->cnt && !(rank & bit))
		bit *= 2;
	if (rank)
		core_coll_add(plan, phase, CORE_COLL_RECV,
			      core_coll_member(call, root, rank - (uint32_t)bit), buf, len);
	for (bit /= 2; bit; bit /= 2)
		if (rank + bit < call->cnt)
			core_coll_add(plan, phase + !!rank, CORE_COLL_SEND,
				      core_coll_member(call, root, rank + (uint32_t)bit), buf, len);
}

/* Reduces up the tree: `sum` is this member's part, and at the root finally the result. */
static void core_coll_reduce(struct core_coll_plan *plan, const struct core_coll_call *call,
			     uint32_t root, uint8_t *sum, size_t len)
{
	uint32_t rank = core_coll_rank(call, root);
	uint64_t bit;

	for (bit = 1; bit < call->cnt && !(rank & bit); bit *= 2)
		if (rank + bit < call->cnt)
			core_coll_add(plan, core_coll_next_phase(plan), CORE_COLL_REDUCE,
				      core_coll_member(call, root, rank + (uint32_t)bit), sum, len);
	if (rank)
		core_coll_add(plan, core_coll_next_phase(plan), CORE_COLL_SEND,
			      core_coll_member(call, root, rank - (uint32_t)bit), sum, len);
}

/* Sends the root's slices of `from` to the results of all members. */
static void core_coll_scatter(struct core_coll_plan *plan, const struct core_coll_call *call,
			      uint32_t root, uint8_t *from)
{
	uint32_t i, phase = core_coll_next_phase(plan);

	if (call->me != root) {
		core_coll_add(plan, phase, CORE_COLL_RECV, root, call->result, call->len);
		return;
	}
	for (i = 0; i < call->cnt; i++)
		if (i != root)
			core_coll_add(plan, phase, CORE_COLL_SEND, i, from + i * call->len,
				      call->len);
	core_coll_add(plan, phase, CORE_COLL_COPY, root, call->result, call->len);
	plan->moves[plan->cnt - 1].from = from + root * call->len;
}

static void core_coll_gather(struct core_coll_plan *plan, const struct core_coll_call *call)
{
	uint32_t i;

	if (call->me != call->root) {
		core_coll_add(plan, 0, CORE_COLL_SEND, call->root, call->buf, call->len);
		return;
	}
	core_coll_copy(call->result + call->me * call->len, call->buf, call->len);
	for (i = 0; i < call->cnt; i++)
		if (i != call->root)
			core_coll_add(plan, 0, CORE_COLL_RECV, i, call->result + i * call->len,
				      call->len);
}

/* Sends from each member to each other: one slice per member, or the same slice to all. */
static void core_coll_exchange(struct core_coll_plan *plan, const struct core_coll_call *call,
			       bool slices)
{
	size_t step = slices ? call->len : 0;
	uint32_t i, to, from;

	core_coll_copy(call->result + call->me * call->len, call->buf + call->me * step, call->len);
	/* Each member begins with its neighbour, to spread the load. */
	for (i = 1; i < call->cnt; i++) {
		to = (uint32_t)(((uint64_t)call->me + i) % call->cnt);
		from = (uint32_t)(((uint64_t)call->me + call->cnt - i) % call->cnt);
		core_coll_add(plan, 0, CORE_COLL_SEND, to, call->buf + to * step, call->len);
		core_coll_add(plan, 0, CORE_COLL_RECV, from, call->result + from * call->len,
			      call->len);
	}
}

/* Returns the bytes of scratch memory for a reduction without a result at this member. */
static size_t core_coll_scratch(const struct core_coll_call *call)
{
	if (call->coll == FI_REDUCE && call->me != call->root)
		return call->len;
	return call->coll == FI_REDUCE_SCATTER ? call->len * call->cnt : 0;
}

static void core_coll_plan_fill(struct core_coll_plan *plan, const struct core_coll_call *call)
{
	uint8_t *sum = plan->scratch ? plan->scratch : call->result;

	switch (call->coll) {
	case FI_BARRIER: core_coll_barrier(plan, call); break;
	case FI_BROADCAST: core_coll_broadcast(plan, call, call->root, call->buf, call->len); break;
	case FI_ALLTOALL: core_coll_exchange(plan, call, true); break;
	case FI_ALLGATHER: core_coll_exchange(plan, call, false); break;
	case FI_GATHER: core_coll_gather(plan, call); break;
	case FI_SCATTER: core_coll_scatter(plan, call, call->root, call->buf); break;
	case FI_REDUCE:
		core_coll_copy(sum, call->buf, call->len);
		core_coll_reduce(plan, call, call->root, sum, call->len);
		break;
	case FI_ALLREDUCE:
		core_coll_copy(sum, call->buf, call->len);
		core_coll_reduce(plan, call, 0, sum, call->len);
		core_coll_broadcast(plan, call, 0, sum, call->len);
		break;
	case FI_REDUCE_SCATTER:
		core_coll_copy(sum, call->buf, call->len * call->cnt);
		core_coll_reduce(plan, call, 0, sum, call->len * call->cnt);
		core_coll_scatter(plan, call, 0, sum);
		break;
	default: break;
	}
}

int core_coll_plan_make(struct core_coll_plan *plan, const struct core_coll_call *call)
{
	size_t scratch = core_coll_scratch(call);

	*plan = (struct core_coll_plan){ 0 };
	plan->moves = malloc(core_coll_plan_max(call->cnt) * sizeof(*plan->moves));
	if (scratch)
		plan->scratch = malloc(scratch);
	if (!plan->moves || (scratch && !plan->scratch)) {
		core_coll_plan_free(plan);
		return -FI_ENOMEM;
	}
	core_coll_plan_fill(plan, call);
	return 0;
}

void core_coll_plan_free(struct core_coll_plan *plan)
{
	free(plan->moves);
	free(plan->scratch);
	plan->moves = NULL;
	plan->scratch = NULL;
}
