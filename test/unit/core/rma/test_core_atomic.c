/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations between endpoints execute once and in order, complete once, and never deadlock
 * while both ends post operations.
 *
 * Each node has a part of its own in the memory of every node. Operations of one initiator execute
 * in order, so a model predicts this part. A part that all nodes add to is compared at the end.
 */
#include "core/rma/core_atomic.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rma/core_atomic_exec.h"
#include "core/core_mr.h"
#include "support/core_pair.h"
#include "support/rng.h"
#include "unit/core/must.h"

#define NODES    3u
#define PART_LEN 4096u /* bytes of a node's memory for each initiator */
#define OPEN_MAX 24u
#define KEY      77u

struct world {
	struct node nodes[NODES];
	struct core_mr mrs[NODES];
	struct core_cntr remote_read[NODES], remote_write[NODES];
	_Alignas(64) uint8_t memory[NODES][(NODES + 1) * PART_LEN];
	_Alignas(64) uint8_t model[NODES][(NODES + 1) * PART_LEN];
};

/** Operation in progress and the expected result. */
struct open_op {
	bool used;
	bool must_fail;
	int kind;
	size_t len;
	uint8_t operand[PART_LEN], compare[PART_LEN], result[PART_LEN], want[PART_LEN];
	struct iovec iov[3][4];
};

static struct world w;
static struct open_op opens[NODES][OPEN_MAX];
static unsigned completed;

static void world_open(uint64_t access)
{
	fake_engine_cfg.eager_max = fake_engine_cfg.eager_max ? fake_engine_cfg.eager_max : 4096;
	memset(&w, 0, sizeof(w));
	memset(opens, 0, sizeof(opens));
	completed = 0;
	node_limits = (struct core_limits){ .eager_max = 1024, .single_copy_min = SIZE_MAX };
	nodes_open(w.nodes, NODES);
	for (unsigned i = 0; i < NODES; i++) {
		w.nodes[i].ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		w.mrs[i] = (struct core_mr){
			.key = KEY,
			.access = access,
			.len = sizeof(w.memory[i]),
			.iov_cnt = 1,
			.iov = { { .iov_base = w.memory[i], .iov_len = sizeof(w.memory[i]) } },
			.remote_read = &w.remote_read[i],
			.remote_write = &w.remote_write[i],
		};
		MUST(!core_mr_add(&w.nodes[i].dom, &w.mrs[i], false));
	}
}

static void world_close(void)
{
	for (unsigned i = 0; i < NODES; i++)
		core_mr_remove(&w.nodes[i].dom, &w.mrs[i]);
	nodes_close(w.nodes, NODES);
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
	ret = (int)core_atomic_post(&w.nodes[me].ep, &a);
	MUST(!ret);
	o->used = true;
	o->kind = (int)a.kind;
	memcpy(o->want, w.model[to] + off, a.len);
	core_atomic_exec(a.type, a.op, w.model[to] + off, a.operand ? o->operand : NULL,
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

	while ((ret = node_poll(&w.nodes[me], &e, &err))) {
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
		nodes_settle(w.nodes, NODES);
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
			core_dom_progress(&w.nodes[me].dom);
		take_in(me);
	}
	settle();
	MUST(!memcmp(w.memory, w.model, sizeof(w.memory)));
}

Test(core_atomic, operations_of_both_ends_execute_once_and_in_order)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		fake_engine_reset();
		/* Small frames and responses, little room, little credit. */
		fake_engine_cfg.eager_max = seed % 3 ? 104 + 32 * (seed % 5) : 4096;
		fake_engine_cfg.resp_max = seed % 4 ? 40 + 8 * (seed % 7) : 4096;
		fake_engine_cfg.room = (unsigned)(seed % 5 ? 4 : 1000);
		fake_engine_cfg.credit = (unsigned)(seed % 2 ? 2 : 1000);
		world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
		run_random(seed, 4000);
		MUST(completed > 300);
		world_close();
	}
}

/* Posts an operation on one 64-bit element of a node. */
static int post_u64(unsigned me, unsigned to, enum core_atomic_kind kind, unsigned op,
		    uint64_t addr, uint64_t key, uint64_t *operand, uint64_t *compare,
		    uint64_t *result, uint64_t flags, void *context)
{
	struct iovec out = { operand, 8 }, cmp = { compare, 8 }, in = { result, 8 };
	struct fi_rma_iov rma = { .addr = addr, .len = 8, .key = key };
	struct core_atomic a = {
		.kind = kind,
		.type = FI_UINT64,
		.op = op,
		.peer = to,
		.len = 8,
		.operand = &out,
		.operand_cnt = !!operand,
		.compare = &cmp,
		.compare_cnt = !!compare,
		.result = &in,
		.result_cnt = !!result,
		.rma = &rma,
		.rma_cnt = 1,
		.data = 0x1234567890ull,
		.context = context,
		.flags = flags,
	};

	return (int)core_atomic_post(&w.nodes[me].ep, &a);
}

static uint64_t value_of(unsigned node, size_t off)
{
	uint64_t v;

	memcpy(&v, w.memory[node] + off, sizeof(v));
	return v;
}

/** Expects that the next completion of a node is an error completion. */
static void must_fail(unsigned me, int want, void *context)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;

	nodes_settle(w.nodes, NODES);
	MUST(node_poll(&w.nodes[me], &e, &err) == -FI_EAVAIL);
	MUST(err.err == want && err.op_context == context);
	MUST(node_poll(&w.nodes[me], &e, &err) == 0);
}

Test(core_atomic, a_denied_operation_fails_at_the_initiator)
{
	uint64_t one = 1, old = 5;
	int x;

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (unsigned to = 0; to < NODES; to++) { /* to itself as well */
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY + 1, &one, NULL, NULL, 0,
			       &x));
		must_fail(1, FI_EKEYREJECTED, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, sizeof(w.memory[0]), KEY, &one,
			       NULL, NULL, 0, &x));
		must_fail(1, FI_EINVAL, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_SUM, UINT64_MAX - 3, KEY, &one, NULL,
			       &old, 0, &x));
		must_fail(1, FI_EINVAL, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_SUM, 4, KEY, &one, NULL, &old, 0, &x));
		must_fail(1, FI_EINVAL, &x);
		w.mrs[to].access = FI_REMOTE_READ;
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &x));
		must_fail(1, FI_EACCES, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_SUM, 0, KEY, &one, NULL, &old, 0, &x));
		must_fail(1, FI_EACCES, &x);
		w.mrs[to].access = FI_REMOTE_WRITE;
		MUST(!post_u64(1, to, CORE_ATOMIC_COMPARE, FI_CSWAP, 0, KEY, &one, &one, &old, 0,
			       &x));
		must_fail(1, FI_EACCES, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_ATOMIC_READ, 0, KEY, NULL, NULL, &old,
			       0, &x));
		must_fail(1, FI_EACCES, &x);
		MUST(old == 5 && value_of(to, 0) == 0);
		MUST(w.remote_read[to].value == 0 && w.remote_write[to].value == 0);
		w.mrs[to].access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		w.nodes[to].ep.remote_access = 0;
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &x));
		must_fail(1, FI_EACCES, &x);
		w.nodes[to].ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		/* The next operation succeeds. */
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &x));
		nodes_settle(w.nodes, NODES);
		MUST(value_of(to, 0) == 1);
		w.nodes[1].cq.head = w.nodes[1].cq.tail;
	}
	world_close();
}

Test(core_atomic, counters_and_remote_data_reach_the_right_endpoint)
{
	struct core_cntr cntr[CORE_CNTR_RMA_CNT] = { 0 };
	uint64_t one = 1, old = 7;
	struct fi_cq_err_entry err;
	struct core_cqe e;

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (unsigned i = 0; i < CORE_CNTR_RMA_CNT; i++)
		w.nodes[i < CORE_CNTR_REMOTE_READ ? 0 : 1].ep.rma_cntr[i] = &cntr[i];
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, FI_REMOTE_CQ_DATA,
		       &one));
	MUST(!post_u64(0, 1, CORE_ATOMIC_FETCH, FI_SUM, 0, KEY, &one, NULL, &old, 0, &old));
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY + 1, &one, NULL, NULL, 0, NULL));
	nodes_settle(w.nodes, NODES);
	MUST(old == 1 && value_of(1, 0) == 2);
	MUST(cntr[CORE_CNTR_WRITE].value == 1 && cntr[CORE_CNTR_WRITE].errors == 1);
	MUST(cntr[CORE_CNTR_READ].value == 1 && cntr[CORE_CNTR_READ].errors == 0);
	MUST(cntr[CORE_CNTR_REMOTE_WRITE].value == 1 && cntr[CORE_CNTR_REMOTE_READ].value == 1);
	MUST(w.remote_write[1].value == 2 && w.remote_read[1].value == 1);
	MUST(w.nodes[0].tx_cntr.value == 0 && w.nodes[1].rx_cntr.value == 0);
	MUST(node_poll(&w.nodes[1], &e, &err) == 1);
	MUST(e.e.flags == (FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
	MUST(e.e.data == 0x1234567890ull && e.e.len == 8 && e.src == 0 && !e.e.op_context);
	MUST(node_poll(&w.nodes[1], &e, &err) == 0);
	MUST(node_poll(&w.nodes[0], &e, &err) == 1 && e.e.op_context == &one);
	MUST(node_poll(&w.nodes[0], &e, &err) == 1 && e.e.op_context == &old);
	MUST(node_poll(&w.nodes[0], &e, &err) == -FI_EAVAIL && err.err == FI_EKEYREJECTED);
	world_close();
}

/* fi_mr(3): a write event for whatever may modify the region. */
Test(core_atomic, counters_of_a_region_count_what_reads_and_what_modifies_it)
{
	static const struct {
		enum core_atomic_kind kind;
		unsigned op;
		uint64_t reads, writes;
	} rows[] = {
		{ CORE_ATOMIC_BASE, FI_SUM, 0, 1 },
		{ CORE_ATOMIC_BASE, FI_ATOMIC_WRITE, 0, 1 },
		{ CORE_ATOMIC_FETCH, FI_SUM, 1, 1 },
		{ CORE_ATOMIC_FETCH, FI_ATOMIC_READ, 1, 0 },
		{ CORE_ATOMIC_FETCH, FI_ATOMIC_WRITE, 1, 1 },
		{ CORE_ATOMIC_COMPARE, FI_CSWAP, 1, 1 },
		{ CORE_ATOMIC_COMPARE, FI_MSWAP, 1, 1 },
	};
	uint64_t one = 1, old;

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (int to = 0; to < 2; to++) {
		struct core_cntr *read = &w.remote_read[to], *write = &w.remote_write[to];

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			*read = *write = (struct core_cntr){ 0 };
			MUST(!post_u64(0, to, rows[i].kind, rows[i].op, 0, KEY,
				       rows[i].op == FI_ATOMIC_READ ? NULL : &one,
				       rows[i].kind == CORE_ATOMIC_COMPARE ? &one : NULL,
				       rows[i].kind == CORE_ATOMIC_BASE ? NULL : &old, 0, &one));
			nodes_settle(w.nodes, NODES);
			MUST(read->value == rows[i].reads && write->value == rows[i].writes);
		}
		w.mrs[to].remote_write = read;
		*read = (struct core_cntr){ 0 };
		MUST(!post_u64(0, to, CORE_ATOMIC_FETCH, FI_SUM, 0, KEY, &one, NULL, &old, 0,
			       &one));
		nodes_settle(w.nodes, NODES);
		MUST(read->value == 1);
	}
	w.nodes[0].cq.head = w.nodes[0].cq.tail;
	world_close();
}

Test(core_atomic, selective_completion_requires_the_flag)
{
	uint64_t one = 1;
	struct fi_cq_err_entry err;
	struct core_cqe e;

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	w.nodes[0].ep.tx.selective = true;
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &one));
	nodes_settle(w.nodes, NODES);
	MUST(node_poll(&w.nodes[0], &e, &err) == 0);
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, FI_COMPLETION,
		       &one));
	nodes_settle(w.nodes, NODES);
	MUST(node_poll(&w.nodes[0], &e, &err) == 1);
	/* Failures always have a completion. */
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY + 1, &one, NULL, NULL, 0, &one));
	must_fail(0, FI_EKEYREJECTED, &one);
	world_close();
}

Test(core_atomic, a_fenced_operation_waits_for_those_before_it)
{
	uint64_t one = 1;

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, NULL));
	nodes_settle(w.nodes, NODES);
	fake_engine_cfg.no_delivery = true;
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, NULL));
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 8, KEY, &one, NULL, NULL, FI_FENCE, NULL));
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 16, KEY, &one, NULL, NULL, 0, NULL));
	nodes_settle(w.nodes, NODES);
	MUST(fake_engine_queued() == 1);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(w.nodes, NODES);
	MUST(value_of(1, 0) == 2 && value_of(1, 8) == 1 && value_of(1, 16) == 1);
	world_close();
}

Test(core_atomic, a_peer_s_death_ends_each_operation_once)
{
	struct rng r = { 5 };

	for (unsigned round = 0; round < 30; round++) {
		fake_engine_reset();
		fake_engine_cfg.eager_max = 104;
		fake_engine_cfg.resp_max = 40;
		fake_engine_cfg.room = 3;
		world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
		for (unsigned s = 0; s < 60 + round; s++) {
			post_random(&r, (unsigned)rng_below(&r, NODES));
			core_dom_progress(&w.nodes[rng_below(&r, NODES)].dom);
		}
		fake_engine_kill(&w.nodes[0].ep, &w.nodes[1].ep, -FI_ECONNRESET);
		nodes_settle(w.nodes, NODES);
		for (unsigned me = 0; me < NODES; me++) {
			struct fi_cq_err_entry err;
			struct core_cqe e;
			int ret;

			while ((ret = node_poll(&w.nodes[me], &e, &err))) {
				struct open_op *o = ret == 1 ? e.e.op_context : err.op_context;

				MUST(o->used && (ret == 1 || (me < 2 && err.err == FI_ECONNRESET)));
				o->used = false;
			}
		}
		MUST(!still_open());
		MUST(!core_ep_is_busy(&w.nodes[0].ep) && !core_ep_is_busy(&w.nodes[1].ep));
		world_close();
	}
}

/* An element of 32 bytes does not fit in a response of 16. */
Test(core_atomic, a_response_that_never_fits_fails_at_once)
{
	long double complex_[2] = { 1, 1 }, old[2];
	struct iovec out = { complex_, 32 }, in = { old, 32 };
	struct fi_rma_iov rma = { .addr = 0, .len = 32, .key = KEY };
	struct core_atomic a = { .kind = CORE_ATOMIC_FETCH,
				 .type = FI_LONG_DOUBLE_COMPLEX,
				 .op = FI_SUM,
				 .peer = 1,
				 .len = 32,
				 .operand = &out,
				 .operand_cnt = 1,
				 .result = &in,
				 .result_cnt = 1,
				 .rma = &rma,
				 .rma_cnt = 1,
				 .context = &a };

	fake_engine_reset();
	fake_engine_cfg.resp_max = 20;
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	MUST(!core_atomic_post(&w.nodes[0].ep, &a));
	must_fail(0, FI_EMSGSIZE, &a);
	a.peer = NODES;
	MUST(core_atomic_post(&w.nodes[0].ep, &a) == -FI_EINVAL);
	world_close();
}

/* An element that spans two buffers of a region is refused. */
Test(core_atomic, a_region_of_several_buffers_is_one)
{
	uint64_t ones[3] = { 1, 1, 1 };
	struct iovec out = { ones, sizeof(ones) };
	struct fi_rma_iov rma = { .addr = 8, .len = sizeof(ones), .key = KEY };
	struct core_atomic a = { .kind = CORE_ATOMIC_BASE,
				 .type = FI_UINT64,
				 .op = FI_SUM,
				 .peer = 1,
				 .len = sizeof(ones),
				 .operand = &out,
				 .operand_cnt = 1,
				 .rma = &rma,
				 .rma_cnt = 1 };

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	core_mr_remove(&w.nodes[1].dom, &w.mrs[1]);
	w.mrs[1].iov_cnt = 2;
	w.mrs[1].iov[0].iov_len = 16;
	w.mrs[1].iov[1] = (struct iovec){ w.memory[1] + 64, 64 };
	w.mrs[1].len = 80;
	MUST(!core_mr_add(&w.nodes[1].dom, &w.mrs[1], false));
	MUST(!core_atomic_post(&w.nodes[0].ep, &a));
	nodes_settle(w.nodes, NODES);
	MUST(value_of(1, 8) == 1 && value_of(1, 64) == 1 && value_of(1, 72) == 1);
	MUST(value_of(1, 0) == 0 && value_of(1, 16) == 0 && value_of(1, 80) == 0);
	w.nodes[0].cq.head = w.nodes[0].cq.tail;
	core_mr_remove(&w.nodes[1].dom, &w.mrs[1]);
	w.mrs[1].iov[0].iov_len = 12;
	w.mrs[1].len = 76;
	MUST(!core_mr_add(&w.nodes[1].dom, &w.mrs[1], false));
	MUST(!core_atomic_post(&w.nodes[0].ep, &a));
	must_fail(0, FI_EINVAL, NULL);
	MUST(value_of(1, 8) == 1 && value_of(1, 64) == 1);
	world_close();
}
