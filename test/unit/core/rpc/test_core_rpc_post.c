/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hot path equals the cold path: two worlds of two endpoints take the same random steps, one
 * with core_rpc_call_buf and core_rpc_reply_buf, the other with core_rpc_call and core_rpc_reply.
 * Results, completions and bytes are compared. COPYRPC_TEST_SEED sets the seed.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rpc/core_rpc_post.h"
#include "support/core_pair.h"
#include "support/pool_used.h"
#include "unit/core/must.h"

#define NODES   2
#define LEN     128
#define SLOTS   64 /* buffers and contexts */
#define HANDLES 32
#define STEPS   20000
#define CALL    (1ull << 60)

enum world { HOT, COLD, WORLDS };

static struct node nodes[WORLDS][NODES];
static uint8_t resp[WORLDS][NODES][SLOTS][LEN];
static uint8_t bytes[LEN + 1];
static struct core_rpc_handle *handle[WORLDS][NODES][HANDLES];
static uint64_t seqs[WORLDS][NODES][HANDLES];
static unsigned handle_cnt[NODES];
static unsigned seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

static size_t random_len(void)
{
	static const size_t lens[] = { 0, 1, 8, 20, 31, 32, 33, 63, 64, 65, 100, LEN };

	return lens[rnd(sizeof(lens) / sizeof(lens[0]))];
}

static ssize_t call_in(enum world world, unsigned node, fi_addr_t to, unsigned slot, size_t len,
		       size_t resp_max, uint64_t comp_flags, unsigned flags)
{
	void *dest = comp_flags & CORE_RPC_RETAIN ? NULL : resp[world][node][slot];
	void *context = (void *)(uintptr_t)(slot + 1);
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct core_rpc_request request = { .iov = &iov,
					    .iov_cnt = 1,
					    .len = len,
					    .resp = dest,
					    .resp_max = resp_max,
					    .context = context,
					    .comp_flags = comp_flags,
					    .flags = flags };

	if (world == COLD)
		return core_rpc_call(&nodes[world][node].ep, to, &request);
	return core_rpc_call_buf(&nodes[world][node].ep, bytes, len, dest, resp_max, to, context,
				 comp_flags, flags);
}

static void step_call(void)
{
	unsigned node = rnd(NODES), slot = rnd(SLOTS), flags = rnd(2) ? CORE_RPC_MORE : 0;
	uint64_t comp_flags = CALL | (rnd(6) ? 0 : CORE_RPC_RETAIN);
	size_t len = rnd(30) ? random_len() : 2000, resp_max = rnd(30) ? random_len() : 1u << 30;
	fi_addr_t to = rnd(20) ? 1 - node : rnd(2) ? node : 77;
	ssize_t ret[WORLDS];

	if (resp_max > LEN && to == node)
		return; /* a call to the endpoint itself has no limit */
	len = len > LEN ? LEN : len;
	for (unsigned i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)rnd(256);
	for (int world = 0; world < WORLDS; world++)
		ret[world] = call_in(world, node, to, slot, len, resp_max, comp_flags, flags);
	MUST(ret[HOT] == ret[COLD]);
}

static void step_take(void)
{
	unsigned node = rnd(NODES), at = handle_cnt[node];
	struct core_rpc_handle *got[WORLDS];

	if (at == HANDLES)
		return;
	for (int world = 0; world < WORLDS; world++)
		got[world] = node_take(&nodes[world][node]);
	MUST(!got[HOT] == !got[COLD]);
	if (!got[HOT])
		return;
	MUST(got[HOT]->len == got[COLD]->len && got[HOT]->resp_max == got[COLD]->resp_max);
	MUST(!memcmp(got[HOT]->data, got[COLD]->data, got[HOT]->len));
	for (int world = 0; world < WORLDS; world++) {
		handle[world][node][at] = got[world];
		seqs[world][node][at] = got[world]->seq;
	}
	handle_cnt[node]++;
}

static ssize_t reply_in(enum world world, unsigned node, unsigned at, size_t len, unsigned flags)
{
	struct core_rpc_handle *h = handle[world][node][at];
	struct core_ep *ep = &nodes[world][node].ep;
	struct iovec iov = { .iov_base = bytes, .iov_len = len };

	if (world == COLD)
		return core_rpc_reply(ep, h, seqs[world][node][at], &iov, 1, len, flags);
	return core_rpc_reply_buf(ep, h, seqs[world][node][at], bytes, len, flags);
}

static void step_reply(void)
{
	unsigned node = rnd(NODES), at, last, flags = rnd(2) ? CORE_RPC_MORE : 0;
	bool releases = !rnd(5);
	ssize_t ret[WORLDS];
	size_t len;

	if (!handle_cnt[node])
		return;
	at = rnd(handle_cnt[node]);
	last = --handle_cnt[node];
	len = handle[COLD][node][at]->resp_max < LEN ? handle[COLD][node][at]->resp_max : LEN;
	if (len && rnd(2))
		len = rnd((unsigned)len);
	for (int world = 0; world < WORLDS; world++) {
		if (releases)
			MUST(!core_rpc_release(&nodes[world][node].ep, handle[world][node][at],
					       seqs[world][node][at]));
		if (handle[world][node][at]->resp_max < LEN)
			MUST(reply_in(world, node, at, handle[world][node][at]->resp_max + 1,
				      flags) == -FI_EMSGSIZE);
		ret[world] = reply_in(world, node, at, len, flags);
		MUST(reply_in(world, node, at, len, flags) == -FI_EINVAL);
	}
	MUST(ret[HOT] == ret[COLD]);
	for (int world = 0; world < WORLDS; world++) {
		handle[world][node][at] = handle[world][node][last];
		seqs[world][node][at] = seqs[world][node][last];
	}
}

/* Compares the completions of both worlds. */
static void compare_node(unsigned node)
{
	struct fi_cq_err_entry bad[WORLDS];
	struct core_cqe e[WORLDS];
	int ret[WORLDS];

	do {
		for (int world = 0; world < WORLDS; world++)
			ret[world] = node_poll(&nodes[world][node], &e[world], &bad[world]);
		MUST(ret[HOT] == ret[COLD]);
		if (ret[HOT] == -FI_EAVAIL)
			MUST(bad[HOT].op_context == bad[COLD].op_context &&
			     bad[HOT].err == bad[COLD].err);
		if (ret[HOT] != 1)
			continue;
		MUST(e[HOT].e.op_context == e[COLD].e.op_context);
		MUST(e[HOT].e.flags == e[COLD].e.flags && e[HOT].e.len == e[COLD].e.len);
		MUST(e[HOT].src == e[COLD].src);
		if (e[HOT].e.flags & CORE_RPC_RETAIN)
			for (int world = 0; world < WORLDS; world++)
				MUST(!core_rpc_release_resp(&nodes[world][node].ep,
							    e[world].e.data));
	} while (ret[HOT]);
	MUST(!memcmp(resp[HOT][node], resp[COLD][node], sizeof(resp[HOT][node])));
	MUST(nodes[HOT][node].cq.intake_cnt == nodes[COLD][node].cq.intake_cnt);
	MUST(pool_used(&nodes[HOT][node].ep.rpc.calls) ==
	     pool_used(&nodes[COLD][node].ep.rpc.calls));
}

static void step_settle(void)
{
	for (int world = 0; world < WORLDS; world++)
		nodes_settle(nodes[world], NODES);
	for (unsigned node = 0; node < NODES; node++)
		compare_node(node);
}

Test(core_rpc_post, the_hot_path_equals_the_cold_path, .timeout = 300)
{
	const char *given = getenv("COPYRPC_TEST_SEED");

	seed = given ? (unsigned)strtoul(given, NULL, 0) : 20261122u;
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 100,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	for (int world = 0; world < WORLDS; world++) {
		nodes_open(nodes[world], NODES);
		core_rpc_listen(&nodes[world][0].ep);
	}
	for (unsigned i = 0; i < STEPS; i++) {
		switch (rnd(8)) {
		case 0:
		case 1:
		case 2: step_call(); break;
		case 3:
		case 4: step_take(); break;
		case 5:
		case 6: step_reply(); break;
		default: step_settle();
		}
	}
	step_settle();
	for (int world = 0; world < WORLDS; world++)
		nodes_close(nodes[world], NODES);
}

Test(core_rpc_post, a_call_that_the_channel_refuses_leaves_nothing_behind)
{
	struct core_ep *ep = &nodes[HOT][0].ep;

	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 100,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes[HOT], NODES);
	cr_assert_eq(call_in(HOT, 0, 1, 0, 1, 1, CALL, 0), 0);
	nodes_settle(nodes[HOT], NODES);
	fake_engine_cfg.credit = 1;
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(call_in(HOT, 0, 1, 1, 1, 1, CALL, 0), -FI_EAGAIN);
	cr_assert_eq(pool_used(&ep->rpc.calls), 1);
	cr_assert_eq(ep->tx_open, 0);
	fake_engine_cfg.credit = 2;
	cr_assert_eq(call_in(HOT, 0, 1, 1, 1, 1, CALL, 0), 0);
	nodes_close(nodes[HOT], NODES);
}
