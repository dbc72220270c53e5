/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How is a connection made? cm's up-calls, in the control thread.
 *
 * prepare makes our half (a ring for the peer to write, its description, our limit of response
 * credit), establish connects to the peer's half, up and down are queued for progress. Both ends
 * compute the first credit of both directions from what the halves say, so none travels.
 */
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring/ring_event.h"
#include "util/log.h"
#include "util/param.h"

#define RING_SETUP_VERSION 1u
#define RING_GRANT_MAX     (32u << 10) /* response bytes a peer may have outstanding */
#define RING_LEN_DEFAULT   (256u << 10)
#define RING_LEN_LEAST     (16u << 10) /* what a connection gets when the budget runs low */
#define RING_GRANT_LEAST   64u         /* the smallest reservation of a call */
#define RING_BUDGET_SHARES 64u /* a new connection takes at most this part of what is left */

/** Our bytes in struct cm_half. */
struct ring_half {
	uint32_t version;
	uint32_t features; /* none yet: zero */
	uint64_t grant_max;
};

static_assert(sizeof(struct ring_half) <= CM_ENGINE_MAX, "fits a half");

/** R of the end that writes a ring of `ring_len` bytes and announced `announced`. */
static uint64_t ring_setup_grant(uint64_t announced, uint64_t ring_len)
{
	uint64_t grant = announced < ring_len / 8 ? announced : ring_len / 8;

	return grant & ~(uint64_t)(WIRE_ALIGN - 1);
}

static size_t ring_setup_left(struct core_engine *engine)
{
	size_t used = __atomic_load_n(&engine->ring_mem, __ATOMIC_RELAXED);

	return used < util_params.mem ? util_params.mem - used : 0;
}

/**
 * Bytes for the ring of one more connection: 0 when the budget is spent. A lane whose bytes are moved
 * by a device also has a send ring per connection, whose size is the peer's choice: likely the same.
 */
static uint64_t ring_setup_len(struct core_engine *engine, const struct ring_lane *lane)
{
	size_t left = ring_setup_left(engine) / (ring_lane_registers(lane) ? 2 : 1);
	uint64_t len = left / RING_BUDGET_SHARES;

	if (util_params.ring_size)
		len = util_pow2_floor(util_params.ring_size);
	else if (len < RING_LEN_LEAST)
		len = RING_LEN_LEAST;
	else
		len = len < RING_LEN_DEFAULT ? util_pow2_floor(len) : RING_LEN_DEFAULT;
	return len <= left ? len : 0;
}

static void ring_setup_count(struct ring_conn *conn, size_t len)
{
	conn->mem += len;
	__atomic_fetch_add(&conn->engine->ring_mem, len, __ATOMIC_RELAXED);
}

static void ring_setup_warn_mem(void)
{
	UTIL_WARN(EP_CTRL,
		  "no ring memory left for another peer: raise FI_COPYRPC_MEM (now %zu bytes)\n",
		  util_params.mem);
}

static int ring_setup_prepare(void *ctx, struct cm_conn *cm, struct cm_half *half, void **user)
{
	struct core_engine_ep *eep = ctx;
	struct core_engine *engine = eep->engine;
	struct ring_half own = { .version = RING_SETUP_VERSION, .grant_max = RING_GRANT_MAX };
	struct ring_lane *lane = ring_engine_lane(engine, half->path);
	uint64_t len = lane ? ring_setup_len(engine, lane) : 0;
	struct ring_conn *conn;
	int ret;

	if (!lane)
		return -FI_EOPNOTSUPP;
	if (!len) {
		ring_setup_warn_mem();
		return -FI_ENOMEM;
	}
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return -FI_ENOMEM;
	ret = lane->ops->dev_ops->link_create(lane->dev, len, &conn->link);
	if (ret)
		goto err_free;
	ret = conn->link->ops->describe(conn->link, &half->dev);
	if (ret)
		goto err_close_link;
	memcpy(half->engine, &own, sizeof(own));
	half->engine_len = sizeof(own);
	conn->engine = engine;
	conn->lane = lane;
	conn->up = engine->up;
	conn->ep = eep->ep;
	conn->eep = eep;
	conn->cm = cm;
	conn->chan.ops = lane->ops->chan_ops;
	util_list_init(&conn->dirty_link);
	util_list_init(&conn->late.link);
	ring_setup_count(conn, conn->link->rx_len);
	pthread_mutex_lock(&engine->lock);
	util_list_push_back(&eep->conns, &conn->conn_link);
	pthread_mutex_unlock(&engine->lock);
	*user = conn;
	return 0;

err_close_link:
	conn->link->ops->close(conn->link);
err_free:
	free(conn);
	return ret;
}

/** The peer chose how long the ring is that we write; where it is a copy here, it is our memory. */
static int ring_setup_count_send_ring(struct ring_conn *conn)
{
	struct dev_link *link = conn->link;

	if (link->caps & DEV_CAP_DIRECT)
		return 0;
	if (link->tx_len > ring_setup_left(conn->engine)) {
		ring_setup_warn_mem();
		return -FI_ENOMEM;
	}
	ring_setup_count(conn, link->tx_len);
	return 0;
}

static int ring_setup_establish(void *ctx, struct cm_conn *cm, void *user,
				const struct cm_half *peer)
{
	struct ring_conn *conn = user;
	struct dev_link *link = conn->link;
	struct ring_half theirs;
	int ret;

	(void)ctx;
	(void)cm;
	if (peer->engine_len != sizeof(theirs))
		return -FI_EIO;
	memcpy(&theirs, peer->engine, sizeof(theirs));
	if (theirs.version != RING_SETUP_VERSION || theirs.features) {
		UTIL_WARN(EP_CTRL,
			  "peer speaks ring protocol %u (features %#x), we speak %u: "
			  "install the same copyrpc on both sides\n",
			  theirs.version, theirs.features, RING_SETUP_VERSION);
		return -FI_EOPNOTSUPP;
	}
	ret = link->ops->connect(link, &peer->dev);
	if (!ret)
		ret = ring_setup_count_send_ring(conn);
	if (ret)
		return ret;
	if (link->tx_len < RING_LEN_MIN || link->tx_len > RING_LEN_MAX ||
	    !util_is_pow2(link->tx_len))
		return -FI_EIO;
	/* With less no call would ever be admitted, and what depends on one would wait for ever. */
	if (ring_setup_grant(theirs.grant_max, link->rx_len) < RING_GRANT_LEAST)
		return -FI_EIO;
	ring_conn_init(conn, link, ring_setup_grant(RING_GRANT_MAX, link->tx_len),
		       ring_setup_grant(theirs.grant_max, link->rx_len));
	if (ring_lane_registers(conn->lane))
		conn->chan.get_min = util_params.rndv_min;
	return 0;
}

static void ring_setup_up(void *ctx, struct cm_conn *cm, void *user, bool asked)
{
	struct core_engine_ep *eep = ctx;
	struct ring_event ev = { .kind = RING_EVENT_UP, .eep = eep, .conn = user };

	(void)cm;
	(void)asked;
	ring_event_push(eep->engine, &ev);
}

static void ring_setup_down(void *ctx, struct cm_conn *cm, void *user, int err)
{
	struct core_engine_ep *eep = ctx;
	struct ring_event ev = { .kind = RING_EVENT_DOWN, .eep = eep, .conn = user, .err = err };

	(void)cm;
	ring_event_push(eep->engine, &ev);
}

static void ring_setup_failed(void *ctx, const struct sockaddr *addr, int err, const char *why)
{
	struct core_engine_ep *eep = ctx;
	struct ring_event ev = { .kind = RING_EVENT_FAILED, .eep = eep, .err = err };

	UTIL_WARN(EP_CTRL, "%s\n", why);
	memcpy(&ev.addr, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	ring_event_push(eep->engine, &ev);
}

const struct cm_agent_ops ring_cm_ops = {
	.prepare = ring_setup_prepare,
	.establish = ring_setup_establish,
	.up = ring_setup_up,
	.down = ring_setup_down,
	.failed = ring_setup_failed,
	.accepted = ring_dial_accepted,
	.refused = ring_dial_refused,
};
