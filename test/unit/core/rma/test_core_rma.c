/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory accesses against a model of the memory, whatever the transport refuses: every
 * access ends exactly once, bytes are where they belong, and what the region does not grant is
 * an error at who asked and nowhere else (fi_rma(3), fi_mr(3)).
 */
#include "core/rma/core_rma.h"

#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_mr.h"
#include "support/core_pair.h"
#include "support/rng.h"
#include "wire/wire_rma.h"

#define BOTH     (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MEM_LEN  (64u << 10)
#define KEY      77
#define GUARD    64
#define NOT_SENT 0xA5
#define BULK     (CORE_CHAN_GET | CORE_CHAN_REVOKE)

static struct node nodes[2];
/* memory[i] is node i's; the region leaves a guard on both sides. */
static uint8_t memory[2][GUARD + MEM_LEN + GUARD];
static struct core_mr regions[2];
static uint8_t local[MEM_LEN];

static void region_open(unsigned i, uint64_t access, uint64_t base)
{
	struct core_mr *mr = &regions[i];

	memset(mr, 0, sizeof(*mr));
	mr->key = KEY;
	mr->access = access;
	mr->base = base;
	mr->len = MEM_LEN;
	mr->iov_cnt = 1;
	mr->iov[0] = (struct iovec){ memory[i] + GUARD, MEM_LEN };
	cr_assert_eq(core_mr_add(&nodes[i].dom, mr, false), 0);
}

static void start(size_t eager_max, unsigned room, unsigned credit, uint32_t caps)
{
	node_limits = (struct core_limits){ .eager_max = 4096,
					    .single_copy_min = 8192,
					    .unexpected_mem = 1 << 20 };
	fake_engine_reset();
	fake_engine_cfg.eager_max = eager_max;
	fake_engine_cfg.allowance = eager_max;
	fake_engine_cfg.room = room;
	fake_engine_cfg.credit = credit;
	fake_engine_cfg.caps = caps;
	nodes_open(nodes, 2);
	for (unsigned i = 0; i < 2; i++) {
		nodes[i].ep.remote_access = BOTH;
		memset(memory[i], NOT_SENT, sizeof(memory[i]));
		region_open(i, BOTH, 0);
	}
}

static void stop(void)
{
	for (unsigned i = 0; i < 2; i++)
		core_mr_remove(&nodes[i].dom, &regions[i]);
	nodes_close(nodes, 2);
}

static int access_key(unsigned from, unsigned to, bool write, void *buf, size_t len, uint64_t addr,
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

	return (int)core_rma_post(&nodes[from].ep, &r);
}

static int put(void *buf, size_t len, uint64_t addr, uint64_t flags, void *context)
{
	return access_key(0, 1, true, buf, len, addr, KEY, flags, context);
}

static int get(void *buf, size_t len, uint64_t addr, void *context)
{
	return access_key(0, 1, false, buf, len, addr, KEY, 0, context);
}

/** The next end at a node: 0 or -FI_E*; 1 if there is none. */
static int ended(unsigned node, struct core_cqe *e)
{
	struct fi_cq_err_entry err = { 0 };

	switch (node_poll(&nodes[node], e, &err)) {
	case 0: return 1;
	case 1: return 0;
	default:
		e->e.op_context = err.op_context;
		e->e.flags = err.flags;
		return -err.err;
	}
}

/** Longer than nodes_settle: accesses may be many calls. */
static void settle(void)
{
	for (unsigned i = 0; i < 20; i++)
		nodes_settle(nodes, 2);
}

static void expect_end(unsigned node, int err, void *context, uint64_t flags)
{
	struct core_cqe e;

	settle();
	int ret = ended(node, &e);

	cr_assert_eq(ret, err, "%d instead of %d", ret, err);
	cr_expect_eq(e.e.op_context, context);
	cr_expect_eq(e.e.flags, flags);
	cr_expect_eq(ended(node, &e), 1, "one end each");
}

static bool untouched(unsigned i, size_t from, size_t to)
{
	for (size_t at = from; at < to; at++)
		if (memory[i][at] != NOT_SENT)
			return false;
	return true;
}

Test(core_rma, lengths_around_what_a_call_carries_are_written_and_read_back)
{
	static size_t lens[] = { 0,    1,    7,    8,    143,   144,   145,
				 4096, 8191, 8192, 8193, 16384, 40000, MEM_LEN };
	static const size_t eager[] = { 128, 192, 4096, 1 << 16 };

	for (unsigned e = 0; e < 8; e++) {
		start(eager[e % 4], 100, 7, e < 4 ? 0 : BULK);
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			size_t len = lens[i], addr = (MEM_LEN - len) / 2;

			memset(memory[1], NOT_SENT, sizeof(memory[1]));
			node_fill(local, len, i);
			cr_assert_eq(put(local, len, addr, 0, &lens), 0);
			expect_end(0, 0, &lens, FI_RMA | FI_WRITE);
			cr_expect(node_check(memory[1] + GUARD + addr, len, i));
			cr_expect(untouched(1, 0, GUARD + addr));
			cr_expect(untouched(1, GUARD + addr + len, sizeof(memory[1])));
			memset(local, 0, len);
			cr_assert_eq(get(local, len, addr, &start), 0);
			expect_end(0, 0, &start, FI_RMA | FI_READ);
			cr_expect(node_check(local, len, i));
		}
		stop();
	}
}

Test(core_rma, an_endpoint_reaches_its_own_memory)
{
	start(256, 100, 7, BULK);
	node_fill(local, MEM_LEN, 1);
	cr_assert_eq(access_key(0, 0, true, local, MEM_LEN, 0, KEY, 0, &local), 0);
	expect_end(0, 0, &local, FI_RMA | FI_WRITE);
	cr_expect(node_check(memory[0] + GUARD, MEM_LEN, 1));
	memset(local, 0, MEM_LEN);
	cr_assert_eq(access_key(0, 0, false, local, MEM_LEN, 0, KEY, 0, &start), 0);
	expect_end(0, 0, &start, FI_RMA | FI_READ);
	cr_expect(node_check(local, MEM_LEN, 1));
	stop();
}

Test(core_rma, pieces_on_both_sides_need_not_fit_each_other)
{
	struct iovec iov[4] = {
		{ local, 5 }, { local + 10, 0 }, { local + 100, 300 }, { local + 1000, 95 }
	};
	struct fi_rma_iov remote[4] = { { .addr = 50, .len = 200, .key = KEY },
					{ .addr = 0, .len = 10, .key = KEY },
					{ .addr = 9, .len = 0, .key = 5 },
					{ .addr = 1000, .len = 190, .key = KEY } };
	struct core_rma r = {
		.peer = 1, .iov = iov, .iov_cnt = 4, .len = 400, .rma_iov = remote, .rma_cnt = 4
	};
	uint8_t sent[400], *at = sent;

	start(192, 100, 3, 0);
	node_fill(local, 2000, 9);
	for (unsigned i = 0; i < 4; at += iov[i++].iov_len)
		memcpy(at, iov[i].iov_base, iov[i].iov_len);
	r.write = true;
	cr_assert_eq(core_rma_post(&nodes[0].ep, &r), 0);
	expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	cr_expect_eq(memcmp(memory[1] + GUARD + 50, sent, 200), 0);
	cr_expect_eq(memcmp(memory[1] + GUARD, sent + 200, 10), 0);
	cr_expect_eq(memcmp(memory[1] + GUARD + 1000, sent + 210, 190), 0);
	memset(local, 0, 2000);
	r.write = false;
	cr_assert_eq(core_rma_post(&nodes[0].ep, &r), 0);
	expect_end(0, 0, NULL, FI_RMA | FI_READ);
	at = sent;
	for (unsigned i = 0; i < 4; at += iov[i++].iov_len)
		cr_expect_eq(memcmp(at, iov[i].iov_base, iov[i].iov_len), 0);
	stop();
}

Test(core_rma, what_is_not_granted_is_an_error_at_the_initiator_and_nowhere_else)
{
	static const uint64_t rights[] = { FI_REMOTE_READ, FI_REMOTE_WRITE };
	static const uint64_t flags[] = { FI_RMA | FI_READ, FI_RMA | FI_WRITE };

	for (unsigned caps = 0; caps < 2; caps++) {
		start(256, 100, 7, caps ? BULK : 0);
		for (unsigned w = 0; w < 2; w++) {
			for (size_t len = 1; len <= 20000; len += 19999) {
				core_mr_remove(&nodes[1].dom, &regions[1]);
				region_open(1, rights[w], 0x1000);
				cr_assert_eq(access_key(0, 1, w, local, len, 0x1000, 5, 0, local),
					     0);
				expect_end(0, -FI_EKEYREJECTED, local, flags[w]);
				cr_assert_eq(access_key(0, 1, w, local, len, 0xFFF, KEY, 0, local),
					     0);
				expect_end(0, -FI_EINVAL, local, flags[w]);
				cr_assert_eq(access_key(0, 1, w, local, len, 0x1001 + MEM_LEN - len,
							KEY, 0, local),
					     0);
				expect_end(0, -FI_EINVAL, local, flags[w]);
				cr_assert_eq(
					access_key(0, 1, w, local, len, UINT64_MAX, KEY, 0, local),
					0);
				expect_end(0, -FI_EINVAL, local, flags[w]);
				core_mr_remove(&nodes[1].dom, &regions[1]);
				region_open(1, rights[!w], 0x1000);
				cr_assert_eq(access_key(0, 1, w, local, len, 0x1000, KEY, 0, local),
					     0);
				expect_end(0, -FI_EACCES, local, flags[w]);
			}
		}
		cr_expect(untouched(1, 0, GUARD));
		cr_expect(untouched(1, GUARD + MEM_LEN, sizeof(memory[1])));
		core_mr_remove(&nodes[1].dom, &regions[1]);
		region_open(1, BOTH, 0);
		cr_assert_eq(put(local, 10, 0, 0, local), 0);
		expect_end(0, 0, local, FI_RMA | FI_WRITE);
		stop();
	}
}

Test(core_rma, an_endpoint_grants_what_its_capabilities_say)
{
	start(4096, 100, 7, 0);
	nodes[1].ep.remote_access = FI_REMOTE_WRITE;
	cr_assert_eq(get(local, 10, 0, local), 0);
	expect_end(0, -FI_EACCES, local, FI_RMA | FI_READ);
	nodes[1].ep.remote_access = FI_REMOTE_READ;
	cr_assert_eq(put(local, 10, 0, 0, local), 0);
	expect_end(0, -FI_EACCES, local, FI_RMA | FI_WRITE);
	stop();
}

Test(core_rma, each_access_is_counted_once_at_both_ends_and_its_data_is_told_once)
{
	struct core_cntr cntrs[2][CORE_CNTR_RMA_CNT] = { 0 }, mr_read = { 0 }, mr_write = { 0 };
	struct core_cqe e;

	start(256, 100, 7, 0);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < CORE_CNTR_RMA_CNT; k++)
			nodes[i].ep.rma_cntr[k] = &cntrs[i][k];
	regions[1].remote_read = &mr_read;
	regions[1].remote_write = &mr_write;
	cr_assert_eq(put(local, 5000, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	cr_assert_eq(put(local, 0, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	cr_assert_eq(put(local, 5000, 0, 0, NULL), 0);
	cr_assert_eq(get(local, 9000, 0, NULL), 0);
	cr_assert_eq(access_key(0, 1, true, local, 5000, 0, 1, FI_REMOTE_CQ_DATA, NULL), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(cntrs[0][CORE_CNTR_WRITE].value, 3);
	cr_expect_eq(cntrs[0][CORE_CNTR_WRITE].errors, 1);
	cr_expect_eq(cntrs[0][CORE_CNTR_READ].value, 1);
	cr_expect_eq(cntrs[0][CORE_CNTR_REMOTE_WRITE].value, 0);
	cr_expect_eq(cntrs[1][CORE_CNTR_REMOTE_WRITE].value, 3);
	cr_expect_eq(cntrs[1][CORE_CNTR_REMOTE_READ].value, 1);
	cr_expect_eq(cntrs[1][CORE_CNTR_WRITE].value, 0);
	cr_expect_eq(mr_write.value, 2, "no bytes reach no region");
	cr_expect_eq(mr_read.value, 1);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ended(1, &e), 0);
		cr_expect_eq(e.e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		cr_expect_eq(e.e.data, 0x1234567890);
		cr_expect_eq(e.e.len, i ? 0 : 5000);
		cr_expect_eq(e.src, 0);
	}
	cr_expect_eq(ended(1, &e), 1);
	stop();
}

Test(core_rma, a_long_access_is_got_and_what_was_lent_is_given_back)
{
	struct core_cntr read = { 0 }, write = { 0 };
	struct core_cqe e;

	start(256, 1000, 1000, BULK);
	regions[1].remote_read = &read;
	regions[1].remote_write = &write;
	nodes_settle(nodes, 2);
	node_fill(local, MEM_LEN, 4);
	cr_assert_eq(put(local, MEM_LEN, 0, FI_REMOTE_CQ_DATA, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_leq(fake_engine_queued(), 1, "one call for all bytes");
		core_dom_progress(&nodes[i & 1].dom);
	}
	expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	cr_expect(node_check(memory[1] + GUARD, MEM_LEN, 4));
	cr_assert_eq(ended(1, &e), 0);
	cr_expect_eq(e.e.len, MEM_LEN);
	memset(local, 0, MEM_LEN);
	cr_assert_eq(get(local, MEM_LEN, 0, NULL), 0);
	expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect(node_check(local, MEM_LEN, 4));
	cr_expect_eq(read.value, 1);
	cr_expect_eq(write.value, 1);
	cr_expect(util_list_is_empty(&regions[1].loans));
	cr_expect_eq(regions[1].users, 0);
	stop();
}

Test(core_rma, a_loan_is_revoked_with_its_region_and_with_its_peer)
{
	for (unsigned kill = 0; kill < 2; kill++) {
		start(256, 1000, 1000, BULK);
		cr_assert_eq(put(local, 1, 0, 0, NULL), 0);
		expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		cr_assert_eq(get(local, MEM_LEN, 0, NULL), 0);
		core_dom_progress(&nodes[1].dom);
		cr_assert_not(util_list_is_empty(&regions[1].loans));
		if (kill)
			fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
		else
			core_mr_remove(&nodes[1].dom, &regions[1]);
		settle();
		cr_expect(util_list_is_empty(&regions[1].loans));
		stop();
	}
}

Test(core_rma, where_loans_cannot_be_revoked_they_are_waited_for)
{
	start(512, 1000, 1000, CORE_CHAN_GET);
	node_fill(memory[1] + GUARD, MEM_LEN, 8);
	nodes_settle(nodes, 2);
	cr_assert_eq(put(local, 1, 0, 0, NULL), 0);
	expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
	node_fill(memory[1] + GUARD, MEM_LEN, 8);
	cr_assert_eq(get(local, MEM_LEN, 0, NULL), 0);
	core_dom_progress(&nodes[1].dom);
	core_mr_remove(&nodes[1].dom, &regions[1]);
	cr_expect_eq(regions[1].users, 1);
	expect_end(0, 0, NULL, FI_RMA | FI_READ);
	cr_expect_eq(regions[1].users, 0);
	cr_expect(node_check(local, MEM_LEN, 8));
	region_open(1, BOTH, 0);
	cr_assert_eq(get(local, MEM_LEN, 0, NULL), 0);
	core_dom_progress(&nodes[1].dom);
	core_mr_remove(&nodes[1].dom, &regions[1]);
	core_rma_revoke(&regions[1], true);
	cr_expect_eq(regions[1].users, 0);
	settle();
	stop();
}

Test(core_rma, an_injected_write_leaves_its_buffer_at_once_and_is_silent)
{
	static const size_t lens[] = { 1, CORE_RMA_INLINE, CORE_RMA_INLINE + 1, 3000 };
	struct core_cqe e;

	start(512, 1, 1, 0);
	for (unsigned i = 0; i < 4; i++) {
		struct iovec iov = { local, lens[i] };
		struct fi_rma_iov remote = { .addr = 4096 * i, .len = lens[i], .key = KEY };
		struct core_rma r = { .write = true,
				      .silent = true,
				      .peer = 1,
				      .iov = &iov,
				      .iov_cnt = 1,
				      .len = lens[i],
				      .rma_iov = &remote,
				      .rma_cnt = 1,
				      .flags = FI_INJECT };

		node_fill(local, lens[i], i);
		cr_assert_eq(core_rma_post(&nodes[0].ep, &r), 0);
		memset(local, 0, lens[i]);
	}
	nodes_settle(nodes, 2);
	for (unsigned i = 0; i < 4; i++)
		cr_expect(node_check(memory[1] + GUARD + 4096 * i, lens[i], i));
	cr_expect_eq(ended(0, &e), 1);
	stop();
}

Test(core_rma, a_fenced_access_waits_for_everything_before_it)
{
	start(256, 1000, 1000, 0);
	cr_assert_eq(put(local, 8, 0, 0, NULL), 0);
	nodes_settle(nodes, 2);
	nodes[0].cq.head = nodes[0].cq.tail;
	fake_engine_cfg.hold_delivery = true;
	cr_assert_eq(put(local, 1000, 0, 0, NULL), 0);
	nodes_settle(nodes, 2);
	unsigned before = fake_engine_queued();

	cr_assert_eq(put(local, 8, 2000, FI_FENCE, NULL), 0);
	nodes_settle(nodes, 2);
	cr_expect_eq(fake_engine_queued(), before);
	fake_engine_cfg.hold_delivery = false;
	nodes_settle(nodes, 2);
	cr_expect_eq(nodes[0].cq.tail - nodes[0].cq.head, 2);
	stop();
}

Test(core_rma, sends_and_accesses_keep_their_order)
{
	struct core_cqe e;
	uint8_t in = 0;

	start(256, 2, 2, 0);
	node_fill(local, 10000, 3);
	cr_assert_eq(node_recv(&nodes[1], FI_ADDR_UNSPEC, &in, 1, true, 5, 0, 0, NULL), 0);
	cr_assert_eq(put(local, 10000, 0, 0, NULL), 0);
	cr_assert_eq(node_send(&nodes[0], 1, "x", 1, true, 5, 0, NULL), 0);
	for (unsigned i = 0; i < 10000 && ended(1, &e); i++) {
		core_dom_progress(&nodes[1].dom);
		core_dom_progress(&nodes[0].dom);
	}
	cr_expect_eq(in, 'x');
	cr_expect(node_check(memory[1] + GUARD, 10000, 3));
	stop();
}

Test(core_rma, a_peer_s_death_ends_each_access_once)
{
	struct core_cqe e;

	for (unsigned progress = 0; progress < 6; progress++) {
		start(256, 5, 3, progress & 1 ? BULK : 0);
		for (unsigned i = 0; i < 10; i++)
			cr_assert_eq(access_key(0, 1, i & 1, local, 20000, 0, KEY, 0, &local[i]),
				     0);
		for (unsigned i = 0; i < progress; i++) {
			core_dom_progress(&nodes[0].dom);
			core_dom_progress(&nodes[1].dom);
		}
		fake_engine_kill(&nodes[0].ep, &nodes[1].ep, -FI_ECONNRESET);
		settle();
		for (unsigned i = 0; i < 10; i++)
			cr_assert_leq(ended(0, &e), 0);
		cr_assert_eq(ended(0, &e), 1);
		cr_assert_eq(put(local, 10, 0, 0, NULL), 0);
		expect_end(0, 0, NULL, FI_RMA | FI_WRITE);
		stop();
	}
}

/* Both ends at once; each end's accesses are in order, so memory and bytes read are known. */
static uint8_t model[2][MEM_LEN];

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
	size_t addr = rng_below(rng, MEM_LEN - len + 1);

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
	cr_assert_eq(access_key(from, !from, f->write, f->buf, len, addr, KEY,
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

	while ((ret = ended(node, &e)) != 1) {
		cr_assert_eq(ret, 0);
		flight_end(e.e.op_context);
	}
}

static void property_run(uint64_t seed)
{
	struct rng rng = { .state = seed };
	unsigned steps = (unsigned)rng_env("COPYRPC_TEST_STEPS", 3000);

	start(128 + rng_below(&rng, 4096), 1 + (unsigned)rng_below(&rng, 8),
	      1 + (unsigned)rng_below(&rng, 8), seed % 2 ? BULK : 0);
	nodes[0].ep.rma_ordered = nodes[1].ep.rma_ordered = true;
	memset(model, NOT_SENT, sizeof(model));
	for (unsigned step = 0; step < steps; step++) {
		unsigned node = (unsigned)rng_below(&rng, 2);
		struct flight *f = &flights[node][rng_below(&rng, FLIGHTS)];

		if (!f->busy)
			flight_start(node, f, &rng);
		if (rng_chance(&rng, 2, 3))
			core_dom_progress(&nodes[rng_below(&rng, 2)].dom);
		flights_land(0);
		flights_land(1);
	}
	for (unsigned i = 0; i < 20; i++) {
		nodes_settle(nodes, 2);
		flights_land(0);
		flights_land(1);
	}
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < FLIGHTS; k++)
			cr_assert_not(flights[i][k].busy, "seed %lu", (unsigned long)seed);
		cr_assert_eq(memcmp(memory[i] + GUARD, model[i], MEM_LEN), 0);
		cr_assert(untouched(i, 0, GUARD));
		cr_assert(untouched(i, GUARD + MEM_LEN, sizeof(memory[i])));
	}
	stop();
}

Test(core_rma, random_accesses_of_both_ends_agree_with_a_model, .timeout = 200)
{
	uint64_t only = rng_env("COPYRPC_TEST_SEED", 0);

	for (uint64_t seed = only ? only : 1; seed <= (only ? only : 12); seed++)
		property_run(seed);
}

Test(core_rma, after_a_region_is_closed_nobody_touches_its_memory)
{
	struct rng rng = { .state = 5 };
	struct core_cqe e;
	unsigned open = 0;

	for (unsigned caps = 0; caps < 2; caps++) {
		start(256, 4, 3, caps ? BULK : 0);
		for (unsigned round = 0; round < 300; round++) {
			static uint8_t seen[sizeof(memory[1])];

			for (unsigned i = 0; i < 4; i++, open++)
				cr_assert_eq(access_key(0, 1, rng_chance(&rng, 1, 2), local,
							rng_below(&rng, 20000), 0, KEY, 0, NULL),
					     0);
			for (uint64_t i = rng_below(&rng, 12); i; i--)
				core_dom_progress(&nodes[rng_below(&rng, 2)].dom);
			core_mr_remove(&nodes[1].dom, &regions[1]);
			while (regions[1].users)
				nodes_settle(nodes, 2);
			memcpy(seen, memory[1], sizeof(seen));
			memset(local, (int)round, sizeof(local));
			nodes_settle(nodes, 2);
			cr_assert_eq(memcmp(seen, memory[1], sizeof(seen)), 0);
			region_open(1, BOTH, 0);
			for (int ret; (ret = ended(0, &e)) != 1; open--)
				cr_assert(ret == 0 || ret == -FI_EKEYREJECTED);
			cr_assert_eq(open, 0);
		}
		stop();
	}
}

/* What a peer says is not to be trusted: bytes go where a region is, or nowhere. */
static struct core_call_ref liar_ref;
static unsigned liar_replies;

static int liar_reply(struct core_chan *chan, struct core_call_ref ref, const void *buf, size_t len)
{
	(void)chan;
	(void)buf;
	cr_assert_eq(ref.call_id, liar_ref.call_id);
	cr_assert_leq(len, liar_ref.allowance);
	liar_replies++;
	return 0;
}

static int liar_get(struct core_chan *chan, struct core_get *get)
{
	(void)chan;
	for (size_t i = 0; i < get->iov_cnt; i++)
		memset(get->iov[i].iov_base, 0x77, get->iov[i].iov_len);
	get->status = 0;
	return 1;
}

static int liar_lend(struct core_chan *chan, const void *addr, size_t len, struct core_loan *loan)
{
	(void)chan;
	cr_assert_geq((uintptr_t)addr, (uintptr_t)memory[1] + GUARD);
	cr_assert_leq((uintptr_t)addr + len, (uintptr_t)memory[1] + GUARD + MEM_LEN);
	loan->key = 0;
	return 0;
}

static void liar_unlend(struct core_chan *chan, struct core_loan *loan)
{
	(void)chan;
	(void)loan;
}

static int liar_reply_iov(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
			  size_t iov_cnt, size_t len, unsigned flags)
{
	size_t sum = 0;

	(void)flags;
	for (size_t i = 0; i < iov_cnt; i++)
		sum += iov[i].iov_len;
	cr_assert_eq(sum, len);
	return liar_reply(chan, ref, iov, len);
}

static const struct core_chan_ops liar_ops = { .reply_iov = liar_reply_iov,
					       .reply = liar_reply,
					       .get = liar_get,
					       .lend = liar_lend,
					       .unlend = liar_unlend };

static uint32_t liar_frame(uint8_t *bytes, struct rng *rng)
{
	static const uint64_t odd[] = { 0, 1, 40, MEM_LEN, 1ull << 32, 1ull << 63, UINT64_MAX };
	uint32_t op = WIRE_OP_WRITE + (uint32_t)rng_below(rng, 4), at = sizeof(op);
	uint64_t word[7], body = rng_below(rng, 65);

	for (unsigned i = 0; i < 7; i++)
		word[i] = rng_chance(rng, 1, 2) ? odd[rng_below(rng, 7)] : rng_below(rng, 100);
	if (rng_chance(rng, 1, 2))
		word[1] = KEY;
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

Test(core_rma, malformed_calls_reach_no_other_memory, .timeout = 200)
{
	static uint8_t bytes[512];
	struct rng rng = { .state = 99 };
	struct core_chan liar = { .ops = &liar_ops, .caps = BULK, .eager_max = 4096 };
	unsigned legal = 0, calls = 0;
	struct core_cqe e;

	start(512, 1000, 1000, 0);
	liar.peer = core_peer_get(&nodes[1].ep, 0);
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
		verdict = core_rx_on_call(&liar, liar_ref, bytes, len, 0);
		calls++;
		legal += verdict != CORE_RX_BAD;
		cr_assert_eq(liar_replies, verdict != CORE_RX_BAD, "each call is answered once");
		while (ended(1, &e) != 1)
			;
	}
	cr_expect_gt(legal, calls / 20, "the test reaches what is behind the format");
	cr_expect(untouched(1, 0, GUARD));
	cr_expect(untouched(1, GUARD + MEM_LEN, sizeof(memory[1])));
	stop();
}
