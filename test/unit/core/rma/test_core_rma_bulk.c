/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bulk accesses use the get of the channel, and fall back to calls that carry the bytes. */
#include "core/rma/core_rma_bulk.h"

#include <copyrpc/stats.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/core_cntr.h"
#include "unit/core/rma/rma_fixture.h"

/** Expects so many counted transfers of the region; the channels of both nodes count in one row. */
static void expect_given(uint64_t cnt)
{
	const struct copyrpc_stats_peer *row = core_peer_get(&rma_nodes[0].ep, 1)->chan->stats;

	cr_expect_eq(row, core_peer_get(&rma_nodes[1].ep, 0)->chan->stats);
	cr_expect_eq(row->given, cnt);
	cr_expect_eq(row->given_bytes, cnt * RMA_MEM_LEN);
}

Test(core_rma_bulk, a_bulk_access_uses_get_and_returns_the_exposure)
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
	expect_given(1);
	cr_expect(node_check(rma_memory[1] + RMA_GUARD, RMA_MEM_LEN, 4));
	cr_assert_eq(rma_ended(1, &e), 0);
	cr_expect_eq(e.e.len, RMA_MEM_LEN);
	memset(rma_local, 0, RMA_MEM_LEN);
	cr_assert_eq(rma_get(rma_local, RMA_MEM_LEN, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect(node_check(rma_local, RMA_MEM_LEN, 4));
	expect_given(2);
	cr_expect_eq(read.value, 1);
	cr_expect_eq(write.value, 1);
	cr_expect(util_list_is_empty(&rma_regions[1].deferred));
	cr_expect_eq(rma_regions[1].users, 0);
	rma_stop();
}

#define MIN 8192u /* rma_start's single_copy_min */

/** Accesses all of node 1's region with a local buffer in 1 or 2 pieces, and waits for the end. */
static void access_all(bool write, unsigned pieces)
{
	size_t part = RMA_MEM_LEN / pieces;
	struct iovec iov[2] = { { rma_local, part }, { rma_local + part, RMA_MEM_LEN - part } };
	struct fi_rma_iov remote = { .len = RMA_MEM_LEN, .key = RMA_KEY };
	struct core_rma r = { .write = write,
			      .peer = 1,
			      .iov = iov,
			      .iov_cnt = pieces,
			      .len = RMA_MEM_LEN,
			      .rma_iov = &remote,
			      .rma_cnt = 1,
			      .context = &r };

	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	rma_expect_end(0, 0, &r, FI_RMA | (write ? FI_WRITE : FI_READ));
}

/** Fills the source with a pattern and clears the destination. */
static void fill(bool write, unsigned seed)
{
	node_fill(write ? rma_local : rma_memory[1] + RMA_GUARD, RMA_MEM_LEN, seed);
	memset(write ? rma_memory[1] + RMA_GUARD : rma_local, RMA_NOT_SENT, RMA_MEM_LEN);
}

static bool are_alike(unsigned seed)
{
	return node_check(rma_local, RMA_MEM_LEN, seed) &&
	       node_check(rma_memory[1] + RMA_GUARD, RMA_MEM_LEN, seed) &&
	       rma_untouched(1, 0, RMA_GUARD) &&
	       rma_untouched(1, RMA_GUARD + RMA_MEM_LEN, sizeof(rma_memory[1]));
}

/** Splits the region of node 1 into two adjacent buffers. */
static void region_of_two(void)
{
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	rma_region_open(1, RMA_BOTH, 0);
	rma_regions[1].iov_cnt = 2;
	rma_regions[1].iov[0].iov_len = 1000;
	rma_regions[1].iov[1] =
		(struct iovec){ rma_memory[1] + RMA_GUARD + 1000, RMA_MEM_LEN - 1000 };
}

enum {
	NO_OBSTACLE,
	NO_GET,
	NO_EXPOSE,
	GETS_FAIL,
	LITTLE_CREDIT,
	LOCAL_PIECES,
	REMOTE_PIECES,
	OBSTACLES
};

/* Obstacles that do not prevent a get, for reads and writes. */
static const bool uses_get[OBSTACLES][2] = {
	[NO_OBSTACLE] = { true, true },
	[LITTLE_CREDIT] = { false, true },
	[LOCAL_PIECES] = { true, false },
	[REMOTE_PIECES] = { false, true },
};

static void run_obstacle(unsigned obstacle, bool write)
{
	struct core_cntr cntr[2] = { 0 };

	rma_start(256, 1000, 1000, obstacle == NO_GET ? CORE_CHAN_REVOKE : RMA_BULK);
	fake_engine_cfg.expose_err = obstacle == NO_EXPOSE ? -FI_ENOMEM : 0;
	fake_engine_cfg.get_err = obstacle == GETS_FAIL ? -FI_EIO : 0;
	fake_engine_cfg.resp_max = obstacle == LITTLE_CREDIT ? 32 : 256; /* no exposure fits */
	if (obstacle == REMOTE_PIECES)
		region_of_two();
	rma_regions[1].remote_read = &cntr[0];
	rma_regions[1].remote_write = &cntr[1];
	fill(write, obstacle);
	access_all(write, obstacle == LOCAL_PIECES ? 2 : 1);
	cr_expect(are_alike(obstacle), "obstacle %u, write %d", obstacle, write);
	cr_expect_eq(fake_engine_gets(), uses_get[obstacle][write], "obstacle %u, write %d",
		     obstacle, write);
	cr_expect_eq(cntr[write].value, 1, "obstacle %u, write %d", obstacle, write);
	cr_expect_eq(cntr[!write].value, 0);
	cr_expect_eq(cntr[write].errors + cntr[!write].errors, 0);
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_expect(util_list_is_empty(&rma_regions[1].deferred));
	cr_expect_eq(rma_regions[1].users, 0);
	rma_stop();
}

Test(core_rma_bulk, without_get_the_bytes_go_in_calls)
{
	for (unsigned obstacle = 0; obstacle < OBSTACLES; obstacle++) {
		run_obstacle(obstacle, false);
		run_obstacle(obstacle, true);
	}
}

Test(core_rma_bulk, short_accesses_go_in_calls)
{
	rma_start(256, 1000, 1000, RMA_BULK);
	for (unsigned i = 0; i < 3; i++) {
		size_t len = MIN - 1 + i;

		cr_assert_eq(rma_put(rma_local, len, 0, 0, NULL), 0);
		rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		cr_expect_eq(fake_engine_gets(), 2 * i - !!i, "%zu bytes", len);
		cr_assert_eq(rma_get(rma_local, len, 0, NULL), 0);
		rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
		cr_expect_eq(fake_engine_gets(), 2 * i, "%zu bytes", len);
	}
	rma_stop();
}

/** The target dies before it has received the call of a write. */
Test(core_rma_bulk, an_exposure_ends_when_the_peer_dies)
{
	rma_start(256, 1000, 1000, RMA_BULK);
	cr_assert_eq(rma_put(rma_local, 1, 0, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	fake_engine_cfg.no_delivery = true;
	cr_assert_eq(rma_put(rma_local, RMA_MEM_LEN, 0, 0, &rma_nodes), 0);
	core_dom_progress(&rma_nodes[0].dom);
	cr_assert_eq(fake_engine_exposed(), 1);
	fake_engine_kill(&rma_nodes[0].ep, &rma_nodes[1].ep, -FI_ECONNRESET);
	rma_expect_end(0, -FI_ECONNRESET, &rma_nodes, FI_RMA | FI_WRITE);
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_expect(rma_untouched(1, RMA_GUARD + 1, sizeof(rma_memory[1])));
	rma_stop();
}
