/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The target's records of bulk accesses end with their region and their peer. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/rng.h"
#include "unit/core/rma/rma_fixture.h"

Test(core_rma_deferred, an_exposure_ends_with_its_region_and_its_peer)
{
	for (unsigned kill = 0; kill < 2; kill++) {
		rma_start(256, 1000, 1000, RMA_BULK);
		cr_assert_eq(rma_put(rma_local, 1, 0, 0, NULL), 0);
		rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		cr_assert_eq(rma_get(rma_local, RMA_MEM_LEN, 0, NULL), 0);
		core_dom_progress(&rma_nodes[1].dom);
		cr_assert_not(util_list_is_empty(&rma_regions[1].deferred));
		if (kill)
			fake_engine_kill(&rma_nodes[0].ep, &rma_nodes[1].ep, -FI_ECONNRESET);
		else
			core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
		rma_settle();
		cr_expect(util_list_is_empty(&rma_regions[1].deferred));
		rma_stop();
	}
}

Test(core_rma_deferred, a_region_waits_for_exposures_that_cannot_be_revoked)
{
	rma_start(512, 1000, 1000, CORE_CHAN_GET);
	node_fill(rma_memory[1] + RMA_GUARD, RMA_MEM_LEN, 8);
	nodes_settle(rma_nodes, 2);
	cr_assert_eq(rma_put(rma_local, 1, 0, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	node_fill(rma_memory[1] + RMA_GUARD, RMA_MEM_LEN, 8);
	cr_assert_eq(rma_get(rma_local, RMA_MEM_LEN, 0, NULL), 0);
	core_dom_progress(&rma_nodes[1].dom);
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	cr_expect_eq(rma_regions[1].users, 1);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect_eq(rma_regions[1].users, 0);
	cr_expect(node_check(rma_local, RMA_MEM_LEN, 8));
	rma_region_open(1, RMA_BOTH, 0);
	cr_assert_eq(rma_get(rma_local, RMA_MEM_LEN, 0, NULL), 0);
	core_dom_progress(&rma_nodes[1].dom);
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	core_rma_revoke(&rma_regions[1], true);
	cr_expect_eq(rma_regions[1].users, 0);
	rma_settle();
	rma_stop();
}

Test(core_rma_deferred, a_get_that_does_not_end_ends_with_its_connection)
{
	rma_start(512, 1000, 1000, RMA_BULK);
	fake_engine_cfg.gets_last = true;
	cr_assert_eq(rma_put(rma_local, RMA_MEM_LEN, 0, 0, NULL), 0);
	nodes_settle(rma_nodes, 2);
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	cr_expect(core_mr_is_busy(&rma_regions[1]));
	core_rma_revoke(&rma_regions[1], false);
	nodes_settle(rma_nodes, 2);
	cr_expect(core_mr_is_busy(&rma_regions[1]));
	core_rma_revoke(&rma_regions[1], true);
	nodes_settle(rma_nodes, 2);
	cr_expect_not(core_mr_is_busy(&rma_regions[1]));
	rma_settle();
	rma_stop();
}

Test(core_rma_deferred, a_closed_region_is_not_accessed)
{
	struct rng rng = { .state = 5 };
	struct core_cqe e;
	unsigned open = 0;

	for (unsigned caps = 0; caps < 2; caps++) {
		rma_start(256, 4, 3, caps ? RMA_BULK : 0);
		for (unsigned round = 0; round < 300; round++) {
			static uint8_t seen[sizeof(rma_memory[1])];

			for (unsigned i = 0; i < 4; i++, open++)
				cr_assert_eq(rma_access(0, 1, rng_chance(&rng, 1, 2), rma_local,
							rng_below(&rng, 20000), 0, RMA_KEY, 0,
							NULL),
					     0);
			for (uint64_t i = rng_below(&rng, 12); i; i--)
				core_dom_progress(&rma_nodes[rng_below(&rng, 2)].dom);
			core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
			while (rma_regions[1].users)
				nodes_settle(rma_nodes, 2);
			memcpy(seen, rma_memory[1], sizeof(seen));
			memset(rma_local, (int)round, sizeof(rma_local));
			nodes_settle(rma_nodes, 2);
			cr_assert_eq(memcmp(seen, rma_memory[1], sizeof(seen)), 0);
			rma_region_open(1, RMA_BOTH, 0);
			for (int ret; (ret = rma_ended(0, &e)) != 1; open--)
				cr_assert(ret == 0 || ret == -FI_EKEYREJECTED);
			cr_assert_eq(open, 0);
		}
		rma_stop();
	}
}
