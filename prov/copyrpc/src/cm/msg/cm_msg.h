/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do two endpoints of type FI_EP_MSG find each other? (docs/connections.md)
 *
 *   caller: an agent                          listener
 *   |== TCP connect =========================>|  the kernel refuses where nobody listens
 *   |<- GREET {nonce} ------------------------|
 *   |-- CALL {agent, incarnation, data} ----->|  asked -> the application's FI_CONNREQ
 *   |<- ACCEPT {agent, incarnation, data} ----|  cm_connreq_accept; from now on the two ceps
 *   |      or REFUSE {error, data}            |  admit each other, and nobody else
 *   |   ... the handshake of cm.h, from agent to agent ...
 *   |== the stream ends when both are up =====|
 *
 * A listener costs a descriptor, and each call one until it is answered. What has not called yet is
 * bounded and evicted (cm_listen.h), calls that nobody has answered yet by the backlog. Every state has a
 * deadline.
 *
 * Threads: as cm.h says. Shown by test/unit/cm/msg/test_cm_msg.c.
 */
#ifndef CM_CM_DIAL_H
#define CM_CM_DIAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CM_MSG_DATA_MAX 512u /* bytes of the application's that one answer or question may carry */

struct cm_ep;
struct cm_connreq;
struct cm_listener;
struct cm_node;

/** What a caller said, and where it was said. */
struct cm_connreq_info {
	struct sockaddr_storage local; /* our end of the stream */
	struct sockaddr_storage peer;  /* the caller's agent */
	const void *data;              /* as long as the call */
	size_t data_len;
};

/**
 * A call has come. 0: it is the receiver's, until cm_connreq_accept succeeds or cm_connreq_reject;
 * -FI_E*: it is refused with that. An up-call as those of cm.h.
 */
typedef int (*cm_listener_asked_fn)(void *ctx, struct cm_connreq *connreq,
				    const struct cm_connreq_info *info);

/** Listens at `addr` (a wildcard: everywhere; port 0: any): 0 or -FI_E*. */
int cm_listener_open(struct cm_node *node, const struct sockaddr *addr, int backlog,
		     cm_listener_asked_fn asked, void *ctx, struct cm_listener **listener);
/** Where peers find it: never a wildcard. */
void cm_listener_addr(const struct cm_listener *listener, struct sockaddr_storage *addr);
/** No up-call after the return. Calls that were handed out stay their holders'. */
void cm_listener_close(struct cm_listener *listener);

/**
 * Says yes: `agent` is to be connected with the caller's; up of cm_ep_ops, or refused, follows. 0, or
 * -FI_ECONNABORTED: the caller has gone (the call is still its holder's).
 */
int cm_connreq_accept(struct cm_connreq *connreq, struct cm_ep *cep, const void *data, size_t len);
/** Says no, with `err` (-FI_E*), and frees the call. */
void cm_connreq_reject(struct cm_connreq *connreq, int err, const void *data, size_t len);

/**
 * Calls the listener at `addr` (of the agent's family: else -FI_EINVAL). accepted and then up of cm_ep_ops
 * follow, or one of refused and failed. Once in an agent's life.
 */
int cm_msg(struct cm_ep *cep, const struct sockaddr *addr, const void *data, size_t len);

#endif
