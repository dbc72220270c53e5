/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transport contract: one device and the loop over it. Implemented by ring/ and erpc/; called by
 * the engine.
 *
 * An engine has one transport per path that it offers. A connection belongs, from prepare to free,
 * to the transport of the path that its handshake selected. The engine uses a transport only
 * through its ops. A transport embeds struct eng_transport as first member, in memory that the
 * engine provides.
 *
 *   open -> { prepare -> establish -> attach -> poll, flush ... -> drain -> withdraw -> end -> stop
 *             -> free } -> close
 *
 * prepare and establish run in the control thread, under cm's mutex: they must neither block nor
 * call cm. open and close run alone. All others run under the domain's lock. A transport without an
 * attached connection is polled only before a thread sleeps: data that arrived before a
 * connection's attach must be available then. free may come at any time after prepare and follows
 * stop; drain, withdraw and end come only after attach.
 *
 * Tested by test/unit/engine.
 */
#ifndef ENGINE_ENG_TRANSPORT_H
#define ENGINE_ENG_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/core_chan.h"
#include "dev/dev.h"
#include "engine/eng_size.h"

#define ENG_TRANSPORTS_MAX 4u
/* Bytes that a transport may use, struct eng_transport included. */
#define ENG_TRANSPORT_SPACE 384u

struct cm_params;
struct copyrpc_stats_transport;
struct core_engine_ep;
struct eng_conn;
struct eng_transport;

struct eng_transport_ops {
	uint32_t path; /* Bit of WIRE_CM_PATH_* that its connections take */
	const char *name;
	/* Like dev_ops.probe: quick and silent. NULL: always available. */
	int (*probe)(struct dev_about *about);
	/* Returns 0, or -FI_E* like dev_ops.open. */
	int (*open)(struct eng_transport *transport);
	void (*close)(struct eng_transport *transport);
	/*
	 * Makes the transport's per-endpoint state, in the control thread, before the first prepare
	 * of the endpoint; `addr` is the endpoint's concrete address. With `by_address` there is
	 * one for each local address that connections use, otherwise one for the first address.
	 * NULL: there is none. ep_close follows after all connections of the endpoint are freed,
	 * and before a reopen; ep_open may follow again.
	 */
	int (*ep_open)(struct eng_transport *transport, struct core_engine_ep *eep,
		       const struct sockaddr *addr, void **ep_state);
	void (*ep_close)(struct eng_transport *transport, void *ep_state);
	bool by_address;
	/*
	 * Makes a connection, zeroed beyond what it sets, and its connection parameters (engine
	 * bytes and dev; path is set). `ep_state` is that of ep_open, or NULL. The engine then
	 * fills in struct eng_conn, except chan.ops.
	 * Returns 0, or -FI_E* like cm_ep_ops.prepare; logs notable failures.
	 */
	int (*prepare)(struct eng_transport *transport, struct core_engine_ep *eep, void *ep_state,
		       enum eng_size size, struct cm_params *params, struct eng_conn **conn);
	/*
	 * Completes the connection parameters that depend on the peer's address, after prepare and
	 * before they are sent. NULL: none do.
	 */
	void (*aim)(struct eng_conn *conn, const struct sockaddr *peer, struct cm_params *params);
	/*
	 * Validates and applies the peer's connection parameters. Returns 0, or the -FI_E* with
	 * which the peer is refused.
	 */
	int (*establish)(struct eng_conn *conn, const struct cm_params *peer);
	/*
	 * Returns true if a connection to the same peer that is made now, by this path, would have
	 * all devices of this end; which of them this one has is known to the end that lacks one
	 * (eng_outage_lacks). NULL: there is only one.
	 */
	bool (*improves)(const struct eng_conn *conn);
	/*
	 * Returns true if the peer would get a larger ring now, with ENG_SIZE_LARGE. NULL: all are
	 * of one size.
	 */
	bool (*grows)(const struct eng_conn *conn);
	/*
	 * Returns true if new peers get smaller rings now, and neither end has sent anything for
	 * long. Called from time to time while memory is short. NULL: likewise.
	 */
	bool (*shrinks)(struct eng_conn *conn);
	/* Returns how the connection is carried, for statistics. NULL: `name` says it. */
	const char *(*conn_name)(const struct eng_conn *conn);
	/* Starts polling the connection. Returns 0 or -FI_E*. on_up follows. */
	int (*attach)(struct eng_conn *conn);
	/* Returns true if anything was ever received from the peer. NULL: unknown. */
	bool (*has_received)(const struct eng_conn *conn);
	/*
	 * Returns the time of the last receive, by util_clock_ns; 0: never. Called by the control
	 * thread while progress may run. NULL: unknown.
	 */
	uint64_t (*last_rx_ns)(const struct eng_conn *conn);
	/*
	 * Makes the up-calls for everything received from the peer, which is gone or will not be
	 * polled any more. Returns even if the peer keeps sending.
	 */
	void (*drain)(struct eng_conn *conn);
	/*
	 * Returns true once nothing of the peer can write into memory of users. After false the
	 * transport calls eng_conn_withdrawn in bounded time. Called before end, after conn->err
	 * was set. NULL: end sees to that.
	 */
	bool (*withdraw)(struct eng_conn *conn);
	/*
	 * Stops sending and receiving after conn->err was set. The device releases memory of users,
	 * and open transfers end with the error. on_down follows.
	 */
	void (*end)(struct eng_conn *conn);
	/*
	 * Frees everything but retained memory; no up-call follows. Accepted messages were flushed
	 * before, unless conn->err is set. Called once.
	 */
	void (*stop)(struct eng_conn *conn);
	/* Frees the memory. */
	void (*free)(struct eng_conn *conn);
	/* Receives a bounded part of the arrived data. Returns true if there may be more. */
	bool (*poll)(struct eng_transport *transport);
	/* Sends deferred data and due requests. */
	void (*flush)(struct eng_transport *transport);
	/*
	 * Looks at the connections, every FI_COPYRPC_RC_INTERVAL while progress is made, or more
	 * often. NULL: there is nothing to decide.
	 */
	void (*tick)(struct eng_transport *transport);
	/* Like dev_ops.health; -FI_ENODEV without a device. NULL: it cannot fail. */
	int (*health)(struct eng_transport *transport);
	/*
	 * Returns true if no link is left on the device: reopen may follow, and wait_fd does not
	 * change. NULL: reopen follows as soon as there is no connection.
	 */
	bool (*is_unused)(struct eng_transport *transport);
	/*
	 * Closes the device, if there is one, and opens it again; regions are registered again.
	 * Returns 0, or -FI_E*: then there is no device, and only health,
	 * reopen and close may follow. With `health` only.
	 */
	int (*reopen)(struct eng_transport *transport);
	/* Polls and flushes. NULL: the engine calls poll, then flush. */
	void (*progress)(struct eng_transport *transport);
	/* Like dev_ops. arm also returns -FI_EAGAIN while flush has work. */
	int (*wait_fd)(struct eng_transport *transport);
	int (*arm)(struct eng_transport *transport);
	void (*disarm)(struct eng_transport *transport);
};

struct eng_transport {
	const struct eng_transport_ops *ops;
	struct core_engine *engine;
	uint32_t conn_cnt; /* Connections attached and not freed */
	bool lacked;       /* A connection has lacked a device of its path (eng_outage_lacks) */
	struct copyrpc_stats_transport *stats; /* or NULL */
	/* eng_outage.h; written with the engine's device_lock held */
	int outage;         /* 0, -FI_ENETDOWN, -FI_EIO, or -FI_ENODEV: there is no device */
	bool refused;       /* the last prepare returned -FI_EIO */
	uint32_t user_cnt;  /* connections from prepare to free */
	uint64_t outage_ns; /* when the outage began */
	uint64_t back_ns;   /* end of the last outage; 0: there was none */
	uint64_t reopen_ns; /* earliest time of the next attempt to open the device */
};

union eng_transport_space {
	struct eng_transport transport; /* First member */
	uint64_t bytes[ENG_TRANSPORT_SPACE / 8];
};

/** Transports of an engine, best first. Of several with one path, the first that opens is used. */
struct eng_transports {
	uint32_t cnt;
	const struct eng_transport_ops *ops[ENG_TRANSPORTS_MAX];
};

#endif
