/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address and limits that a peer takes from its channel, here without function. (core_peer.c) */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include "support/core_pair.h"

static struct node nodes[1];

static void setup(void)
{
	nodes_open_plain(nodes, 1);
}

static void teardown(void)
{
	nodes_close(nodes, 1);
}

TestSuite(core_peer_chan, .init = setup, .fini = teardown);

static unsigned closes;

static bool never_busy(struct core_chan *chan)
{
	return false;
}

static void stop_nothing(struct core_chan *chan)
{
}

static void count_close(struct core_chan *chan)
{
	closes++;
}

static const struct core_chan_ops idle_ops = { .is_busy = never_busy,
					       .stop = stop_nothing,
					       .close = count_close };

#define SAME_IN 0x0100007f

/*
 * Each differs from the first one, or the one before, in one thing. The bytes of the last one
 * differ in the family only.
 */
static const union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} unnamed[] = {
	{ .in = { .sin_family = AF_INET, .sin_port = 5, .sin_addr.s_addr = SAME_IN } },
	{ .in = { .sin_family = AF_INET, .sin_port = 6, .sin_addr.s_addr = SAME_IN } },
	{ .in = { .sin_family = AF_INET, .sin_port = 5, .sin_addr.s_addr = SAME_IN + 1 } },
	{ .in6 = { .sin6_family = AF_INET6, .sin6_port = 5, .sin6_addr.s6_addr = { 1 } } },
	{ .in6 = { .sin6_family = AF_INET6, .sin6_port = 6, .sin6_addr.s6_addr = { 1 } } },
	{ .in6 = { .sin6_family = AF_INET6,
		   .sin6_port = 5,
		   .sin6_addr.s6_addr = { 1, [15] = 1 } } },
	{ .in6 = { .sin6_family = AF_INET6,
		   .sin6_port = 5,
		   .sin6_addr.s6_addr = { 0xFE, 0x80, [15] = 1 } } },
	{ .in6 = { .sin6_family = AF_INET6,
		   .sin6_port = 5,
		   .sin6_addr.s6_addr = { 0xFE, 0x80, [15] = 1 },
		   .sin6_scope_id = 1 } },
	{ .in6 = { .sin6_family = AF_INET6, .sin6_port = 5, .sin6_flowinfo = SAME_IN } },
};

#define UNNAMED_CNT (sizeof(unnamed) / sizeof(unnamed[0]))

Test(core_peer_chan, addresses_that_differ_in_one_thing_are_different_peers)
{
	static struct core_chan first[UNNAMED_CNT], again[UNNAMED_CNT];

	for (size_t i = 0; i < UNNAMED_CNT; i++) {
		first[i] = (struct core_chan){ .ops = &idle_ops, .eager_max = 100 };
		core_peer_on_up(&nodes[0].ep, &first[i], &unnamed[i].sa, 1);
		for (size_t j = 0; j < i; j++)
			cr_expect_neq(first[j].peer, first[i].peer, "%zu and %zu", j, i);
	}
	cr_expect_eq(closes, 0);
	for (size_t i = 0; i < UNNAMED_CNT; i++) {
		struct core_peer *peer = first[i].peer;

		again[i] = (struct core_chan){ .ops = &idle_ops, .eager_max = 100 };
		core_peer_on_up(&nodes[0].ep, &again[i], &unnamed[i].sa, 2);
		cr_expect_eq(again[i].peer, peer, "%zu again", i);
		cr_expect_eq(peer->incarnation, 2);
	}
	cr_expect_eq(closes, UNNAMED_CNT, "of each the older one");
}

Test(core_peer_chan, an_eager_message_fits_the_channel_with_its_tag_and_data)
{
	static const struct {
		size_t chan_max, chan_min, eager;
	} rows[] = { { 16, 0, 0 },
		     { 17, 0, 1 },
		     { 1015, 0, 999 },
		     { 1016, 0, 1000 },
		     { 1017, 0, 1000 },
		     { 4096, 0, 1000 },
		     /* The channel's own limit replaces that of the domain, not its maximum. */
		     { 4096, 999, 1000 },
		     { 4096, 2000, 2000 },
		     { 1017, 2000, 1001 } };
	static struct core_chan chan;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		chan = (struct core_chan){ .ops = &idle_ops,
					   .eager_max = rows[i].chan_max,
					   .eager_min = rows[i].chan_min };
		core_peer_on_up(&nodes[0].ep, &chan, &unnamed[0].sa, 1);
		cr_expect_eq(chan.peer->eager_end, rows[i].eager + 1, "%zu", rows[i].chan_max);
		core_peer_on_down(&chan, -FI_ESHUTDOWN);
	}
}

Test(core_peer_chan, the_maximum_response_size_is_bounded_by_channel_and_wire_format)
{
	static struct core_chan little = { .ops = &idle_ops, .eager_max = 100, .resp_sure = 7 };
	static struct core_chan plenty = { .ops = &idle_ops,
					   .eager_max = 100,
					   .resp_sure = SIZE_MAX };

	core_peer_on_up(&nodes[0].ep, &little, &unnamed[0].sa, 1);
	core_peer_on_up(&nodes[0].ep, &plenty, &unnamed[1].sa, 1);
	cr_expect_eq(little.peer->rpc_resp_lim, 7);
	cr_expect_eq(plenty.peer->rpc_resp_lim, WIRE_RPC_RESP_MAX);
}
