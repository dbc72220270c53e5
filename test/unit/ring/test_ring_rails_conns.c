/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections of nodes whose devices fail, change places and come back. (ring_rails.c) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "rail_node.h"
#include "ring/ring_rail.h"

#define LEN (256u << 10)

static struct rail_node nodes[2], *a = &nodes[0], *b = &nodes[1];
static struct ring_conn *conns[2];
static struct core_get *done;
static uint8_t region[LEN], sink[LEN];

static void on_done(struct core_chan *chan, struct core_get *get)
{
	done = get;
}

static const struct core_upcalls upcalls = { .on_get_done = on_done };

static void connect_nodes(void)
{
	rail_nodes_connect(nodes, &upcalls, conns);
}

/** Ends connections as the engine does after the failure of a device. */
static void disconnect_nodes(int err)
{
	for (int i = 0; i < 2; i++) {
		conns[i]->eng.err = err;
		ring_life_end(&conns[i]->eng);
		ring_life_stop(&conns[i]->eng);
		ring_life_free(&conns[i]->eng);
		cr_expect_eq(rail_node_fake(nodes[i].transport->dev)->link_cnt, 0);
		cr_expect_eq(nodes[i].transport->rails->user_cnt, 0);
	}
}

static void poll_nodes(void)
{
	rail_node_poll(a);
	rail_node_poll(b);
}

/** Lets the node read the region of its peer. Returns true if a part of it goes over a rail. */
static bool read_region(struct rail_node *node)
{
	struct ring_conn *conn = conns[node - nodes];
	struct iovec iov = { sink, LEN };
	struct core_exposure exposure = { .chan = &conns[node == a]->eng.chan };
	struct core_get get;
	struct ring_rail *rail = conn->rail;
	bool split;

	for (size_t i = 0; i < LEN; i++)
		region[i] = (uint8_t)(i * 5 + (i >> 8));
	memset(sink, 0, LEN);
	done = NULL;
	cr_assert_eq(ring_bulk_expose(exposure.chan, region, LEN, &exposure), 0);
	get = (struct core_get){ .remote_addr = (uintptr_t)region,
				 .remote_key = exposure.key,
				 .iov = &iov,
				 .iov_cnt = 1,
				 .len = LEN };
	cr_assert_eq(ring_bulk_get(&conn->eng.chan, &get), 0);
	split = rail && rail->link && fake_link_of(rail->link)->get;
	for (int i = 0; i < 1000 && !done; i++)
		poll_nodes();
	cr_assert_eq(done, &get);
	cr_expect_eq(get.status, 0);
	cr_expect_arr_eq(region, sink, LEN);
	ring_bulk_unexpose(exposure.chan, &exposure);
	return split;
}

/** Lets the READs by which the ends test their rails come back. */
static void await_rails(void)
{
	for (int i = 0; i < 100; i++)
		poll_nodes();
}

/*
 * The life of a job: two devices, the first one of an end fails, the second one carries everything
 * alone, another second one comes. Each node has its own devices, so the ends differ.
 */
Test(ring_rails_conns, connections_follow_the_devices)
{
	static const int states[] = { -FI_ENETDOWN, -FI_EIO };

	rail_node_params();
	rail_node_open(a);
	rail_node_open(b);
	connect_nodes();
	await_rails();
	cr_expect(read_region(a));
	cr_expect(read_region(b));
	for (int i = 0; i < 2; i++) {
		struct dev *second = a->transport->rails->dev;

		rail_node_fake(a->transport->dev)->health = states[i];
		cr_expect_eq(rail_node_health_later(a), -FI_EIO);
		disconnect_nodes(-FI_EIO);
		cr_expect_eq(rail_node_reopen(a), 0);
		connect_nodes();
		await_rails();
		cr_expect_eq(fake_link_of(conns[0]->link)->dev, rail_node_fake(second));
		cr_expect_null(conns[0]->rail);
		cr_expect_null(conns[1]->rail, "both ends have one, or none");
		cr_expect_not(read_region(a));
		cr_expect_not(read_region(b));
		disconnect_nodes(-FI_ESHUTDOWN);
		if (a->transport->rails->dev)
			rail_node_fake(a->transport->rails->dev)->health = 0;
		cr_expect_eq(rail_node_health_later(a), 0);
		connect_nodes();
		await_rails();
		cr_expect(read_region(a));
		cr_expect(read_region(b));
	}
	disconnect_nodes(-FI_ESHUTDOWN);
	ring_transport_close(&a->transport->eng);
	ring_transport_close(&b->transport->eng);
	cr_expect_eq(fake_nic_open_cnt, 0);
}
