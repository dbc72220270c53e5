/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has the control thread to say?
 *
 * The queue between cm's up-calls (control thread) and progress (the domain's thread). Events of
 * one connection keep their order; a connection that is freed takes its events with it.
 * Shown by test/unit/ring/test_ring_event.c.
 */
#ifndef RING_EVENT_H
#define RING_EVENT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "cm/cm_dial.h"
#include "ring/ring_conn.h"
#include "ring/ring_engine.h"

enum ring_event_kind {
	RING_EVENT_UP,       /* conn: both ends are ready */
	RING_EVENT_DOWN,     /* conn: err */
	RING_EVENT_FAILED,   /* eep, addr: a connect failed with err */
	RING_EVENT_ACCEPTED, /* eep, addr, data: a listener said yes */
	RING_EVENT_REFUSED,  /* eep, err, data: a call came to nothing */
};

struct ring_event {
	struct util_list link;
	enum ring_event_kind kind;
	struct core_engine_ep *eep;
	struct ring_conn *conn;
	int err;
	struct sockaddr_storage addr;
	uint32_t data_len;
	uint8_t data[CM_DIAL_DATA_MAX];
};

/** Queues a copy and wakes a sleeper. -FI_ENOMEM: lost (logged). Control thread. */
void ring_event_push(struct core_engine *engine, const struct ring_event *ev);

/** Takes the oldest one. */
bool ring_event_pop(struct core_engine *engine, struct ring_event *ev);

/** Forgets what is queued for `conn`, or for all of `eep` if conn is NULL. */
void ring_event_forget(struct core_engine_ep *eep, struct ring_conn *conn);

/** cm's up-calls; ctx is the core_engine_ep. */
extern const struct cm_agent_ops ring_cm_ops;

/** What calls came to (ring_dial.c): cm's up-calls, and what progress makes of them. */
void ring_dial_accepted(void *ctx, const struct sockaddr *addr, const void *data, size_t len);
void ring_dial_refused(void *ctx, int err, const void *data, size_t len);
void ring_dial_event(const struct ring_event *ev);

/** Frees a connection in any state. */
void ring_conn_free(struct ring_conn *conn);

#endif
