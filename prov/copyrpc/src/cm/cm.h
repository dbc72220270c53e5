/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who are you, and where is your ring? The handshake (docs/handshake.md).
 *
 * A node is one control thread with its epoll set (one per fabric). An agent is one endpoint's
 * address: a UDP socket that answers strangers, and an abstract SOCK_SEQPACKET socket that proves
 * "same host, same user" and carries descriptors. A conn is one peer process, from its first
 * packet to its death.
 *
 *   A                                     B
 *   |-- UDP  REQ  {inc_A, nonce, offers} ->|   allocates nothing
 *   |<- UDP  ACK  {inc_B, cookie, name}  --|   or NAK {reason}
 *   |== connect to B's abstract name =====>|   fails: not the same host, datagrams from here on
 *   |-- HELLO {cookie, addr_A, half_A, fds}|   peer credentials checked, cookie proves addr_A
 *   |<- WELCOME {half_B, fds} / NAK {why} -|   or CROSSED: B's own attempt wins
 *   |-- READY / NAK {why} ---------------->|   up at A, then at B
 *   |   ... the socket stays open: its end is the peer's death, BYE is its goodbye ...
 *
 * Idempotent; REQ is retransmitted with jittered back-off until FI_COPYRPC_PEER_TIMEOUT. When both ends
 * connect at once the lower incarnation's attempt wins. With a job key every packet carries a MAC and
 * a packet without a valid one changes nothing.
 *
 * Threads: calls may come from any thread; up-calls come from the control thread with the node's
 * mutex held. They must not block, nor call back into cm except where said.
 *
 * Shown by test/unit/cm.
 */
#ifndef CM_CM_H
#define CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "dev/dev.h"

#define CM_ENGINE_MAX 64u /* engine's own bytes in a half */
#define CM_PATHS_MAX  4u

struct cm_node;
struct cm_ep;
struct cm_conn;

/** One end's half of a connection: what the other end needs. */
struct cm_params {
	uint32_t path; /* the way it is for: one bit, WIRE_CM_PATH_* */
	uint32_t engine_len;
	uint8_t engine[CM_ENGINE_MAX];
	struct dev_desc dev;
};

/** What cm tells the engine. */
struct cm_ep_ops {
	/*
	 * A connection is about to be made, by us or by the peer: fill in our half for half->path,
	 * keep what is needed in *user. 0, or -FI_E* (the peer gets a NAK with it; -FI_EAGAIN and -FI_EMFILE are
	 * tried again until the peer timeout). cm closes the fds in `half`, also on error.
	 */
	int (*prepare)(void *ctx, struct cm_conn *conn, struct cm_params *params, void **user);
	/* The peer's half: connect to it. 0, or -FI_E* (NAK). Called once, after prepare. */
	int (*establish)(void *ctx, struct cm_conn *conn, void *user, const struct cm_params *peer);
	/* Both ends have both halves: the connection lives. `asked`: a cm_connect is answered. */
	void (*up)(void *ctx, struct cm_conn *conn, void *user, bool asked);
	/*
	 * The end of a conn that was prepared: before `up` (the attempt failed: as its cause; lost a
	 * crossing: -FI_EALREADY) or after (peer died: -FI_ECONNRESET, said goodbye: -FI_ESHUTDOWN,
	 * was restarted: -FI_ECONNABORTED, was silent: -FI_ETIMEDOUT, broke the rules or says that
	 * the connection failed at its end: -FI_EIO).
	 * The conn stays valid until cm_conn_put.
	 */
	void (*down)(void *ctx, struct cm_conn *conn, void *user, int err);
	/*
	 * When the peer of a conn that is up, and was not put, was heard last by it, by util_clock_ns: then it
	 * need not be asked whether it lives. 0, or NULL: cm alone hears.
	 */
	uint64_t (*last_rx_ns)(void *ctx, struct cm_conn *conn, void *user);
	/*
	 * A cm_connect to `addr` failed for good; `why` is a line that says what to do.
	 * -FI_ETIMEDOUT: silence; -FI_ECONNREFUSED: nobody there; -FI_EHOSTUNREACH: not on this host;
	 * -FI_EACCES: another user's; else what either end's prepare or establish returned, or the network.
	 */
	void (*failed)(void *ctx, const struct sockaddr *addr, int err, const char *why);
	/*
	 * For ceps that dial or accept (cm_msg.h). The listener has said yes, with `data`, and the agent is
	 * being connected with the one at `addr`: up or failed follows.
	 */
	void (*accepted)(void *ctx, const struct sockaddr *addr, const void *data, size_t len);
	/* The call came to nothing, for `err`; `data` is what a listener that refused said. */
	void (*refused)(void *ctx, int err, const void *data, size_t len);
};

/** Ways to carry messages: sets of WIRE_CM_PATH_*. */
struct cm_paths {
	uint32_t all;                /* what this end can do */
	uint32_t best[CM_PATHS_MAX]; /* in this order, when both ends can do more than one */
};

/** What an agent has seen. A packet that is counted as bad or stale has changed nothing else. */
struct cm_stats {
	uint64_t rx_pkts;       /* everything that came, on any socket */
	uint64_t rx_malformed;  /* no packet of the handshake */
	uint64_t rx_bad_mac;    /* without proof of the job key */
	uint64_t rx_bad_cookie; /* HELLO without proof of its address */
	uint64_t rx_stale;      /* well-formed, but nobody waits for it */
	uint64_t rx_refused;    /* ICMP: nobody is there */
	uint64_t tx_reqs;       /* REQ sent, repetitions included */
	uint64_t tx_acks;
	uint64_t tx_naks;
	uint64_t tx_pings;
	uint64_t crossings;       /* both ends connected at once */
	uint64_t callers_foreign; /* processes of other users, turned away */
	uint64_t callers_evicted; /* made room for others or said nothing in time */
	uint64_t pending_evicted; /* said HELLO, and not READY: made room for others */
	uint64_t accept_pauses;   /* no descriptor left for a caller */
	uint64_t conns_up;
	uint64_t conns_down; /* of those */
};

/** What a node is told when it is opened. */
struct cm_cfg {
	const char *job_key; /* NULL or empty: none; copied, all of it counts */
	int peer_timeout_ms; /* 0: 30 s */
	/* Sends datagrams in place of sendto, for tests that lose them; NULL: sendto. */
	ssize_t (*udp_send)(void *ctx, int fd, const void *buf, size_t len,
			    const struct sockaddr *to, socklen_t to_len);
	void *udp_send_ctx;
};

/** Starts the control thread, set up by FI_COPYRPC_JOB_KEY and FI_COPYRPC_PEER_TIMEOUT. */
int cm_node_open(struct cm_node **node);
int cm_node_open_cfg(const struct cm_cfg *cfg, struct cm_node **node);
/** Stops and joins it; no agent is left. */
void cm_node_close(struct cm_node *node);
/** Nodes stand forks, those to come too (node/cm_fork.h). */
void cm_guard_fork(void);
/** The process is ending, or we are unloaded, with things open: stops the thread for good. */
void cm_node_halt(struct cm_node *node);

/**
 * Binds an agent at `addr` (IPv4 or IPv6; port 0: any; wildcard or NULL: the address of the interface
 * that the default route uses, else loopback). -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EMFILE ...
 * Up-calls may come from now on, even before the return.
 */
int cm_ep_open(struct cm_node *node, const struct sockaddr *addr, struct cm_paths paths,
	       const struct cm_ep_ops *ops, void *ctx, struct cm_ep **cep);
/** The concrete address that peers use. */
void cm_ep_addr(const struct cm_ep *cep, struct sockaddr_storage *addr);
uint64_t cm_ep_incarnation(const struct cm_ep *cep);
/** From now on nobody can connect to the agent but whom its call finds (cm_msg.h). */
void cm_ep_make_private(struct cm_ep *cep);
void cm_ep_stats(struct cm_ep *cep, struct cm_stats *stats);
/** No up-call after the return. Every conn was put before, or is put later (it is then orphaned). */
void cm_ep_close(struct cm_ep *cep);

/**
 * Asks for a connection to `addr` (of the agent's family, not its own: else -FI_EINVAL): `up` with
 * asked = true, or `failed`, follows, exactly once per address however often it was asked
 * meanwhile. A conn that is up already is answered by `up` again.
 */
int cm_connect(struct cm_ep *cep, const struct sockaddr *addr);
/** Withdraws it: neither `up` with asked nor `failed` follows (a conn may still come up). */
void cm_connect_cancel(struct cm_ep *cep, const struct sockaddr *addr);

/** Valid from prepare on. */
void cm_conn_addr(const struct cm_conn *conn, struct sockaddr_storage *addr);
uint64_t cm_conn_incarnation(const struct cm_conn *conn);
/**
 * What it stands for has failed here: cm_conn_put will say so instead of goodbye. came: the peer
 * was heard by it before; a path by which nothing comes is left alone after a while.
 */
void cm_conn_break(struct cm_conn *conn, bool came);
/** Says goodbye if it is up, and frees the conn. No up-call for it after the return. */
void cm_conn_put(struct cm_conn *conn);

#endif
