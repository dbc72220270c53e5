/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State common to all connections of an engine, and their life. Called by the engine's events, by
 * transports, and by core through core_chan_ops.
 *
 *   prepared --up--> up --down, eng_conn_fail--> failed --withdrawn--> down --core closes--> freed
 *       |                                                                                      ^
 *       +-- down, or the endpoint closes ------------------------------------------------------+
 *
 * A failed connection waits, without delay for others, until nothing of its peer can write into
 * memory of users: core then ends the operations, and users reuse their buffers.
 *
 * A transport embeds struct eng_conn as first member of its own connection. Owner: the thread that
 * holds the domain, except for `conn_link` (the engine's lock) and the fields that prepare and
 * establish set (the control thread, before the connection is up).
 */
#ifndef ENGINE_ENG_CONN_H
#define ENGINE_ENG_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_engine.h"
#include "util/list.h"

struct cm_conn;
struct eng_transport;

struct eng_conn {
	struct core_chan chan; /* First member: a channel is a connection */
	struct core_engine *engine;
	struct eng_transport *transport;
	const struct core_upcalls *up;
	int err;               /* Not 0: failed; nothing is sent or received any more */
	bool up_reported;      /* The channel was reported to core */
	bool attached;         /* The transport polls the connection */
	bool stopped;          /* Only the memory is still in use */
	uint8_t out_paths : 4; /* Paths to return to: out, or short of a device (eng_outage.h) */
	bool wants_room : 1;   /* The peer's ring limits this end (eng_room.h) */
	struct core_ep *ep;
	struct core_engine_ep *eep;
	struct cm_conn *cm;
	size_t mem;                 /* Bytes counted in engine->mem */
	struct util_list fail_link; /* In engine->failed: failure not yet reported to core */
	struct util_list conn_link; /* In eep->conns, from prepare to free */
};

static inline struct eng_conn *eng_conn_of(struct core_chan *chan)
{
	return (struct eng_conn *)chan;
}

/**
 * Marks the connection as failed with `err` (-FI_E*); the next progress call notifies core.
 * Idempotent.
 */
void eng_conn_fail(struct eng_conn *conn, int err);

/**
 * Handle events of the control thread: both ends are ready; the peer is gone, or the handshake
 * failed.
 */
void eng_conn_up(struct eng_conn *conn);
void eng_conn_down(struct eng_conn *conn, int err);

/**
 * Called by a transport whose withdraw returned false, once nothing of the peer can write into
 * memory of users any more; the next progress call notifies core.
 */
void eng_conn_withdrawn(struct eng_conn *conn);

/** Reports to core a connection that eng_conn_fail marked. */
void eng_conn_failed(struct eng_conn *conn);

/** Frees a connection in any state. */
void eng_conn_free(struct eng_conn *conn);

/** Implement core_chan_ops.drain, withdraw, fail, stop and close for every transport. */
bool eng_chan_withdraw(struct core_chan *chan);
void eng_chan_fail(struct core_chan *chan, int err);
void eng_chan_drain(struct core_chan *chan);
void eng_chan_stop(struct core_chan *chan);
void eng_chan_close(struct core_chan *chan);

#endif
