/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random atomic operations between endpoints execute once and in order, complete once, and never
 * deadlock while both ends post operations.
 *
 * Each node has a part of its own in the memory of every node. Operations of one initiator execute
 * in order, so a model predicts this part. A part that all nodes add to is compared at the end.
 */
#include "core/rma/core_atomic.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rma/core_atomic_exec.h"
#include "support/rng.h"
#include "unit/core/must.h"
#include "unit/core/rma/atomic_world.h"

#define OPEN_MAX 24u

/** Operation in progress and the expected result. */
struct open_op {
	bool used;
	bool must_fail;
	int kind;
	size_t len;
	uint8_t operand[PART_LEN], compare[PART_LEN], result[PART_LEN], want[PART_LEN];
	struct iovec iov[3][4];
};

static struct open_op opens[NODES][OPEN_MAX];
static unsigned completed;

/** Opens the nodes; no operation is in progress. */
static void random_open(void)
{
	memset(opens, 0, sizeof(opens));
	completed = 0;
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/* One list in up to four pieces. */
static size_t cut(struct rng *r, struct iovec iov[4], uint8_t *list, size_t len)
{
	size_t cnt = rng_below(r, 4) + 1, done = 0;

	for (size_t i = 0; i < cnt; i++) {
		size_t take = i == cnt - 1 ? len - done : rng_below(r, len - done + 1);

		iov[i] = (struct iovec){ .iov_base = list + done, .iov_len = take };
		done += take;
	}
	return cnt;
}

/** Whole elements in up to four pieces of the target's memory, one behind the other. */
static size_t cut_rma(struct rng *r, struct fi_rma_iov rma[4], uint64_t addr, size_t count,
		      size_t size)
{
	size_t cnt = rng_below(r, 4) + 1, done = 0;

	for (size_t i = 0; i < cnt; i++) {
		size_t take = i == cnt - 1 ? count - done : rng_below(r, count - done + 1);

		rma[i] = (struct fi_rma_iov){ .addr = addr + done * size,
					      .len = take * size,
					      .key = KEY };
		done += take;
	}
	return cnt;
}

static struct open_op *open_find(unsigned me)
{
	for (unsigned i = 0; i < OPEN_MAX; i++)
		if (!opens[me][i].used)
			return &opens[me][i];
	return NULL;
}

static unsigned pick_op(struct rng *r, unsigned *type, enum core_atomic_kind *kind)
{
	for (;;) {
		unsigned op = (unsigned)rng_below(r, CORE_ATOMIC_OPS);

		*type = (unsigned)rng_below(r, CORE_ATOMIC_TYPES);
		*kind = (enum core_atomic_kind)rng_below(r, CORE_ATOMIC_KINDS);
		if (core_atomic_is_valid(*kind, *type, op))
			return op;
	}
}

/* Posts a random operation of `me` on its own part of a node's memory, and models it. */
static void post_random(struct rng *r, unsigned me)
{
	struct open_op *o = open_find(me);
	unsigned to = (unsigned)rng_below(r, NODES), type;
	struct core_atomic a = { .peer = to, .context = o };
	struct fi_rma_iov rma[4];
	size_t size, count, off;
	bool inject, shared = rng_chance(r, 1, 4);
	int ret;

	if (!o)
		return;
	a.op = shared ? FI_SUM : pick_op(r, &type, &a.kind);
	a.type = shared ? FI_UINT32 : type;
	size = core_atomic_size(a.type);
	count = rng_chance(r, 1, 16) ? rng_below(r, PART_LEN / size) + 1 : rng_below(r, 4) + 1;
	off = (shared ? NODES : me) * PART_LEN + rng_below(r, PART_LEN / size - count + 1) * size;
	a.len = o->len = count * size;
	for (size_t i = 0; i < a.len; i++) {
		o->operand[i] = (uint8_t)rng_below(r, 3);
		o->compare[i] = (uint8_t)rng_below(r, 3);
	}
	memset(o->result, 0xEE, sizeof(o->result));
	if (core_atomic_has_operand(a.op)) {
		a.operand = o->iov[0];
		a.operand_cnt = cut(r, o->iov[0], o->operand, a.len);
	}
	if (a.kind == CORE_ATOMIC_COMPARE) {
		a.compare = o->iov[1];
		a.compare_cnt = cut(r, o->iov[1], o->compare, a.len);
	}
	if (a.kind != CORE_ATOMIC_BASE) {
		a.result = o->iov[2];
		a.result_cnt = cut(r, o->iov[2], o->result, a.len);
	}
	a.rma = rma;
	a.rma_cnt = cut_rma(r, rma, off, count, size);
	inject = a.len <= 256 && rng_chance(r, 1, 3);
	a.flags = (inject ? FI_INJECT : 0) | (rng_chance(r, 1, 8) ? FI_FENCE : 0);
	ret = (int)core_atomic_post(&world.nodes[me].ep, &a);
	MUST(!ret);
	o->used = true;
	o->kind = (int)a.kind;
	memcpy(o->want, world.model[to] + off, a.len);
	core_atomic_exec(a.type, a.op, world.model[to] + off, a.operand ? o->operand : NULL,
			 a.compare ? o->compare : NULL, NULL, count);
	if (inject) { /* the buffers are free */
		memset(o->operand, 0x77, a.len);
		memset(o->compare, 0x77, a.len);
	}
}

/* Takes all completions of a node and checks flags and results against the model. */
static void take_in(unsigned me)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;
	int ret;

	while ((ret = node_poll(&world.nodes[me], &e, &err))) {
		struct open_op *o = ret == 1 ? e.e.op_context : err.op_context;
		uint64_t flags = ret == 1 ? e.e.flags : err.flags;

		MUST(o >= opens[me] && o < opens[me] + OPEN_MAX && o->used);
		MUST(flags == (FI_ATOMIC | (o->kind == CORE_ATOMIC_BASE ? FI_WRITE : FI_READ)));
		MUST((ret < 0) == o->must_fail);
		if (ret == 1 && o->kind != CORE_ATOMIC_BASE)
			MUST(!memcmp(o->result, o->want, o->len));
		if (o->kind == CORE_ATOMIC_BASE || o->len < PART_LEN)
			MUST(o->result[o->kind == CORE_ATOMIC_BASE ? 0 : o->len] == 0xEE);
		o->used = false;
		completed++;
	}
}

static unsigned still_open(void)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < OPEN_MAX; j++)
			cnt += opens[i][j].used;
	return cnt;
}

static void settle(void)
{
	for (unsigned round = 0; round < 3000 && still_open(); round++) {
		nodes_settle(world.nodes, NODES);
		for (unsigned i = 0; i < NODES; i++)
			take_in(i);
	}
	MUST(!still_open());
}

static void run_random(uint64_t seed, unsigned steps)
{
	struct rng r = { seed };

	for (unsigned s = 0; s < steps; s++) {
		unsigned me = (unsigned)rng_below(&r, NODES);

		if (rng_chance(&r, 1, 2))
			post_random(&r, me);
		else
			core_dom_progress(&world.nodes[me].dom);
		take_in(me);
	}
	settle();
	MUST(!memcmp(world.memory, world.model, sizeof(world.memory)));
}

Test(core_atomic_random, operations_of_both_ends_execute_once_and_in_order)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		fake_engine_reset();
		/* Small frames and responses, little room, little credit. */
		fake_engine_cfg.eager_max = seed % 3 ? 104 + 32 * (seed % 5) : 4096;
		fake_engine_cfg.resp_max = seed % 4 ? 40 + 8 * (seed % 7) : 4096;
		fake_engine_cfg.room = (unsigned)(seed % 5 ? 4 : 1000);
		fake_engine_cfg.credit = (unsigned)(seed % 2 ? 2 : 1000);
		random_open();
		run_random(seed, 4000);
		MUST(completed > 300);
		world_close();
	}
}

Test(core_atomic_random, a_peer_s_death_ends_each_operation_once)
{
	struct rng r = { 5 };

	for (unsigned round = 0; round < 30; round++) {
		fake_engine_reset();
		fake_engine_cfg.eager_max = 104;
		fake_engine_cfg.resp_max = 40;
		fake_engine_cfg.room = 3;
		random_open();
		for (unsigned s = 0; s < 60 + round; s++) {
			post_random(&r, (unsigned)rng_below(&r, NODES));
			core_dom_progress(&world.nodes[rng_below(&r, NODES)].dom);
		}
		fake_engine_kill(&world.nodes[0].ep, &world.nodes[1].ep, -FI_ECONNRESET);
		nodes_settle(world.nodes, NODES);
		for (unsigned me = 0; me < NODES; me++) {
			struct fi_cq_err_entry err;
			struct core_cqe e;
			int ret;

			while ((ret = node_poll(&world.nodes[me], &e, &err))) {
				struct open_op *o = ret == 1 ? e.e.op_context : err.op_context;

				MUST(o->used && (ret == 1 || (me < 2 && err.err == FI_ECONNRESET)));
				o->used = false;
			}
		}
		MUST(!still_open());
		MUST(!core_ep_is_busy(&world.nodes[0].ep) && !core_ep_is_busy(&world.nodes[1].ep));
		world_close();
	}
}
