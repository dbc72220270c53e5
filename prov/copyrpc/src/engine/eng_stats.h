/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rows of the statistics page (util/stats.h) for what an engine has: its transports, its endpoints
 * and their connections, and one row for all connections for which there is none. Called by the
 * engine where these begin and end, and by transports for what is not counted in line. Records the
 * events in the life of connections, too (util/event.h).
 *
 * A connection has its row, core_chan.stats, while it is up. Before and after, the pointer leads to
 * a row that is never read (core_engine.unread), and without room in the page to one that others of
 * the engine use too: it is never NULL. Threads do not share rows.
 *
 * Tested by test/unit/engine/test_eng_stats.c.
 */
#ifndef ENGINE_ENG_STATS_H
#define ENGINE_ENG_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct copyrpc_stats_packets;
struct copyrpc_stats_peer;
struct copyrpc_stats_transport;
struct core_chan;
struct core_engine;
struct core_engine_ep;
struct core_get;
struct eng_conn;
struct eng_transport;
struct eng_transport_ops;

/** Gets the engine's row for connections without one, and gives it back. */
void eng_stats_open(struct core_engine *engine);
void eng_stats_close(struct core_engine *engine);

/**
 * Records a transport that opened, or did not because of `err` (-FI_E*). Returns its row, or NULL
 * without room.
 */
struct copyrpc_stats_transport *eng_stats_transport(const struct eng_transport_ops *ops, int err);

/** Records that an outage of the device began (`before` 0), changed, or ended after `lasted_ns`. */
void eng_stats_outage(const struct eng_transport *transport, int before, uint64_t lasted_ns);

/** Adds to the memory of the connection's transport. Any thread. */
void eng_stats_memory(struct eng_conn *conn, int64_t len);

/** Gets the row of an endpoint at its address, and gives it back. */
void eng_stats_ep_open(struct core_engine_ep *eep);
void eng_stats_ep_close(struct core_engine_ep *eep);

/**
 * Returns the place of the counters of packets in the endpoint's row. Valid until the transports'
 * states of the endpoint are closed. Domain's lock.
 */
struct copyrpc_stats_packets *eng_stats_packets(struct core_engine_ep *eep);

/** Gets the row of a connection that comes up, and gives it back. */
void eng_stats_conn_up(struct eng_conn *conn);
void eng_stats_conn_end(struct eng_conn *conn);
/** Writes how the connection is carried, after that has changed. */
void eng_stats_conn_moved(struct eng_conn *conn);

/** Counts and records an attempt that ended with `err` (-FI_E*). */
void eng_stats_failed(struct core_engine_ep *eep, const struct sockaddr *addr, int err);
/** Counts and records a connection that ended by conn->err. */
void eng_stats_conn_down(struct eng_conn *conn);
/** Records that this end closes a connection, if it is up. */
void eng_stats_conn_closing(struct eng_conn *conn);

/** Counts a get, or a direct access, that ended. */
void eng_stats_get(struct core_chan *chan, const struct core_get *get);
void eng_stats_access(struct core_chan *chan, const struct core_get *get);

/** Counts a call that was refused because of chan->shortage. */
void eng_stats_shortage(struct core_chan *chan);

#endif
