/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two nodes with remotely accessible regions: see rma_fixture.h. */
#include "unit/core/rma/rma_fixture.h"

#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

struct node rma_nodes[2];
uint8_t rma_memory[2][RMA_GUARD + RMA_MEM_LEN + RMA_GUARD];
struct core_mr rma_regions[2];
uint8_t rma_local[RMA_MEM_LEN];

void rma_region_open(unsigned i, uint64_t access, uint64_t base)
{
	struct core_mr *mr = &rma_regions[i];

	memset(mr, 0, sizeof(*mr));
	mr->key = RMA_KEY;
	mr->access = access;
	mr->base = base;
	mr->len = RMA_MEM_LEN;
	mr->iov_cnt = 1;
	mr->fixed = true;
	mr->iov[0] = (struct iovec){ rma_memory[i] + RMA_GUARD, RMA_MEM_LEN };
	cr_assert_eq(core_mr_add(&rma_nodes[i].dom, mr, false), 0);
}

void rma_region_close(unsigned i)
{
	struct core_mr *mr = &rma_regions[i];

	core_mr_remove(&rma_nodes[i].dom, mr);
	for (unsigned turns = 0; core_mr_is_busy(mr) && turns < 20; turns++) {
		core_rma_lessee_revoke(mr);
		nodes_settle(rma_nodes, 2);
	}
	core_rma_lessee_forget(mr);
	core_mr_dereg(mr);
}

void rma_start(size_t eager_max, unsigned room, unsigned credit, uint32_t caps)
{
	node_limits = (struct core_limits){ .eager_max = 4096,
					    .single_copy_min = 8192,
					    .unexpected_mem = 1 << 20 };
	fake_engine_reset();
	fake_engine_cfg.eager_max = eager_max;
	fake_engine_cfg.resp_max = eager_max;
	fake_engine_cfg.room = room;
	fake_engine_cfg.credit = credit;
	fake_engine_cfg.caps = caps;
	fake_direct_cfg.on = caps & RMA_DIRECT;
	fake_engine_cfg.caps &= ~RMA_DIRECT;
	nodes_open(rma_nodes, 2);
	for (unsigned i = 0; i < 2; i++) {
		rma_nodes[i].ep.remote_access = RMA_BOTH;
		memset(rma_memory[i], RMA_NOT_SENT, sizeof(rma_memory[i]));
		rma_region_open(i, RMA_BOTH, 0);
	}
}

void rma_stop(void)
{
	for (unsigned i = 0; i < 2; i++)
		rma_region_close(i);
	nodes_close(rma_nodes, 2);
}

int rma_access(unsigned from, unsigned to, bool write, void *buf, size_t len, uint64_t addr,
	       uint64_t key, uint64_t flags, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_rma_iov remote = { .addr = addr, .len = len, .key = key };
	struct core_rma r = { .write = write,
			      .peer = to,
			      .iov = &iov,
			      .iov_cnt = 1,
			      .len = len,
			      .rma_iov = &remote,
			      .rma_cnt = 1,
			      .data = 0x1234567890,
			      .context = context,
			      .flags = flags };

	return (int)core_rma_post(&rma_nodes[from].ep, &r);
}

int rma_put(void *buf, size_t len, uint64_t addr, uint64_t flags, void *context)
{
	return rma_access(0, 1, true, buf, len, addr, RMA_KEY, flags, context);
}

int rma_get(void *buf, size_t len, uint64_t addr, void *context)
{
	return rma_access(0, 1, false, buf, len, addr, RMA_KEY, 0, context);
}

int rma_ended(unsigned node, struct core_cqe *e)
{
	struct fi_cq_err_entry err = { 0 };

	switch (node_poll(&rma_nodes[node], e, &err)) {
	case 0: return 1;
	case 1: return 0;
	default:
		e->e.op_context = err.op_context;
		e->e.flags = err.flags;
		return -err.err;
	}
}

void rma_settle(void)
{
	for (unsigned i = 0; i < 20; i++)
		nodes_settle(rma_nodes, 2);
}

void rma_expect_end(unsigned node, int err, void *context, uint64_t flags)
{
	struct core_cqe e;

	rma_settle();
	int ret = rma_ended(node, &e);

	cr_assert_eq(ret, err, "%d instead of %d", ret, err);
	cr_expect_eq(e.e.op_context, context);
	cr_expect_eq(e.e.flags, flags);
	cr_expect_eq(rma_ended(node, &e), 1, "one end each");
}

bool rma_untouched(unsigned i, size_t from, size_t to)
{
	for (size_t at = from; at < to; at++)
		if (rma_memory[i][at] != RMA_NOT_SENT)
			return false;
	return true;
}
