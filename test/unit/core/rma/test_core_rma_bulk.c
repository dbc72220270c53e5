/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Long accesses go beside the calls, and by calls where something stands against that. */
#include "core/rma/core_rma_bulk.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/core/rma/rma_fixture.h"

Test(core_rma_bulk, a_long_access_is_got_and_what_was_lent_is_given_back)
{
	struct core_cntr read = { 0 }, write = { 0 };
	struct core_cqe e;

	rma_start(256, 1000, 1000, RMA_BULK);
	rma_regions[1].remote_read = &read;
	rma_regions[1].remote_write = &write;
	nodes_settle(rma_nodes, 2);
	node_fill(rma_local, RMA_MEM_LEN, 4);
	cr_assert_eq(rma_put(rma_local, RMA_MEM_LEN, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_leq(fake_engine_queued(), 1, "one call for all bytes");
		core_dom_progress(&rma_nodes[i & 1].dom);
	}
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	cr_expect(node_check(rma_memory[1] + RMA_GUARD, RMA_MEM_LEN, 4));
	cr_assert_eq(rma_ended(1, &e), 0);
	cr_expect_eq(e.e.len, RMA_MEM_LEN);
	memset(rma_local, 0, RMA_MEM_LEN);
	cr_assert_eq(rma_get(rma_local, RMA_MEM_LEN, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect(node_check(rma_local, RMA_MEM_LEN, 4));
	cr_expect_eq(read.value, 1);
	cr_expect_eq(write.value, 1);
	cr_expect(util_list_is_empty(&rma_regions[1].loans));
	cr_expect_eq(rma_regions[1].users, 0);
	rma_stop();
}
