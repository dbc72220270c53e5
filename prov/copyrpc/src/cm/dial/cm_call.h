/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What becomes of a call, at either end?
 *
 *   caller    DIAL --GREET; CALL sent--> ASKED --ACCEPT----> MEET --up--> OVER
 *   listener  GUEST ------CALL---------> WAITS --accepted--> MEET --up--> OVER
 *             (any of them) --REFUSE, end, time, close------------------> OVER
 *
 * MEET: the two agents connect to each other. Who calls and who has accepted belongs to its agent
 * (agent->call), a guest to its listener, one that waits to the application as well (is_held): only
 * its memory stays when it is over, until the application answers.
 *
 * Shown by test/unit/cm/dial/test_cm_call.c.
 */
#ifndef CM_CM_CALL_H
#define CM_CM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/dial/cm_dial.h"
#include "cm/node/cm_node.h"
#include "cm/dial/cm_stream.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"

/* Who has ended the stream may have come up just before: what tells us so is on its way. */
#define CM_CALL_GRACE_MS 2000u

enum cm_call_state {
	CM_CALL_DIAL,  /* caller: the listener's GREET is awaited */
	CM_CALL_ASKED, /* caller: its answer is awaited */
	CM_CALL_GUEST, /* listener: CALL is awaited */
	CM_CALL_WAITS, /* listener: the application has to answer */
	CM_CALL_MEET,  /* either: accepted; the agents are being connected */
	CM_CALL_OVER,
	CM_CALL_STATE_CNT,
};

struct cm_call {
	struct cm_stream stream;
	struct cm_node *node;
	enum cm_call_state state;
	bool is_caller;
	bool is_held; /* the application may still answer it */
	struct cm_timer timer;
	uint64_t start_ns;
	int err;                      /* why it ends when the timer fires */
	struct cm_agent *agent;       /* DIAL, ASKED, MEET */
	struct cm_listener *listener; /* GUEST, WAITS; NULL: closed */
	struct util_list link;        /* cm_listener.guests or .waiting */
	union cm_addr addr;           /* the other end's agent */
	uint64_t inc;
	struct cm_grave grave;
	uint32_t data_len; /* caller: for CALL; listener: from CALL */
	uint8_t data[CM_DIAL_DATA_MAX];
};

bool cm_call_may(enum cm_call_state from, enum cm_call_state to);
const char *cm_call_state_name(enum cm_call_state state);
void cm_call_set_state(struct cm_call *call, enum cm_call_state state);

/** One that watches the stream `fd`, which it takes over: NULL: no memory, and fd is closed. */
struct cm_call *cm_call_new(struct cm_node *node, int fd, bool is_caller);
/** It ends with `err` if nothing happens for `ms`. */
void cm_call_give(struct cm_call *call, uint64_t ms, int err);
/** Sends a packet of our endpoint (CALL, ACCEPT): 0 or -FI_E*. */
int cm_call_say_self(struct cm_call *call, enum wire_dial_type type, const struct cm_agent *agent,
		     const void *data, size_t len);
void cm_call_say_refuse(struct cm_call *call, int err, const void *data, size_t len);

/** It is over: closes the stream, tells nobody, frees it unless it is held. */
void cm_call_end(struct cm_call *call);
/** As end, and its agent, if it has one, hears why. Control thread only. */
void cm_call_fail(struct cm_call *call, int err, const void *data, size_t len, const char *why);

/** The agent's connection is up, or will never be (`err`): what that means for its call. */
void cm_call_met(struct cm_agent *agent);
void cm_call_missed(struct cm_agent *agent, int err);

/** The caller's side, and the listener's, of a stream that has something to say. */
void cm_dial_on_ready(struct cm_call *call);
void cm_listen_on_ready(struct cm_call *call);
/** The call leaves its listener. */
void cm_listen_leave(struct cm_call *call);

#endif
