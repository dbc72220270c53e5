/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lives of devices, connections, gets and exposures that end in any order. (ring_rail.c,
 * ring_rails.c)
 *
 * Two nodes with two devices each, and connections between them that move long messages both ways.
 * Steps are drawn: a step of a connection's setup, a get, the end of an exposure that is
 * being read, a poll, the failure of a link, of a device, of a registration, a READ that does not
 * come back, the end of a connection at one end, a look at the devices.
 *
 * Every get ends once, with all bytes or with an error that the connection has, unless its
 * connection is closed before; then nothing touches it. At the end nothing is left. The fake
 * devices end the test if a device is closed while it is in use, or moves memory that is not
 * registered with it.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rail_node.h"
#include "ring/ring_rail.h"
#include "ring/ring_takeover.h"
#include "support/rng.h"
#include "util/clock.h"

#define PAIRS 3
#define GETS  4
#define LEN   (RING_RAIL_MIN + 40000u)
#define SEEDS 150
#define STEPS 600

enum stage { NONE, PREPARED, ESTABLISHED, UP, DOWN };

/** Get of an end, and its source at the other end. */
struct op {
	bool open;
	bool exposed;
	struct core_get get;
	struct core_exposure exposure;
	struct iovec iov[2];
	uint8_t sink[LEN];
};

struct end {
	enum stage stage;
	struct rail_node *node;
	struct end *peer;
	struct ring_conn *conn;
	struct cm_params params;
	unsigned life;        /* number of its connection */
	unsigned peer_life;   /* likewise of the peer, when it was established */
	bool is_taken;        /* by the second device */
	struct op *ops[GETS]; /* NULL: none */
};

static struct rail_node nodes[2];
static struct end ends[PAIRS][2];
static uint8_t source[LEN];
static struct rng rng;
static bool refused;   /* a registration has failed */
static bool is_out[2]; /* the node's transport waits for the end of its connections */
static unsigned moved, broken, split, swapped, taken;

static void unexpose(struct end *end, struct op *op)
{
	if (op->exposed)
		ring_bulk_unexpose(&end->peer->conn->eng.chan, &op->exposure);
	op->exposed = false;
}

static struct end *end_of(const struct core_chan *chan)
{
	for (int i = 0; i < PAIRS * 2; i++)
		if (ends[i / 2][i % 2].conn && &ends[i / 2][i % 2].conn->eng.chan == chan)
			return &ends[i / 2][i % 2];
	cr_assert_fail("no such connection");
	return NULL;
}

static void check_ended(struct end *end, struct op *op)
{
	int err = end->conn->eng.err;

	cr_assert(op->open, "a get ends once");
	op->open = false;
	if (!op->get.status)
		cr_assert_arr_eq(op->sink, source, op->get.len);
	else
		cr_assert((err && op->get.status == err) ||
			  (refused && op->get.status == -FI_ENOMEM));
	moved += !op->get.status;
	broken += op->get.status != 0;
	unexpose(end, op);
}

static void op_free(struct end *end, int i)
{
	free(end->ops[i]);
	end->ops[i] = NULL;
}

static void on_done(struct core_chan *chan, struct core_get *get)
{
	struct end *end = end_of(chan);

	for (int i = 0; i < GETS; i++)
		if (end->ops[i] && &end->ops[i]->get == get) {
			check_ended(end, end->ops[i]);
			op_free(end, i);
			return;
		}
	cr_assert_fail("a get that has ended");
}

static void on_acked(struct core_chan *chan, uint64_t pos)
{
}

static const struct core_upcalls upcalls = { .on_get_done = on_done, .on_acked = on_acked };

static struct dev *device(const struct rail_node *node, bool is_second)
{
	return is_second ? node->transport->rails->dev : node->transport->dev;
}

/** Lets links end where what they read is gone. */
static void make_frail(const struct rail_node *node)
{
	for (int i = 0; i < 2; i++)
		if (device(node, i))
			((struct fake_dev *)device(node, i))->frail = true;
}

/** Lets the devices behave at random. */
static void mix(struct rail_node *node)
{
	for (int i = 0; i < 2; i++) {
		struct fake_dev *dev = (struct fake_dev *)device(node, i);

		if (!dev)
			continue;
		dev->eager = rng_chance(&rng, 1, 2);
		dev->lose_reads = rng_chance(&rng, 1, 8);
		dev->no_read = rng_chance(&rng, 1, 8);
		dev->fail_create = rng_chance(&rng, 1, 16) ? -FI_EMFILE : 0;
		dev->fail_connect = rng_chance(&rng, 1, 16) ? -FI_EHOSTUNREACH : 0;
		dev->fail_attach = rng_chance(&rng, 1, 16) ? -FI_ENOMEM : 0;
		dev->fail_reg = rng_chance(&rng, 1, 16) ? -FI_ENOMEM : 0;
		refused |= dev->fail_reg != 0;
	}
}

/* ---- connections ---- */

/** Ends an end as core and the engine do: the channel stops, then its operations end. */
static void close_end(struct end *end)
{
	if (end->stage == NONE)
		return;
	util_list_remove(&end->conn->eng.fail_link);
	ring_life_stop(&end->conn->eng);
	for (int i = 0; i < GETS; i++) {
		if (end->peer->ops[i])
			unexpose(end->peer, end->peer->ops[i]);
		if (!end->ops[i])
			continue;
		unexpose(end, end->ops[i]);
		memset(end->ops[i], 0xDB, sizeof(*end->ops[i]));
		op_free(end, i);
	}
	ring_life_free(&end->conn->eng);
	end->conn = NULL;
	end->stage = NONE;
}

/** Ends those that failed, as the engine does. */
static void end_failed(struct rail_node *node)
{
	struct util_list *first;

	while ((first = util_list_pop(&node->engine.failed))) {
		struct eng_conn *conn = UTIL_CONTAINER_OF(first, struct eng_conn, fail_link);
		struct end *end = end_of(&conn->chan);

		ring_life_end(conn);
		end->stage = DOWN;
		for (int i = 0; i < GETS; i++)
			cr_assert_null(end->ops[i], "all gets have ended");
	}
}

/** Ends takeovers whose peer has ended or never came up, as the handshake does. */
static void end_waiting(const struct rail_node *node)
{
	for (int i = 0; i < PAIRS * 2; i++) {
		struct end *end = &ends[i / 2][i % 2];

		if (end->node == node && end->stage == UP && ring_takeover_is_on(end->conn) &&
		    (end->peer->stage != UP || end->peer->life != end->peer_life))
			ring_conn_fail_cold(end->conn, -FI_ECONNRESET, NULL);
	}
}

static void count_taken(void)
{
	for (int i = 0; i < PAIRS * 2; i++) {
		struct end *end = &ends[i / 2][i % 2];
		bool is_taken = end->stage == UP && end->conn->rail &&
				end->conn->rail->phase == RING_RAIL_TAKEN;

		taken += is_taken && !end->is_taken;
		end->is_taken = is_taken;
	}
}

static void poll_node(struct rail_node *node)
{
	if (node->transport->dev)
		rail_node_poll(node);
	count_taken();
	end_waiting(node);
	end_failed(node);
}

/** Prepares an end, unless the engine would refuse to (eng_outage_enter). */
static void prepare(struct end *end)
{
	if (is_out[end->node - nodes] ||
	    rail_node_prepare(end->node, &upcalls, &end->params, &end->conn))
		return;
	end->stage = PREPARED;
	end->life++;
}

static void establish(struct end *end)
{
	if (end->peer->stage == NONE)
		return;
	end->peer_life = end->peer->life;
	if (ring_setup_establish(&end->conn->eng, &end->peer->params))
		close_end(end);
	else
		end->stage = ESTABLISHED;
}

static void attach(struct end *end)
{
	/* The link of a peer that has closed is gone: the handshake would have ended. */
	if (end->peer->stage == NONE || ring_life_attach(&end->conn->eng))
		close_end(end);
	else
		end->stage = UP;
}

/* ---- operations ---- */

static void get(struct end *end)
{
	int i = (int)rng_below(&rng, GETS);
	size_t len = rng_chance(&rng, 1, 4) ? 1 + rng_below(&rng, LEN)
					    : LEN - rng_below(&rng, LEN - RING_RAIL_MIN);
	struct op *op;
	int ret;

	if (end->peer->stage != UP || end->ops[i])
		return;
	op = calloc(1, sizeof(*op));
	cr_assert_not_null(op);
	op->exposure.chan = &end->peer->conn->eng.chan;
	if (ring_bulk_expose(op->exposure.chan, source, len, &op->exposure)) {
		free(op);
		return;
	}
	op->exposed = true;
	op->iov[0] = (struct iovec){ op->sink, len / 3 };
	op->iov[1] = (struct iovec){ op->sink + len / 3, len - len / 3 };
	op->get = (struct core_get){ .remote_addr = (uintptr_t)source,
				     .remote_key = op->exposure.key,
				     .iov = op->iov,
				     .iov_cnt = 2,
				     .len = len };
	end->ops[i] = op;
	op->open = true;
	ret = ring_bulk_get(&end->conn->eng.chan, &op->get);
	split += end->ops[i] == op && !util_list_is_empty(&end->conn->gets) && end->conn->rail &&
		 !util_list_is_empty(&end->conn->rail->stripes);
	if (!ret)
		return;
	if (ret > 0)
		check_ended(end, op);
	else
		unexpose(end, op);
	op_free(end, i);
}

static void revoke(struct end *end)
{
	struct op *op = end->ops[rng_below(&rng, GETS)];

	if (op)
		unexpose(end, op);
}

static void fail_link(struct dev_link *link)
{
	struct fake_link *f = fake_link_of(link);

	f->shown = false;
	f->down = -FI_ETIMEDOUT;
}

static void fail_rail(struct end *end)
{
	if (end->conn->rail && end->conn->rail->link)
		fail_link(end->conn->rail->link);
}

/** Closes an end whose rail has just failed: parts wait for the first link. */
static void fail_and_close(struct end *end)
{
	fail_rail(end);
	poll_node(end->node);
	if (end->stage == UP && rng_chance(&rng, 1, 2))
		close_end(end);
}

/** Lets an end do one of the things that it may do in its stage. */
static void step_end(struct end *end)
{
	uint64_t what = rng_below(&rng, 100);

	switch (end->stage) {
	case NONE: prepare(end); break;
	case PREPARED: what < 90 ? establish(end) : close_end(end); break;
	case ESTABLISHED: what < 90 ? attach(end) : close_end(end); break;
	case DOWN: close_end(end); break;
	case UP:
		if (what < 80)
			get(end);
		else if (what < 88)
			revoke(end);
		else if (what < 91)
			fail_rail(end);
		else if (what < 96)
			fail_and_close(end);
		else if (what < 99)
			fail_link(end->conn->link);
		else
			close_end(end);
		break;
	}
}

/* ---- devices ---- */

static void fail_device(struct rail_node *node)
{
	struct fake_dev *dev = (struct fake_dev *)device(node, rng_chance(&rng, 2, 3));

	if (!dev)
		return;
	dev->health = rng_chance(&rng, 1, 2) ? -FI_EIO : -FI_ENETDOWN;
	for (unsigned i = 0; i < dev->link_cnt; i++)
		fail_link(&dev->links[i]->base);
}

/** Looks at the devices as the engine does. */
static void look(struct rail_node *node)
{
	struct dev *first = node->transport->dev;
	int state;

	fake_nic_absent = rng_chance(&rng, 1, 8);
	fake_nic_alone = rng_chance(&rng, 1, 4);
	node->transport->rails->open_ns = util_clock_ns();
	state = ring_transport_health(&node->transport->eng);
	if ((state == -FI_EIO || state == -FI_ENODEV) &&
	    ring_rails_is_unused(&node->transport->eng))
		state = ring_transport_reopen(&node->transport->eng);
	is_out[node - nodes] = state == -FI_EIO || state == -FI_ENODEV;
	swapped += node->transport->dev != first;
	make_frail(node);
	for (int i = 0; i < 2; i++) {
		struct fake_dev *dev = (struct fake_dev *)device(node, i);

		if (dev && dev->health == -FI_ENETDOWN)
			dev->health = rng_chance(&rng, 1, 8) ? 0 : dev->health;
	}
}

static void step(void)
{
	struct rail_node *node = &nodes[rng_below(&rng, 2)];
	uint64_t what = rng_below(&rng, 1000);

	if (what < 450)
		poll_node(node);
	else if (what < 900)
		step_end(&ends[rng_below(&rng, PAIRS)][rng_below(&rng, 2)]);
	else if (what < 940)
		mix(node);
	else if (what < 955)
		fail_device(node);
	else
		look(node);
}

static void start(uint64_t seed)
{
	rng.state = seed;
	refused = is_out[0] = is_out[1] = false;
	fake_nic_absent = fake_nic_alone = false;
	for (int i = 0; i < 2; i++) {
		rail_node_open(&nodes[i]);
		make_frail(&nodes[i]);
	}
	for (int i = 0; i < PAIRS * 2; i++)
		ends[i / 2][i % 2] =
			(struct end){ .node = &nodes[i % 2], .peer = &ends[i / 2][!(i % 2)] };
}

/** Lets everything in progress end. */
static void settle(void)
{
	for (int i = 0; i < 4; i++) {
		struct fake_dev *dev = (struct fake_dev *)device(&nodes[i / 2], i % 2);

		if (!dev)
			continue;
		dev->eager = true;
		dev->lose_reads = dev->no_read = false;
		dev->fail_reg = 0;
	}
	for (int i = 0; i < 100; i++)
		poll_node(&nodes[i % 2]);
	for (int i = 0; i < PAIRS * 2 * GETS; i++)
		cr_assert_null(ends[i / 2 / GETS][i / GETS % 2].ops[i % GETS], "a get hangs");
}

static void finish(void)
{
	if (rng_chance(&rng, 1, 2))
		settle();
	for (int i = 0; i < PAIRS * 2; i++)
		close_end(&ends[i / 2][i % 2]);
	for (int i = 0; i < 2; i++) {
		struct ring_rails *rails = nodes[i].transport->rails;

		cr_assert_eq(rails->user_cnt, 0);
		cr_assert(util_list_is_empty(&rails->waiting));
		ring_transport_close(&nodes[i].transport->eng);
	}
	cr_assert_eq(fake_nic_open_cnt, 0);
}

Test(ring_rail_life, lives_end_in_any_order, .timeout = 200)
{
	uint64_t first = rng_env("RAIL_SEED", 1);

	rail_node_params();
	for (size_t i = 0; i < LEN; i++)
		source[i] = (uint8_t)(i * 11 + (i >> 8));
	for (uint64_t seed = first; seed < first + SEEDS; seed++) {
		fprintf(stderr, "RAIL_SEED=%lu\n", seed);
		start(seed);
		for (int i = 0; i < STEPS; i++)
			step();
		finish();
	}
	fprintf(stderr,
		"moved %u, broken %u, split %u, first devices that changed %u, taken over %u\n",
		moved, broken, split, swapped, taken);
	cr_expect(taken > SEEDS / 4);
	cr_expect(moved > SEEDS && broken > SEEDS && split > SEEDS && swapped > SEEDS / 4);
}
