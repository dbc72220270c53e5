/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints (FI_EP_MSG): connection requests and listeners (docs/connections.md).
 *
 *   active CM endpoint                        listener
 *   |== TCP connect =========================>|  refused by the kernel if no process listens
 *   |<- GREET {nonce} ------------------------|
 *   |-- REQUEST {address, inc, data} -------->|  requested -> the application's FI_CONNREQ
 *   |<- ACCEPT {address, inc, data} ----------|  cm_connreq_accept; the two CM endpoints now
 *   |      or REFUSE {error, data}            |  admit each other, and no other peer
 *   |   ... the handshake of cm.h between the two CM endpoints ...
 *   |== the stream ends when both are up =====|
 *
 * A listener uses one descriptor, and each request one until it is accepted or rejected. Streams
 * without a REQUEST are bounded (cm_listen.h), waiting requests by the backlog. Every state has a
 * deadline.
 *
 * Threads: see cm.h.
 */
#ifndef CM_MSG_CM_MSG_H
#define CM_MSG_CM_MSG_H

#include <stddef.h>
#include <sys/socket.h>

#define CM_MSG_DATA_MAX 512u /* limit of the application's data in a request, accept or reject */

struct cm_ep;
struct cm_connreq;
struct cm_listener;
struct cm_node;

/** Connection request, as reported to the application. */
struct cm_connreq_info {
	struct sockaddr_storage local; /* this end of the stream */
	struct sockaddr_storage peer;  /* address of the connecting CM endpoint */
	const void *data;              /* valid as long as the request */
	size_t data_len;
};

/**
 * Reports a connection request. Returns 0 and owns the request until cm_connreq_accept succeeds or
 * cm_connreq_reject; or -FI_E* to reject it. An up-call like those of cm.h.
 */
typedef int (*cm_listener_request_fn)(void *ctx, struct cm_connreq *connreq,
				      const struct cm_connreq_info *info);

/** Listens at `addr` (wildcard: all interfaces; port 0: any). Returns 0 or -FI_E*. */
int cm_listener_open(struct cm_node *node, const struct sockaddr *addr, int backlog,
		     cm_listener_request_fn on_request, void *ctx, struct cm_listener **listener);
/** Returns the address that peers use, never a wildcard. */
void cm_listener_addr(const struct cm_listener *listener, struct sockaddr_storage *addr);
/** Closes. No up-call after the return. Reported requests stay valid. */
void cm_listener_close(struct cm_listener *listener);

/**
 * Accepts: `cep` connects with the requesting endpoint; `up` of cm_ep_ops, or `refused`, follows.
 * Returns 0, or -FI_ECONNABORTED if the requesting endpoint has gone; the request then stays owned.
 */
int cm_connreq_accept(struct cm_connreq *connreq, struct cm_ep *cep, const void *data, size_t len);
/** Rejects with `err` (-FI_E*) and frees the request. */
void cm_connreq_reject(struct cm_connreq *connreq, int err, const void *data, size_t len);

/**
 * Sends a connection request to the listener at `addr`, once per CM endpoint. Returns 0, or
 * -FI_EINVAL for another address family. accepted and then up of cm_ep_ops follow, or one of
 * refused and failed.
 */
int cm_msg_connect(struct cm_ep *cep, const struct sockaddr *addr, const void *data, size_t len);

#endif
