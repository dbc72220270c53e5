/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Second device of a transport: its state, the time of attempts to open it, and the change of
 * places with the first one. (ring_rails.c, ring_transport.c)
 *
 * The fake devices end the test if one is closed while it is in use, or if memory of one is used
 * with the other.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/core_reg.h"
#include "rail_node.h"
#include "ring/ring_direct.h"
#include "ring/ring_rail.h"
#include "util/clock.h"
#include "util/param.h"

#define LEN (256u << 10)

static const int states[] = { 0, -FI_ENETDOWN, -FI_EIO };

static struct rail_node node_a, *a = &node_a;

static void start(void)
{
	rail_node_params();
	rail_node_open(a);
}

static void stop(void)
{
	ring_transport_close(&a->transport->eng);
	cr_expect_eq(fake_nic_open_cnt, 0);
}

TestSuite(ring_rails, .init = start, .fini = stop);

/** Returns a connection that is being made, with a rail, or NULL if it gets none. */
static struct ring_conn *rail_take(struct rail_node *node)
{
	struct ring_conn *conn = aligned_alloc(UTIL_CACHE_LINE, sizeof(*conn));
	struct dev_desc desc = { .len = 16 };

	cr_assert_not_null(conn);
	memset(conn, 0, sizeof(*conn));
	conn->eng.transport = &node->transport->eng;
	conn->dev = node->transport->dev;
	cr_assert_eq(fake_nic_ops.link_create(conn->dev, 1024, &conn->link), 0);
	ring_rails_add_link(node->transport);
	if (ring_rail_prepare(conn, node->transport, &desc))
		return conn;
	cr_assert_null(conn->rail);
	cr_assert_eq(desc.len, 16);
	ring_rail_close_link(conn);
	free(conn);
	return NULL;
}

static void rail_give(struct ring_conn *conn)
{
	cr_assert_not_null(conn);
	ring_rail_free(conn);
	ring_rail_close_link(conn);
	free(conn);
}

static bool is_awake(struct rail_node *node)
{
	struct pollfd p = { .fd = ring_transport_wait_fd(&node->transport->eng), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/** Returns true if an event of the device wakes a sleeping thread. */
static bool wakes(struct rail_node *node, int fd)
{
	uint64_t one = 1;
	bool ret;

	cr_assert_not(is_awake(node));
	cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
	ret = is_awake(node);
	cr_assert_eq(read(fd, &one, sizeof(one)), sizeof(one));
	return ret;
}

/* ---- state ---- */

Test(ring_rails, one_device_is_used_where_nothing_else_is_wanted)
{
	stop();
	util_params.rails = 1;
	rail_node_open(a);
	cr_expect_null(a->transport->rails);
	cr_expect_eq(a->transport->eng.ops, &ring_pair_staged_transport);
	cr_expect_eq(fake_nic_open_cnt, 1);
	rail_node_fake(a->transport->dev)->health = -FI_ENETDOWN;
	cr_expect_eq(rail_node_health(a), -FI_ENETDOWN);
	cr_expect_eq(rail_node_reopen(a), 0);
	cr_expect_eq(rail_node_health(a), 0);
	cr_expect_eq(fake_nic_tries, 1, "that of the tests' start");
}

Test(ring_rails, the_transport_is_out_only_if_both_devices_are)
{
	struct ring_conn *conn = rail_take(a);
	struct dev *first = a->transport->dev, *second = a->transport->rails->dev;

	cr_expect_eq(a->transport->eng.ops, &ring_pair_nic_transport);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			int out = states[k] ? states[i] : -FI_EIO;
			struct ring_conn *other;

			rail_node_fake(first)->health = states[i];
			rail_node_fake(second)->health = states[k];
			cr_expect_eq(rail_node_health_later(a), states[i] ? out : 0, "%d, %d", i,
				     k);
			cr_expect_eq(a->transport->rails->is_out, states[k] != 0);
			cr_expect_eq(a->transport->dev, first);
			cr_expect_eq(a->transport->rails->dev, second, "a rail is on it");
			other = rail_take(a);
			cr_expect_eq(other != NULL, !states[k], "no new rails on what is out");
			if (other)
				rail_give(other);
		}
	rail_give(conn);
}

Test(ring_rails, without_a_second_device_the_state_is_that_of_the_first_one)
{
	fake_nic_alone = true;
	rail_node_fake(a->transport->rails->dev)->health = -FI_EIO;
	for (int i = 0; i < 3; i++) {
		rail_node_fake(a->transport->dev)->health = states[i];
		cr_expect_eq(rail_node_health_later(a), states[i]);
		cr_expect_null(a->transport->rails->dev);
		cr_expect_null(rail_take(a));
	}
	cr_expect_eq(ring_rails_arm(a->transport), 0);
	ring_transport_disarm(&a->transport->eng);
	cr_expect_not(ring_rails_poll(a->transport));
}

/* Links that are left would be used after the end of their device. */
Test(ring_rails, a_second_device_that_failed_is_replaced_when_no_rail_is_left_on_it)
{
	struct dev *second = a->transport->rails->dev;
	struct ring_conn *one = rail_take(a), *two = rail_take(a);
	int copy = dup(rail_node_fake(second)->fd);

	rail_node_fake(second)->health = -FI_EIO;
	rail_node_health_later(a);
	rail_give(one);
	rail_node_health_later(a);
	cr_expect_eq(a->transport->rails->dev, second);
	cr_expect_eq(fake_nic_tries, 1);
	rail_give(two);
	rail_node_health_later(a);
	cr_expect_eq(fake_nic_tries, 2);
	cr_expect_eq(fake_nic_open_cnt, 2);
	cr_expect_eq(rail_node_fake(a->transport->rails->dev)->beside, a->transport->dev);
	cr_expect_not(a->transport->rails->is_out);
	cr_expect_not(wakes(a, copy), "a child has a copy of its descriptor");
	cr_expect(wakes(a, rail_node_fake(a->transport->rails->dev)->fd));
	rail_give(rail_take(a));
	close(copy);
}

Test(ring_rails, a_second_device_whose_port_is_back_is_used_again)
{
	struct dev *second = a->transport->rails->dev;

	rail_node_fake(second)->health = -FI_ENETDOWN;
	rail_node_health_later(a);
	cr_expect_null(rail_take(a));
	rail_node_fake(second)->health = 0;
	rail_node_health_later(a);
	cr_expect_eq(a->transport->rails->dev, second);
	cr_expect_eq(fake_nic_tries, 1, "nothing was closed");
	rail_give(rail_take(a));
}

Test(ring_rails, both_devices_are_armed_and_disarmed)
{
	struct eng_transport *eng = &a->transport->eng;

	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ring_transport_arm(eng), 0);
		cr_expect(rail_node_fake(a->transport->dev)->armed);
		cr_expect(rail_node_fake(a->transport->rails->dev)->armed);
		ring_transport_disarm(eng);
		cr_expect_not(rail_node_fake(a->transport->dev)->armed);
		cr_expect_not(rail_node_fake(a->transport->rails->dev)->armed);
		rail_node_fake(a->transport->dev)->health = -FI_ENETDOWN;
		cr_expect_eq(rail_node_reopen(a), 0);
	}
}

/* ---- attempts to open a second device ---- */

/** Checks that the next attempt is made `pause_s` after one that is made now. */
static void expect_pause(struct rail_node *node, uint64_t pause_s)
{
	struct ring_rails *rails = node->transport->rails;
	unsigned tries = fake_nic_tries;
	uint64_t before_ns, after_ns;

	rails->open_ns = util_clock_ns() + UTIL_NS_PER_S * 60;
	rail_node_health(node);
	cr_expect_eq(fake_nic_tries, tries, "its time has not come");
	before_ns = util_clock_ns();
	rail_node_health_later(node);
	after_ns = util_clock_ns();
	cr_expect_eq(fake_nic_tries, tries + 1);
	cr_expect_geq(rails->open_ns, before_ns + pause_s * UTIL_NS_PER_S, "%lu s", pause_s);
	cr_expect_leq(rails->open_ns, after_ns + pause_s * UTIL_NS_PER_S, "%lu s", pause_s);
}

static void expect_growth(void)
{
	static const uint64_t pauses_s[] = { 5, 10, 20, 40, 80, 80, 80 };

	for (unsigned i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++)
		expect_pause(a, pauses_s[i]);
}

Test(ring_rails, pauses_between_attempts_grow_until_one_succeeds)
{
	uint64_t now_ns = util_clock_ns();

	cr_expect_leq(a->transport->rails->open_ns, now_ns + 5 * UTIL_NS_PER_S);
	fake_nic_alone = true;
	rail_node_fake(a->transport->rails->dev)->health = -FI_EIO;
	expect_growth();
	fake_nic_alone = false;
	expect_pause(a, 5);
	cr_assert_not_null(a->transport->rails->dev);
	fake_nic_alone = true;
	rail_node_fake(a->transport->rails->dev)->health = -FI_EIO;
	expect_growth();
}

Test(ring_rails, a_device_that_cannot_be_waited_for_is_not_used)
{
	fake_nic_blind = true;
	rail_node_fake(a->transport->rails->dev)->health = -FI_EIO;
	expect_growth();
	cr_expect_null(a->transport->rails->dev);
	cr_expect_eq(fake_nic_open_cnt, 1);
	cr_expect_null(rail_take(a));
	cr_expect_eq(rail_node_health(a), 0);
}

Test(ring_rails, nothing_is_looked_for_while_there_is_a_second_device)
{
	for (int i = 0; i < 3; i++)
		rail_node_health_later(a);
	cr_expect_eq(fake_nic_tries, 1);
}

/* ---- change of places ---- */

static uint8_t region[LEN];

static struct core_reg *reg_of(struct rail_node *node, struct ring_conn *conn)
{
	struct core_reg *reg;

	memset(conn, 0, sizeof(*conn));
	conn->eng.transport = &node->transport->eng;
	conn->eng.chan.reg_dev = &node->transport->eng;
	cr_assert_eq(ring_direct_reg(&conn->eng.chan, region, sizeof(region), FI_REMOTE_READ, &reg),
		     0);
	return reg;
}

/** Checks that the region is registered with the first device of the node, and that alone. */
static void expect_registered(struct rail_node *node, const struct core_reg *reg)
{
	const struct fake_mem *mem = fake_key_find(reg->key);

	cr_assert_not_null(mem);
	cr_expect_eq(mem->dev, rail_node_fake(node->transport->dev));
	cr_expect_eq(&mem->base, reg->mem);
	cr_expect_eq(mem->addr, region);
	cr_expect_eq(reg->dev, &node->transport->eng);
	cr_expect_eq(rail_node_fake(node->transport->dev)->mem_cnt, 1);
}

/** Lets direct accesses take a slot: slots stay registered. */
static void use_slot(struct rail_node *node)
{
	struct ring_transport *transport = node->transport;
	int err;
	struct ring_bounce_slot *slot =
		ring_bounce_get(&transport->bounce, transport->dev_ops, transport->dev, &err);

	cr_assert_not_null(slot);
	cr_assert_eq(((struct fake_mem *)slot->mem)->dev, rail_node_fake(transport->dev));
	ring_bounce_put(&transport->bounce, slot);
}

Test(ring_rails, a_second_device_takes_the_place_of_a_first_one_that_is_out)
{
	struct ring_conn conn;
	struct core_reg *reg = reg_of(a, &conn);

	for (int i = 1; i < 3; i++) {
		struct dev *first = a->transport->dev, *second = a->transport->rails->dev;
		unsigned tries = fake_nic_tries + (states[i] == -FI_EIO);

		use_slot(a);
		rail_node_fake(first)->health = states[i];
		cr_expect_eq(rail_node_health_later(a), -FI_EIO,
			     "so that the engine opens it again");
		cr_expect_eq(rail_node_reopen(a), 0);
		cr_expect_eq(a->transport->dev, second);
		cr_expect_eq(a->transport->rails->dev, first);
		cr_expect_eq(rail_node_fake(first)->mem_cnt, 0, "it may be closed");
		expect_registered(a, reg);
		cr_expect_null(rail_take(a), "it is out");
		cr_expect(wakes(a, rail_node_fake(first)->fd));
		cr_expect(wakes(a, rail_node_fake(second)->fd));
		if (states[i] == -FI_ENETDOWN)
			rail_node_fake(first)->health = 0;
		cr_expect_eq(rail_node_health_later(a), 0);
		/* One whose port is up again stays open, one that failed is opened again. */
		cr_expect_eq(fake_nic_tries, tries);
		cr_expect_eq(rail_node_fake(a->transport->rails->dev)->health, 0);
		cr_expect_eq(fake_nic_open_cnt, 2);
		rail_give(rail_take(a));
		use_slot(a);
		ring_bounce_fini(&a->transport->bounce, &fake_nic_ops, a->transport->dev);
	}
	reg->close(reg);
}

Test(ring_rails, a_region_that_the_other_device_refuses_is_registered_by_the_next_one)
{
	struct ring_conn conn;
	struct core_reg *reg = reg_of(a, &conn);
	struct dev *first = a->transport->dev;

	rail_node_fake(first)->health = -FI_ENETDOWN;
	rail_node_fake(a->transport->rails->dev)->fail_reg = -FI_ENOMEM;
	cr_expect_eq(rail_node_reopen(a), 0);
	cr_expect_neq(reg->dev, &a->transport->eng, "no channel's device");
	cr_expect_null(reg->mem);
	rail_node_fake(a->transport->dev)->health = -FI_ENETDOWN;
	rail_node_fake(first)->health = 0;
	cr_expect_eq(rail_node_reopen(a), 0);
	cr_expect_eq(a->transport->dev, first);
	expect_registered(a, reg);
	reg->close(reg);
}

/* Both out: the first device is opened again, beside what is left of the second one. */
Test(ring_rails, a_second_device_that_is_out_takes_no_place)
{
	struct ring_conn conn;
	struct core_reg *reg = reg_of(a, &conn);

	for (int i = 1; i < 3; i++) {
		struct dev *second = a->transport->rails->dev;
		int copy[2] = { dup(rail_node_fake(a->transport->dev)->fd),
				dup(rail_node_fake(second)->fd) };

		use_slot(a);
		rail_node_fake(a->transport->dev)->health = -FI_EIO;
		rail_node_fake(second)->health = states[i];
		cr_expect_eq(rail_node_reopen(a), 0);
		cr_expect_eq(rail_node_fake(a->transport->dev)->health, 0, "a new one");
		expect_registered(a, reg);
		cr_expect_not(wakes(a, copy[0]));
		cr_expect(wakes(a, rail_node_fake(a->transport->dev)->fd));
		if (states[i] == -FI_ENETDOWN) {
			cr_expect_eq(a->transport->rails->dev, second);
			cr_expect_eq(rail_node_fake(a->transport->dev)->beside, second);
			rail_node_fake(second)->health = 0;
		} else {
			cr_expect_null(a->transport->rails->dev, "what has failed is closed");
			cr_expect_null(rail_node_fake(a->transport->dev)->beside,
				       "by its own choice");
			cr_expect_not(wakes(a, copy[1]));
		}
		cr_expect_eq(rail_node_health_later(a), 0);
		cr_expect_eq(fake_nic_open_cnt, 2);
		close(copy[0]);
		close(copy[1]);
	}
	reg->close(reg);
}

Test(ring_rails, a_second_device_that_is_back_replaces_a_first_one_that_is_gone)
{
	struct ring_conn conn;
	struct core_reg *reg = reg_of(a, &conn);
	struct dev *second = a->transport->rails->dev;

	rail_node_fake(a->transport->dev)->health = -FI_EIO;
	rail_node_fake(second)->health = -FI_ENETDOWN;
	fake_nic_absent = true;
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(rail_node_reopen(a), -FI_ENODEV);
		cr_expect_null(a->transport->dev);
		cr_expect_eq(rail_node_health(a), -FI_ENODEV);
		cr_expect_null(reg->mem);
		cr_expect_eq(fake_nic_open_cnt, 1);
	}
	rail_node_fake(second)->health = 0;
	cr_expect_eq(rail_node_reopen(a), 0);
	cr_expect_eq(a->transport->dev, second);
	expect_registered(a, reg);
	cr_expect_null(a->transport->rails->dev);
	cr_expect_null(rail_take(a));
	cr_expect_eq(rail_node_health_later(a), 0);
	cr_expect_null(a->transport->rails->dev);
	fake_nic_absent = false;
	cr_expect_eq(rail_node_health_later(a), 0);
	cr_expect_eq(rail_node_fake(a->transport->rails->dev)->beside, second);
	rail_give(rail_take(a));
	reg->close(reg);
}
