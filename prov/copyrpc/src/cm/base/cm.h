/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: makes connections between endpoints by the handshake of docs/handshake.md.
 *
 * A node is one control thread with its epoll set, one per fabric. A CM endpoint is the address of
 * one endpoint: a UDP socket for packets from any sender, and an abstract SOCK_SEQPACKET socket,
 * which proves "same host, same user" and carries descriptors. A conn is one peer process, from its
 * first packet to its end.
 *
 *   A                                       B
 *   |-- UDP  REQ  {inc_A, nonce, paths} --->|   allocates nothing
 *   |<- UDP  ACK  {inc_B, cookie, name}  ---|   or NAK {error}
 *   |== connect to B's abstract name ======>|   fails: another host, datagrams from here on
 *   |-- HELLO {cookie, addr_A, params_A} -->|   checks user and cookie; datagram: host and cookie
 *   |<- WELCOME {params_B} / NAK {error} ---|   or CROSSED: B's own attempt wins
 *   |-- READY / NAK {error} --------------->|   up at A, then at B
 *   |   ... the socket stays open: its end reports the peer's death, BYE an orderly close ...
 *
 * All packets are idempotent. REQ is repeated with jittered back-off until FI_COPYRPC_PEER_TIMEOUT.
 * If both ends connect at once, the attempt of the lower incarnation wins. With a job key every
 * packet carries a MAC; a packet without a valid one is only counted.
 *
 * Threads: the functions may be called from any thread. The control thread makes the up-calls with
 * the node's mutex held. Up-calls must not block, and must not call cm except where stated.
 */
#ifndef CM_BASE_CM_H
#define CM_BASE_CM_H

#include <copyrpc/stats.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "dev/dev.h"

#define CM_ENGINE_MAX 64u /* the engine's bytes in the connection parameters */
#define CM_PATHS_MAX  4u

struct cm_node;
struct cm_ep;
struct cm_conn;
struct util_job_name;

/** Connection parameters: the bytes and descriptors that one end sends about itself. */
struct cm_params {
	uint32_t path; /* the path they are for: one bit, WIRE_CM_PATH_* */
	uint32_t engine_len;
	uint64_t features; /* for prepare: in use with the peer, WIRE_CM_FEATURE_* */
	uint8_t engine[CM_ENGINE_MAX];
	struct dev_desc dev;
};

/** Up-calls from cm to the engine. */
struct cm_ep_ops {
	/*
	 * Prepares a connection, at either end: fills in params for params->path and sets *user.
	 * Returns 0 or -FI_E*, which the peer receives in a NAK. -FI_EAGAIN and -FI_EMFILE are
	 * retried until the peer timeout. cm closes the descriptors in `params`, also on error.
	 */
	int (*prepare)(void *ctx, struct cm_conn *conn, struct cm_params *params, void **user);
	/*
	 * Connects to the peer's parameters. Returns 0 or -FI_E* (NAK). Called once, after prepare.
	 */
	int (*establish)(void *ctx, struct cm_conn *conn, void *user, const struct cm_params *peer);
	/* The connection is established. `requested`: this up-call completes a cm_connect. */
	void (*up)(void *ctx, struct cm_conn *conn, void *user, bool requested);
	/*
	 * End of a prepared conn. Before `up`: the attempt failed with its error; -FI_EALREADY if
	 * it lost a crossing. After `up`: -FI_ECONNRESET if the peer died, -FI_ESHUTDOWN if it
	 * closed, -FI_ECONNABORTED if it restarted, -FI_ETIMEDOUT if it was silent, -FI_EIO if it
	 * violated the protocol or reported a failure. The conn stays valid until cm_conn_put.
	 */
	void (*down)(void *ctx, struct cm_conn *conn, void *user, int err);
	/*
	 * Returns the time, by util_clock_ns, of the last message from the peer of a conn that is
	 * up, or 0. cm sends no PING while this time is recent. NULL: only cm's own packets count.
	 */
	uint64_t (*last_rx_ns)(void *ctx, struct cm_conn *conn, void *user);
	/* Comes every cm_cfg.tick_ms, if that is set. NULL: none. */
	void (*tick)(void *ctx);
	/*
	 * A cm_connect to `addr` failed finally. `why` is one line that tells the user what to do.
	 * -FI_ETIMEDOUT: no reply; -FI_ECONNREFUSED: no process there; -FI_EHOSTUNREACH: no path to
	 * the peer; -FI_EACCES: another user's process; else the error of prepare or establish at
	 * either end, or of the network.
	 */
	void (*failed)(void *ctx, const struct sockaddr *addr, int err, const char *why);
	/*
	 * Result of a cm_connect to `addr`, too: the endpoint there is the one of this incarnation,
	 * to which a conn is up that was made by another of its addresses. No other is made.
	 */
	void (*alias)(void *ctx, const struct sockaddr *addr, uint64_t incarnation);
	/*
	 * For connected endpoints (msg/cm_msg.h): the listener accepted, with `data`, and the CM
	 * endpoint connects to the one at `addr`. up or failed follows.
	 */
	void (*accepted)(void *ctx, const struct sockaddr *addr, const void *data, size_t len);
	/*
	 * The connection request failed with `err`; `data` comes from a listener that rejected it.
	 */
	void (*refused)(void *ctx, int err, const void *data, size_t len);
};

/** Sets of paths, WIRE_CM_PATH_*. */
struct cm_paths {
	uint32_t all;                /* paths this end supports */
	uint32_t best[CM_PATHS_MAX]; /* preference, if both ends support several */
};

/** Settings of a node. */
struct cm_cfg {
	const char *job_key; /* copied; NULL or empty: no key */
	int peer_timeout_ms; /* 0: 30 s */
	int tick_ms;         /* 0: no ticks */
	/* Replaces sendto in tests that lose datagrams; NULL: sendto. */
	ssize_t (*udp_send)(void *ctx, int fd, const void *buf, size_t len,
			    const struct sockaddr *to, socklen_t to_len);
	void *udp_send_ctx;
	/* Replaces the test for addresses of this host in tests; NULL: cm_local_has. */
	bool (*is_local)(const struct sockaddr *addr);
};

/** Starts the control thread, with FI_COPYRPC_JOB_KEY and FI_COPYRPC_PEER_TIMEOUT. */
int cm_node_open(struct cm_node **node);
int cm_node_open_cfg(const struct cm_cfg *cfg, struct cm_node **node);
/** Stops and joins the thread. All CM endpoints must be closed. */
void cm_node_close(struct cm_node *node);
/** Protects all nodes, also later ones, in a process that forks (node/cm_fork.h). */
void cm_guard_fork(void);
/** Stops the thread for good while objects are open: at process exit or unload. */
void cm_node_halt(struct cm_node *node);

/**
 * Opens a CM endpoint at `addr` (IPv4 or IPv6), a name whose further addresses (util/name.h) are
 * left out if they cannot be bound. Port 0: any. Wildcard or NULL: the best addresses of this host
 * (util/iface.h). Returns 0, -FI_EADDRINUSE, -FI_EADDRNOTAVAIL,
 * -FI_EMFILE or another error. Up-calls may come before the function returns.
 */
int cm_ep_open(struct cm_node *node, const struct sockaddr *addr, struct cm_paths paths,
	       const struct cm_ep_ops *ops, void *ctx, struct cm_ep **cep);
/** Returns the name that peers use: the concrete addresses (util/name.h). */
void cm_ep_addr(const struct cm_ep *cep, struct sockaddr_storage *addr);
/** Returns one of these addresses, alone: `sock` is that of cm_conn_route. */
void cm_ep_local_addr(const struct cm_ep *cep, uint32_t sock, struct sockaddr_storage *addr);
uint64_t cm_ep_incarnation(const struct cm_ep *cep);
/**
 * States the paths whose device is out: they are left out where both ends have another. Any thread.
 */
void cm_ep_set_down(struct cm_ep *cep, uint32_t paths);
/**
 * From now on only the peer of its connection request (msg/cm_msg.h) can connect to the endpoint.
 */
void cm_ep_make_private(struct cm_ep *cep);
/** Copies the counters. */
void cm_ep_stats(struct cm_ep *cep, struct copyrpc_stats_handshakes *stats);
/**
 * Moves the counters to a row of the statistics page, which stays valid until the endpoint is
 * closed. Without, they are in the endpoint.
 */
void cm_ep_count_in(struct cm_ep *cep, struct copyrpc_stats_handshakes *stats);
/** Closes. No up-call after the return. Conns not yet put become orphans and are put later. */
void cm_ep_close(struct cm_ep *cep);

/**
 * Requests a connection to the endpoint with the name `addr`, by whichever of its addresses replies
 * (conn/cm_route.h). `was_up`: a process at this address is known to have run, so
 * that a closed port means its end and not its late start (cm_req.h). Returns 0, or -FI_EINVAL for
 * the endpoint's own address or another address family. `up` with requested = true, `alias` or
 * `failed` follows, once per address however many requests were made meanwhile. If the conn is up
 * already, `up` follows again.
 */
int cm_connect(struct cm_ep *cep, const struct sockaddr *addr, bool was_up);
/** Cancels: neither `up` with requested, `alias` nor `failed` follows. A conn may still come up. */
void cm_connect_cancel(struct cm_ep *cep, const struct sockaddr *addr);

/**
 * Valid from prepare on. The name of the peer, as it states it; its only further address is the one
 * that its packets come from, if that is not the first.
 */
void cm_conn_addr(const struct cm_conn *conn, struct sockaddr_storage *addr);
/**
 * Writes the address that packets of the peer come from, and returns the number of this endpoint's
 * address that they go to, below UTIL_NAME_ADDRS.
 */
uint32_t cm_conn_route(const struct cm_conn *conn, struct sockaddr_storage *peer);
/** Returns whether the peer has proved by a job key that its name is its own. Not for orphans. */
bool cm_conn_is_authentic(const struct cm_conn *conn);
uint64_t cm_conn_incarnation(const struct cm_conn *conn);
/** Returns the number of the peer's process, by the kernel's word for its stream, or 0. */
pid_t cm_conn_pid(const struct cm_conn *conn);
/** Returns the identity that the peer states, valid until cm_conn_put, or NULL. */
const struct util_job_name *cm_conn_identity(const struct cm_conn *conn);
/**
 * Returns those of `paths` that this end would use with the peer now, if the peer has them; 0 if
 * one of the ends cannot leave a connection for them.
 */
uint32_t cm_conn_better(const struct cm_conn *conn, uint32_t paths);
/** Returns true if the peer knows of connections that are replaced for the size of their rings. */
bool cm_conn_resizes(const struct cm_conn *conn);
/**
 * Reports that the connection failed at this end: cm_conn_put then sends BROKEN instead of BYE.
 * `came`: messages of the peer have arrived on it; cm stops using a path on which none ever arrive.
 */
void cm_conn_break(struct cm_conn *conn, bool came);
/**
 * Closes the connection, with BYE if it is up, and frees the conn. No up-call for it afterwards.
 */
void cm_conn_put(struct cm_conn *conn);

#endif
