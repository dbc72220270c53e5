/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What becomes of a connection?
 *
 *   NEW --HELLO sent-----> ASKED ---WELCOME, READY sent--> UP --BYE, end--> DOWN
 *    \----WELCOME sent---> INVITED --READY---------------> UP
 *          (any of them) --NAK, end, time, crossing, put--------------------> DOWN
 *
 * A conn that was prepared belongs to the engine until cm_conn_put: it then lives on as DOWN, known to
 * the agent's list only. One whose prepare failed was never seen and is freed at once.
 * Under the node's mutex, but for addr and peer_inc, which never change.
 *
 * Shown by test/unit/cm/conn/test_cm_conn.c.
 */
#ifndef CM_CM_CONN_H
#define CM_CM_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "cm/base/cm_addr.h"
#include "cm/base/cm_fd.h"
#include "cm/node/cm_node.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"
#include "wire/wire_cm.h"

struct cm_ep;
struct cm_peer;

enum cm_conn_state {
	CM_CONN_NEW,     /* made; the engine is preparing its half */
	CM_CONN_ASKED,   /* our HELLO is out: WELCOME is awaited */
	CM_CONN_INVITED, /* our WELCOME is out: READY is awaited */
	CM_CONN_UP,      /* both halves are in place at both ends */
	CM_CONN_DOWN,    /* over; nothing is open any more */
	CM_CONN_STATE_CNT,
};

struct cm_conn {
	struct cm_src src;    /* the stream, if there is one */
	struct cm_ep *cep;    /* NULL: orphan, the agent is closed */
	struct cm_node *node; /* atomic; NULL: orphan, and the node may be closed too */
	struct cm_peer *peer; /* NULL when DOWN */
	enum cm_conn_state state;
	void *user;    /* the engine's, from prepare on */
	uint32_t path; /* WIRE_CM_PATH_* */
	uint64_t nonce;
	uint64_t peer_inc;
	union cm_addr addr;
	struct cm_timer timer; /* the handshake must be over by then; or cm_dgram's */
	bool is_dgram;         /* there is no stream: cm_dgram.h, and what follows is its own */
	bool is_suspect;       /* has to be asked */
	bool is_broken;        /* its end is no goodbye */
	bool is_zombie;        /* cm_pending.h's */
	uint32_t try_cnt;
	uint32_t refused_cnt; /* ICMP errors since it was heard last */
	uint8_t *said;        /* ASKED, INVITED: what is repeated */
	size_t said_len;
	uint64_t deadline_ns;          /* ASKED, INVITED */
	uint64_t last_rx_ns;           /* UP; later by the time that nobody here looked */
	uint64_t looked_ns;            /* UP: the last time that somebody did */
	struct util_list pending_link; /* INVITED, without a stream: agent->guests */
	uint64_t pending_ns;           /* since then, */
	uint32_t pending_host;         /* and from there */
	struct util_list cep_link;
	struct cm_zombie zombie;
};

bool cm_conn_may(enum cm_conn_state from, enum cm_conn_state to);
const char *cm_conn_state_name(enum cm_conn_state state);

/**
 * A conn of `peer` on the stream `fd` (-1: without one) and its half, prepared by the engine for
 * half->path: 0 or -FI_E*. On error nothing is left but fd, which is the caller's as before.
 */
int cm_conn_open(struct cm_peer *peer, int fd, uint64_t nonce, uint64_t peer_inc,
		 struct cm_conn **conn, struct cm_params *params);
/** Sends the packet that brings a NEW conn to `state`, and sets the deadline. */
int cm_conn_send_params(struct cm_conn *conn, struct wire_cm_pkt *pkt,
			const struct cm_params *params, enum cm_conn_state state,
			uint64_t deadline_ns);
/** Gives the peer's half to the engine: 0 or -FI_E*. */
int cm_conn_establish(struct cm_conn *conn, const struct wire_cm_params *wire,
		      const struct cm_fd_msg *msg);
/** Sends a packet without a body (`type`), or a NAK if `err` is set. */
int cm_conn_send(struct cm_conn *conn, enum wire_cm_type type);
void cm_conn_refuse(struct cm_conn *conn, int err, const char *text);

/** It lives. Answers the request, if there is one. Control thread only, as all that follows. */
void cm_conn_up(struct cm_conn *conn);
/** It is over: closes the stream and tells the engine; the request is left alone. */
void cm_conn_down(struct cm_conn *conn, int err);
/** As down, and a request that waited for it tries again. */
void cm_conn_end(struct cm_conn *conn, int err, const char *why);
/** Takes in what has arrived on the stream. */
void cm_conn_poll(struct cm_conn *conn);

/** The agent is closing: says BYE, closes, tells nobody. */
void cm_conn_orphan(struct cm_conn *conn);

#endif
