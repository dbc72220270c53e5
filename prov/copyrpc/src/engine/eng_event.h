/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queue from cm's up-calls (control thread) to progress (the domain's thread).
 *
 * Events of one connection keep their order. Freeing a connection removes its events.
 */
#ifndef ENGINE_ENG_EVENT_H
#define ENGINE_ENG_EVENT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "cm/msg/cm_msg.h"
#include "engine/eng_engine.h"

enum eng_event_kind {
	ENG_EVENT_UP,       /* conn: both ends are ready */
	ENG_EVENT_DOWN,     /* conn: err */
	ENG_EVENT_FAILED,   /* eep, addr: a connect failed with err */
	ENG_EVENT_ALIAS,    /* eep, addr, incarnation: addr is one of a connected peer */
	ENG_EVENT_ACCEPTED, /* eep, addr, data: the listener accepted */
	ENG_EVENT_REFUSED,  /* eep, err, data: the connection request failed */
	ENG_EVENT_WATCH,    /* eep: core should look at its peers */
	ENG_EVENT_TICK,     /* eep: transports should look at their connections */
	ENG_EVENT_LOOK,     /* eep: the engine should look at its devices (eng_outage.h) */
};

struct eng_event {
	struct util_list link;
	enum eng_event_kind kind;
	struct core_engine_ep *eep;
	struct eng_conn *conn;
	int err;
	uint64_t incarnation;
	struct sockaddr_storage addr;
	uint32_t data_len;
	uint8_t data[CM_MSG_DATA_MAX];
};

/** Sets the address of an event, IPv4 or IPv6. */
void eng_event_set_addr(struct eng_event *ev, const struct sockaddr *addr);

/**
 * Queues a copy and wakes a sleeping thread. Logs and drops the event if memory is exhausted.
 * Control thread.
 */
void eng_event_push(struct core_engine *engine, const struct eng_event *ev);

/**
 * Queues ENG_EVENT_WATCH, ENG_EVENT_TICK or ENG_EVENT_LOOK, unless one is queued. A sleeping thread
 * is woken for the first if operations of it wait, and for the last while a device is out. Control
 * thread.
 */
void eng_event_push_look(struct core_engine_ep *eep, enum eng_event_kind kind);

/** Removes the oldest event. Returns false if there is none. */
bool eng_event_pop(struct core_engine *engine, struct eng_event *ev);

/** Removes the events of `conn`, or of all connections of `eep` if conn is NULL. */
void eng_event_forget(struct core_engine_ep *eep, struct eng_conn *conn);

/**
 * Outcome of connection requests (eng_connreq.c): up-calls of cm, and their handling by progress.
 */
void eng_connreq_accepted(void *ctx, const struct sockaddr *addr, const void *data, size_t len);
void eng_connreq_refused(void *ctx, int err, const void *data, size_t len);
void eng_connreq_event(const struct eng_event *ev);

#endif
