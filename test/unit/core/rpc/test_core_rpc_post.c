/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way is the long way: two worlds of two endpoints go through the same random steps, one with
 * core_rpc_call_buf and core_rpc_reply_buf, the other with core_rpc_call and core_rpc_reply. Results,
 * completions and bytes are compared after each step. The seed can be given in COPYRPC_TEST_SEED.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rpc/core_rpc_post.h"
#include "support/core_pair.h"
#include "unit/core/must.h"

#define NODES 2
#define LEN   128
#define SLOTS 64 /* buffers and contexts in turn */
#define HELD  32
#define STEPS 20000
#define CALL  (1ull << 60)

enum world { SHORT, LONG, WORLDS };

static struct node nodes[WORLDS][NODES];
static uint8_t resp[WORLDS][NODES][SLOTS][LEN];
static uint8_t bytes[LEN + 1];
static struct core_rpc_handle *handle[WORLDS][NODES][HELD];
static uint64_t seqs[WORLDS][NODES][HELD];
static unsigned held_cnt[NODES];
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
	void *answer = comp_flags & CORE_RPC_RETAIN ? NULL : resp[world][node][slot];
	void *context = (void *)(uintptr_t)(slot + 1);
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct core_rpc_request ask = { .iov = &iov,
					.iov_cnt = 1,
					.len = len,
					.resp = answer,
					.resp_max = resp_max,
					.context = context,
					.comp_flags = comp_flags,
					.flags = flags };

	if (world == LONG)
		return core_rpc_call(&nodes[world][node].ep, to, &ask);
	return core_rpc_call_buf(&nodes[world][node].ep, bytes, len, answer, resp_max, to, context,
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
		return; /* our own endpoint has no limit */
	len = len > LEN ? LEN : len;
	for (unsigned i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)rnd(256);
	for (int world = 0; world < WORLDS; world++)
		ret[world] = call_in(world, node, to, slot, len, resp_max, comp_flags, flags);
	MUST(ret[SHORT] == ret[LONG]);
}

static void step_take(void)
{
	unsigned node = rnd(NODES), at = held_cnt[node];
	struct core_rpc_handle *got[WORLDS];

	if (at == HELD)
		return;
	for (int world = 0; world < WORLDS; world++)
		got[world] = node_take(&nodes[world][node]);
	MUST(!got[SHORT] == !got[LONG]);
	if (!got[SHORT])
		return;
	MUST(got[SHORT]->len == got[LONG]->len && got[SHORT]->resp_max == got[LONG]->resp_max);
	MUST(!memcmp(got[SHORT]->data, got[LONG]->data, got[SHORT]->len));
	for (int world = 0; world < WORLDS; world++) {
		handle[world][node][at] = got[world];
		seqs[world][node][at] = got[world]->seq;
	}
	held_cnt[node]++;
}

static ssize_t answer_in(enum world world, unsigned node, unsigned at, size_t len, unsigned flags)
{
	struct core_rpc_handle *h = handle[world][node][at];
	struct core_ep *ep = &nodes[world][node].ep;
	struct iovec iov = { .iov_base = bytes, .iov_len = len };

	if (world == LONG)
		return core_rpc_reply(ep, h, seqs[world][node][at], &iov, 1, len, flags);
	return core_rpc_reply_buf(ep, h, seqs[world][node][at], bytes, len, flags);
}

static void step_answer(void)
{
	unsigned node = rnd(NODES), at, last, flags = rnd(2) ? CORE_RPC_MORE : 0;
	bool releases = !rnd(5);
	ssize_t ret[WORLDS];
	size_t len;

	if (!held_cnt[node])
		return;
	at = rnd(held_cnt[node]);
	last = --held_cnt[node];
	len = handle[LONG][node][at]->resp_max < LEN ? handle[LONG][node][at]->resp_max : LEN;
	if (len && rnd(2))
		len = rnd((unsigned)len);
	for (int world = 0; world < WORLDS; world++) {
		if (releases)
			MUST(!core_rpc_release(&nodes[world][node].ep, handle[world][node][at],
					       seqs[world][node][at]));
		if (handle[world][node][at]->resp_max < LEN)
			MUST(answer_in(world, node, at, handle[world][node][at]->resp_max + 1,
				       flags) == -FI_EMSGSIZE);
		ret[world] = answer_in(world, node, at, len, flags);
		MUST(answer_in(world, node, at, len, flags) == -FI_EINVAL);
	}
	MUST(ret[SHORT] == ret[LONG]);
	for (int world = 0; world < WORLDS; world++) {
		handle[world][node][at] = handle[world][node][last];
		seqs[world][node][at] = seqs[world][node][last];
	}
}

/* The same completions, in the same order. */
static void compare_node(unsigned node)
{
	struct fi_cq_err_entry bad[WORLDS];
	struct core_cqe e[WORLDS];
	int ret[WORLDS];

	do {
		for (int world = 0; world < WORLDS; world++)
			ret[world] = node_poll(&nodes[world][node], &e[world], &bad[world]);
		MUST(ret[SHORT] == ret[LONG]);
		if (ret[SHORT] == -FI_EAVAIL)
			MUST(bad[SHORT].op_context == bad[LONG].op_context &&
			     bad[SHORT].err == bad[LONG].err);
		if (ret[SHORT] != 1)
			continue;
		MUST(e[SHORT].e.op_context == e[LONG].e.op_context);
		MUST(e[SHORT].e.flags == e[LONG].e.flags && e[SHORT].e.len == e[LONG].e.len);
		MUST(e[SHORT].src == e[LONG].src);
		if (e[SHORT].e.flags & CORE_RPC_RETAIN)
			for (int world = 0; world < WORLDS; world++)
				MUST(!core_rpc_release_resp(&nodes[world][node].ep,
							    e[world].e.data));
	} while (ret[SHORT]);
	MUST(!memcmp(resp[SHORT][node], resp[LONG][node], sizeof(resp[SHORT][node])));
	MUST(nodes[SHORT][node].cq.intake_cnt == nodes[LONG][node].cq.intake_cnt);
	MUST(nodes[SHORT][node].ep.rpc.calls.used_cnt == nodes[LONG][node].ep.rpc.calls.used_cnt);
}

static void step_settle(void)
{
	for (int world = 0; world < WORLDS; world++)
		nodes_settle(nodes[world], NODES);
	for (unsigned node = 0; node < NODES; node++)
		compare_node(node);
}

Test(core_rpc_post, the_short_way_is_the_long_way, .timeout = 300)
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
		case 6: step_answer(); break;
		default: step_settle();
		}
	}
	step_settle();
	for (int world = 0; world < WORLDS; world++)
		nodes_close(nodes[world], NODES);
}

Test(core_rpc_post, what_the_channel_refuses_leaves_nothing_behind)
{
	struct core_ep *ep = &nodes[SHORT][0].ep;

	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 100,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes[SHORT], NODES);
	cr_assert_eq(call_in(SHORT, 0, 1, 0, 1, 1, CALL, 0), 0);
	nodes_settle(nodes[SHORT], NODES);
	fake_engine_cfg.credit = 1;
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(call_in(SHORT, 0, 1, 1, 1, 1, CALL, 0), -FI_EAGAIN);
	cr_assert_eq(ep->rpc.calls.used_cnt, 1);
	cr_assert_eq(ep->tx_open, 0);
	fake_engine_cfg.credit = 2;
	cr_assert_eq(call_in(SHORT, 0, 1, 1, 1, 1, CALL, 0), 0);
	nodes_close(nodes[SHORT], NODES);
}
