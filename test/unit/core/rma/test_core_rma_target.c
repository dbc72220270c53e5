/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Target side of RMA: denied access is an error at the initiator only (fi_mr(3)), and malformed
 * calls access no memory.
 */
#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_cntr.h"
#include "core/core_handler.h"
#include "support/rng.h"
#include "unit/core/rma/rma_fixture.h"
#include "util/copy.h"
#include "wire/wire_rma.h"

Test(core_rma_target, denied_access_is_an_error_at_the_initiator_only)
{
	static const uint64_t rights[] = { FI_REMOTE_READ, FI_REMOTE_WRITE };
	static const uint64_t flags[] = { FI_RMA | FI_READ, FI_RMA | FI_WRITE };

	for (unsigned caps = 0; caps < 2; caps++) {
		rma_start(256, 100, 7, caps ? RMA_BULK : 0);
		for (unsigned w = 0; w < 2; w++) {
			for (size_t len = 1; len <= 20000; len += 19999) {
				core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
				rma_region_open(1, rights[w], 0x1000);
				cr_assert_eq(rma_access(0, 1, w, rma_local, len, 0x1000, 5, 0,
							rma_local),
					     0);
				rma_expect_end(0, -FI_EKEYREJECTED, rma_local, flags[w]);
				cr_assert_eq(rma_access(0, 1, w, rma_local, len, 0xFFF, RMA_KEY, 0,
							rma_local),
					     0);
				rma_expect_end(0, -FI_EINVAL, rma_local, flags[w]);
				cr_assert_eq(rma_access(0, 1, w, rma_local, len,
							0x1001 + RMA_MEM_LEN - len, RMA_KEY, 0,
							rma_local),
					     0);
				rma_expect_end(0, -FI_EINVAL, rma_local, flags[w]);
				cr_assert_eq(rma_access(0, 1, w, rma_local, len, UINT64_MAX,
							RMA_KEY, 0, rma_local),
					     0);
				rma_expect_end(0, -FI_EINVAL, rma_local, flags[w]);
				core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
				rma_region_open(1, rights[!w], 0x1000);
				cr_assert_eq(rma_access(0, 1, w, rma_local, len, 0x1000, RMA_KEY, 0,
							rma_local),
					     0);
				rma_expect_end(0, -FI_EACCES, rma_local, flags[w]);
			}
		}
		cr_expect(rma_untouched(1, 0, RMA_GUARD));
		cr_expect(rma_untouched(1, RMA_GUARD + RMA_MEM_LEN, sizeof(rma_memory[1])));
		core_mr_remove(&rma_nodes[1].dom, &rma_regions[1]);
		rma_region_open(1, RMA_BOTH, 0);
		cr_assert_eq(rma_put(rma_local, 10, 0, 0, rma_local), 0);
		rma_expect_end(0, 0, rma_local, FI_RMA | FI_WRITE);
		rma_stop();
	}
}

Test(core_rma_target, an_endpoint_permits_what_its_capabilities_say)
{
	rma_start(4096, 100, 7, 0);
	rma_nodes[1].ep.remote_access = FI_REMOTE_WRITE;
	cr_assert_eq(rma_get(rma_local, 10, 0, rma_local), 0);
	rma_expect_end(0, -FI_EACCES, rma_local, FI_RMA | FI_READ);
	rma_nodes[1].ep.remote_access = FI_REMOTE_READ;
	cr_assert_eq(rma_put(rma_local, 10, 0, 0, rma_local), 0);
	rma_expect_end(0, -FI_EACCES, rma_local, FI_RMA | FI_WRITE);
	rma_stop();
}

Test(core_rma_target, each_access_counts_and_delivers_data_once)
{
	struct core_cntr cntrs[2][CORE_CNTR_RMA_CNT] = { 0 }, mr_read = { 0 }, mr_write = { 0 };
	struct core_cqe e;

	rma_start(256, 100, 7, 0);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < CORE_CNTR_RMA_CNT; k++)
			rma_nodes[i].ep.rma_cntr[k] = &cntrs[i][k];
	rma_regions[1].remote_read = &mr_read;
	rma_regions[1].remote_write = &mr_write;
	cr_assert_eq(rma_put(rma_local, 5000, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	cr_assert_eq(rma_put(rma_local, 0, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	cr_assert_eq(rma_put(rma_local, 5000, 0, 0, NULL), 0);
	cr_assert_eq(rma_get(rma_local, 9000, 0, NULL), 0);
	cr_assert_eq(rma_access(0, 1, true, rma_local, 5000, 0, 1, FI_REMOTE_CQ_DATA, NULL), 0);
	nodes_settle(rma_nodes, 2);
	cr_expect_eq(cntrs[0][CORE_CNTR_WRITE].value, 3);
	cr_expect_eq(cntrs[0][CORE_CNTR_WRITE].errors, 1);
	cr_expect_eq(cntrs[0][CORE_CNTR_READ].value, 1);
	cr_expect_eq(cntrs[0][CORE_CNTR_REMOTE_WRITE].value, 0);
	cr_expect_eq(cntrs[1][CORE_CNTR_REMOTE_WRITE].value, 3);
	cr_expect_eq(cntrs[1][CORE_CNTR_REMOTE_READ].value, 1);
	cr_expect_eq(cntrs[1][CORE_CNTR_WRITE].value, 0);
	cr_expect_eq(mr_write.value, 2, "an access of no bytes has no region");
	cr_expect_eq(mr_read.value, 1);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(rma_ended(1, &e), 0);
		cr_expect_eq(e.e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		cr_expect_eq(e.e.data, 0x1234567890);
		cr_expect_eq(e.e.len, i ? 0 : 5000);
		cr_expect_eq(e.src, 0);
	}
	cr_expect_eq(rma_ended(1, &e), 1);
	rma_stop();
}

/* Channel of a peer that sends random calls. */
static struct core_call_ref liar_ref;
static unsigned liar_replies;

static int liar_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
		      size_t iov_cnt, size_t len, unsigned flags)
{
	cr_assert_eq(util_iov_len(iov, iov_cnt), len);
	cr_assert_eq(ref.call_id, liar_ref.call_id);
	cr_assert_leq(len, liar_ref.resp_max);
	liar_replies++;
	return 0;
}

static int liar_get(struct core_chan *chan, struct core_get *get)
{
	for (size_t i = 0; i < get->iov_cnt; i++)
		memset(get->iov[i].iov_base, 0x77, get->iov[i].iov_len);
	get->status = 0;
	return 1;
}

static int liar_expose(struct core_chan *chan, const void *addr, size_t len,
		       struct core_exposure *exposure)
{
	cr_assert_geq((uintptr_t)addr, (uintptr_t)rma_memory[1] + RMA_GUARD);
	cr_assert_leq((uintptr_t)addr + len, (uintptr_t)rma_memory[1] + RMA_GUARD + RMA_MEM_LEN);
	exposure->key = 0;
	return 0;
}

static void liar_unexpose(struct core_chan *chan, struct core_exposure *exposure)
{
}

static const struct core_chan_ops liar_ops = {
	.reply = liar_reply, .get = liar_get, .expose = liar_expose, .unexpose = liar_unexpose
};

static uint32_t liar_frame(uint8_t *bytes, struct rng *rng)
{
	static const uint64_t odd[] = { 0, 1, 40, RMA_MEM_LEN, 1ull << 32, 1ull << 63, UINT64_MAX };
	uint32_t op = WIRE_OP_WRITE + (uint32_t)rng_below(rng, 4), at = sizeof(op);
	uint64_t word[7], body = rng_below(rng, 65);

	for (unsigned i = 0; i < 7; i++)
		word[i] = rng_chance(rng, 1, 2) ? odd[rng_below(rng, 7)] : rng_below(rng, 100);
	if (rng_chance(rng, 1, 2))
		word[1] = RMA_KEY;
	if (rng_chance(rng, 1, 2))
		word[2] = body;
	if (rng_chance(rng, 1, 2))
		word[3] = word[4] - word[2];
	if (rng_chance(rng, 1, 8))
		op |= WIRE_F_TAG << rng_below(rng, 28);
	memcpy(bytes, &op, sizeof(op));
	at += wire_ext_len(op);
	memcpy(bytes + at, word, sizeof(word));
	return rng_chance(rng, 1, 16) ? (uint32_t)rng_below(rng, at + 40)
				      : at + 40 + (uint32_t)body;
}

Test(core_rma_target, malformed_calls_access_no_other_memory, .timeout = 200)
{
	static uint8_t bytes[512];
	struct rng rng = { .state = 99 };
	struct core_chan liar = { .ops = &liar_ops, .caps = RMA_BULK, .eager_max = 4096 };
	unsigned legal = 0, calls = 0;
	struct core_cqe e;

	rma_start(512, 1000, 1000, 0);
	liar.peer = core_peer_get(&rma_nodes[1].ep, 0);
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t len = liar_frame(bytes, &rng), op;
		enum core_rx_verdict verdict;

		liar_ref = (struct core_call_ref){ i, (uint32_t)rng_below(&rng, 200) };
		liar_replies = 0;
		memcpy(&op, bytes, sizeof(op));
		if (rng_chance(&rng, 1, 16) && len >= sizeof(op)) {
			core_rx_on_msg(&liar, op, bytes + sizeof(op), len - (uint32_t)sizeof(op),
				       0);
			continue;
		}
		verdict = core_upcall_table.on_call(&liar, liar_ref, bytes, len, 0);
		calls++;
		legal += verdict != CORE_RX_BAD;
		cr_assert_eq(liar_replies, verdict != CORE_RX_BAD, "each call has one reply");
		while (rma_ended(1, &e) != 1)
			;
	}
	cr_expect_gt(legal, calls / 20, "enough calls pass the format checks");
	cr_expect(rma_untouched(1, 0, RMA_GUARD));
	cr_expect(rma_untouched(1, RMA_GUARD + RMA_MEM_LEN, sizeof(rma_memory[1])));
	rma_stop();
}
