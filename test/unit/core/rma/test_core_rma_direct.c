/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct accesses end once, keep the orders of the endpoint, and leave the rest to calls. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_peer.h"
#include "unit/core/rma/rma_fixture.h"

/** Starts with a lease held at node 0. */
static void start(bool ordered)
{
	rma_start(4096, 1000, 1000, RMA_BULK | RMA_DIRECT);
	rma_nodes[0].ep.rma_ordered = ordered;
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
}

static struct core_peer *peer(void)
{
	return core_peer_lookup(&rma_nodes[0].ep, 1);
}

Test(core_rma_direct, flags_select_what_the_device_does)
{
	start(false);
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	cr_expect_eq(fake_direct_flags(), CORE_DIRECT_WRITE);
	cr_assert_eq(rma_put(rma_local, 8, 0, FI_MORE | FI_DELIVERY_COMPLETE, NULL), 0);
	cr_expect_eq(fake_direct_flags(),
		     CORE_DIRECT_WRITE | CORE_DIRECT_MORE | CORE_DIRECT_PLACED);
	cr_assert_eq(rma_access(0, 1, false, rma_local, 8, 0, RMA_KEY, FI_DELIVERY_COMPLETE, NULL),
		     0);
	cr_expect_eq(fake_direct_flags(), 0);
	cr_expect_eq(fake_direct_open(), 3, "none has ended");
	rma_settle();
	cr_expect_eq(fake_direct_open(), 0);
	cr_assert_eq(rma_put(rma_local, 8, 0, FI_FENCE, NULL), 0);
	cr_expect_eq(fake_direct_flags(), CORE_DIRECT_WRITE | CORE_DIRECT_ORDERED,
		     "messages that were accepted before leave before");
	rma_settle();
	rma_stop();
	start(true);
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	cr_expect_eq(fake_direct_flags(), CORE_DIRECT_WRITE | CORE_DIRECT_ORDERED);
	rma_settle();
	rma_stop();
}

Test(core_rma_direct, what_is_for_the_targets_processor_goes_by_calls)
{
	start(false);
	cr_assert_eq(rma_put(rma_local, 8, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	cr_assert_eq(rma_put(rma_local, 0, 0, 0, NULL), 0);
	rma_settle();
	cr_expect_eq(fake_direct_cnt(), 0);
	rma_stop();
}

Test(core_rma_direct, a_device_that_cannot_leaves_it_to_calls)
{
	start(false);
	fake_direct_cfg.err = -FI_EMSGSIZE;
	memset(rma_local, 7, 100);
	cr_assert_eq(rma_put(rma_local, 100, 0, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	cr_expect_arr_eq(rma_memory[1] + RMA_GUARD, rma_local, 100);
	cr_expect_eq(fake_direct_cnt(), 0);
	rma_stop();
}

Test(core_rma_direct, without_room_it_waits_its_turn)
{
	start(false);
	fake_direct_cfg.err = -FI_EAGAIN;
	for (uintptr_t i = 1; i <= 3; i++)
		cr_assert_eq(rma_put(rma_local, 8, 0, 0, (void *)i), 0);
	rma_settle();
	cr_expect_eq(fake_direct_cnt(), 0);
	fake_direct_cfg.err = 0;
	rma_settle();
	for (uintptr_t i = 1; i <= 3; i++) {
		struct core_cqe e;

		cr_assert_eq(rma_ended(0, &e), 0);
		cr_expect_eq(e.e.op_context, (void *)i);
	}
	cr_expect_eq(fake_direct_cnt(), 3);
	rma_stop();
}

Test(core_rma_direct, an_ordered_access_waits_for_earlier_calls)
{
	for (unsigned ordered = 0; ordered < 2; ordered++) {
		start(ordered);
		fake_engine_cfg.no_delivery = true;
		cr_assert_eq(rma_put(rma_local, 8, 0, FI_REMOTE_CQ_DATA, NULL), 0);
		cr_assert_eq(rma_get(rma_local, 8, 0, rma_local), 0);
		rma_settle();
		cr_expect_eq(fake_direct_cnt(), !ordered);
		fake_engine_cfg.no_delivery = false;
		rma_settle();
		cr_expect_eq(fake_direct_cnt(), 1);
		cr_expect_eq(peer()->access_calls, 0);
		rma_stop();
	}
}

Test(core_rma_direct, nothing_overtakes_an_ordered_read_but_reads)
{
	for (unsigned ordered = 0; ordered < 2; ordered++) {
		start(ordered);
		fake_direct_cfg.hold = true;
		cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
		cr_assert_eq(rma_get(rma_local, 8, 8, NULL), 0);
		cr_expect_eq(fake_direct_open(), 2);
		cr_expect_eq(peer()->eager_end == 0, ordered, "no send starts on its own");
		cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
		cr_assert_eq(rma_put(rma_local, 8, 0, FI_REMOTE_CQ_DATA, NULL), 0);
		rma_settle();
		cr_expect_eq(fake_direct_open(), ordered ? 2 : 3);
		cr_expect_eq(peer()->access_calls, 0);
		fake_direct_cfg.hold = false;
		rma_settle();
		cr_expect_eq(fake_direct_cnt(), 3);
		cr_expect_eq(peer()->direct_reads, 0);
		cr_expect_neq(peer()->eager_end, 0);
		rma_stop();
	}
}

Test(core_rma_direct, a_descriptor_counts_only_for_buffers_within_its_region)
{
	struct core_mr mr = { .access = FI_WRITE,
			      .len = 100,
			      .fixed = true,
			      .iov_cnt = 1,
			      .iov = { { rma_local, 100 } } };
	struct iovec iov = { rma_local + 50, 50 };
	struct fi_rma_iov remote = { .addr = 0, .len = 50, .key = RMA_KEY };
	struct core_rma r = { .write = true,
			      .peer = 1,
			      .iov = &iov,
			      .iov_cnt = 1,
			      .len = 50,
			      .rma_iov = &remote,
			      .rma_cnt = 1 };
	void *stale;

	start(false);
	cr_assert_eq(core_mr_add(&rma_nodes[0].dom, &mr, false), 0);
	cr_assert_not_null(mr.desc);
	r.desc = stale = mr.desc;
	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	cr_expect(fake_direct_was_registered());
	cr_expect(core_mr_is_busy(&mr), "in use by an access of this end");
	rma_settle();
	cr_expect_not(core_mr_is_busy(&mr));
	iov.iov_base = rma_local + 51;
	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	cr_expect_not(fake_direct_was_registered(), "a byte beyond");
	iov.iov_base = rma_local;
	r.desc = rma_local;
	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	cr_expect_not(fake_direct_was_registered(), "no descriptor");
	rma_settle();
	core_mr_remove(&rma_nodes[0].dom, &mr);
	core_mr_dereg(&mr);
	r.desc = stale;
	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	cr_expect_not(fake_direct_was_registered(), "of a closed region");
	rma_settle();
	rma_stop();
}

Test(core_rma_direct, a_failed_connection_ends_each_access_once)
{
	struct core_cqe e;

	start(true);
	fake_direct_cfg.hold = true;
	cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
	cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	fake_engine_kill(&rma_nodes[0].ep, &rma_nodes[1].ep, -FI_ECONNRESET);
	rma_settle();
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(rma_ended(0, &e), -FI_ECONNRESET);
	cr_expect_eq(rma_ended(0, &e), 1);
	cr_expect_eq(peer()->direct_reads, 0);
	rma_stop();
}

Test(core_rma_direct, a_close_forgets_accesses_in_progress)
{
	start(false);
	fake_direct_cfg.hold = true;
	cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
	cr_expect_eq(fake_direct_open(), 1);
	core_peer_free(peer());
	cr_expect_eq(fake_direct_open(), 0);
	rma_settle();
	rma_stop();
}
