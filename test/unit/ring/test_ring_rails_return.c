/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that go on over one device are to be replaced once both work, at both ends, and not
 * before. (ring_rail_improves; the engine asks: test_eng_outage.c)
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "rail_node.h"
#include "ring/ring_rail.h"
#include "ring/ring_takeover.h"
#include "wire/wire_cm.h"

static struct rail_node nodes[2], *a = &nodes[0], *b = &nodes[1];
static struct ring_conn *conns[2];

static void on_down(struct core_chan *chan, int err)
{
	cr_assert_fail("no connection fails");
}

static const struct core_upcalls upcalls = { .on_down = on_down };

static void open_nodes(void)
{
	rail_node_params();
	rail_node_open(a);
	rail_node_open(b);
}

static void connect_nodes(void)
{
	rail_nodes_connect(nodes, &upcalls, conns);
}

/** Ends the connection as its ends agreed. */
static void disconnect_nodes(void)
{
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(conns[i]->eng.err, 0);
		ring_life_stop(&conns[i]->eng);
		ring_life_free(&conns[i]->eng);
		cr_expect_eq(nodes[i].transport->rails->user_cnt, 0);
		cr_expect_eq(nodes[i].transport->rails->first_cnt, 0);
	}
}

static void close_nodes(void)
{
	disconnect_nodes();
	ring_transport_close(&a->transport->eng);
	ring_transport_close(&b->transport->eng);
	cr_expect_eq(fake_nic_open_cnt, 0);
}

TestSuite(ring_rails_return, .init = open_nodes, .fini = close_nodes);

static void poll_nodes(void)
{
	for (int i = 0; i < 100; i++) {
		rail_node_poll(a);
		rail_node_poll(b);
	}
}

static bool improves(const struct rail_node *node)
{
	return ring_rail_improves(&conns[node - nodes]->eng);
}

/** Returns true if the end has noted that it is to return to its path. */
static bool lacks(const struct rail_node *node)
{
	const struct eng_conn *conn = &conns[node - nodes]->eng;

	cr_expect_eq(node->engine.detour_cnt, conn->out_paths != 0);
	return conn->out_paths & conn->transport->ops->path;
}

static struct ring_rail *rail_of(const struct rail_node *node)
{
	return conns[node - nodes]->rail;
}

/** Lets the time pass after which the loss of a link counts as understood. */
static void rest(void)
{
	for (int i = 0; i < 2; i++) {
		cr_expect_not(improves(&nodes[i]), "the cause is not known yet");
		rail_of(&nodes[i])->lost_ns = 1;
	}
}

/** Takes a device out, and brings it back; the engine looks. */
static void set_health(struct rail_node *node, struct dev *dev, int health)
{
	rail_node_fake(dev)->health = health;
	node->transport->eng.outage = rail_node_health_later(node);
}

/** Lets the ends connect again, and checks that both have both devices then. */
static void expect_return(void)
{
	for (int i = 0; i < 2; i++)
		cr_expect(improves(&nodes[i]));
	cr_expect(lacks(a) || lacks(b), "one end asks");
	disconnect_nodes();
	a->engine.detour_cnt = b->engine.detour_cnt = 0;
	connect_nodes();
	poll_nodes();
	for (int i = 0; i < 2; i++) {
		cr_expect(!lacks(&nodes[i]));
		cr_assert_not_null(rail_of(&nodes[i]));
		cr_expect(rail_of(&nodes[i])->is_ready);
		cr_expect_str_eq(ring_life_name(&conns[i]->eng), "verbs-rails");
	}
}

Test(ring_rails_return, a_connection_over_both_devices_lacks_none)
{
	connect_nodes();
	poll_nodes();
	cr_expect(!lacks(a) && !lacks(b));
	cr_expect(improves(a) && improves(b), "where the peer's rail has failed");
}

Test(ring_rails_return, a_rail_that_failed_returns_when_the_device_is_back)
{
	static const int states[] = { -FI_ENETDOWN, -FI_EIO };

	connect_nodes();
	for (int i = 0; i < 2; i++) {
		poll_nodes();
		fake_link_kill(rail_of(a)->link, states[i]);
		set_health(a, a->transport->rails->dev, states[i]);
		poll_nodes();
		cr_expect(lacks(a));
		cr_expect_not(improves(a));
		rail_of(a)->lost_ns = 1;
		if (states[i] == -FI_ENETDOWN) {
			cr_expect_not(improves(a), "it is out");
			set_health(a, a->transport->rails->dev, 0);
		} else {
			cr_expect_eq(rail_node_health_later(a), 0, "another one was opened");
		}
		expect_return();
	}
}

Test(ring_rails_return, a_queue_pair_that_broke_is_replaced_after_a_rest)
{
	connect_nodes();
	poll_nodes();
	for (int i = 0; i < 2; i++)
		fake_link_kill(rail_of(&nodes[i])->link, -FI_EIO);
	poll_nodes();
	cr_expect(lacks(a) && lacks(b));
	rest();
	expect_return();
}

Test(ring_rails_return, a_second_device_that_was_out_at_first_is_used_later)
{
	for (int i = 0; i < 3; i++) { /* at one end, at the other, at both */
		if (i != 1)
			set_health(a, a->transport->rails->dev, -FI_ENETDOWN);
		if (i != 0)
			set_health(b, b->transport->rails->dev, -FI_ENETDOWN);
		connect_nodes();
		poll_nodes();
		cr_expect_eq(lacks(a), i != 1);
		cr_expect_eq(lacks(b), i != 0);
		cr_expect_eq(improves(a), i == 1);
		cr_expect_eq(improves(b), i == 0);
		set_health(a, a->transport->rails->dev, 0);
		set_health(b, b->transport->rails->dev, 0);
		expect_return();
		if (i < 2)
			disconnect_nodes();
	}
}

Test(ring_rails_return, a_rail_that_cannot_be_attached_returns_after_a_rest)
{
	rail_node_fake(a->transport->rails->dev)->fail_attach = -FI_EIO;
	connect_nodes();
	poll_nodes();
	cr_assert_not_null(rail_of(a));
	cr_expect_null(rail_of(a)->link);
	cr_expect(lacks(a));
	cr_expect_not(improves(a));
	rail_of(a)->lost_ns = 1;
	rail_node_fake(a->transport->rails->dev)->fail_attach = 0;
	expect_return();
}

Test(ring_rails_return, a_connection_that_was_taken_over_returns_when_both_devices_work)
{
	struct dev *first, *second;

	connect_nodes();
	poll_nodes();
	first = a->transport->dev;
	second = a->transport->rails->dev;
	set_health(a, first, -FI_ENETDOWN);
	fake_link_kill(conns[0]->link, -FI_ENETDOWN);
	poll_nodes();
	cr_assert_eq(rail_of(a)->phase, RING_RAIL_TAKEN);
	cr_assert_eq(rail_of(b)->phase, RING_RAIL_TAKEN);
	cr_expect(lacks(a) && lacks(b));
	rest();
	cr_expect(improves(b));
	cr_expect_not(improves(a), "the device is out, and has the first place");
	cr_assert_eq(rail_node_reopen(a), 0);
	a->transport->eng.outage = rail_node_health(a);
	cr_assert_eq(a->transport->dev, second, "they change places");
	cr_expect_not(improves(a), "the second one is out");
	set_health(a, first, 0);
	expect_return();
	cr_expect_eq(fake_link_of(conns[0]->link)->dev, rail_node_fake(second));
	cr_expect_eq(fake_link_of(rail_of(a)->link)->dev, rail_node_fake(first));
}

Test(ring_rails_return, a_first_device_that_is_back_before_the_places_change_is_used_again)
{
	connect_nodes();
	poll_nodes();
	fake_link_kill(conns[1]->link, -FI_ETIMEDOUT);
	poll_nodes();
	rest();
	expect_return();
}

Test(ring_rails_return, nothing_is_replaced_while_a_rail_takes_over)
{
	connect_nodes();
	poll_nodes();
	fake_link_kill(conns[0]->link, -FI_ETIMEDOUT);
	while (rail_of(b)->phase != RING_RAIL_TAKEN || rail_of(a)->phase != RING_RAIL_TAKEN) {
		rail_node_poll(a);
		cr_expect_eq(improves(a), rail_of(a)->phase == RING_RAIL_BESIDE);
		ring_rails_poll(b->transport);
		cr_expect_eq(improves(b), !rail_of(b)->has_peer_pos);
		ring_takeover_work(b->transport->rails, true);
		cr_expect_eq(improves(b), !rail_of(b)->has_peer_pos);
	}
	rest();
	expect_return();
}

Test(ring_rails_return, a_peer_that_knows_of_no_rails_is_not_asked)
{
	a->features = b->features = 0; /* cm states those that both have */
	connect_nodes();
	poll_nodes();
	cr_expect_not(lacks(a) || lacks(b));
	cr_expect_not(improves(a) || improves(b));
}
