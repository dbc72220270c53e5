/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection: its states, its stream, and its end.
 *
 *   NEW --HELLO sent-----> HELLO_SENT ----WELCOME; READY sent--> UP --BYE, end--> DOWN
 *    \----WELCOME sent---> WELCOME_SENT --READY----------------> UP
 *          (any state) --NAK, end, timeout, crossing, put-----------------------> DOWN
 *
 * A prepared conn belongs to the engine until cm_conn_put and remains as DOWN, linked only in
 * cm_ep.conns. A failed prepare frees the conn at once. Protected by the node's mutex, except
 * addr, via, pid and peer_inc, which are constant, and identity, which is constant once the conn is
 * UP.
 */
#ifndef CM_CONN_CM_CONN_H
#define CM_CONN_CM_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm.h"
#include "cm/base/cm_addr.h"
#include "cm/base/cm_fd.h"
#include "cm/base/cm_state.h"
#include "cm/base/cm_timer.h"
#include "cm/node/cm_node.h"
#include "util/job_name.h"
#include "util/list.h"
#include "wire/wire_cm.h"

#define CM_PATHS_RINGS (WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC) /* each conn has memory of its own */

struct cm_ep;
struct cm_peer;

enum cm_conn_state {
	CM_CONN_NEW,          /* the engine is preparing its parameters */
	CM_CONN_HELLO_SENT,   /* HELLO sent, waits for WELCOME */
	CM_CONN_WELCOME_SENT, /* WELCOME sent, waits for READY */
	CM_CONN_UP,           /* established */
	CM_CONN_DOWN,         /* ended; nothing is open */
	CM_CONN_STATE_CNT,
};

struct cm_conn {
	struct cm_src src;    /* the stream, if any */
	struct cm_ep *cep;    /* NULL: orphan, the CM endpoint is closed */
	struct cm_node *node; /* atomic; NULL: orphan, and the node may be closed */
	struct cm_peer *peer; /* NULL when DOWN */
	enum cm_conn_state state;
	void *user;    /* set by prepare, for the engine */
	uint32_t path; /* WIRE_CM_PATH_* */
	uint64_t nonce;
	uint64_t peer_inc;
	union cm_addr addr;    /* the first one of the peer's name */
	struct cm_route via;   /* where its packets come from */
	struct cm_timer timer; /* deadline of the handshake, or timer of cm_dgram */
	uint64_t features;     /* in use with the peer */
	bool has_identity;     /* `identity` is set, before UP */
	struct util_job_name identity;
	pid_t pid;            /* process at the other end of the stream; 0: unknown */
	bool is_dgram;        /* no stream: the fields below are for cm_dgram.h */
	bool is_suspect;      /* a PING is due */
	bool is_broken;       /* ends with BROKEN instead of BYE */
	bool is_zombie;       /* counted by cm_pending.h */
	bool is_unused;       /* counted by cm_unused.h as such */
	bool is_held;         /* counted by cm_unused.h */
	uint64_t accepted_ns; /* time of the HELLO datagram; 0: own attempt */
	uint32_t try_cnt;
	uint32_t refused_cnt; /* ICMP errors since the last packet */
	uint8_t *resend;      /* HELLO_SENT, WELCOME_SENT: packet to repeat */
	size_t resend_len;
	uint64_t deadline_ns; /* HELLO_SENT, WELCOME_SENT */
	uint64_t last_rx_ns;  /* UP: last packet; advanced by the time this process was stopped */
	uint64_t checked_ns;  /* UP: last check of the peer */
	struct util_list pending_link; /* WELCOME_SENT, without a stream: cep->pending */
	uint64_t pending_ns;           /* start of the pending state */
	uint32_t pending_host;         /* counter index of the peer's host */
	struct util_list cep_link;
	struct cm_zombie zombie;
};

extern const struct cm_states cm_conn_states;

/**
 * Opens a conn of `peer` by `via` and on the stream `fd` (-1: no stream), and has the engine
 * prepare params for params->path. Returns 0, -FI_EAGAIN if the peer has a conn, or another -FI_E*;
 * on error fd stays with the calling function.
 */
int cm_conn_open(struct cm_peer *peer, int fd, const struct cm_route *via, uint64_t nonce,
		 uint64_t peer_inc, struct cm_conn **conn, struct cm_params *params);
/** Sends the packet that moves a NEW conn to `state`, and sets the deadline. */
int cm_conn_send_params(struct cm_conn *conn, struct wire_cm_pkt *pkt,
			const struct cm_params *params, enum cm_conn_state state,
			uint64_t deadline_ns);
/** Passes the peer's parameters to the engine. Returns 0 or -FI_E*. */
int cm_conn_establish(struct cm_conn *conn, const struct wire_cm_params *wire,
		      const struct cm_fd_msg *msg);
/** Returns what to report of a handshake that has reached its deadline. */
const char *cm_conn_late_text(const struct cm_conn *conn);
/** Sends a packet of `type`, without a body, or a NAK. */
int cm_conn_send(struct cm_conn *conn, enum wire_cm_type type);
void cm_conn_refuse(struct cm_conn *conn, int err, const char *text);

/** Moves to UP and completes the request, if any. Control thread only, like all functions below. */
void cm_conn_up(struct cm_conn *conn);
/** Moves to DOWN: closes the stream and notifies the engine. Leaves the request unchanged. */
void cm_conn_down(struct cm_conn *conn, int err);
/** Moves to DOWN, and retries a request that waits for this conn. */
void cm_conn_end(struct cm_conn *conn, int err, const char *why);
/** Moves to DOWN because the peer refused, and retries or fails the request. */
void cm_conn_on_nak(struct cm_conn *conn, const struct wire_cm_pkt *pkt);
/** Handles all packets queued on the stream. */
void cm_conn_poll(struct cm_conn *conn);

/** Closes with BYE, without an up-call, because the CM endpoint closes. */
void cm_conn_orphan(struct cm_conn *conn);

#endif
