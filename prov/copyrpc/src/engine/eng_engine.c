/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine, endpoints, transports and progress: see eng_engine.h. */
#include "engine/eng_engine.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/core_ep.h"
#include "engine/eng_conn.h"
#include "engine/eng_event.h"
#include "engine/eng_node.h"
#include "engine/eng_outage.h"
#include "engine/eng_stats.h"
#include "util/event.h"
#include "util/log.h"
#include "util/param.h"
#include "util/stats.h"

static int eng_watch(struct core_engine *engine, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(engine->base.wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int eng_open_transport(struct core_engine *engine, const struct eng_transport_ops *ops)
{
	union eng_transport_space *space = &engine->transports[engine->transport_cnt];
	int ret;

	memset(space, 0, sizeof(*space));
	space->transport.ops = ops;
	space->transport.engine = engine;
	ret = ops->open(&space->transport);
	space->transport.stats = eng_stats_transport(ops, ret);
	if (!ret)
		engine->transport_cnt++;
	else
		UTIL_INFO(DOMAIN, "device %s is not used: %s\n", ops->name, fi_strerror(-ret));
	return ret;
}

static void eng_close_transports(struct core_engine *engine)
{
	while (engine->transport_cnt) {
		struct eng_transport *transport = eng_transport_at(engine, --engine->transport_cnt);

		transport->ops->close(transport);
		util_stats_end(transport->stats);
	}
}

/**
 * Opens the transports, best first. Returns 0 if at least one opened, or the last error. Lack of
 * descriptors is an error of all: which path is missing must not depend on the order of the list.
 */
static int eng_open_transports(struct core_engine *engine, const struct eng_transports *transports)
{
	int ret = -FI_ENODEV;

	for (uint32_t i = 0; i < transports->cnt && engine->transport_cnt < ENG_TRANSPORTS_MAX; i++)
		if (!eng_transport_find(engine, transports->ops[i]->path)) {
			ret = eng_open_transport(engine, transports->ops[i]);
			if (ret == -FI_EMFILE)
				break;
		}
	if (engine->transport_cnt && ret != -FI_EMFILE)
		return 0;
	eng_close_transports(engine);
	return ret;
}

static int eng_watch_all(struct core_engine *engine)
{
	int ret = eng_watch(engine, engine->event_fd);

	for (uint32_t i = 0; i < engine->transport_cnt && !ret; i++) {
		struct eng_transport *transport = eng_transport_at(engine, i);

		ret = eng_watch(engine, transport->ops->wait_fd(transport));
	}
	return ret;
}

static int eng_open_fds(struct core_engine *engine)
{
	int ret;

	engine->base.wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->base.wait_fd < 0)
		return -errno;
	engine->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->event_fd < 0) {
		ret = -errno;
		goto err_close_wait;
	}
	ret = eng_watch_all(engine);
	if (!ret)
		return 0;
	close(engine->event_fd);
err_close_wait:
	close(engine->base.wait_fd);
	return ret;
}

int eng_open(const struct eng_transports *transports, const struct core_upcalls *up,
	     struct core_engine **out)
{
	struct core_engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	engine->up = up;
	util_list_init(&engine->failed);
	util_list_init(&engine->events);
	util_list_init(&engine->eeps);
	pthread_mutex_init(&engine->lock, NULL);
	pthread_mutex_init(&engine->device_lock, NULL);
	ret = eng_node_get(&engine->node);
	if (ret)
		goto err_free;
	ret = eng_open_transports(engine, transports);
	if (ret)
		goto err_put_node;
	ret = eng_open_fds(engine);
	if (ret)
		goto err_close_transports;
	eng_stats_open(engine);
	*out = engine;
	return 0;

err_close_transports:
	eng_close_transports(engine);
err_put_node:
	eng_node_put(engine->node);
err_free:
	pthread_mutex_destroy(&engine->device_lock);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
	return ret;
}

void eng_close(struct core_progress *base)
{
	struct core_engine *engine = eng_engine_of(base);

	eng_node_put(engine->node);
	close(engine->event_fd);
	close(engine->base.wait_fd);
	eng_close_transports(engine);
	eng_stats_close(engine);
	pthread_mutex_destroy(&engine->device_lock);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

struct eng_transport *eng_transport_find(struct core_engine *engine, uint32_t path)
{
	for (uint32_t i = 0; i < engine->transport_cnt; i++)
		if (eng_transport_at(engine, i)->ops->path == path)
			return eng_transport_at(engine, i);
	return NULL;
}

/**
 * Updates has_others: transports behind the first one are polled by the cold path while they have
 * connections.
 */
static void eng_transports_changed(struct core_engine *engine)
{
	bool has_others = false;

	for (uint32_t i = 1; i < engine->transport_cnt; i++)
		has_others |= eng_transport_at(engine, i)->conn_cnt > 0;
	if (has_others == engine->has_others)
		return;
	engine->has_others = has_others;
	pthread_mutex_lock(&engine->lock);
	__atomic_store_n(&engine->attention, engine->attention + (has_others ? 1u : -1u),
			 __ATOMIC_RELAXED);
	pthread_mutex_unlock(&engine->lock);
}

void eng_transport_get(struct eng_transport *transport)
{
	transport->conn_cnt++;
	eng_transports_changed(transport->engine);
}

void eng_transport_put(struct eng_transport *transport)
{
	transport->conn_cnt--;
	eng_transports_changed(transport->engine);
}

void eng_mem_count(struct eng_conn *conn, size_t len)
{
	conn->mem += len;
	eng_stats_memory(conn, (int64_t)len);
	__atomic_fetch_add(&conn->engine->mem, len, __ATOMIC_RELAXED);
}

size_t eng_mem_left(const struct core_engine *engine)
{
	size_t used = __atomic_load_n(&engine->mem, __ATOMIC_RELAXED);

	return used < util_params.mem ? util_params.mem - used : 0;
}

/** Returns the paths that the handshake may offer. */
static struct cm_paths eng_paths(struct core_engine *engine)
{
	struct cm_paths paths = { 0 };

	for (uint32_t i = 0; i < engine->transport_cnt; i++) {
		paths.best[i] = eng_transport_at(engine, i)->ops->path;
		paths.all |= paths.best[i];
	}
	return paths;
}

int eng_ep_open(struct core_progress *base, struct core_ep *ep, const struct sockaddr *addr,
		struct core_engine_ep **out)
{
	struct core_engine *engine = eng_engine_of(base);
	struct core_engine_ep *eep = calloc(1, sizeof(*eep));
	int ret;

	if (!eep)
		return -FI_ENOMEM;
	eep->engine = engine;
	eep->ep = ep;
	util_list_init(&eep->conns);
	ret = cm_ep_open(engine->node, addr, eng_paths(engine), &eng_cm_ops, eep, &eep->cep);
	if (ret) {
		free(eep);
		return ret;
	}
	if (ep->conn) {
		eep->reports_events = true;
		cm_ep_make_private(eep->cep);
	}
	util_list_push_back(&engine->eeps, &eep->link);
	eng_outage_tell(eep);
	eng_stats_ep_open(eep);
	*out = eep;
	return 0;
}

void eng_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr)
{
	cm_ep_addr(eep->cep, addr);
}

void eng_ep_states_close(struct core_engine_ep *eep, struct eng_transport *transport)
{
	void **states = eng_ep_states(eep, transport);

	for (uint32_t at = 0; at < UTIL_NAME_ADDRS; at++) {
		if (states[at])
			transport->ops->ep_close(transport, states[at]);
		states[at] = NULL;
	}
}

void eng_ep_close(struct core_engine_ep *eep)
{
	struct util_list *first;

	util_list_remove(&eep->link);
	cm_ep_close(eep->cep);
	eng_event_forget(eep, NULL);
	/* No up-call comes any more: the list is private now. */
	while ((first = util_list_first(&eep->conns)))
		eng_conn_free(UTIL_CONTAINER_OF(first, struct eng_conn, conn_link));
	for (uint32_t i = 0; i < eep->engine->transport_cnt; i++)
		eng_ep_states_close(eep, eng_transport_at(eep->engine, i));
	eng_stats_ep_close(eep);
	free(eep);
}

int eng_connect(struct core_engine_ep *eep, const struct sockaddr *addr, bool was_up)
{
	int ret = cm_connect(eep->cep, addr, was_up);

	if (!ret)
		util_event(COPYRPC_STATS_CONNECTING, addr, 0, 0);
	return ret;
}

void eng_connect_cancel(struct core_engine_ep *eep, const struct sockaddr *addr)
{
	cm_connect_cancel(eep->cep, addr);
}

static void eng_tick(struct core_engine *engine)
{
	for (uint32_t i = 0; i < engine->transport_cnt; i++) {
		struct eng_transport *transport = eng_transport_at(engine, i);

		if (transport->conn_cnt && transport->ops->tick)
			transport->ops->tick(transport);
	}
}

static void eng_event_handle(const struct eng_event *ev)
{
	switch (ev->kind) {
	case ENG_EVENT_UP: eng_conn_up(ev->conn); break;
	case ENG_EVENT_DOWN: eng_conn_down(ev->conn, ev->err); break;
	case ENG_EVENT_FAILED:
		eng_stats_failed(ev->eep, (const struct sockaddr *)&ev->addr, ev->err);
		ev->eep->engine->up->on_connect_failed(ev->eep->ep, (struct sockaddr *)&ev->addr,
						       ev->err);
		break;
	case ENG_EVENT_ALIAS:
		ev->eep->engine->up->on_alias(ev->eep->ep, (struct sockaddr *)&ev->addr,
					      ev->incarnation);
		break;
	case ENG_EVENT_WATCH: ev->eep->engine->up->on_watch(ev->eep->ep); break;
	case ENG_EVENT_TICK: eng_tick(ev->eep->engine); break;
	case ENG_EVENT_LOOK: ev->eep->engine->must_look = true; break;
	case ENG_EVENT_ACCEPTED:
	case ENG_EVENT_REFUSED: eng_connreq_event(ev); break;
	}
}

void eng_events_cold(struct core_engine *engine)
{
	struct util_list *first;
	struct eng_event ev;

	while (eng_event_pop(engine, &ev))
		eng_event_handle(&ev);
	while ((first = util_list_pop(&engine->failed)))
		eng_conn_failed(UTIL_CONTAINER_OF(first, struct eng_conn, fail_link));
	if (engine->must_look) {
		engine->must_look = false;
		eng_outage_look(engine);
	}
}

bool eng_has_events(const struct core_engine *engine)
{
	return __atomic_load_n(&engine->attention, __ATOMIC_RELAXED) != engine->has_others ||
	       engine->failed.next != &engine->failed;
}

static void eng_poll_from(struct core_engine *engine, uint32_t first)
{
	for (uint32_t i = first; i < engine->transport_cnt; i++) {
		struct eng_transport *transport = eng_transport_at(engine, i);

		if (transport->conn_cnt)
			transport->ops->poll(transport);
	}
}

static void eng_flush_from(struct core_engine *engine, uint32_t first)
{
	for (uint32_t i = first; i < engine->transport_cnt; i++) {
		struct eng_transport *transport = eng_transport_at(engine, i);

		if (transport->conn_cnt)
			transport->ops->flush(transport);
	}
}

void eng_progress_cold(struct core_engine *engine)
{
	eng_poll_from(engine, 1);
	if (eng_has_events(engine))
		eng_events_cold(engine);
	eng_flush_from(engine, 1);
}

static __attribute__((noinline)) void eng_progress_all(struct core_engine *engine)
{
	eng_poll_from(engine, 0);
	if (UTIL_UNLIKELY(eng_has_events(engine)))
		eng_events_cold(engine);
	eng_flush_from(engine, 0);
}

/**
 * Polls every transport before it flushes any. Most engines have one transport, with connections.
 */
void eng_progress(struct core_progress *base)
{
	struct core_engine *engine = eng_engine_of(base);
	struct eng_transport *first = eng_transport_at(engine, 0);

	if (UTIL_UNLIKELY(engine->transport_cnt != 1 || !first->conn_cnt ||
			  !first->ops->progress)) {
		eng_progress_all(engine);
		return;
	}
	first->ops->progress(first);
	if (UTIL_UNLIKELY(eng_has_events(engine))) {
		eng_events_cold(engine);
		eng_flush_from(engine, 0);
	}
}

static void eng_disarm_transports(struct core_engine *engine, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		struct eng_transport *transport = eng_transport_at(engine, i);

		if (!eng_outage_is_closed(transport))
			transport->ops->disarm(transport);
	}
}

int eng_arm(struct core_progress *base)
{
	struct core_engine *engine = eng_engine_of(base);
	uint64_t cnt;

	if (read(engine->event_fd, &cnt, sizeof(cnt)) < 0 && errno != EAGAIN)
		return -errno;
	if (eng_has_events(engine))
		return -FI_EAGAIN;
	for (uint32_t i = 0; i < engine->transport_cnt; i++) {
		struct eng_transport *transport = eng_transport_at(engine, i);
		int ret;

		if (eng_outage_is_closed(transport))
			continue;
		/* Only this call polls an idle transport: its events must not wake the sleeper. */
		if (!transport->conn_cnt)
			transport->ops->poll(transport);
		ret = transport->ops->arm(transport);
		if (ret) {
			eng_disarm_transports(engine, i);
			return ret;
		}
	}
	return 0;
}

void eng_disarm(struct core_progress *base)
{
	struct core_engine *engine = eng_engine_of(base);

	eng_disarm_transports(engine, engine->transport_cnt);
}

const struct core_engine_ops eng_ops = {
	.ep_open = eng_ep_open,
	.ep_addr = eng_ep_addr,
	.ep_close = eng_ep_close,
	.connect = eng_connect,
	.connect_cancel = eng_connect_cancel,
	.ep_connect = eng_connreq,
	.ep_accept = eng_accept,
};
