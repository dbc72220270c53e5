/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine's objects, and what it does with news of connections: see ring_engine.h. */
#include "ring/ring_engine.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/core_ep.h"
#include "ring/ring_bulk.h"
#include "ring/ring_call.h"
#include "ring/ring_event.h"
#include "ring/ring_late.h"
#include "ring/ring_loop.h"
#include "ring/ring_node.h"
#include "util/log.h"
#include "util/param.h"

#define RING_DRAIN_TURNS 1024u /* a bound: a completion queue is far shorter */

static int ring_engine_watch(struct core_engine *engine, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(engine->wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/** Opens the devices, best first: 0, or the last error if there is none. */
static int ring_engine_open_lanes(struct core_engine *engine, const struct ring_paths *paths)
{
	int ret = -FI_ENODEV;

	for (uint32_t i = 0; i < paths->cnt && engine->lane_cnt < RING_LANES_MAX; i++) {
		struct ring_lane *lane = &engine->lanes[engine->lane_cnt];

		if (ring_engine_lane(engine, paths->lane[i]->path))
			continue;
		lane->ops = paths->lane[i];
		util_list_init(&lane->dirty);
		util_list_init(&lane->unsure);
		ret = lane->ops->dev_ops->open(&lane->dev);
		if (!ret)
			engine->lane_cnt++;
		else
			UTIL_INFO(DOMAIN, "device %s is not used: %s\n", lane->ops->dev_ops->name,
				  fi_strerror(-ret));
	}
	return engine->lane_cnt ? 0 : ret;
}

static void ring_engine_close_lanes(struct core_engine *engine)
{
	while (engine->lane_cnt) {
		struct ring_lane *lane = &engine->lanes[--engine->lane_cnt];

		lane->ops->dev_ops->close(lane->dev);
	}
}

static int ring_engine_watch_all(struct core_engine *engine)
{
	int ret = ring_engine_watch(engine, engine->event_fd);

	for (uint32_t i = 0; i < engine->lane_cnt && !ret; i++) {
		struct ring_lane *lane = &engine->lanes[i];

		ret = ring_engine_watch(engine, lane->ops->dev_ops->wait_fd(lane->dev));
	}
	return ret;
}

static int ring_engine_open_fds(struct core_engine *engine)
{
	int ret;

	engine->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->wait_fd < 0)
		return -errno;
	engine->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->event_fd < 0) {
		ret = -errno;
		goto err_close_wait;
	}
	ret = ring_engine_watch_all(engine);
	if (!ret)
		return 0;
	close(engine->event_fd);
err_close_wait:
	close(engine->wait_fd);
	return ret;
}

int ring_engine_open(const struct ring_paths *paths, const struct core_upcalls *up,
		     struct core_engine **out)
{
	struct core_engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	engine->up = up;
	util_list_init(&engine->failed);
	util_list_init(&engine->events);
	pthread_mutex_init(&engine->lock, NULL);
	ret = ring_node_get(&engine->node);
	if (ret)
		goto err_free;
	ret = ring_engine_open_lanes(engine, paths);
	if (ret)
		goto err_put_node;
	ret = ring_engine_open_fds(engine);
	if (ret)
		goto err_close_lanes;
	*out = engine;
	return 0;

err_close_lanes:
	ring_engine_close_lanes(engine);
err_put_node:
	ring_node_put();
err_free:
	pthread_mutex_destroy(&engine->lock);
	free(engine);
	return ret;
}

void ring_engine_close(struct core_engine *engine)
{
	ring_node_put();
	close(engine->event_fd);
	close(engine->wait_fd);
	ring_engine_close_lanes(engine);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

struct ring_lane *ring_engine_lane(struct core_engine *engine, uint32_t path)
{
	for (uint32_t i = 0; i < engine->lane_cnt; i++)
		if (engine->lanes[i].ops->path == path)
			return &engine->lanes[i];
	return NULL;
}

/** What the handshake may offer. */
static struct cm_paths ring_engine_paths(const struct core_engine *engine)
{
	struct cm_paths paths = { .first = engine->lanes[0].ops->path };

	for (uint32_t i = 0; i < engine->lane_cnt; i++)
		paths.all |= engine->lanes[i].ops->path;
	return paths;
}

int ring_engine_ep_open(struct core_engine *engine, struct core_ep *ep, const struct sockaddr *addr,
			struct core_engine_ep **out)
{
	struct core_engine_ep *eep = calloc(1, sizeof(*eep));
	int ret;

	if (!eep)
		return -FI_ENOMEM;
	eep->engine = engine;
	eep->ep = ep;
	util_list_init(&eep->conns);
	ret = cm_agent_open(engine->node, addr, ring_engine_paths(engine), &ring_cm_ops, eep,
			    &eep->agent);
	if (ret) {
		free(eep);
		return ret;
	}
	if (ep->conn) {
		eep->tells_news = true;
		cm_agent_make_private(eep->agent);
	}
	*out = eep;
	return 0;
}

void ring_engine_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr)
{
	cm_agent_addr(eep->agent, addr);
}

void ring_engine_ep_close(struct core_engine_ep *eep)
{
	struct util_list *first;

	cm_agent_close(eep->agent);
	ring_event_forget(eep, NULL);
	/* No up-call comes any more: nobody else touches the list. */
	while ((first = util_list_first(&eep->conns)))
		ring_conn_free(UTIL_CONTAINER_OF(first, struct ring_conn, conn_link));
	free(eep);
}

int ring_engine_connect(struct core_engine_ep *eep, const struct sockaddr *addr)
{
	return cm_connect(eep->agent, addr);
}

void ring_engine_connect_cancel(struct core_engine_ep *eep, const struct sockaddr *addr)
{
	cm_connect_cancel(eep->agent, addr);
}

/** Everything but its memory goes. Twice does no harm. */
static void ring_conn_stop(struct ring_conn *conn)
{
	if (conn->stopped)
		return;
	conn->stopped = true;
	cm_conn_put(conn->cm);
	ring_event_forget(conn->eep, conn);
	util_list_remove(&conn->dirty_link);
	util_list_remove(&conn->late.link);
	if (conn->attached)
		conn->link->ops->detach(conn->link);
	conn->attached = false;
	conn->err = conn->err ? conn->err : -FI_ESHUTDOWN; /* nothing is marked or taken in */
}

void ring_conn_free(struct ring_conn *conn)
{
	struct core_engine *engine = conn->engine;
	struct dev_link *link = conn->link;

	ring_conn_stop(conn);
	pthread_mutex_lock(&engine->lock);
	util_list_remove(&conn->conn_link);
	pthread_mutex_unlock(&engine->lock);
	__atomic_fetch_sub(&engine->ring_mem, conn->mem, __ATOMIC_RELAXED);
	link->ops->close(link);
	ring_conn_fini(conn);
	free(conn);
}

void ring_engine_chan_stop(struct core_chan *chan)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (!conn->err)
		chan->ops->flush(chan);
	ring_conn_stop(conn);
}

void ring_engine_chan_close(struct core_chan *chan)
{
	ring_engine_chan_stop(chan);
	ring_conn_free(ring_conn_of(chan));
}

size_t ring_engine_call_room(struct core_chan *chan, size_t len, uint32_t allowance)
{
	return ring_call_room(ring_conn_of(chan), len, allowance);
}

static void ring_engine_conn_up(struct ring_conn *conn)
{
	struct core_engine *engine = conn->engine;
	struct core_ep *ep = conn->ep;
	struct sockaddr_storage addr;
	int ret;

	if (conn->up_told || conn->err)
		return;
	cm_conn_addr(conn->cm, &addr);
	ret = conn->link->ops->attach(conn->link);
	if (ret) {
		UTIL_WARN(EP_CTRL, "the device takes no more links: %s\n", fi_strerror(-ret));
		ring_conn_free(conn);
		engine->up->on_connect_failed(ep, (struct sockaddr *)&addr, ret);
		return;
	}
	conn->attached = true;
	conn->up_told = true;
	engine->up->on_up(ep, &conn->chan, (struct sockaddr *)&addr, cm_conn_incarnation(conn->cm));
}

/** Everything that had arrived before the peer went is delivered first. */
static void ring_engine_drain(struct ring_conn *conn)
{
	const struct dev_link_ops *ops = conn->link->ops;
	struct ring_lane *lane = conn->lane;
	struct dev_event ev;
	unsigned i;

	for (i = 0; !ops->poll && i < RING_DRAIN_TURNS && lane->ops->poll(lane); i++)
		;
	while (!conn->err && ops->poll && ops->poll(conn->link, &ev) && ev.kind != DEV_EV_DOWN) {
		if (ev.kind == DEV_EV_IMM)
			ring_rx_batch(conn, ev.imm);
		else
			ring_loop_event_cold(conn, &ev);
	}
}

/** The end of a connection that core knows: the device lets go of its memory before core hears. */
static void ring_engine_conn_end(struct ring_conn *conn)
{
	if (conn->attached && ring_lane_registers(conn->lane)) {
		conn->attached = false;
		conn->link->ops->detach(conn->link);
		ring_bulk_fail(conn, conn->err);
	}
	conn->up->on_down(&conn->chan, conn->err);
}

static void ring_engine_conn_down(struct ring_conn *conn, int err)
{
	if (!conn->up_told) {
		ring_conn_free(conn);
		return;
	}
	if (!conn->err)
		ring_engine_drain(conn);
	util_list_remove(&conn->dirty_link);
	util_list_remove(&conn->late.link);
	conn->err = conn->err ? conn->err : err;
	conn->tx.hold_end = 0;
	ring_engine_conn_end(conn);
}

void ring_engine_events_cold(struct core_engine *engine)
{
	struct util_list *first;
	struct ring_event ev;

	while (ring_event_pop(engine, &ev)) {
		switch (ev.kind) {
		case RING_EVENT_UP: ring_engine_conn_up(ev.conn); break;
		case RING_EVENT_DOWN: ring_engine_conn_down(ev.conn, ev.err); break;
		case RING_EVENT_FAILED:
			engine->up->on_connect_failed(ev.eep->ep, (struct sockaddr *)&ev.addr,
						      ev.err);
			break;
		case RING_EVENT_ACCEPTED:
		case RING_EVENT_REFUSED: ring_dial_event(&ev); break;
		}
	}
	while ((first = util_list_pop(&engine->failed))) {
		struct ring_conn *conn = UTIL_CONTAINER_OF(first, struct ring_conn, dirty_link);

		if (conn->cm)
			cm_conn_break(conn->cm);
		ring_engine_conn_end(conn);
	}
}

int ring_engine_wait_fd(struct core_engine *engine)
{
	return engine->wait_fd;
}

static void ring_engine_disarm_lanes(struct core_engine *engine, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		engine->lanes[i].ops->dev_ops->disarm(engine->lanes[i].dev);
}

int ring_engine_arm(struct core_engine *engine)
{
	uint64_t cnt;

	if (read(engine->event_fd, &cnt, sizeof(cnt)) < 0 && errno != EAGAIN)
		return -errno;
	if (ring_engine_has_events(engine))
		return -FI_EAGAIN;
	for (uint32_t i = 0; i < engine->lane_cnt; i++) {
		struct ring_lane *lane = &engine->lanes[i];
		int ret = -FI_EAGAIN;

		if (util_list_is_empty(&lane->dirty) && !ring_late_ask_all(lane))
			ret = lane->ops->dev_ops->arm(lane->dev);
		if (ret) {
			ring_engine_disarm_lanes(engine, i);
			return ret;
		}
	}
	return 0;
}

void ring_engine_disarm(struct core_engine *engine)
{
	ring_engine_disarm_lanes(engine, engine->lane_cnt);
}

/** Progress over several lanes: all of them are asked before anything waits. */
static void ring_engine_any_progress(struct core_engine *engine)
{
	struct ring_lane *end = engine->lanes + engine->lane_cnt;

	for (struct ring_lane *lane = engine->lanes; lane != end; lane++)
		lane->ops->poll(lane);
	if (UTIL_UNLIKELY(ring_engine_has_events(engine)))
		ring_engine_events_cold(engine);
	for (struct ring_lane *lane = engine->lanes; lane != end; lane++)
		if (!util_list_is_empty(&lane->dirty))
			lane->ops->flush(lane);
	for (struct ring_lane *lane = engine->lanes; lane != end; lane++)
		ring_late_progress(lane);
}

static int ring_engine_any_open(const struct core_upcalls *up, struct core_engine **engine)
{
	struct ring_paths paths;
	int ret = ring_paths_read(util_params.paths, true, &paths);

	return ret ? ret : ring_engine_open(&paths, up, engine);
}

const struct core_engine_ops ring_engine_any_ops = {
	.name = "ring",
	.open = ring_engine_any_open,
	.close = ring_engine_close,
	.ep_open = ring_engine_ep_open,
	.ep_addr = ring_engine_ep_addr,
	.ep_close = ring_engine_ep_close,
	.connect = ring_engine_connect,
	.connect_cancel = ring_engine_connect_cancel,
	.dial = ring_engine_dial,
	.answer = ring_engine_answer,
	.progress = ring_engine_any_progress,
	.wait_fd = ring_engine_wait_fd,
	.arm = ring_engine_arm,
	.disarm = ring_engine_disarm,
};

const struct core_engine_ops *ring_engine_rc(void)
{
	struct ring_paths paths;

	if (!ring_paths_read(util_params.paths, false, &paths) && paths.cnt == 1 &&
	    paths.lane[0] == &ring_lane_shm)
		return &ring_engine_shm_ops;
	return &ring_engine_any_ops;
}
