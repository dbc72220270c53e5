/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What becomes of a call, at either end?
 *
 *   caller    DIAL --GREET; CALL sent--> ASKED --ACCEPT----> MEET --up--> OVER
 *   listener  GUEST ------CALL---------> WAITS --accepted--> MEET --up--> OVER
 *             (any of them) --REFUSE, end, time, close------------------> OVER
 *
 * MEET: the two ceps connect to each other. Who calls and who has accepted belongs to its agent
 * (agent->call), a guest to its listener, one that waits to the application as well (is_held): only
 * its memory stays when it is over, until the application answers.
 *
 * Shown by test/unit/cm/msg/test_cm_connreq.c.
 */
#ifndef CM_CM_CALL_H
#define CM_CM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/msg/cm_msg.h"
#include "cm/node/cm_node.h"
#include "cm/msg/cm_stream.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"

/* Who has ended the stream may have come up just before: what tells us so is on its way. */
#define CM_CONNREQ_GRACE_MS 2000u

enum cm_connreq_state {
	CM_CONNREQ_SENT,        /* caller: the listener's GREET is awaited */
	CM_CONNREQ_REQUESTED,   /* caller: its answer is awaited */
	CM_CONNREQ_PENDING,     /* listener: CALL is awaited */
	CM_CONNREQ_WAITING,     /* listener: the application has to answer */
	CM_CONNREQ_ESTABLISHED, /* either: accepted; the ceps are being connected */
	CM_CONNREQ_ENDED,
	CM_CONNREQ_STATE_CNT,
};

struct cm_connreq {
	struct cm_stream stream;
	struct cm_node *node;
	enum cm_connreq_state state;
	bool is_caller;
	bool is_held; /* the application may still answer it */
	struct cm_timer timer;
	uint64_t start_ns;
	int err;                      /* why it ends when the timer fires */
	struct cm_ep *cep;            /* DIAL, ASKED, MEET */
	struct cm_listener *listener; /* GUEST, WAITS; NULL: closed */
	struct util_list link;        /* cm_listener.guests or .waiting */
	union cm_addr addr;           /* the other end's agent */
	uint64_t inc;
	struct cm_zombie zombie;
	uint32_t data_len; /* caller: for CALL; listener: from CALL */
	uint8_t data[CM_MSG_DATA_MAX];
};

bool cm_connreq_may(enum cm_connreq_state from, enum cm_connreq_state to);
const char *cm_connreq_state_name(enum cm_connreq_state state);
void cm_connreq_set_state(struct cm_connreq *connreq, enum cm_connreq_state state);

/** One that watches the stream `fd`, which it takes over: NULL: no memory, and fd is closed. */
struct cm_connreq *cm_connreq_new(struct cm_node *node, int fd, bool is_caller);
/** It ends with `err` if nothing happens for `ms`. */
void cm_connreq_deliver(struct cm_connreq *connreq, uint64_t ms, int err);
/** Sends a packet of our endpoint (CALL, ACCEPT): 0 or -FI_E*. */
int cm_connreq_send_self(struct cm_connreq *connreq, enum wire_connreq_type type,
			 const struct cm_ep *cep, const void *data, size_t len);
void cm_connreq_send_refuse(struct cm_connreq *connreq, int err, const void *data, size_t len);

/** It is over: closes the stream, tells nobody, frees it unless it is held. */
void cm_connreq_end(struct cm_connreq *connreq);
/** As end, and its agent, if it has one, hears why. Control thread only. */
void cm_connreq_fail(struct cm_connreq *connreq, int err, const void *data, size_t len,
		     const char *why);

/** The agent's connection is up, or will never be (`err`): what that means for its call. */
void cm_connreq_established(struct cm_ep *cep);
void cm_connreq_timed_out(struct cm_ep *cep, int err);

/** The caller's side, and the listener's, of a stream that has something to say. */
void cm_msg_on_ready(struct cm_connreq *connreq);
void cm_listen_on_ready(struct cm_connreq *connreq);
/** The call leaves its listener. */
void cm_listen_leave(struct cm_connreq *connreq);

#endif
