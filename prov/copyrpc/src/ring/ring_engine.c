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

#include "ring/ring_event.h"
#include "ring/ring_loop.h"
#include "ring/ring_node.h"
#include "util/log.h"

static int ring_engine_watch(struct core_engine *engine, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(engine->wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
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
	ret = ring_engine_watch(engine, engine->event_fd);
	if (!ret)
		ret = ring_engine_watch(engine, engine->dev_ops->wait_fd(engine->dev));
	if (!ret)
		return 0;
	close(engine->event_fd);
err_close_wait:
	close(engine->wait_fd);
	return ret;
}

int ring_engine_open(const struct dev_ops *dev_ops, const struct core_chan_ops *chan_ops,
		     const struct core_upcalls *up, struct core_engine **out)
{
	struct core_engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	engine->up = up;
	engine->chan_ops = chan_ops;
	engine->dev_ops = dev_ops;
	util_list_init(&engine->dirty);
	util_list_init(&engine->failed);
	util_list_init(&engine->events);
	pthread_mutex_init(&engine->lock, NULL);
	ret = ring_node_get(&engine->node);
	if (ret)
		goto err_free;
	ret = dev_ops->open(&engine->dev);
	if (ret)
		goto err_put_node;
	ret = ring_engine_open_fds(engine);
	if (ret)
		goto err_close_dev;
	*out = engine;
	return 0;

err_close_dev:
	dev_ops->close(engine->dev);
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
	engine->dev_ops->close(engine->dev);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
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
	ret = cm_agent_open(engine->node, addr, &ring_cm_ops, eep, &eep->agent);
	if (ret) {
		free(eep);
		return ret;
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

void ring_conn_free(struct ring_conn *conn)
{
	struct core_engine *engine = conn->engine;
	struct dev_link *link = conn->link;

	cm_conn_put(conn->cm);
	ring_event_forget(conn->eep, conn);
	pthread_mutex_lock(&engine->lock);
	util_list_remove(&conn->conn_link);
	pthread_mutex_unlock(&engine->lock);
	util_list_remove(&conn->dirty_link);
	if (conn->attached)
		link->ops->detach(link);
	__atomic_fetch_sub(&engine->ring_mem, link->rx_len, __ATOMIC_RELAXED);
	link->ops->close(link);
	ring_conn_fini(conn);
	free(conn);
}

void ring_engine_chan_close(struct core_chan *chan)
{
	struct ring_conn *conn = ring_conn_of(chan);

	if (!conn->err)
		chan->ops->flush(chan);
	ring_conn_free(conn);
}

static void ring_engine_conn_up(struct core_engine *engine, struct ring_conn *conn)
{
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
	struct dev_event ev;

	while (!conn->err && ops->poll && ops->poll(conn->link, &ev) && ev.kind != DEV_EV_DOWN) {
		if (ev.kind == DEV_EV_IMM)
			ring_rx_batch(conn, ev.imm);
		else
			ring_loop_event_cold(conn, &ev);
	}
}

static void ring_engine_conn_down(struct core_engine *engine, struct ring_conn *conn, int err)
{
	if (!conn->up_told) {
		ring_conn_free(conn);
		return;
	}
	ring_engine_drain(conn);
	util_list_remove(&conn->dirty_link);
	conn->err = conn->err ? conn->err : err;
	engine->up->on_down(&conn->chan, conn->err);
}

void ring_engine_events_cold(struct core_engine *engine)
{
	struct util_list *first;
	struct ring_event ev;

	while (ring_event_pop(engine, &ev)) {
		switch (ev.kind) {
		case RING_EVENT_UP: ring_engine_conn_up(engine, ev.conn); break;
		case RING_EVENT_DOWN: ring_engine_conn_down(engine, ev.conn, ev.err); break;
		case RING_EVENT_FAILED:
			engine->up->on_connect_failed(ev.eep->ep, (struct sockaddr *)&ev.addr,
						      ev.err);
			break;
		}
	}
	while ((first = util_list_pop(&engine->failed))) {
		struct ring_conn *conn = UTIL_CONTAINER_OF(first, struct ring_conn, dirty_link);

		engine->up->on_down(&conn->chan, conn->err);
	}
}

int ring_engine_wait_fd(struct core_engine *engine)
{
	return engine->wait_fd;
}

int ring_engine_arm(struct core_engine *engine)
{
	uint64_t cnt;

	if (read(engine->event_fd, &cnt, sizeof(cnt)) < 0 && errno != EAGAIN)
		return -errno;
	if (ring_engine_has_events(engine) || !util_list_is_empty(&engine->dirty))
		return -FI_EAGAIN;
	return engine->dev_ops->arm(engine->dev);
}

void ring_engine_disarm(struct core_engine *engine)
{
	engine->dev_ops->disarm(engine->dev);
}
