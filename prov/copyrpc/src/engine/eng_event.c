/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue from the control thread to progress: see eng_event.h. */
#include "engine/eng_event.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"

void eng_event_set_addr(struct eng_event *ev, const struct sockaddr *addr)
{
	memcpy(&ev->addr, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
}

static void eng_event_link_locked(struct core_engine *engine, struct eng_event *ev)
{
	util_list_push_back(&engine->events, &ev->link);
	__atomic_store_n(&engine->attention, engine->attention + 1, __ATOMIC_RELEASE);
}

static void eng_event_wake(struct core_engine *engine)
{
	uint64_t one = 1;

	if (write(engine->event_fd, &one, sizeof(one)) < 0)
		UTIL_DBG(EP_CTRL, "event counter full\n"); /* The eventfd is readable already */
}

void eng_event_push(struct core_engine *engine, const struct eng_event *ev)
{
	struct eng_event *copy = malloc(sizeof(*copy));

	if (!copy) {
		UTIL_WARN(EP_CTRL, "out of memory: a connection event is lost\n");
		return;
	}
	*copy = *ev;
	pthread_mutex_lock(&engine->lock);
	eng_event_link_locked(engine, copy);
	pthread_mutex_unlock(&engine->lock);
	eng_event_wake(engine);
	if (ev->eep && ev->eep->reports_events)
		engine->up->on_event(ev->eep->ep);
}

static bool *eng_event_queued(struct core_engine_ep *eep, enum eng_event_kind kind)
{
	switch (kind) {
	case ENG_EVENT_WATCH: return &eep->watch_queued;
	case ENG_EVENT_TICK: return &eep->tick_queued;
	case ENG_EVENT_LOOK: return &eep->look_queued;
	default: return NULL;
	}
}

/** Returns true if the event wakes a thread that sleeps. */
static bool eng_event_wakes(struct core_engine *engine, enum eng_event_kind kind)
{
	if (kind == ENG_EVENT_LOOK)
		return __atomic_load_n(&engine->has_outage, __ATOMIC_RELAXED);
	return kind == ENG_EVENT_WATCH && __atomic_load_n(&engine->base.waits, __ATOMIC_RELAXED);
}

void eng_event_push_look(struct core_engine_ep *eep, enum eng_event_kind kind)
{
	struct core_engine *engine = eep->engine;
	struct eng_event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return;
	ev->kind = kind;
	ev->eep = eep;
	pthread_mutex_lock(&engine->lock);
	if (!*eng_event_queued(eep, kind)) {
		*eng_event_queued(eep, kind) = true;
		eng_event_link_locked(engine, ev);
		ev = NULL;
	}
	pthread_mutex_unlock(&engine->lock);
	free(ev);
	if (eng_event_wakes(engine, kind))
		eng_event_wake(engine);
}

static void eng_event_unlink_locked(struct core_engine *engine, struct eng_event *ev)
{
	util_list_remove(&ev->link);
	__atomic_store_n(&engine->attention, engine->attention - 1, __ATOMIC_RELEASE);
}

bool eng_event_pop(struct core_engine *engine, struct eng_event *ev)
{
	struct util_list *first;
	struct eng_event *found = NULL;

	pthread_mutex_lock(&engine->lock);
	first = util_list_first(&engine->events);
	if (first) {
		found = UTIL_CONTAINER_OF(first, struct eng_event, link);
		eng_event_unlink_locked(engine, found);
		if (eng_event_queued(found->eep, found->kind))
			*eng_event_queued(found->eep, found->kind) = false;
	}
	pthread_mutex_unlock(&engine->lock);
	if (!found)
		return false;
	*ev = *found;
	free(found);
	return true;
}

void eng_event_forget(struct core_engine_ep *eep, struct eng_conn *conn)
{
	struct core_engine *engine = eep->engine;
	struct util_list *it, *tmp;
	struct eng_event *ev;

	pthread_mutex_lock(&engine->lock);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &engine->events) {
		ev = UTIL_CONTAINER_OF(it, struct eng_event, link);
		if (ev->eep != eep || (conn && ev->conn != conn))
			continue;
		eng_event_unlink_locked(engine, ev);
		free(ev);
	}
	pthread_mutex_unlock(&engine->lock);
}
