/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Leases have no right that region, endpoint and counters do not leave. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_peer.h"
#include "unit/core/rma/rma_fixture.h"
#include "wire/wire_rma.h"

static void start(void)
{
	rma_start(4096, 1000, 1000, RMA_BULK | RMA_DIRECT);
}

/** Writes and reads twice. Returns the direct accesses among them. */
static unsigned access_all(void)
{
	unsigned before = fake_direct_cnt();

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
		rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
		rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	}
	return fake_direct_cnt() - before;
}

Test(core_rma_lessee, accesses_that_a_counter_counts_go_by_calls)
{
	struct core_cntr cntr[2] = { 0 };

	start();
	rma_regions[1].remote_write = &cntr[0];
	cr_expect_eq(access_all(), 2, "the reads");
	cr_expect_eq(cntr[0].value, 2);
	rma_region_close(1);
	rma_region_open(1, RMA_BOTH, 0);
	rma_nodes[1].ep.rma_cntr[CORE_CNTR_REMOTE_READ] = &cntr[1];
	cr_expect_eq(access_all(), 1, "the second write");
	cr_expect_eq(cntr[1].value, 2);
	rma_nodes[1].ep.rma_cntr[CORE_CNTR_REMOTE_READ] = NULL;
	rma_stop();
}

Test(core_rma_lessee, a_region_that_no_device_can_access_is_accessed_by_calls)
{
	start();
	rma_regions[1].fixed = false;
	cr_expect_eq(access_all(), 0);
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	cr_expect_not(core_mr_is_busy(&rma_regions[1]), "its close waits for no peer");
	fake_direct_cfg.reg_err = -FI_ENOMEM;
	rma_region_open(1, RMA_BOTH, 0);
	for (unsigned i = 0; i < CORE_RMA_LEASE_RETRY / 4; i++)
		cr_expect_eq(access_all(), 0);
	cr_expect(rma_regions[1].unfit, "the lease was requested again, in vain");
	rma_region_close(1);
	fake_direct_cfg.reg_err = 0;
	rma_region_open(1, RMA_BOTH, 0);
	for (unsigned i = 0; i < CORE_RMA_LEASE_RETRY / 4; i++)
		access_all();
	cr_expect_gt(fake_direct_cnt(), 0);
	rma_stop();
}

Test(core_rma_lessee, a_lease_has_only_the_rights_of_the_endpoint)
{
	start();
	rma_nodes[1].ep.remote_access = FI_REMOTE_READ;
	cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_assert_eq(rma_get(rma_local, 8, 0, NULL), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect_eq(fake_direct_cnt(), 1);
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	rma_expect_end(0, -FI_EACCES, NULL, FI_RMA | FI_WRITE);
	cr_expect_eq(fake_direct_cnt(), 1);
	rma_stop();
}

Test(core_rma_lessee, a_peer_that_was_forgotten_reaches_nothing)
{
	start();
	cr_expect_eq(access_all(), 3);
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	core_rma_lessee_forget(&rma_regions[1]);
	cr_expect_not(core_mr_is_busy(&rma_regions[1]));
	core_mr_dereg(&rma_regions[1]);
	memset(rma_memory[1], RMA_NOT_SENT, sizeof(rma_memory[1]));
	/* The revocation has not arrived. */
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	fake_direct_run(core_peer_lookup(&rma_nodes[0].ep, 1)->chan, 0);
	rma_expect_end(0, -FI_EREMOTEIO, NULL, FI_RMA | FI_WRITE);
	cr_expect(rma_untouched(1, 0, sizeof(rma_memory[1])));
	/* Now it has. */
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	rma_expect_end(0, -FI_EKEYREJECTED, NULL, FI_RMA | FI_WRITE);
	rma_region_open(1, RMA_BOTH, 0);
	rma_stop();
}

/* A failback holds operations back, and may end the connection before they have started. */
Test(core_rma_lessee, a_revocation_that_waits_ends_with_the_connection)
{
	struct core_peer *peer;

	start();
	cr_expect_eq(access_all(), 3);
	peer = core_peer_lookup(&rma_nodes[1].ep, 0);
	peer->holds = true;
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	core_rma_lessee_revoke(&rma_regions[1]);
	cr_assert_eq(rma_nodes[1].ep.tx_queued, 1);
	core_peer_fail(peer, 0, CORE_PEER_IDLE);
	cr_expect_eq(rma_nodes[1].ep.tx_queued, 0);
	cr_expect_eq(rma_nodes[1].ep.tx_open, 0);
	cr_expect(util_list_is_empty(&peer->tx));
	cr_expect_not(core_mr_is_busy(&rma_regions[1]));
	core_mr_dereg(&rma_regions[1]);
	rma_region_open(1, RMA_BOTH, 0);
	rma_stop();
}

Test(core_rma_lessee, a_region_is_registered_once_for_all_who_ask)
{
	start();
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(access_all(), i ? 4 : 3);
	cr_expect_eq(fake_direct_regs(), 1);
	rma_stop();
	cr_expect_eq(fake_direct_regs(), 0);
}

Test(core_rma_lessee, a_revocation_finds_its_turn_when_there_was_no_room)
{
	start();
	cr_expect_eq(access_all(), 3);
	fake_engine_cfg.room = 0;
	core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
	rma_settle();
	cr_expect(core_mr_is_busy(&rma_regions[1]));
	fake_engine_cfg.room = 1000;
	rma_settle();
	cr_expect_not(core_mr_is_busy(&rma_regions[1]));
	core_mr_dereg(&rma_regions[1]);
	rma_region_open(1, RMA_BOTH, 0);
	rma_stop();
}

/* Peers whose leases are revoked ask for new ones at once. */
Test(core_rma_lessee, a_region_that_is_renewed_gives_no_lease_until_then)
{
	struct core_mr *mr = &rma_regions[1];

	start();
	cr_expect_eq(access_all(), 3);
	core_rma_lessee_renew(mr);
	cr_expect(core_mr_is_busy(mr));
	rma_settle();
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(access_all(), 0, "by calls");
		cr_expect_not(core_mr_is_busy(mr));
		core_rma_lessee_revoke(mr);
	}
	core_mr_dereg(mr);
	core_rma_lessee_renewed(mr);
	cr_expect_eq(access_all(), 3, "the first access requests the lease");
	rma_stop();
}

Test(core_rma_lessee, malformed_calls_break_the_protocol)
{
	struct wire_lease_call call = { .key = RMA_KEY, .kind = 2 };
	struct core_head head = { .op = WIRE_OP_LEASE,
				  .body = (uint8_t *)&call,
				  .body_len = sizeof(call) };
	struct core_call_ref ref = { .resp_max = sizeof(struct wire_lease) };
	struct core_chan *chan;

	start();
	cr_expect_eq(access_all(), 3);
	chan = core_peer_lookup(&rma_nodes[1].ep, 0)->chan;
	cr_expect_eq(core_rma_on_lease(chan, ref, &head, 0), CORE_RX_BAD, "unknown kind");
	call.kind = WIRE_LEASE_REQUEST;
	head.body_len--;
	cr_expect_eq(core_rma_on_lease(chan, ref, &head, 0), CORE_RX_BAD, "too short");
	head.body_len++;
	head.has_data = true;
	cr_expect_eq(core_rma_on_lease(chan, ref, &head, 0), CORE_RX_BAD, "data");
	head.has_data = false;
	ref.resp_max--;
	cr_expect_eq(core_rma_on_lease(chan, ref, &head, 0), CORE_RX_BAD, "no room to respond");
	rma_stop();
}
