/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has the control thread to say?
 *
 * The queue between cm's up-calls (control thread) and progress (the domain's thread). Events of
 * one connection keep their order; a connection that is freed takes its events with it.
 * Shown by test/unit/engine/test_eng_event.c.
 */
#ifndef ENG_EVENT_H
#define ENG_EVENT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "cm/msg/cm_msg.h"
#include "engine/eng_engine.h"

enum eng_event_kind {
	ENG_EVENT_UP,       /* conn: both ends are ready */
	ENG_EVENT_DOWN,     /* conn: err */
	ENG_EVENT_FAILED,   /* eep, addr: a connect failed with err */
	ENG_EVENT_ACCEPTED, /* eep, addr, data: a listener said yes */
	ENG_EVENT_REFUSED,  /* eep, err, data: a call came to nothing */
};

struct eng_event {
	struct util_list link;
	enum eng_event_kind kind;
	struct core_engine_ep *eep;
	struct eng_conn *conn;
	int err;
	struct sockaddr_storage addr;
	uint32_t data_len;
	uint8_t data[CM_MSG_DATA_MAX];
};

/** Queues a copy and wakes a sleeper. -FI_ENOMEM: lost (logged). Control thread. */
void eng_event_push(struct core_engine *engine, const struct eng_event *ev);

/** Takes the oldest one. */
bool eng_event_pop(struct core_engine *engine, struct eng_event *ev);

/** Forgets what is queued for `conn`, or for all of `eep` if conn is NULL. */
void eng_event_forget(struct core_engine_ep *eep, struct eng_conn *conn);

/** What calls came to (eng_connreq.c): cm's up-calls, and what progress makes of them. */
void eng_connreq_accepted(void *ctx, const struct sockaddr *addr, const void *data, size_t len);
void eng_connreq_refused(void *ctx, int err, const void *data, size_t len);
void eng_connreq_event(const struct eng_event *ev);

#endif
