/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection request of a connected endpoint (FI_EP_MSG): its states at both ends.
 *
 *   active    CONNECTING --GREET; REQUEST sent--> REQUESTED --ACCEPT----> ACCEPTED --up--> ENDED
 *   listener  PENDING ----REQUEST---------------> WAITING ----accepted--> ACCEPTED --up--> ENDED
 *             (any state) --REFUSE, end of stream, timeout, close-----------------------> ENDED
 *
 * ACCEPTED: the two CM endpoints connect to each other. A CM endpoint owns the request it sent or
 * accepted (cm_ep.connreq), a listener its PENDING ones. A WAITING request also belongs to the
 * application (is_held): it counts towards the backlog and is not freed until the application
 * accepts or rejects it, even if it has ended.
 */
#ifndef CM_MSG_CM_CONNREQ_H
#define CM_MSG_CM_CONNREQ_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/base/cm_state.h"
#include "cm/base/cm_timer.h"
#include "cm/msg/cm_msg.h"
#include "cm/msg/cm_stream.h"
#include "cm/node/cm_node.h"
#include "util/list.h"

/* Time that an ended stream leaves to READY, which may still be on its way. */
#define CM_CONNREQ_GRACE_MS 2000u

/*
 * Peer timeouts that the application at the listener has to accept or reject, as both ends count: a
 * busy machine may not run it for long, and a process that dies is reported by the stream.
 */
#define CM_CONNREQ_APP_FACTOR 4u

enum cm_connreq_state {
	CM_CONNREQ_CONNECTING, /* active: waits for the connection and GREET */
	CM_CONNREQ_REQUESTED,  /* active: waits for ACCEPT or REFUSE */
	CM_CONNREQ_PENDING,    /* listener: waits for REQUEST */
	CM_CONNREQ_WAITING,    /* listener: waits for the application */
	CM_CONNREQ_ACCEPTED,   /* both: the CM endpoints connect to each other */
	CM_CONNREQ_ENDED,
	CM_CONNREQ_STATE_CNT,
};

struct cm_connreq {
	struct cm_stream stream;
	struct cm_node *node;
	enum cm_connreq_state state;
	bool is_active;
	bool is_held; /* the application may still accept or reject it */
	struct cm_timer timer;
	uint64_t start_ns;
	int err;                      /* error to report when the timer fires */
	struct cm_ep *cep;            /* CONNECTING, REQUESTED, ACCEPTED */
	struct cm_listener *listener; /* PENDING, or is_held; NULL: closed */
	struct util_list link;        /* cm_listener.pending or .waiting */
	union cm_addr addr;           /* address of the other CM endpoint */
	uint64_t inc;
	struct cm_zombie zombie;
	uint32_t data_len; /* active: sent in REQUEST; listener: received in it */
	uint8_t data[CM_MSG_DATA_MAX];
};

extern const struct cm_states cm_connreq_states;
void cm_connreq_set_state(struct cm_connreq *connreq, enum cm_connreq_state state);

/** Creates a request on the stream `fd`. Returns NULL, with fd closed, without memory. */
struct cm_connreq *cm_connreq_new(struct cm_node *node, int fd, bool is_active);
/** Arms the timer: the request fails with `err` if no packet arrives within `ms`. */
void cm_connreq_arm(struct cm_connreq *connreq, uint64_t ms, int err);
/** Arms the timer with the time in which the application at the listener has to reply. */
void cm_connreq_arm_app(struct cm_connreq *connreq);
/** Sends REQUEST or ACCEPT for `cep`. Returns 0 or -FI_E*. */
int cm_connreq_send_self(struct cm_connreq *connreq, enum wire_connreq_type type,
			 const struct cm_ep *cep, const void *data, size_t len);
void cm_connreq_send_refuse(struct cm_connreq *connreq, int err, const void *data, size_t len);

/** Ends the request: closes the stream and frees it unless it is held. No up-call. */
void cm_connreq_end(struct cm_connreq *connreq);
/** Ends the request and reports `err` to its CM endpoint, if any. Control thread only. */
void cm_connreq_fail(struct cm_connreq *connreq, int err, const void *data, size_t len,
		     const char *why);

/** Makes `cep` the owner of the request, which ends when its connection is up or has failed. */
void cm_connreq_attach(struct cm_connreq *connreq, struct cm_ep *cep);

/** Handle input on the stream of an active request, and on a listener's. */
void cm_msg_on_ready(struct cm_connreq *connreq);
void cm_listen_on_ready(struct cm_connreq *connreq);
/** Removes the request from its listener. */
void cm_listen_remove(struct cm_connreq *connreq);

#endif
