/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Failback while both ends send at random: every message arrives once and in order. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "core/core_failback.h"
#include "support/rng.h"
#include "unit/core/failback_pair.h"
#include "unit/core/must.h"

#define SENDS 400u /* of each end */

TestSuite(core_failback_traffic, .init = pair_setup, .fini = pair_teardown, .timeout = 200);

static struct core_cqe e;
static struct fi_cq_err_entry err;
static uint8_t sent[2][SENDS][3000], got[2][SENDS][3000];
static unsigned send_cnt[2], recv_cnt[2], sends_ended[2], recvs_ended[2];
static size_t lens[2][SENDS];

static void post(struct rng *rng, unsigned at)
{
	unsigned i = send_cnt[at];

	if (recv_cnt[at] < SENDS && recv_cnt[at] < recvs_ended[at] + 20 && rng_chance(rng, 1, 2)) {
		MUST(!node_recv(&pair_nodes[at], 1 - at, got[at][recv_cnt[at]], sizeof(got[0][0]),
				true, 7, 0, 0, got[at][recv_cnt[at]]));
		recv_cnt[at]++;
	}
	if (i == SENDS || !rng_chance(rng, 1, 2))
		return;
	lens[at][i] = 1 + rng_below(rng, rng_chance(rng, 1, 4) ? sizeof(sent[0][0]) : 50);
	node_fill(sent[at][i], lens[at][i], at * SENDS + i);
	if (!node_send(&pair_nodes[at], 1 - at, sent[at][i], lens[at][i], true, 7,
		       rng_chance(rng, 1, 8) ? FI_DELIVERY_COMPLETE : 0, sent[at][i]))
		send_cnt[at]++;
}

/** Returns whether the context of a completion is that of a send. */
static bool is_sent(unsigned at, const uint8_t *context)
{
	return (uintptr_t)context - (uintptr_t)sent[at] < sizeof(sent[at]);
}

/** Checks that the receive which was posted as number i has message i. */
static void check_received(unsigned at, const uint8_t *buf, size_t len)
{
	size_t i = (size_t)(buf - got[at][0]) / sizeof(got[0][0]);

	MUST(i < recv_cnt[at] && len == lens[1 - at][i]);
	MUST(node_check(buf, len, (uint32_t)((1 - at) * SENDS + i)));
	recvs_ended[at]++;
}

static void poll_all(unsigned at)
{
	const uint8_t *context;
	int ret;

	while ((ret = node_poll(&pair_nodes[at], &e, &err))) {
		MUST(ret == 1);
		context = e.e.op_context;
		if (is_sent(at, context))
			sends_ended[at]++;
		else
			check_received(at, context, e.e.len);
	}
}

static unsigned random_traffic(uint64_t seed)
{
	struct rng rng = { .state = seed };
	unsigned moved = 0, at;

	memset(send_cnt, 0, sizeof(send_cnt));
	memset(recv_cnt, 0, sizeof(recv_cnt));
	memset(sends_ended, 0, sizeof(sends_ended));
	memset(recvs_ended, 0, sizeof(recvs_ended));
	fake_engine_cfg.room = 1 + (unsigned)rng_below(&rng, 10);
	fake_engine_cfg.credit = 1 + (unsigned)rng_below(&rng, 4);
	fake_engine_cfg.lazy_up = (unsigned)rng_below(&rng, 5);
	for (unsigned round = 0; round < 100000 && recvs_ended[0] + recvs_ended[1] < 2 * SENDS;
	     round++) {
		at = (unsigned)rng_below(&rng, 2);
		post(&rng, at);
		if (rng_chance(&rng, 1, 50))
			pair_look(at);
		if (rng_chance(&rng, 1, 200))
			pair_expire(at);
		core_dom_progress(&pair_nodes[at].dom);
		poll_all(at);
		if (pair_peer_at(0)->chan && pair_peer_at(1)->chan && !pair_is_marked(0) &&
		    !pair_is_marked(1)) {
			pair_mark();
			moved++;
		}
	}
	nodes_settle(pair_nodes, 2);
	poll_all(0);
	poll_all(1);
	MUST(recvs_ended[0] == SENDS && recvs_ended[1] == SENDS);
	MUST(sends_ended[0] == SENDS && sends_ended[1] == SENDS);
	return moved;
}

Test(core_failback_traffic, random_traffic_arrives_once_and_in_order)
{
	unsigned moved = 0;

	for (uint64_t seed = 1; seed <= 40; seed++)
		moved += random_traffic(seed);
	cr_expect_gt(moved, 200, "%u", moved);
}

Test(core_failback_traffic, random_traffic_with_acknowledgements_arrives_too,
     .init = pair_make_async)
{
	unsigned moved = 0;

	for (uint64_t seed = 101; seed <= 140; seed++)
		moved += random_traffic(seed);
	cr_expect_gt(moved, 200, "%u", moved);
}
