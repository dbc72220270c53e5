/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoint (FI_EP_MSG): the state behind core_ep.conn. Called by ofi/conn and core_peer.
 *
 * A connected endpoint has one peer, at index 0 and in no address vector: addresses of transfers
 * are not used. It is connected once:
 *
 *   IDLE --connect, accept--> CONNECTING --on_up--> UP --on_down, shutdown--> CLOSED
 *                                \--on_refused, on_connect_failed-----------> CLOSED
 *
 * Receives may be posted in any state. Sends fail with -FI_ENOTCONN before UP and with
 * -FI_ESHUTDOWN after it. When the connection closes, what had arrived was delivered. Posted
 * receives then end with FI_ECANCELED, and the owner is notified. All runs under the domain's lock,
 * except ops->event.
 */
#ifndef CORE_CORE_CONN_H
#define CORE_CORE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_chan.h"

#define CORE_CONN_DATA_MAX 512u /* bytes of user data in a request or a reply */

struct cm_connreq;

enum core_conn_state {
	CORE_CONN_IDLE,       /* never used */
	CORE_CONN_CONNECTING, /* handshake in progress, started by either end */
	CORE_CONN_UP,
	CORE_CONN_CLOSED, /* ended, or failed to connect */
	CORE_CONN_STATE_CNT,
};

/** Events for the owner, each at most once. */
struct core_conn_ops {
	/* `data`: user data of the listener's reply; empty at the listener. */
	void (*connected)(void *ctx, const void *data, size_t len);
	/* Connect failed with -FI_E*. `data`: user data of the listener's reply. */
	void (*failed)(void *ctx, int err, const void *data, size_t len);
	/* Either end shut down, or the peer has died. */
	void (*ended)(void *ctx);
	/*
	 * Progress would deliver an event. Called by the control thread, without the domain's lock.
	 */
	void (*event)(void *ctx);
};

struct core_conn {
	const struct core_conn_ops *ops; /* the owner's, set before core_ep_open */
	void *ctx;
	enum core_conn_state state;
	struct core_ep *ep;
	struct core_peer *peer;
	/* other end: address passed to connect, or of the requester; ss_family 0: not known yet */
	struct sockaddr_storage addr;
	size_t data_len;
	uint8_t data[CORE_CONN_DATA_MAX];
};

bool core_conn_may(enum core_conn_state from, enum core_conn_state to);

/** Opens the connection, as part of core_ep_open. Returns 0 or -FI_ENOMEM. */
int core_conn_open(struct core_conn *conn, struct core_ep *ep);
/** Undoes core_conn_open before the endpoint was used. */
void core_conn_close(struct core_conn *conn);

/**
 * Connects to the listener at `addr`. Returns 0, -FI_EISCONN if the endpoint was used before, or
 * -FI_E*.
 */
int core_conn_connect(struct core_conn *conn, const struct sockaddr *addr, const void *data,
		      size_t len);
/** Accepts a connection request, see cm_connreq_accept. */
int core_conn_accept(struct core_conn *conn, struct cm_connreq *connreq, const void *data,
		     size_t len);
/**
 * Shuts down the connection: open operations end with FI_ECANCELED, and the owner is notified as if
 * the peer had shut down. Returns 0, also if already closed, or -FI_ENOTCONN if never up.
 */
int core_conn_shutdown(struct core_conn *conn);

/** Returns true while accepted messages may be lost by a close. */
bool core_conn_is_busy(const struct core_conn *conn);

/** Returns the error of a send while not up. */
int core_conn_send_err(const struct core_conn *conn);
/** Called after a receive was posted: a closed connection cancels it. */
void core_conn_posted(struct core_conn *conn);

/** Up-calls of the engine; core_peer.c forwards the last two. */
void core_conn_on_accepted(struct core_ep *ep, const struct sockaddr *addr, const void *data,
			   size_t len);
void core_conn_on_refused(struct core_ep *ep, int err, const void *data, size_t len);
void core_conn_on_event(struct core_ep *ep);
void core_conn_on_up(struct core_conn *conn, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation);
void core_conn_on_down(struct core_conn *conn);

#endif
