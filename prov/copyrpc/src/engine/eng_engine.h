/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine of a domain: transports, endpoints, and the state common to all connections. Called by
 * core through core_progress_ops and core_engine_ops.
 *
 * Two threads use an engine. The control thread (cm/) makes connections and detects dead peers; the
 * progress thread owns everything else. They share only the event queue (eng_event.h) and the
 * endpoints' lists of connections, both under `lock`, and the state of devices that may fail, under
 * `device_lock`. Lock order: domain -> cm -> device_lock -> lock.
 *
 * If the first transport has its own progress call, the engine polls the others only while they
 * have connections. That state is a standing event in `attention`, handled by the cold path.
 */
#ifndef ENGINE_ENG_ENGINE_H
#define ENGINE_ENG_ENGINE_H

#include <copyrpc/stats.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm.h"
#include "core/core_engine.h"
#include "engine/eng_transport.h"
#include "util/list.h"
#include "util/name.h"

/** Peer whose next connection gets a ring of another size (eng_room.h). */
struct eng_room_note {
	uint64_t incarnation;
	uint64_t end_ns; /* of its validity */
	enum eng_size size;
};

#define ENG_ROOM_NOTES 256u /* The oldest one is overwritten */

struct core_engine {
	/* wait_fd: epoll descriptor over the transports' descriptors and event_fd */
	struct core_progress base;
	const struct core_upcalls *up;
	union eng_transport_space transports[ENG_TRANSPORTS_MAX]; /* Best first */
	uint32_t transport_cnt;
	struct cm_node *node;
	int event_fd;            /* Readable while events are queued */
	struct util_list failed; /* eng_conn.fail_link: failures not yet reported to core */
	pthread_mutex_t lock;    /* Guards events, writes of attention, notes, every eep's conns */
	struct util_list events; /* eng_event.link */
	struct util_list eeps;   /* core_engine_ep.link; the domain's thread */
	pthread_mutex_t device_lock; /* No device is opened while held (eng_outage.h) */
	/*
	 * Number of events, plus 1 if transports behind the first have connections. Read without
	 * the lock.
	 */
	uint32_t attention;
	uint32_t detour_cnt; /* Connections with out_paths (eng_conn.h) */
	uint64_t offer_ns;   /* Last call of on_regained */
	bool has_outage;     /* A device is out, or may be (eng_outage.h): sleepers look; atomic */
	bool must_look;      /* A connection failed, or the time has come to look at the devices */
	bool has_others;     /* Transports behind the first have connections */
	size_t mem;          /* Bytes counted against FI_COPYRPC_MEM; atomic */
	/* eng_room.h */
	uint32_t cramped_cnt; /* Connections with wants_room */
	uint64_t short_ns;    /* Idle rings are looked for until this time; atomic */
	uint32_t note_cnt;    /* Notes so far */
	struct eng_room_note notes[ENG_ROOM_NOTES];
	/* Row of connections for which the page has none (eng_stats.h), or NULL */
	struct copyrpc_stats_peer *rest;
	struct copyrpc_stats_peer unread; /* Row of connections that are not up */
};

/** Address of one endpoint. */
struct core_engine_ep {
	struct core_engine *engine;
	struct core_ep *ep;
	struct cm_ep *cep;
	struct util_list link;  /* In engine->eeps */
	struct util_list conns; /* eng_conn.conn_link, from prepare to free */
	bool reports_events;    /* Events are reported by up->on_event */
	bool watch_queued;      /* An event of kind ENG_EVENT_WATCH is queued; engine->lock */
	bool tick_queued;       /* Likewise ENG_EVENT_TICK */
	bool look_queued;       /* Likewise ENG_EVENT_LOOK */
	uint64_t watch_ns;      /* Earliest time of the next ENG_EVENT_WATCH; control thread */
	uint64_t tick_ns;       /* Likewise ENG_EVENT_TICK */
	uint64_t look_ns;       /* Likewise ENG_EVENT_LOOK */
	/*
	 * Per-endpoint state of the transports, by local address; made by the control thread,
	 * closed by the domain's thread, under device_lock
	 */
	void *ep_state[ENG_TRANSPORTS_MAX][UTIL_NAME_ADDRS];
};

static inline struct core_engine *eng_engine_of(struct core_progress *base)
{
	return UTIL_CONTAINER_OF(base, struct core_engine, base);
}

/** Opens an engine on the given transports, for core_progress_ops.open. */
int eng_open(const struct eng_transports *transports, const struct core_upcalls *up,
	     struct core_engine **engine);

/* Implement the rest of core_progress_ops. */
void eng_close(struct core_progress *base);
void eng_progress(struct core_progress *base);
int eng_arm(struct core_progress *base);
void eng_disarm(struct core_progress *base);

/** Peer contract of every engine: the functions below. */
extern const struct core_engine_ops eng_ops;

int eng_ep_open(struct core_progress *base, struct core_ep *ep, const struct sockaddr *addr,
		struct core_engine_ep **eep);
void eng_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr);
void eng_ep_close(struct core_engine_ep *eep);
int eng_connect(struct core_engine_ep *eep, const struct sockaddr *addr, bool was_up);
void eng_connect_cancel(struct core_engine_ep *eep, const struct sockaddr *addr);
int eng_connreq(struct core_engine_ep *eep, const struct sockaddr *addr, const void *data,
		size_t len);
int eng_accept(struct core_engine_ep *eep, struct cm_connreq *connreq, const void *data,
	       size_t len);

static inline struct eng_transport *eng_transport_at(struct core_engine *engine, uint32_t i)
{
	return &engine->transports[i].transport;
}

/** Returns the states that the transport keeps for an endpoint, by local address. */
static inline void **eng_ep_states(struct core_engine_ep *eep, struct eng_transport *transport)
{
	return eep->ep_state[(union eng_transport_space *)transport - eep->engine->transports];
}

/** Closes them; no connection of the endpoint is left in the transport. */
void eng_ep_states_close(struct core_engine_ep *eep, struct eng_transport *transport);

/** Returns the transport of a path (WIRE_CM_PATH_*), or NULL. */
struct eng_transport *eng_transport_find(struct core_engine *engine, uint32_t path);

/** Count the attached connections of a transport: one more, one less. */
void eng_transport_get(struct eng_transport *transport);
void eng_transport_put(struct eng_transport *transport);

/**
 * Count the memory of a connection against FI_COPYRPC_MEM; return the remaining bytes. Any thread.
 */
void eng_mem_count(struct eng_conn *conn, size_t len);
size_t eng_mem_left(const struct core_engine *engine);

/** Returns true if the cold path has work. */
static inline bool eng_has_attention(const struct core_engine *engine)
{
	return __atomic_load_n(&engine->attention, __ATOMIC_RELAXED) ||
	       engine->failed.next != &engine->failed;
}

/** Returns true if events are queued or a connection failed. */
bool eng_has_events(const struct core_engine *engine);

/** Handles the queued events and failures. */
void eng_events_cold(struct core_engine *engine);

/**
 * Runs the cold path of a progress call; its hot path polls and flushes the first transport:
 * events, failures, and all other transports.
 */
void eng_progress_cold(struct core_engine *engine);

/** Up-calls of cm; ctx is the core_engine_ep (eng_setup.c). */
extern const struct cm_ep_ops eng_cm_ops;

#endif
