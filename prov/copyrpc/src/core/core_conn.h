/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What makes an endpoint a connected one (FI_EP_MSG)?
 *
 * A core_conn that core_ep.conn points at. Such an endpoint has one peer, in no address vector: addresses
 * of transfers do not count, and index 0 finds it as fast as any. It is connected once:
 *
 *   IDLE --dial, answer--> CALLING --on_up--> UP --on_down, shutdown--> OVER
 *                             \--on_refused, on_connect_failed--------> OVER
 *
 * Receives may be posted in any state; sends before UP end with -FI_ENOTCONN, after it with
 * -FI_ESHUTDOWN. When it is over what had arrived was delivered, then posted receives end with
 * FI_ECANCELED, then the owner is told. All under the domain's lock, but for ops->news.
 *
 * Shown by test/unit/core/test_core_conn.c.
 */
#ifndef CORE_CONN_H
#define CORE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_chan.h"

#define CORE_CONN_DATA_MAX 512u /* bytes that question and answer may carry */

struct cm_connreq;

enum core_conn_state {
	CORE_CONN_IDLE,       /* never used */
	CORE_CONN_CONNECTING, /* being made, from either end */
	CORE_CONN_UP,
	CORE_CONN_CLOSED, /* it has ended, or was never made */
	CORE_CONN_STATE_CNT,
};

/** What its owner is told, once each at most. */
struct core_conn_ops {
	/* `data`: what the listener's application said; empty at the listener itself. */
	void (*connected)(void *ctx, const void *data, size_t len);
	/* It could not be made: -FI_E*, and what the listener's application said. */
	void (*failed)(void *ctx, int err, const void *data, size_t len);
	/* Either end has ended it, or the peer has died. */
	void (*ended)(void *ctx);
	/* Progress has something to tell. From the control thread, without the domain's lock. */
	void (*news)(void *ctx);
};

struct core_conn {
	const struct core_conn_ops *ops; /* the owner's, set before core_ep_open */
	void *ctx;
	enum core_conn_state state;
	struct core_ep *ep;
	struct core_peer *peer;
	struct sockaddr_storage
		addr; /* the other end: what was dialled, or who has called; ss_family 0: not known yet */
	size_t data_len;
	uint8_t data[CORE_CONN_DATA_MAX];
};

bool core_conn_may(enum core_conn_state from, enum core_conn_state to);

/** Part of core_ep_open: 0 or -FI_ENOMEM. */
int core_conn_open(struct core_conn *conn, struct core_ep *ep);
/** Undoes it before anything was done with the endpoint. */
void core_conn_close(struct core_conn *conn);

/** Calls the listener at `addr`: 0 or -FI_E*. -FI_EISCONN: it has been used before. */
int core_conn_connect(struct core_conn *conn, const struct sockaddr *addr, const void *data,
		      size_t len);
/** Says yes to a call, as cm_connreq_accept. */
int core_conn_accept(struct core_conn *conn, struct cm_connreq *call, const void *data, size_t len);
/**
 * Ends it, if it has not ended: what has not completed ends with FI_ECANCELED, and the owner is told as
 * if the peer had done it. -FI_ENOTCONN: it was never up.
 */
int core_conn_shutdown(struct core_conn *conn);

/** True while accepted messages have not left for good. */
bool core_conn_is_busy(const struct core_conn *conn);

/** What a send is told while it is not up. */
int core_conn_refusal(const struct core_conn *conn);
/** After a receive was posted: a connection that is over keeps none. */
void core_conn_posted(struct core_conn *conn);

/** Up-calls of the engine, and what core_peer.c makes of the others. */
void core_conn_on_accepted(struct core_ep *ep, const struct sockaddr *addr, const void *data,
			   size_t len);
void core_conn_on_refused(struct core_ep *ep, int err, const void *data, size_t len);
void core_conn_on_event(struct core_ep *ep);
void core_conn_on_up(struct core_conn *conn, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation);
void core_conn_on_down(struct core_conn *conn);

#endif
