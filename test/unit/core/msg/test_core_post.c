/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hot and cold paths of core_post.h have the same results. Two worlds of two endpoints run the same
 * random steps: one with core_tx_send_buf and core_rx_post_buf, the other with core_send and
 * core_recv. Results, completions, counters and bytes are compared after each step. The seed can be
 * set in COPYRPC_TEST_SEED.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/msg/core_post.h"
#include "support/core_pair.h"
#include "unit/core/must.h"

#define NODES 2
#define LEN   128
#define SLOTS 64 /* buffers used in turn */
#define STEPS 20000

enum world { SHORT, LONG, WORLDS };

static struct node nodes[WORLDS][NODES];
static uint8_t rx_bufs[WORLDS][NODES][SLOTS][LEN];
static uint8_t tx_bufs[SLOTS][LEN];
static unsigned seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % n;
}

/** Arguments of one step in both worlds. */
struct step {
	unsigned node, slot;
	size_t len;
	uint64_t tag, ignore, data, flags;
	fi_addr_t addr;
	bool tagged;
	enum core_post_end end;
};

static ssize_t send_in(enum world world, const struct step *s)
{
	struct core_ep *ep = &nodes[world][s->node].ep;
	void *context = (void *)(uintptr_t)(s->slot + 1);
	struct iovec iov = { .iov_base = tx_bufs[s->slot], .iov_len = s->len };
	struct core_send send = { .dest = s->addr,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .len = s->len,
				  .tag = s->tag,
				  .data = s->data,
				  .context = context,
				  .flags = s->flags | (s->end ? FI_INJECT : 0),
				  .tagged = s->tagged,
				  .silent = s->end != CORE_POST_COMPLETES };

	if (world == LONG)
		return core_tx_send(ep, &send);
	return core_tx_send_buf(ep, tx_bufs[s->slot], s->len, s->addr, s->tag, s->data, context,
				s->flags, s->tagged, s->end);
}

static ssize_t recv_in(enum world world, const struct step *s)
{
	struct core_ep *ep = &nodes[world][s->node].ep;
	void *context = (void *)(uintptr_t)(s->slot + 1);
	uint8_t *buf = rx_bufs[world][s->node][s->slot];
	struct iovec iov = { .iov_base = buf, .iov_len = s->len };
	struct core_recv recv = { .src = s->addr,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .tag = s->tag,
				  .ignore = s->ignore,
				  .context = context,
				  .flags = s->flags,
				  .tagged = s->tagged };

	if (world == LONG)
		return core_rx_post(ep, &recv);
	return core_rx_post_buf(ep, buf, s->len, s->addr, s->tag, s->ignore, context, s->flags,
				s->tagged);
}

static struct step random_step(void)
{
	static const size_t lens[] = { 0, 1, 8, 20, 31, 32, 33, 63, 64, 65, 100, LEN };
	static const uint64_t ignores[] = { 0, 0, 0, 3, UINT64_MAX };
	struct step s = {
		.node = rnd(NODES),
		.slot = rnd(SLOTS),
		.len = lens[rnd(sizeof(lens) / sizeof(lens[0]))],
		.tag = rnd(4),
		.ignore = ignores[rnd(5)],
		.data = rnd(2) ? rnd(1000) : UINT64_MAX - rnd(1000),
		.tagged = rnd(4),
	};

	s.addr = 1 - s.node;
	return s;
}

static void step_send(void)
{
	struct step s = random_step();
	ssize_t ret[WORLDS];

	s.end = rnd(4) ? CORE_POST_COMPLETES : rnd(2) ? CORE_POST_DEFERS : CORE_POST_LEAVES;
	s.flags = (rnd(2) ? FI_COMPLETION : 0) | (rnd(2) ? FI_REMOTE_CQ_DATA : 0) |
		  (rnd(8) ? 0 : FI_DELIVERY_COMPLETE) | (rnd(8) ? 0 : FI_MORE) |
		  (rnd(8) ? 0 : FI_INJECT) | (rnd(16) ? 0 : FI_MATCH_COMPLETE);
	if (!rnd(50))
		s.addr = rnd(2) ? s.node : 77; /* itself, or an unknown address */
	for (int world = 0; world < WORLDS; world++)
		ret[world] = send_in(world, &s);
	MUST(ret[SHORT] == ret[LONG]);
}

static void step_recv(void)
{
	struct step s = random_step();
	ssize_t ret[WORLDS];

	s.flags = rnd(2) ? FI_COMPLETION : 0;
	if (rnd(2))
		s.addr = FI_ADDR_UNSPEC;
	else if (!rnd(50))
		s.addr = 77;
	for (int world = 0; world < WORLDS; world++)
		ret[world] = recv_in(world, &s);
	MUST(ret[SHORT] == ret[LONG]);
}

static void compare_completions(unsigned node)
{
	struct fi_cq_err_entry err[WORLDS];
	struct core_cqe e[WORLDS];
	int ret;

	do {
		memset(err, 0, sizeof(err));
		ret = node_poll(&nodes[SHORT][node], &e[SHORT], &err[SHORT]);
		MUST(ret == node_poll(&nodes[LONG][node], &e[LONG], &err[LONG]));
		if (ret == 1) {
			MUST(e[SHORT].e.op_context == e[LONG].e.op_context);
			MUST(e[SHORT].e.flags == e[LONG].e.flags);
			MUST(e[SHORT].e.len == e[LONG].e.len);
			MUST(e[SHORT].e.data == e[LONG].e.data);
			MUST(e[SHORT].e.tag == e[LONG].e.tag);
			MUST(e[SHORT].src == e[LONG].src);
		} else if (ret == -FI_EAVAIL) {
			MUST(err[SHORT].err == err[LONG].err && err[SHORT].olen == err[LONG].olen &&
			     err[SHORT].op_context == err[LONG].op_context);
		}
	} while (ret);
}

static void compare_worlds(void)
{
	for (unsigned n = 0; n < NODES; n++) {
		const struct node *a = &nodes[SHORT][n], *b = &nodes[LONG][n];

		compare_completions(n);
		MUST(a->tx_cntr.value == b->tx_cntr.value && a->rx_cntr.value == b->rx_cntr.value);
		MUST(a->rx_cntr.errors == b->rx_cntr.errors);
	}
	MUST(!memcmp(rx_bufs[SHORT], rx_bufs[LONG], sizeof(rx_bufs[SHORT])));
}

/** Properties of an endpoint that select branches of the hot paths. */
struct kind {
	bool selective, counters, cqs, directed;
};

static void run(struct kind kind)
{
	const char *s = getenv("COPYRPC_TEST_SEED");

	seed = s ? (unsigned)atoi(s) : 7;
	fake_engine_reset();
	fake_engine_cfg.room = 6;
	node_limits = (struct core_limits){ .eager_max = 100,
					    .single_copy_min = SIZE_MAX,
					    .unexpected_mem = 1 << 20 };
	memset(rx_bufs, 0, sizeof(rx_bufs));
	for (unsigned i = 0; i < SLOTS; i++)
		node_fill(tx_bufs[i], LEN, i);
	for (int world = 0; world < WORLDS; world++) {
		nodes_open(nodes[world], NODES);
		for (unsigned n = 0; n < NODES; n++) {
			struct core_ep *ep = &nodes[world][n].ep;

			ep->tx.selective = ep->rx.selective = kind.selective;
			ep->directed = kind.directed;
			if (!kind.counters)
				ep->tx.cntr = ep->rx.cntr = NULL;
			if (!kind.cqs)
				ep->tx.cq = ep->rx.cq = NULL;
			core_comp_update(&ep->tx);
			core_comp_update(&ep->rx);
		}
	}
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned what = rnd(5);

		if (what < 2)
			step_send();
		else if (what < 4)
			step_recv();
		else
			for (int world = 0; world < WORLDS; world++)
				nodes_settle(nodes[world], NODES);
		if (what == 4)
			compare_worlds();
	}
	for (int world = 0; world < WORLDS; world++)
		nodes_close(nodes[world], NODES);
}

Test(core_post, hot_and_cold_paths_agree_on_a_plain_endpoint)
{
	run((struct kind){ .cqs = true });
}

Test(core_post, hot_and_cold_paths_agree_with_counters)
{
	run((struct kind){ .cqs = true, .counters = true });
}

Test(core_post, hot_and_cold_paths_agree_with_selective_completion)
{
	run((struct kind){ .cqs = true, .selective = true, .directed = true });
}

Test(core_post, hot_and_cold_paths_agree_without_queues)
{
	run((struct kind){ .counters = true, .directed = true });
}
