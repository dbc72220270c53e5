/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two endpoints with a better path: see failback_pair.h. */
#include "unit/core/failback_pair.h"

#include "core/core_failback.h"
#include "unit/core/must.h"

#define LONG 20000u /* not sent in one piece */

struct node pair_nodes[2];

struct core_peer *pair_peer_at(unsigned at)
{
	return core_peer_get(&pair_nodes[at].ep, 1 - at);
}

static void connect_both(void)
{
	struct fi_cq_err_entry err;
	struct core_cqe e;
	uint8_t out[8] = { 0 }, in[8];

	for (unsigned at = 0; at < 2; at++) {
		MUST(!node_send(&pair_nodes[at], 1 - at, out, 8, true, 99, 0, NULL));
		nodes_settle(pair_nodes, 2);
		MUST(!node_recv(&pair_nodes[1 - at], FI_ADDR_UNSPEC, in, 8, true, 99, 0, 0, NULL));
		nodes_settle(pair_nodes, 2);
	}
	for (unsigned at = 0; at < 2; at++)
		while (node_poll(&pair_nodes[at], &e, &err) == 1)
			;
}

void pair_setup(void)
{
	nodes_open_plain(pair_nodes, 2);
	fake_engine_cfg.better = PAIR_BETTER;
	connect_both();
}

void pair_teardown(void)
{
	nodes_close(pair_nodes, 2);
}

void pair_make_async(void)
{
	pair_teardown();
	nodes_open_plain(pair_nodes, 2);
	fake_engine_cfg.caps |= CORE_CHAN_ASYNC;
	fake_engine_cfg.better = PAIR_BETTER;
	connect_both();
}

void pair_look(unsigned at)
{
	pair_peer_at(at)->failback.last_ns = 0;
	pair_peer_at(1 - at)->failback.rest_ns = 0;
	core_failback_look(&pair_nodes[at].ep);
}

void pair_expire(unsigned at)
{
	pair_peer_at(at)->failback.until_ns = 0;
}

void pair_mark(void)
{
	pair_peer_at(0)->chan->held_max = pair_peer_at(1)->chan->held_max = 77;
}

bool pair_is_marked(unsigned at)
{
	return pair_peer_at(at)->chan && pair_peer_at(at)->chan->held_max == 77;
}

void pair_expect_end(unsigned at, void *context)
{
	struct fi_cq_err_entry err = { .err = 0 };
	struct core_cqe e;

	cr_assert_eq(node_poll(&pair_nodes[at], &e, &err), 1, "error %d", err.err);
	cr_expect_eq(e.e.op_context, context);
}

void pair_expect_moved(void)
{
	cr_expect_not(pair_is_marked(0));
	cr_expect_not(pair_is_marked(1));
	cr_expect_not(pair_peer_at(0)->holds);
	cr_expect_not(pair_peer_at(1)->holds);
}

void pair_expect_traffic(void)
{
	static uint8_t out[LONG], in[LONG];

	for (unsigned at = 0; at < 2; at++) {
		cr_assert_eq(node_recv(&pair_nodes[1 - at], at, in, LONG, true, 5, 0, 0, in), 0);
		cr_assert_eq(node_send(&pair_nodes[at], 1 - at, out, LONG, true, 5, 0, out), 0);
		nodes_settle(pair_nodes, 2);
		pair_expect_end(at, out);
		pair_expect_end(1 - at, in);
	}
}
