/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rails of connections, and gets over two links: see ring_rail.h. */
#include "ring/ring_rail.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/eng_engine.h"
#include "engine/eng_outage.h"
#include "engine/eng_stats.h"
#include "ring/ring_rx.h"
#include "ring/ring_takeover.h"
#include "util/clock.h"
#include "util/copy.h"
#include "util/log.h"

#define RING_RAIL_BUDGET  64u                 /* Events of one progress call */
#define RING_RAIL_REST_NS (4 * UTIL_NS_PER_S) /* After a loss: outages are known by then */

/** Get over two links. Its parts live here: core may free the get before the connection closes. */
struct ring_stripe {
	struct util_list link; /* ring_rail.stripes */
	struct core_get *get;
	struct ring_get part[2]; /* The second one begins over the rail */
	struct iovec iov[2][DEV_GET_IOV_MAX];
	bool is_open[2]; /* The part is in progress */
	int status;      /* The first error of a part, or 0 */
};

static struct ring_rails *ring_rail_rails(const struct ring_conn *conn)
{
	return ring_conn_transport(conn)->rails;
}

/* ---- life ---- */

bool ring_rail_prepare(struct ring_conn *conn, struct ring_transport *transport,
		       struct dev_desc *desc)
{
	struct ring_rails *rails = transport->rails;
	struct ring_rail *rail = calloc(1, sizeof(*rail));
	struct dev_desc own = { 0 };
	int ret = -FI_ENODEV;

	if (!rail)
		return false;
	pthread_mutex_lock(&rails->lock);
	if (rails->dev && !rails->is_out)
		ret = transport->dev_ops->link_beside(rails->dev, conn->link, &rail->link);
	if (!ret && (rail->link->ops->describe(rail->link, &own) || own.len != desc->len ||
		     2 * own.len > sizeof(desc->bytes))) {
		rail->link->ops->close(rail->link);
		ret = -FI_EIO;
	}
	rails->user_cnt += !ret;
	pthread_mutex_unlock(&rails->lock);
	if (ret) {
		free(rail);
		return false;
	}
	/* Both halves of the description are equally long. */
	memcpy(desc->bytes + desc->len, own.bytes, own.len);
	desc->len += own.len;
	util_list_init(&rail->exposed);
	util_list_init(&rail->stripes);
	util_list_init(&rail->taking);
	rail->conn = conn;
	conn->rail = rail;
	return true;
}

/** Returns the part of a get that is open on the rail, or NULL. */
static struct ring_get *ring_rail_part_of(struct util_list *link)
{
	struct ring_stripe *stripe = UTIL_CONTAINER_OF(link, struct ring_stripe, link);

	return stripe->is_open[1] && stripe->part[1].on_rail ? &stripe->part[1] : NULL;
}

/** Ends the registrations of open parts: the device may be closed before they end. */
static void ring_rail_release_parts(struct ring_conn *conn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->rail->stripes) {
		struct ring_get *part = ring_rail_part_of(it);

		if (part)
			ring_bulk_release(conn, part);
	}
}

void ring_rail_drop(struct ring_conn *conn)
{
	struct ring_rails *rails = ring_rail_rails(conn);
	struct ring_rail *rail = conn->rail;

	if (!rail || !rail->link)
		return;
	if (rail->attached)
		rail->link->ops->detach(rail->link);
	rail->attached = false;
	rail->is_ready = false;
	util_list_remove(&rail->taking);
	ring_rail_release_second(conn);
	ring_rail_release_parts(conn);
	pthread_mutex_lock(&rails->lock);
	rail->link->ops->close(rail->link);
	rails->user_cnt--;
	pthread_mutex_unlock(&rails->lock);
	rail->link = NULL;
	if (ring_takeover_is_on(conn))
		conn->dev = ring_conn_transport(conn)->dev; /* the link is on it */
}

void ring_rail_free(struct ring_conn *conn)
{
	ring_rail_drop(conn);
	if (conn->rail)
		util_list_remove(&conn->rail->taking);
	free(conn->rail);
	conn->rail = NULL;
}

void ring_rail_close_link(struct ring_conn *conn)
{
	struct ring_transport *transport = ring_conn_transport(conn);
	struct ring_rails *rails = transport->rails;

	if (!rails) {
		conn->link->ops->close(conn->link);
		return;
	}
	pthread_mutex_lock(&rails->lock);
	conn->link->ops->close(conn->link);
	if (conn->dev == transport->dev)
		rails->first_cnt--;
	else
		rails->user_cnt--;
	pthread_mutex_unlock(&rails->lock);
}

static int ring_rail_connect(struct ring_conn *conn, const struct dev_desc *second)
{
	struct dev_link *link = conn->rail->link;
	int ret;

	link->caps |= DEV_CAP_BRIEF;
	ret = link->ops->connect(link, second);
	if (ret)
		return ret;
	link->user = conn;
	return link->caps & DEV_CAP_GET ? 0 : -FI_EOPNOTSUPP;
}

int ring_rail_split(const struct dev_desc *both, bool has_rail, struct dev_desc *first,
		    struct dev_desc *second)
{
	*first = *both;
	*second = (struct dev_desc){ 0 };
	if (!has_rail)
		return 0;
	if (both->len % 2)
		return -FI_EIO;
	second->len = both->len / 2;
	first->len = second->len;
	memcpy(second->bytes, both->bytes + second->len, second->len);
	return 0;
}

void ring_rail_establish(struct ring_conn *conn, const struct dev_desc *second)
{
	if (conn->rail && (!second->len || ring_rail_connect(conn, second)))
		ring_rail_free(conn);
}

/** Finds out whether the rail reaches the peer, before a message depends on it. */
static void ring_rail_test(struct ring_rail *rail)
{
	uint64_t value;
	int ret = rail->link->ops->read_consumer(rail->link, &value);

	rail->is_tested = ret >= 0;
	rail->is_ready = ret > 0;
}

void ring_rail_attach(struct ring_conn *conn)
{
	struct ring_rail *rail = conn->rail;

	if (conn->lacks_rail)
		eng_outage_lacks(&conn->eng);
	if (!rail || !rail->link)
		return;
	if (rail->link->ops->attach(rail->link)) {
		ring_rail_drop(conn);
		ring_rail_lose(conn);
		return;
	}
	rail->attached = true;
	conn->tx.keeps_heads = true;
	ring_rail_test(rail);
}

/* ---- return of both devices ---- */

void ring_rail_lose(struct ring_conn *conn)
{
	conn->rail->lost_ns = util_clock_ns();
	eng_outage_lacks(&conn->eng);
}

/** Returns true while a takeover is in progress, which the peer alone may have begun. */
static bool ring_rail_is_taking(const struct ring_conn *conn)
{
	const struct ring_rail *rail = conn->rail;

	return ring_takeover_is_on(conn) || (rail->phase == RING_RAIL_BESIDE && rail->has_peer_pos);
}

bool ring_rail_improves(const struct eng_conn *eng)
{
	const struct ring_conn *conn = (const struct ring_conn *)eng;
	const struct ring_rails *rails = ring_rail_rails(conn);
	const struct ring_rail *rail = conn->rail;

	if (!conn->knows_rails || eng->transport->outage || !rails->dev || rails->is_out)
		return false;
	if (!rail)
		return true;
	return !ring_rail_is_taking(conn) &&
	       (!rail->lost_ns || util_clock_ns() - rail->lost_ns >= RING_RAIL_REST_NS);
}

/* ---- gets ---- */

bool ring_rail_takes(struct ring_conn *conn, const struct core_get *get)
{
	struct ring_rail *rail = conn->rail;

	if (!rail->link || rail->phase != RING_RAIL_BESIDE || get->len < RING_RAIL_MIN ||
	    !(get->remote_key >> 32))
		return false;
	if (!rail->is_tested)
		ring_rail_test(rail);
	return rail->is_ready;
}

/** Begins part `i`: [skip, skip + len) of the get. */
static struct ring_get *ring_rail_begin(struct ring_conn *conn, struct ring_stripe *stripe,
					unsigned i, size_t skip, size_t len)
{
	const struct core_get *get = stripe->get;
	struct ring_get *part = &stripe->part[i];
	struct iovec *iov = stripe->iov[i];

	part->dev = (struct dev_get){
		.remote_addr = get->remote_addr + skip,
		.iov = iov,
		.iov_cnt = util_iov_slice(iov, DEV_GET_IOV_MAX, get->iov, get->iov_cnt, skip, len),
		.len = len,
		.user = conn,
	};
	part->slot = NULL;
	part->direct = false;
	part->registered = false;
	part->waits = false;
	part->on_rail = i == 1;
	part->stripe = stripe;
	util_list_init(&part->link);
	util_list_push_back(&conn->gets, &part->link);
	stripe->is_open[i] = true;
	return part;
}

int ring_rail_post(struct ring_conn *conn, struct ring_get *part)
{
	struct dev_link *link = part->on_rail ? conn->rail->link : conn->link;
	uint64_t key = part->stripe->get->remote_key;
	int ret = 0;

	part->dev.remote_key = part->on_rail ? key >> 32 : ring_takeover_key(conn, key);
	if (!part->registered)
		ret = ring_bulk_reg(conn, part, DEV_MEM_LOCAL);
	if (ret)
		return ret;
	part->registered = true;
	return link->ops->get(link, &part->dev);
}

/** Lets a part that has not ended go over the first link. */
static void ring_rail_turn(struct ring_conn *conn, struct ring_get *part)
{
	ring_bulk_release(conn, part);
	part->on_rail = false;
}

/**
 * Posts a part, over the first link if the rail cannot take it, or lets it wait. Returns true if it
 * has ended.
 */
static bool ring_rail_run(struct ring_conn *conn, struct ring_get *part)
{
	int ret = ring_rail_post(conn, part);

	if (ret < 0 && ret != -FI_EAGAIN && part->on_rail) {
		ring_rail_turn(conn, part);
		ret = ring_rail_post(conn, part);
	}
	if (ret == -FI_EAGAIN) {
		part->waits = true;
		util_list_push_back(&ring_rail_rails(conn)->waiting, &part->dev.dev_link);
		return false;
	}
	if (ret < 0)
		part->dev.status = ret;
	return ret != 0;
}

static void ring_rail_stripe_free(struct ring_stripe *stripe)
{
	util_list_remove(&stripe->link);
	free(stripe);
}

int ring_rail_get(struct ring_conn *conn, struct core_get *get)
{
	size_t half = util_align_up(get->len / 2, (size_t)RING_RAIL_ALIGN);
	struct ring_stripe *stripe = malloc(sizeof(*stripe));
	struct ring_get *first, *second;
	int ret;

	if (!stripe)
		return -FI_ENOMEM;
	*stripe = (struct ring_stripe){ .get = get };
	util_list_init(&stripe->link);
	util_list_push_back(&conn->rail->stripes, &stripe->link);
	first = ring_rail_begin(conn, stripe, 0, 0, half);
	ret = ring_rail_post(conn, first);
	if (ret < 0) {
		util_list_remove(&first->link);
		ring_bulk_release(conn, first);
		ring_rail_stripe_free(stripe);
		return ret;
	}
	second = ring_rail_begin(conn, stripe, 1, half, get->len - half);
	if (ret)
		ring_bulk_part_done(conn, first);
	if (!ring_rail_run(conn, second) || !ring_bulk_part_done(conn, second))
		return 0;
	eng_stats_get(&conn->eng.chan, get);
	return 1;
}

struct core_get *ring_rail_join(struct ring_get *part)
{
	struct ring_stripe *stripe = part->stripe;
	struct core_get *get = stripe->get;

	if (!stripe->status)
		stripe->status = part->dev.status;
	stripe->is_open[part - stripe->part] = false;
	if (stripe->is_open[0] || stripe->is_open[1])
		return NULL;
	get->status = stripe->status;
	ring_rail_stripe_free(stripe);
	return get;
}

/** Ends the rail of a connection that goes on, and does its parts over the first link. */
static void ring_rail_fail(struct ring_conn *conn, int err)
{
	struct util_list *it, *tmp;

	UTIL_WARN(EP_CTRL,
		  "the second rail to a peer ended (%s): its long messages go over the first "
		  "device alone until both devices are in use again\n",
		  fi_strerror(-err));
	ring_rail_drop(conn);
	ring_rail_lose(conn);
	eng_stats_conn_moved(&conn->eng);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &conn->rail->stripes) {
		struct ring_get *part = ring_rail_part_of(it);

		if (!part)
			continue;
		if (part->waits)
			util_list_remove(&part->dev.dev_link);
		ring_rail_turn(conn, part);
		/* In its turn: an up-call here could end other gets of the list. */
		part->waits = true;
		util_list_push_back(&ring_rail_rails(conn)->waiting, &part->dev.dev_link);
	}
}

/** Without its rail a takeover that one end has begun comes to no end. */
static void ring_rail_down(struct ring_conn *conn, int err)
{
	if (ring_takeover_is_on(conn) || conn->rail->has_peer_pos)
		ring_conn_fail_cold(conn, err, NULL);
	else
		ring_rail_fail(conn, err);
}

static void ring_rail_event(struct ring_conn *conn, const struct dev_event *ev)
{
	switch (ev->kind) {
	case DEV_EV_GET: ring_bulk_get_done(conn, ev->get); break;
	case DEV_EV_READ:
		conn->rail->is_ready = true;
		eng_stats_conn_moved(&conn->eng);
		break;
	case DEV_EV_IMM: ring_takeover_received(conn, ev->imm); break;
	case DEV_EV_DOWN: ring_rail_down(conn, ev->status); break;
	default: ring_rail_down(conn, -FI_EIO); break;
	}
}

/** Handles an event of a link that is the connection's only one. */
static void ring_rails_event(struct ring_conn *conn, const struct dev_event *ev)
{
	if (ev->kind != DEV_EV_IMM) {
		ring_rx_event_cold(conn, ev);
		return;
	}
	ring_rx_batch(conn->link->ops, conn, ev->imm);
	ring_ack_on_progress(conn, ev->imm);
}

/** Tries once each of the parts that wait. */
static void ring_rails_retry(struct ring_rails *rails)
{
	struct util_list due, *it;

	util_list_init(&due);
	util_list_move(&rails->waiting, &due);
	while ((it = util_list_pop(&due))) {
		struct dev_get *dget = UTIL_CONTAINER_OF(it, struct dev_get, dev_link);
		struct ring_get *part = (struct ring_get *)dget;
		struct ring_conn *conn = dget->user;

		part->waits = false;
		if (!conn->eng.err && ring_rail_run(conn, part))
			ring_bulk_get_done(conn, dget);
	}
}

bool ring_rails_poll(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;
	unsigned budget = RING_RAIL_BUDGET;
	struct dev_event ev;

	if (!rails)
		return false;
	while (budget && rails->dev && transport->dev_ops->poll(rails->dev, &ev)) {
		struct ring_conn *conn = ev.link->user;

		if (ev.link == conn->link)
			ring_rails_event(conn, &ev);
		else
			ring_rail_event(conn, &ev);
		budget--;
	}
	if (!util_list_is_empty(&rails->waiting))
		ring_rails_retry(rails);
	return !budget;
}
