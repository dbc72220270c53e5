/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What drives the rings? The engine of rc endpoints: one per domain, over the devices that there are.
 *
 * Two threads meet here. The control thread (cm/) makes connections and hears of deaths; the thread that makes
 * progress owns everything else. They share only the event queue (ring_event.h) and the list of
 * connections that are being made, both under `lock`. Lock order: domain -> cm -> lock.
 */
#ifndef RING_ENGINE_H
#define RING_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "core/core_chan.h"
#include "dev/dev.h"
#include "ring/ring_lane.h"
#include "ring/ring_paths.h"
#include "util/list.h"

struct ring_conn;

struct core_engine {
	const struct core_upcalls *up;
	struct ring_lane lanes[RING_LANES_MAX]; /* best first */
	uint32_t lane_cnt;
	struct cm_node *node;
	int wait_fd;             /* epoll over the devices' and event_fd */
	int event_fd;            /* events are waiting */
	struct util_list failed; /* ring_conn.dirty_link: core has to hear of it */
	pthread_mutex_t lock;    /* guards events and every ring_ep's conns */
	struct util_list events; /* ring_event.link */
	uint32_t event_cnt;      /* read without the lock by progress */
	size_t ring_mem;         /* bytes of receive rings; atomic */
};

/** One endpoint's address. */
struct core_engine_ep {
	struct core_engine *engine;
	struct core_ep *ep;
	struct cm_agent *agent;
	struct util_list conns; /* ring_conn.conn_link, from prepare to free */
	bool tells_news;        /* up->on_news is wanted */
};

/** The engine over shared memory alone, and the one over whatever FI_COPYRPC_PATHS names. */
extern const struct core_engine_ops ring_engine_shm_ops;
extern const struct core_engine_ops ring_engine_any_ops;

/** The first of them if the other had no more lanes. Any thread. */
const struct core_engine_ops *ring_engine_rc(void);

/* What every instantiation shares (ring_engine.c). */
int ring_engine_open(const struct ring_paths *paths, const struct core_upcalls *up,
		     struct core_engine **engine);
void ring_engine_close(struct core_engine *engine);
int ring_engine_ep_open(struct core_engine *engine, struct core_ep *ep, const struct sockaddr *addr,
			struct core_engine_ep **eep);
void ring_engine_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr);
void ring_engine_ep_close(struct core_engine_ep *eep);
int ring_engine_connect(struct core_engine_ep *eep, const struct sockaddr *addr);
void ring_engine_connect_cancel(struct core_engine_ep *eep, const struct sockaddr *addr);
/** Connected endpoints (ring_dial.c). */
int ring_engine_dial(struct core_engine_ep *eep, const struct sockaddr *addr, const void *data,
		     size_t len);
int ring_engine_answer(struct core_engine_ep *eep, struct cm_call *call, const void *data,
		       size_t len);
int ring_engine_wait_fd(struct core_engine *engine);
int ring_engine_arm(struct core_engine *engine);
void ring_engine_disarm(struct core_engine *engine);

/** Ends a channel: core_chan_ops.stop and close; and call_room. */
void ring_engine_chan_stop(struct core_chan *chan);
void ring_engine_chan_close(struct core_chan *chan);
size_t ring_engine_call_room(struct core_chan *chan, size_t len, uint32_t allowance);

/** The lane of a path (WIRE_CM_PATH_*), or NULL. */
struct ring_lane *ring_engine_lane(struct core_engine *engine, uint32_t path);

/** Events of the control thread and failed connections: the cold half of progress. */
void ring_engine_events_cold(struct core_engine *engine);

static inline bool ring_engine_has_events(const struct core_engine *engine)
{
	return __atomic_load_n(&engine->event_cnt, __ATOMIC_RELAXED) ||
	       engine->failed.next != &engine->failed;
}

#endif
