/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: busy, failed open, close (core/core_ep.c). */
#include "core/core_ep.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include "support/core_pair.h"

static struct node nodes[2];
static uint8_t out[200], in[200];

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 50,
					    .single_copy_min = 100,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes, 2);
}

static void teardown(void)
{
	nodes_close(nodes, 2);
}

TestSuite(core_ep, .init = setup, .fini = teardown);

Test(core_ep, is_busy_until_an_announced_message_was_fetched)
{
	node_send(&nodes[0], 1, out, sizeof(out), true, 1, 0, NULL);
	nodes_settle(nodes, 2);
	cr_expect(core_ep_is_busy(&nodes[0].ep));
	node_recv(&nodes[1], FI_ADDR_UNSPEC, in, sizeof(in), true, 1, 0, 0, NULL);
	nodes_settle(nodes, 2);
	cr_expect_not(core_ep_is_busy(&nodes[0].ep));
}

/** Channel with a settable is_busy, which counts its calls. */
struct polled {
	struct core_chan chan;
	bool busy;
	unsigned cnt;
};

static bool polled_is_busy(struct core_chan *chan)
{
	struct polled *polled = (struct polled *)chan;

	polled->cnt++;
	return polled->busy;
}

static void polled_close(struct core_chan *chan)
{
}

static const struct core_chan_ops polled_ops = { .is_busy = polled_is_busy,
						 .stop = polled_close,
						 .close = polled_close };

/* is_busy may send a request to the peer: those of several channels overlap. */
Test(core_ep, all_channels_are_polled_at_once)
{
	static struct polled of[4];
	struct core_ep *ep = &nodes[0].ep;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	uint64_t fi_addr;

	for (uint16_t i = 0; i < 4; i++) {
		addr.sin_port = (uint16_t)(100 + i);
		if (i < 2)
			cr_assert_eq(core_av_insert(ep->av, (struct sockaddr *)&addr, &fi_addr), 0);
		of[i].chan = (struct core_chan){ .ops = &polled_ops, .eager_max = 100 };
		core_peer_on_up(ep, &of[i].chan, (struct sockaddr *)&addr, 1);
	}
	for (unsigned busy = 0; busy < 1 << 4; busy++) {
		for (unsigned i = 0; i < 4; i++)
			of[i].busy = busy >> i & 1;
		cr_expect_eq(core_ep_is_busy(ep), busy != 0, "%x", busy);
		for (unsigned i = 0; i < 4; i++)
			cr_expect_eq(of[i].cnt, busy + 1, "%x", busy);
	}
}

static int refuse(struct core_progress *base, struct core_ep *ep, const struct sockaddr *addr,
		  struct core_engine_ep **eep)
{
	return -FI_EADDRINUSE;
}

Test(core_ep, an_endpoint_that_fails_to_open_is_not_in_the_domain)
{
	struct core_engine_ops ops = fake_engine_ops;
	const struct core_engine_ops *before = nodes[0].dom.engine_ops;
	struct sockaddr_in any = { .sin_family = AF_INET };
	static struct core_ep ep;

	ops.ep_open = refuse;
	nodes[0].dom.engine_ops = &ops;
	cr_expect_eq(core_ep_open(&ep, &nodes[0].dom, (struct sockaddr *)&any), -FI_EADDRINUSE);
	cr_expect_eq(nodes[0].dom.eps.next, &nodes[0].ep.dom_link);
	cr_expect_eq(nodes[0].dom.eps.prev, &nodes[0].ep.dom_link);
	nodes[0].dom.engine_ops = before;
}

Test(core_ep, a_closed_endpoint_is_not_in_the_domain)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	static struct core_ep ep;

	cr_assert_eq(core_ep_open(&ep, &nodes[0].dom, (struct sockaddr *)&any), 0);
	cr_expect_eq(nodes[0].dom.eps.prev, &ep.dom_link);
	core_ep_close(&ep);
	cr_expect_eq(nodes[0].dom.eps.next, &nodes[0].ep.dom_link);
	cr_expect_eq(nodes[0].dom.eps.prev, &nodes[0].ep.dom_link);
}

Test(core_ep, the_page_shows_queues_and_their_highest_lengths)
{
	struct copyrpc_stats_endpoint *row = nodes[1].ep.stats;
	struct core_cq *cq = nodes[1].ep.rx.cq;

	for (uint64_t tag = 1; tag <= 3; tag++)
		node_send(&nodes[0], 1, out, 8, true, tag, 0, NULL);
	nodes_settle(nodes, 2);
	core_ep_show(&nodes[1].ep);
	cr_expect_eq(row->unexpected_queue, 3);
	cr_expect_eq(row->unexpected_queue_most, 3);
	cr_expect_eq(row->posted_now, 0);
	for (uint64_t tag = 1; tag <= 8; tag++)
		node_recv(&nodes[1], FI_ADDR_UNSPEC, in, 8, true, tag, 0, 0, NULL);
	core_ep_show(&nodes[1].ep);
	cr_expect_eq(row->unexpected_queue, 0);
	cr_expect_eq(row->posted_now, 5);
	cr_expect_eq(row->posted_most, 5);
	for (uint64_t tag = 4; tag <= 7; tag++)
		node_send(&nodes[0], 1, out, 8, true, tag, 0, NULL);
	nodes_settle(nodes, 2);
	core_ep_show(&nodes[1].ep);
	cr_expect_eq(row->posted_now, 1);
	cr_expect_eq(row->posted_most, 5);
	cr_expect_eq(row->unexpected, 3);
	cr_expect_eq(row->unexpected_queue_most, 3);
	cr_expect_eq(cq->stats->completions, 7);
	cr_expect_eq(cq->stats->unread, cq->tail - cq->head);
	cr_expect_eq(cq->stats->failed, 0);
}
