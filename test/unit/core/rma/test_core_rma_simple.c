/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Simple direct accesses complete once and in order, and leave the rest to core_rma_post. */
#include "core/rma/core_rma_simple.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/core/rma/rma_fixture.h"

#define INLINES 32u

static struct core_mr local_mr;

/** Starts with a lease held at node 0, and a registered local buffer. */
static void start(bool ordered)
{
	rma_start(4096, 1000, 1000, RMA_BULK | RMA_DIRECT);
	fake_direct_cfg.inlines = INLINES;
	rma_nodes[0].ep.rma_ordered = ordered;
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	local_mr = (struct core_mr){ .access = FI_WRITE,
				     .len = RMA_MEM_LEN,
				     .fixed = true,
				     .iov_cnt = 1,
				     .iov = { { rma_local, RMA_MEM_LEN } } };
	cr_assert_eq(core_mr_add(&rma_nodes[0].dom, &local_mr, false), 0);
}

static void stop(void)
{
	core_mr_remove(&rma_nodes[0].dom, &local_mr);
	core_mr_dereg(&local_mr);
	rma_stop();
}

static struct core_peer *peer(void)
{
	return core_peer_lookup(&rma_nodes[0].ep, 1);
}

/** Tries to make a simple access, with room for its entry. */
static bool simple(bool write, void *buf, size_t len, uint64_t addr, uint64_t flags, void *context,
		   bool silent)
{
	struct core_rma_simple a = { .args = { .buf = buf, .len = len },
				     .desc = local_mr.desc,
				     .addr = addr,
				     .key = RMA_KEY,
				     .context = context,
				     .flags = flags };

	/* The channel came up before the device could take bytes. */
	peer()->chan->access_inline = INLINES;
	core_rma_simple_grow(peer());
	return core_rma_simple_post(&rma_nodes[0].ep, 1, &a, write, silent);
}

/** Registers the local buffer, as the first access that needs it does. */
static void use_region(void)
{
	cr_assert_not_null(core_mr_reg(&local_mr, peer()->chan, 0));
}

static void expect_ended(int err, void *context)
{
	struct core_cqe e;

	cr_assert_eq(rma_ended(0, &e), err);
	cr_expect_eq(e.e.op_context, context);
}

Test(core_rma_simple, several_end_with_one_report_in_order)
{
	start(false);
	use_region();
	fake_direct_cfg.hold = true;
	memset(rma_local, 3, 200);
	for (uintptr_t i = 1; i <= 100; i++)
		cr_assert(simple(true, rma_local, i % 2 ? 8 : 200, 0, 0, (void *)i, false));
	cr_expect_eq(fake_direct_simple_cnt(), 100);
	cr_expect_eq(fake_direct_cnt(), 0, "none has a record");
	cr_expect(core_mr_is_busy(&local_mr), "in use by accesses of this end");
	fake_direct_cfg.hold = false;
	rma_settle();
	for (uintptr_t i = 1; i <= 100; i++)
		expect_ended(0, (void *)i);
	cr_expect_eq(rma_ended(0, &(struct core_cqe){ 0 }), 1);
	cr_expect_arr_eq(rma_memory[1] + RMA_GUARD, rma_local, 200);
	cr_expect_not(core_mr_is_busy(&local_mr));
	stop();
}

Test(core_rma_simple, a_read_fills_the_buffer)
{
	start(false);
	use_region();
	memset(rma_memory[1] + RMA_GUARD, 9, 100);
	cr_assert(simple(false, rma_local, 100, 0, 0, NULL, false));
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect_eq(rma_local[99], 9);
	stop();
}

Test(core_rma_simple, what_is_not_simple_is_refused_and_changes_nothing)
{
	start(false);
	cr_expect_not(simple(true, rma_local, INLINES + 1, 0, 0, NULL, false), "no registration");
	use_region();
	cr_expect_not(simple(true, rma_local, 0, 0, 0, NULL, false));
	cr_expect_not(simple(true, rma_local, 8, 0, FI_FENCE, NULL, false));
	cr_expect_not(simple(true, rma_local, 8, 0, FI_REMOTE_CQ_DATA, NULL, false));
	cr_expect_not(simple(true, rma_local, 8, 0, FI_DELIVERY_COMPLETE, NULL, false));
	cr_expect_not(simple(true, rma_local, 8, RMA_MEM_LEN - 7, 0, NULL, false), "bounds");
	cr_expect_not(simple(true, rma_local, 8, UINT64_MAX, 0, NULL, false), "bounds");
	cr_expect_not(simple(true, rma_local, INLINES + 1, 0, FI_INJECT, NULL, false));
	cr_expect_not(simple(false, rma_memory[0], 8, 0, 0, NULL, false), "not in the region");
	fake_direct_cfg.simple_err = -FI_EAGAIN;
	cr_expect_not(simple(true, rma_local, 200, 0, 0, NULL, false));
	cr_expect_eq(fake_direct_simple_cnt(), 0);
	cr_expect_not(core_mr_is_busy(&local_mr));
	fake_direct_cfg.simple_err = 0;
	cr_assert_eq(rma_put(rma_local, 8, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	fake_engine_cfg.no_delivery = true;
	cr_expect(simple(true, rma_local, 8, RMA_MEM_LEN - 8, 0, NULL, false));
	fake_engine_cfg.no_delivery = false;
	rma_settle();
	stop();
}

Test(core_rma_simple, flags_select_what_the_device_does)
{
	static const struct {
		uint64_t flags;
		bool silent;
		unsigned expected;
	} rows[] = {
		{ 0, false, 0 },
		{ FI_MORE, false, CORE_DIRECT_MORE },
		{ FI_INJECT, false, CORE_DIRECT_NOW },
		{ FI_INJECT_COMPLETE, false, CORE_DIRECT_SILENT },
		{ FI_INJECT, true, CORE_DIRECT_NOW | CORE_DIRECT_SILENT },
	};

	start(false);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert(simple(true, rma_local, 8, 0, rows[i].flags, NULL, rows[i].silent));
		cr_expect_eq(fake_direct_simple_flags(), rows[i].expected | CORE_DIRECT_WRITE);
		rma_settle();
	}
	stop();
}

Test(core_rma_simple, a_write_whose_bytes_are_taken_may_complete_at_its_start)
{
	struct core_cqe e;

	start(false);
	fake_direct_cfg.hold = true;
	cr_assert(simple(true, rma_local, 8, 0, FI_INJECT_COMPLETE, rma_local, false));
	expect_ended(0, rma_local);
	cr_expect_not(core_simple_is_awaited(&peer()->simple));
	cr_assert(simple(true, rma_local, 8, 0, FI_INJECT, NULL, true));
	fake_direct_cfg.hold = false;
	rma_settle();
	cr_expect_eq(rma_ended(0, &e), 1, "once, and fi_inject_write never");
	stop();
}

Test(core_rma_simple, a_counter_counts_the_end)
{
	struct core_cntr cntr = { 0 };

	start(false);
	rma_nodes[0].ep.rma_cntr[CORE_CNTR_WRITE] = &cntr;
	fake_direct_cfg.hold = true;
	cr_assert(simple(true, rma_local, 8, 0, FI_INJECT_COMPLETE, NULL, false));
	cr_assert(simple(true, rma_local, 8, 0, FI_INJECT, NULL, true));
	cr_expect_eq(cntr.value, 0);
	fake_direct_cfg.hold = false;
	rma_settle();
	cr_expect_eq(cntr.value, 2);
	rma_nodes[0].ep.rma_cntr[CORE_CNTR_WRITE] = NULL;
	stop();
}

Test(core_rma_simple, a_fence_waits_for_those_that_are_awaited)
{
	start(false);
	fake_direct_cfg.hold = true;
	cr_assert(simple(true, rma_local, 8, 0, 0, NULL, false));
	cr_assert_eq(rma_put(rma_local, 8, 0, FI_FENCE, NULL), 0);
	cr_expect_eq(fake_direct_cnt(), 0);
	cr_expect_not(simple(true, rma_local, 8, 0, 0, NULL, false), "others are before it");
	fake_direct_cfg.hold = false;
	rma_settle();
	cr_expect_eq(fake_direct_cnt(), 1);
	stop();
}

Test(core_rma_simple, a_fence_has_the_end_of_a_silent_write_reported)
{
	start(false);
	fake_direct_cfg.hold = true;
	fake_direct_cfg.until_asked = true;
	cr_assert(simple(true, rma_local, 8, 0, FI_INJECT, NULL, true));
	cr_assert_eq(rma_put(rma_local, 8, 0, FI_FENCE, NULL), 0);
	rma_settle();
	cr_expect_eq(fake_direct_cnt(), 1);
	fake_direct_cfg.hold = false;
	fake_direct_cfg.until_asked = false;
	rma_settle();
	stop();
}

Test(core_rma_simple, a_failed_connection_ends_each_once_and_the_next_one_counts_anew)
{
	struct core_cqe e;

	start(false);
	use_region();
	fake_direct_cfg.hold = true;
	for (unsigned i = 0; i < 3; i++)
		cr_assert(simple(false, rma_local, 100, 0, 0, NULL, false));
	cr_assert(simple(true, rma_local, 8, 0, FI_INJECT_COMPLETE, NULL, false));
	expect_ended(0, NULL);
	fake_engine_kill(&rma_nodes[0].ep, &rma_nodes[1].ep, -FI_ECONNRESET);
	rma_settle();
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(rma_ended(0, &e), -FI_ECONNRESET);
	cr_expect_eq(rma_ended(0, &e), 1, "what has completed does not fail");
	cr_expect_not(core_mr_is_busy(&local_mr));
	cr_expect_eq(peer()->simple.tail, 0);
	stop();
}

Test(core_rma_simple, a_revoked_lease_is_returned_after_those_in_progress)
{
	for (unsigned awaited = 0; awaited < 2; awaited++) {
		start(false);
		fake_direct_cfg.hold = true;
		cr_assert(simple(true, rma_local, 8, 0, awaited ? 0 : FI_INJECT_COMPLETE, NULL,
				 false));
		core_rma_lessee_revoke(&rma_regions[1]);
		rma_settle();
		cr_expect_eq(util_list_is_empty(&rma_regions[1].lessees), !awaited);
		cr_expect_not(simple(true, rma_local, 8, 0, 0, NULL, false), "no lease");
		fake_direct_cfg.hold = false;
		rma_settle();
		cr_expect(util_list_is_empty(&rma_regions[1].lessees));
		stop();
	}
}
