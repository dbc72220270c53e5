/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A lease is requested once, used until it is revoked, and not a moment longer. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_peer.h"
#include "unit/core/rma/rma_fixture.h"

static void start(void)
{
	rma_start(4096, 1000, 1000, RMA_BULK | RMA_DIRECT);
}

static void put_one(int err)
{
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	rma_expect_end(0, err, NULL, FI_RMA | FI_WRITE);
}

static struct core_rma_leases *leases(void)
{
	return core_peer_lookup(&rma_nodes[0].ep, 1)->leases;
}

Test(core_rma_lease, the_first_access_goes_by_calls_and_later_ones_are_direct)
{
	start();
	put_one(0);
	cr_expect_eq(fake_direct_cnt(), 0);
	for (unsigned i = 1; i <= 3; i++) {
		memset(rma_local, (int)i, 8);
		put_one(0);
		cr_expect_eq(fake_direct_cnt(), i);
		cr_expect_arr_eq(rma_memory[1] + RMA_GUARD, rma_local, 8);
	}
	cr_assert_eq(rma_get(rma_local, 100, 50, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect_eq(fake_direct_cnt(), 4);
	cr_expect_eq(rma_local[0], RMA_NOT_SENT);
	rma_stop();
	cr_expect_eq(fake_direct_regs(), 0);
}

Test(core_rma_lease, no_lease_of_an_unknown_key_is_kept)
{
	start();
	rma_region_close(1);
	put_one(-FI_EKEYREJECTED);
	put_one(-FI_EKEYREJECTED);
	rma_region_open(1, RMA_BOTH, 0);
	put_one(0);
	put_one(0);
	cr_expect_eq(fake_direct_cnt(), 1);
	rma_stop();
}

Test(core_rma_lease, what_it_does_not_permit_goes_by_calls_and_gets_the_targets_error)
{
	start();
	put_one(0);
	cr_assert_eq(rma_put(rma_local, 8, RMA_MEM_LEN - 7, 0, NULL), 0);
	rma_expect_end(0, -FI_EINVAL, NULL, FI_RMA | FI_WRITE);
	cr_assert_eq(rma_put(rma_local, 8, UINT64_MAX - 3, 0, NULL), 0);
	rma_expect_end(0, -FI_EINVAL, NULL, FI_RMA | FI_WRITE);
	rma_region_close(1);
	rma_region_open(1, FI_REMOTE_READ, 4096);
	put_one(-FI_EACCES);
	put_one(-FI_EACCES);
	cr_expect_eq(fake_direct_cnt(), 0);
	cr_assert_eq(rma_get(rma_local, 8, 4096 + RMA_MEM_LEN - 8, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect_eq(fake_direct_cnt(), 1, "the last bytes, counted from the region's base");
	cr_assert_eq(rma_get(rma_local, 8, 4095, NULL), 0);
	rma_expect_end(0, -FI_EINVAL, NULL, FI_RMA | FI_READ);
	cr_expect(rma_untouched(1, RMA_GUARD + 8, sizeof(rma_memory[1])));
	rma_stop();
}

Test(core_rma_lease, a_revocation_waits_for_accesses_in_progress_and_later_ones_go_by_calls)
{
	start();
	put_one(0);
	fake_direct_cfg.hold = true;
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	rma_settle();
	cr_expect(core_mr_is_busy(&rma_regions[1]), "one access is in progress");
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, rma_local), 0);
	rma_expect_end(0, -FI_EKEYREJECTED, rma_local, FI_RMA | FI_WRITE);
	cr_expect_eq(fake_direct_cnt(), 1);
	fake_direct_cfg.hold = false;
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	cr_expect_not(core_mr_is_busy(&rma_regions[1]));
	core_mr_dereg(&rma_regions[1]);
	rma_region_open(1, RMA_BOTH, 0);
	put_one(0);
	put_one(0);
	cr_expect_eq(fake_direct_cnt(), 2, "the region with the same key has a lease of its own");
	rma_stop();
}

Test(core_rma_lease, leases_end_with_the_connection)
{
	start();
	put_one(0);
	cr_expect_not_null(leases());
	fake_direct_cfg.hold = true;
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	fake_engine_kill(&rma_nodes[0].ep, &rma_nodes[1].ep, -FI_ECONNRESET);
	rma_expect_end(0, -FI_ECONNRESET, NULL, FI_RMA | FI_WRITE);
	cr_expect_null(leases());
	cr_expect_not(core_mr_is_busy(&rma_regions[1]), "the target does not wait for it");
	fake_direct_cfg.hold = false;
	put_one(0);
	put_one(0);
	cr_expect_eq(fake_direct_cnt(), 2);
	rma_stop();
}

Test(core_rma_lease, their_number_is_limited)
{
	enum { CNT = CORE_RMA_LEASES_MAX + 50 };
	static struct core_mr many[CNT];

	start();
	for (unsigned i = 0; i < CNT; i++) {
		many[i] = (struct core_mr){ .key = 1000 + i,
					    .access = RMA_BOTH,
					    .len = 64,
					    .fixed = true,
					    .iov_cnt = 1,
					    .iov = { { rma_memory[1] + RMA_GUARD, 64 } } };
		cr_assert_eq(core_mr_add(&rma_nodes[1].dom, &many[i], false), 0);
	}
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < CNT; i++) {
			cr_assert_eq(rma_access(0, 1, true, rma_local, 8, 0, 1000 + i, 0, NULL), 0);
			rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		}
	}
	cr_expect_gt(fake_direct_cnt(), 0);
	cr_expect_lt(fake_direct_cnt(), (unsigned)CNT, "some were dropped");
	for (unsigned i = 0; i < CNT; i++)
		core_mr_remove(&rma_nodes[1].dom, &many[i]);
	rma_settle();
	for (unsigned i = 0; i < CNT; i++) {
		cr_assert_not(core_mr_is_busy(&many[i]), "dropped leases are returned, too");
		core_mr_dereg(&many[i]);
	}
	rma_stop();
	cr_expect_eq(fake_direct_regs(), 0);
}
