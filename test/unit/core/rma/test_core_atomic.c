/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Single atomic operations between endpoints: rights, counters, flags, fences, regions. */
#include "core/rma/core_atomic.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rma/core_atomic_exec.h"
#include "unit/core/must.h"
#include "unit/core/rma/atomic_world.h"

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

	return (int)core_atomic_post(&world.nodes[me].ep, &a);
}

static uint64_t value_of(unsigned node, size_t off)
{
	uint64_t v;

	memcpy(&v, world.memory[node] + off, sizeof(v));
	return v;
}

/** Expects that the next completion of a node is an error completion. */
static void must_fail(unsigned me, int want, void *context)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;

	nodes_settle(world.nodes, NODES);
	MUST(node_poll(&world.nodes[me], &e, &err) == -FI_EAVAIL);
	MUST(err.err == want && err.op_context == context);
	MUST(node_poll(&world.nodes[me], &e, &err) == 0);
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
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, sizeof(world.memory[0]), KEY, &one,
			       NULL, NULL, 0, &x));
		must_fail(1, FI_EINVAL, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_SUM, UINT64_MAX - 3, KEY, &one, NULL,
			       &old, 0, &x));
		must_fail(1, FI_EINVAL, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_SUM, 4, KEY, &one, NULL, &old, 0, &x));
		must_fail(1, FI_EINVAL, &x);
		world.mrs[to].access = FI_REMOTE_READ;
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &x));
		must_fail(1, FI_EACCES, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_SUM, 0, KEY, &one, NULL, &old, 0, &x));
		must_fail(1, FI_EACCES, &x);
		world.mrs[to].access = FI_REMOTE_WRITE;
		MUST(!post_u64(1, to, CORE_ATOMIC_COMPARE, FI_CSWAP, 0, KEY, &one, &one, &old, 0,
			       &x));
		must_fail(1, FI_EACCES, &x);
		MUST(!post_u64(1, to, CORE_ATOMIC_FETCH, FI_ATOMIC_READ, 0, KEY, NULL, NULL, &old,
			       0, &x));
		must_fail(1, FI_EACCES, &x);
		MUST(old == 5 && value_of(to, 0) == 0);
		MUST(world.remote_read[to].value == 0 && world.remote_write[to].value == 0);
		world.mrs[to].access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		world.nodes[to].ep.remote_access = 0;
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &x));
		must_fail(1, FI_EACCES, &x);
		world.nodes[to].ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		/* The next operation succeeds. */
		MUST(!post_u64(1, to, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &x));
		nodes_settle(world.nodes, NODES);
		MUST(value_of(to, 0) == 1);
		world.nodes[1].cq.head = world.nodes[1].cq.tail;
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
		world.nodes[i < CORE_CNTR_REMOTE_READ ? 0 : 1].ep.rma_cntr[i] = &cntr[i];
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, FI_REMOTE_CQ_DATA,
		       &one));
	MUST(!post_u64(0, 1, CORE_ATOMIC_FETCH, FI_SUM, 0, KEY, &one, NULL, &old, 0, &old));
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY + 1, &one, NULL, NULL, 0, NULL));
	nodes_settle(world.nodes, NODES);
	MUST(old == 1 && value_of(1, 0) == 2);
	MUST(cntr[CORE_CNTR_WRITE].value == 1 && cntr[CORE_CNTR_WRITE].errors == 1);
	MUST(cntr[CORE_CNTR_READ].value == 1 && cntr[CORE_CNTR_READ].errors == 0);
	MUST(cntr[CORE_CNTR_REMOTE_WRITE].value == 1 && cntr[CORE_CNTR_REMOTE_READ].value == 1);
	MUST(world.remote_write[1].value == 2 && world.remote_read[1].value == 1);
	MUST(world.nodes[0].tx_cntr.value == 0 && world.nodes[1].rx_cntr.value == 0);
	MUST(node_poll(&world.nodes[1], &e, &err) == 1);
	MUST(e.e.flags == (FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
	MUST(e.e.data == 0x1234567890ull && e.e.len == 8 && e.src == 0 && !e.e.op_context);
	MUST(node_poll(&world.nodes[1], &e, &err) == 0);
	MUST(node_poll(&world.nodes[0], &e, &err) == 1 && e.e.op_context == &one);
	MUST(node_poll(&world.nodes[0], &e, &err) == 1 && e.e.op_context == &old);
	MUST(node_poll(&world.nodes[0], &e, &err) == -FI_EAVAIL && err.err == FI_EKEYREJECTED);
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
		struct core_cntr *read = &world.remote_read[to], *write = &world.remote_write[to];

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			*read = *write = (struct core_cntr){ 0 };
			MUST(!post_u64(0, to, rows[i].kind, rows[i].op, 0, KEY,
				       rows[i].op == FI_ATOMIC_READ ? NULL : &one,
				       rows[i].kind == CORE_ATOMIC_COMPARE ? &one : NULL,
				       rows[i].kind == CORE_ATOMIC_BASE ? NULL : &old, 0, &one));
			nodes_settle(world.nodes, NODES);
			MUST(read->value == rows[i].reads && write->value == rows[i].writes);
		}
		world.mrs[to].remote_write = read;
		*read = (struct core_cntr){ 0 };
		MUST(!post_u64(0, to, CORE_ATOMIC_FETCH, FI_SUM, 0, KEY, &one, NULL, &old, 0,
			       &one));
		nodes_settle(world.nodes, NODES);
		MUST(read->value == 1);
	}
	world.nodes[0].cq.head = world.nodes[0].cq.tail;
	world_close();
}

Test(core_atomic, selective_completion_requires_the_flag)
{
	uint64_t one = 1;
	struct fi_cq_err_entry err;
	struct core_cqe e;

	fake_engine_reset();
	world_open(FI_REMOTE_READ | FI_REMOTE_WRITE);
	world.nodes[0].ep.tx.selective = true;
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, &one));
	nodes_settle(world.nodes, NODES);
	MUST(node_poll(&world.nodes[0], &e, &err) == 0);
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, FI_COMPLETION,
		       &one));
	nodes_settle(world.nodes, NODES);
	MUST(node_poll(&world.nodes[0], &e, &err) == 1);
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
	nodes_settle(world.nodes, NODES);
	fake_engine_cfg.no_delivery = true;
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 0, KEY, &one, NULL, NULL, 0, NULL));
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 8, KEY, &one, NULL, NULL, FI_FENCE, NULL));
	MUST(!post_u64(0, 1, CORE_ATOMIC_BASE, FI_SUM, 16, KEY, &one, NULL, NULL, 0, NULL));
	nodes_settle(world.nodes, NODES);
	MUST(fake_engine_queued() == 1);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(world.nodes, NODES);
	MUST(value_of(1, 0) == 2 && value_of(1, 8) == 1 && value_of(1, 16) == 1);
	world_close();
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
	MUST(!core_atomic_post(&world.nodes[0].ep, &a));
	must_fail(0, FI_EMSGSIZE, &a);
	a.peer = NODES;
	MUST(core_atomic_post(&world.nodes[0].ep, &a) == -FI_EINVAL);
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
	core_mr_remove(&world.nodes[1].dom, &world.mrs[1]);
	world.mrs[1].iov_cnt = 2;
	world.mrs[1].iov[0].iov_len = 16;
	world.mrs[1].iov[1] = (struct iovec){ world.memory[1] + 64, 64 };
	world.mrs[1].len = 80;
	MUST(!core_mr_add(&world.nodes[1].dom, &world.mrs[1], false));
	MUST(!core_atomic_post(&world.nodes[0].ep, &a));
	nodes_settle(world.nodes, NODES);
	MUST(value_of(1, 8) == 1 && value_of(1, 64) == 1 && value_of(1, 72) == 1);
	MUST(value_of(1, 0) == 0 && value_of(1, 16) == 0 && value_of(1, 80) == 0);
	world.nodes[0].cq.head = world.nodes[0].cq.tail;
	core_mr_remove(&world.nodes[1].dom, &world.mrs[1]);
	world.mrs[1].iov[0].iov_len = 12;
	world.mrs[1].len = 76;
	MUST(!core_mr_add(&world.nodes[1].dom, &world.mrs[1], false));
	MUST(!core_atomic_post(&world.nodes[0].ep, &a));
	must_fail(0, FI_EINVAL, NULL);
	MUST(value_of(1, 8) == 1 && value_of(1, 64) == 1);
	world_close();
}
