/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA reads and writes against a model of the memory, over a transport with little room and credit.
 * Every access completes exactly once, and the bytes are in place (fi_rma(3)).
 */
#include "core/rma/core_rma.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/rng.h"
#include "unit/core/rma/rma_fixture.h"

Test(core_rma, lengths_around_one_call_are_written_and_read_back)
{
	static size_t lens[] = { 0,    1,    7,    8,    143,   144,   145,
				 4096, 8191, 8192, 8193, 16384, 40000, RMA_MEM_LEN };
	static const size_t eager[] = { 128, 192, 4096, 1 << 16 };

	for (unsigned e = 0; e < 8; e++) {
		rma_start(eager[e % 4], 100, 7, e < 4 ? 0 : RMA_BULK);
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			size_t len = lens[i], addr = (RMA_MEM_LEN - len) / 2;

			memset(rma_memory[1], RMA_NOT_SENT, sizeof(rma_memory[1]));
			node_fill(rma_local, len, i);
			cr_assert_eq(rma_put(rma_local, len, addr, 0, &lens), 0);
			rma_expect_end(0, 0, &lens, FI_RMA | FI_WRITE);
			cr_expect(node_check(rma_memory[1] + RMA_GUARD + addr, len, i));
			cr_expect(rma_untouched(1, 0, RMA_GUARD + addr));
			cr_expect(rma_untouched(1, RMA_GUARD + addr + len, sizeof(rma_memory[1])));
			memset(rma_local, 0, len);
			cr_assert_eq(rma_get(rma_local, len, addr, &rma_nodes), 0);
			rma_expect_end(0, 0, &rma_nodes, FI_RMA | FI_READ);
			cr_expect(node_check(rma_local, len, i));
		}
		rma_stop();
	}
}

Test(core_rma, an_endpoint_reaches_its_own_memory)
{
	rma_start(256, 100, 7, RMA_BULK);
	node_fill(rma_local, RMA_MEM_LEN, 1);
	cr_assert_eq(rma_access(0, 0, true, rma_local, RMA_MEM_LEN, 0, RMA_KEY, 0, &rma_local), 0);
	rma_expect_end(0, 0, &rma_local, FI_RMA | FI_WRITE);
	cr_expect(node_check(rma_memory[0] + RMA_GUARD, RMA_MEM_LEN, 1));
	memset(rma_local, 0, RMA_MEM_LEN);
	cr_assert_eq(rma_access(0, 0, false, rma_local, RMA_MEM_LEN, 0, RMA_KEY, 0, &rma_nodes), 0);
	rma_expect_end(0, 0, &rma_nodes, FI_RMA | FI_READ);
	cr_expect(node_check(rma_local, RMA_MEM_LEN, 1));
	rma_stop();
}

Test(core_rma, local_and_remote_buffers_may_differ)
{
	struct iovec iov[4] = { { rma_local, 5 },
				{ rma_local + 10, 0 },
				{ rma_local + 100, 300 },
				{ rma_local + 1000, 95 } };
	struct fi_rma_iov remote[4] = { { .addr = 50, .len = 200, .key = RMA_KEY },
					{ .addr = 0, .len = 10, .key = RMA_KEY },
					{ .addr = 9, .len = 0, .key = 5 },
					{ .addr = 1000, .len = 190, .key = RMA_KEY } };
	struct core_rma r = {
		.peer = 1, .iov = iov, .iov_cnt = 4, .len = 400, .rma_iov = remote, .rma_cnt = 4
	};
	uint8_t sent[400], *at = sent;

	rma_start(192, 100, 3, 0);
	node_fill(rma_local, 2000, 9);
	for (unsigned i = 0; i < 4; at += iov[i++].iov_len)
		memcpy(at, iov[i].iov_base, iov[i].iov_len);
	r.write = true;
	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	cr_expect_eq(memcmp(rma_memory[1] + RMA_GUARD + 50, sent, 200), 0);
	cr_expect_eq(memcmp(rma_memory[1] + RMA_GUARD, sent + 200, 10), 0);
	cr_expect_eq(memcmp(rma_memory[1] + RMA_GUARD + 1000, sent + 210, 190), 0);
	memset(rma_local, 0, 2000);
	r.write = false;
	cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
	rma_expect_end(0, 0, NULL, FI_RMA | FI_READ);
	at = sent;
	for (unsigned i = 0; i < 4; at += iov[i++].iov_len)
		cr_expect_eq(memcmp(at, iov[i].iov_base, iov[i].iov_len), 0);
	rma_stop();
}

Test(core_rma, an_injected_write_copies_its_buffer_and_is_silent)
{
	static const size_t lens[] = { 1, CORE_RMA_INLINE, CORE_RMA_INLINE + 1, 3000 };
	struct core_cqe e;

	rma_start(512, 1, 1, 0);
	for (unsigned i = 0; i < 4; i++) {
		struct iovec iov = { rma_local, lens[i] };
		struct fi_rma_iov remote = { .addr = 4096 * i, .len = lens[i], .key = RMA_KEY };
		struct core_rma r = { .write = true,
				      .silent = true,
				      .peer = 1,
				      .iov = &iov,
				      .iov_cnt = 1,
				      .len = lens[i],
				      .rma_iov = &remote,
				      .rma_cnt = 1,
				      .flags = FI_INJECT };

		node_fill(rma_local, lens[i], i);
		cr_assert_eq(core_rma_post(&rma_nodes[0].ep, &r), 0);
		memset(rma_local, 0, lens[i]);
	}
	nodes_settle(rma_nodes, 2);
	for (unsigned i = 0; i < 4; i++)
		cr_expect(node_check(rma_memory[1] + RMA_GUARD + 4096 * i, lens[i], i));
	cr_expect_eq(rma_ended(0, &e), 1);
	rma_stop();
}

Test(core_rma, a_fenced_access_waits_for_all_earlier_ones)
{
	rma_start(256, 1000, 1000, 0);
	cr_assert_eq(rma_put(rma_local, 8, 0, 0, NULL), 0);
	nodes_settle(rma_nodes, 2);
	rma_nodes[0].cq.head = rma_nodes[0].cq.tail;
	fake_engine_cfg.no_delivery = true;
	cr_assert_eq(rma_put(rma_local, 1000, 0, 0, NULL), 0);
	nodes_settle(rma_nodes, 2);
	unsigned before = fake_engine_queued();

	cr_assert_eq(rma_put(rma_local, 8, 2000, FI_FENCE, NULL), 0);
	nodes_settle(rma_nodes, 2);
	cr_expect_eq(fake_engine_queued(), before);
	fake_engine_cfg.no_delivery = false;
	nodes_settle(rma_nodes, 2);
	cr_expect_eq(rma_nodes[0].cq.tail - rma_nodes[0].cq.head, 2);
	rma_stop();
}

Test(core_rma, sends_and_accesses_keep_their_order)
{
	struct core_cqe e;
	uint8_t in = 0;

	rma_start(256, 2, 2, 0);
	node_fill(rma_local, 10000, 3);
	cr_assert_eq(node_recv(&rma_nodes[1], FI_ADDR_UNSPEC, &in, 1, true, 5, 0, 0, NULL), 0);
	cr_assert_eq(rma_put(rma_local, 10000, 0, 0, NULL), 0);
	cr_assert_eq(node_send(&rma_nodes[0], 1, "x", 1, true, 5, 0, NULL), 0);
	for (unsigned i = 0; i < 10000 && rma_ended(1, &e); i++) {
		core_dom_progress(&rma_nodes[1].dom);
		core_dom_progress(&rma_nodes[0].dom);
	}
	cr_expect_eq(in, 'x');
	cr_expect(node_check(rma_memory[1] + RMA_GUARD, 10000, 3));
	rma_stop();
}

Test(core_rma, a_peer_s_death_ends_each_access_once)
{
	struct core_cqe e;

	for (unsigned progress = 0; progress < 6; progress++) {
		rma_start(256, 5, 3, progress & 1 ? RMA_BULK : 0);
		for (unsigned i = 0; i < 10; i++)
			cr_assert_eq(rma_access(0, 1, i & 1, rma_local, 20000, 0, RMA_KEY, 0,
						&rma_local[i]),
				     0);
		for (unsigned i = 0; i < progress; i++) {
			core_dom_progress(&rma_nodes[0].dom);
			core_dom_progress(&rma_nodes[1].dom);
		}
		fake_engine_kill(&rma_nodes[0].ep, &rma_nodes[1].ep, -FI_ECONNRESET);
		rma_settle();
		for (unsigned i = 0; i < 10; i++)
			cr_assert_leq(rma_ended(0, &e), 0);
		cr_assert_eq(rma_ended(0, &e), 1);
		cr_assert_eq(rma_put(rma_local, 10, 0, 0, NULL), 0);
		rma_expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		rma_stop();
	}
}

/* Both ends access memory at once. Accesses of each end are in order, so a model predicts them. */
static uint8_t model[2][RMA_MEM_LEN];

struct flight {
	bool busy, write;
	uint8_t *buf;
	uint8_t *expected;
	size_t len;
};

#define FLIGHTS 8

static struct flight flights[2][FLIGHTS];

static void flight_start(unsigned from, struct flight *f, struct rng *rng)
{
	size_t len = rng_below(rng, rng_chance(rng, 1, 8) ? 12000 : 300);
	size_t addr = rng_below(rng, RMA_MEM_LEN - len + 1);

	f->write = rng_chance(rng, 1, 2);
	f->len = len;
	f->buf = malloc(len + 1);
	f->expected = malloc(len + 1);
	for (size_t i = 0; i < len; i++)
		f->buf[i] = (uint8_t)rng_next(rng);
	if (f->write)
		memcpy(model[!from] + addr, f->buf, len);
	else
		memcpy(f->expected, model[!from] + addr, len);
	f->busy = true;
	cr_assert_eq(rma_access(from, !from, f->write, f->buf, len, addr, RMA_KEY,
				rng_chance(rng, 1, 10) ? FI_FENCE : 0, f),
		     0);
}

static void flight_end(struct flight *f)
{
	cr_assert(f->busy);
	if (!f->write)
		cr_assert_eq(memcmp(f->buf, f->expected, f->len), 0);
	f->busy = false;
	free(f->buf);
	free(f->expected);
}

static void flights_land(unsigned node)
{
	struct core_cqe e;
	int ret;

	while ((ret = rma_ended(node, &e)) != 1) {
		cr_assert_eq(ret, 0);
		flight_end(e.e.op_context);
	}
}

static void property_run(uint64_t seed)
{
	struct rng rng = { .state = seed };
	unsigned steps = (unsigned)rng_env("COPYRPC_TEST_STEPS", 3000);

	rma_start(128 + rng_below(&rng, 4096), 1 + (unsigned)rng_below(&rng, 8),
		  1 + (unsigned)rng_below(&rng, 8), seed % 2 ? RMA_BULK : 0);
	rma_nodes[0].ep.rma_ordered = rma_nodes[1].ep.rma_ordered = true;
	memset(model, RMA_NOT_SENT, sizeof(model));
	for (unsigned step = 0; step < steps; step++) {
		unsigned node = (unsigned)rng_below(&rng, 2);
		struct flight *f = &flights[node][rng_below(&rng, FLIGHTS)];

		if (!f->busy)
			flight_start(node, f, &rng);
		if (rng_chance(&rng, 2, 3))
			core_dom_progress(&rma_nodes[rng_below(&rng, 2)].dom);
		flights_land(0);
		flights_land(1);
	}
	for (unsigned i = 0; i < 20; i++) {
		nodes_settle(rma_nodes, 2);
		flights_land(0);
		flights_land(1);
	}
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < FLIGHTS; k++)
			cr_assert_not(flights[i][k].busy, "seed %lu", (unsigned long)seed);
		cr_assert_eq(memcmp(rma_memory[i] + RMA_GUARD, model[i], RMA_MEM_LEN), 0);
		cr_assert(rma_untouched(i, 0, RMA_GUARD));
		cr_assert(rma_untouched(i, RMA_GUARD + RMA_MEM_LEN, sizeof(rma_memory[i])));
	}
	rma_stop();
}

Test(core_rma, random_accesses_of_both_ends_agree_with_a_model, .timeout = 200)
{
	uint64_t only = rng_env("COPYRPC_TEST_SEED", 0);

	for (uint64_t seed = only ? only : 1; seed <= (only ? only : 12); seed++)
		property_run(seed);
}
