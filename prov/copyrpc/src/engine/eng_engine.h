/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What drives the connections of a domain? The engine: its transports, its endpoints, and what is common
 * to all connections.
 *
 * Two threads meet here. The control thread (cm/) makes connections and hears of deaths; the thread
 * that makes progress owns everything else. They share only the event queue (eng_event.h) and the
 * list of connections that are being made, both under `lock`. Lock order: domain -> cm -> lock.
 *
 * An engine whose first transport has a progress call of its own pays for the others only while they
 * carry something: these are then a standing event (`attention`), and the cold half of that call.
 *
 * Shown by test/unit/engine/test_eng_engine.c.
 */
#ifndef ENG_ENGINE_H
#define ENG_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "core/core_chan.h"
#include "engine/eng_transport.h"
#include "util/list.h"

struct core_engine {
	const struct core_upcalls *up;
	union eng_transport_space rooms[ENG_TRANSPORTS_MAX]; /* best first */
	uint32_t transport_cnt;
	struct cm_node *node;
	int wait_fd;             /* epoll over the transports' and event_fd */
	int event_fd;            /* events are waiting */
	struct util_list failed; /* eng_conn.fail_link: core has to hear of it */
	pthread_mutex_t lock;    /* guards events, attention's writes and every eep's conns */
	struct util_list events; /* eng_event.link */
	/* Events, and 1 if transports behind the first one carry something. Read without the lock. */
	uint32_t attention;
	bool has_others; /* that 1 */
	size_t mem;      /* bytes that count against FI_COPYRPC_MEM; atomic */
};

/** One endpoint's address. */
struct core_engine_ep {
	struct core_engine *engine;
	struct core_ep *ep;
	struct cm_ep *cep;
	struct util_list conns; /* eng_conn.conn_link, from prepare to free */
	bool reports_events;    /* up->on_event is wanted */
	void *port
		[ENG_TRANSPORTS_MAX]; /* what transports have of their own for it; the control thread's */
};

/** core_engine_ops.open, but for the transports. */
int eng_open(const struct eng_transports *transports, const struct core_upcalls *up,
	     struct core_engine **engine);

/* The rest of core_engine_ops, for every engine. */
void eng_close(struct core_engine *engine);
int eng_ep_open(struct core_engine *engine, struct core_ep *ep, const struct sockaddr *addr,
		struct core_engine_ep **eep);
void eng_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr);
void eng_ep_close(struct core_engine_ep *eep);
int eng_connect(struct core_engine_ep *eep, const struct sockaddr *addr);
void eng_connect_cancel(struct core_engine_ep *eep, const struct sockaddr *addr);
int eng_connreq(struct core_engine_ep *eep, const struct sockaddr *addr, const void *data,
		size_t len);
int eng_accept(struct core_engine_ep *eep, struct cm_connreq *connreq, const void *data,
	       size_t len);
void eng_progress(struct core_engine *engine);
int eng_wait_fd(struct core_engine *engine);
int eng_arm(struct core_engine *engine);
void eng_disarm(struct core_engine *engine);

static inline struct eng_transport *eng_transport_at(struct core_engine *engine, uint32_t i)
{
	return &engine->rooms[i].transport;
}

/** The transport of a path (WIRE_CM_PATH_*), or NULL. */
struct eng_transport *eng_transport_find(struct core_engine *engine, uint32_t path);

/** What the transport's ep_open gave for this endpoint. */
static inline void *eng_transport_ep(const struct core_engine_ep *eep,
				     const struct eng_transport *transport)
{
	return eep->port[(const union eng_transport_space *)transport - eep->engine->rooms];
}

/** A connection more is polled; one less. */
void eng_transport_get(struct eng_transport *transport);
void eng_transport_put(struct eng_transport *transport);

/** Counts memory of a connection against FI_COPYRPC_MEM. Bytes that are left. Any thread. */
void eng_mem_count(struct eng_conn *conn, size_t len);
size_t eng_mem_left(const struct core_engine *engine);

/** Has the cold half something to do? */
static inline bool eng_has_attention(const struct core_engine *engine)
{
	return __atomic_load_n(&engine->attention, __ATOMIC_RELAXED) ||
	       engine->failed.next != &engine->failed;
}

/** Has the control thread said something, or a connection failed? */
bool eng_has_events(const struct core_engine *engine);

/** Deals with it. */
void eng_events_cold(struct core_engine *engine);

/**
 * The cold half of a progress call whose hot half polls and flushes the first transport: what the
 * control thread says, who failed, and all other transports.
 */
void eng_progress_cold(struct core_engine *engine);

/** cm's up-calls; ctx is the core_engine_ep (eng_setup.c). */
extern const struct cm_ep_ops eng_cm_ops;

#endif
