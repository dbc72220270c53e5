/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What has every connection, whatever carries it? And how does it begin, fail and end?
 *
 *   prepared --up--> up --down or eng_conn_fail--> down --core closes--> freed
 *       |                                                                  ^
 *       +-- down, or the endpoint closes ----------------------------------+
 *
 * A transport embeds struct eng_conn first in its own. Owner: whoever holds the domain, but `conn_link` (the
 * engine's lock) and what prepare and establish set (the control thread, before it is up).
 *
 * Shown by test/unit/engine/test_eng_conn.c.
 */
#ifndef ENG_CONN_H
#define ENG_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/core_chan.h"
#include "util/list.h"

struct cm_conn;
struct eng_transport;

struct eng_conn {
	struct core_chan chan; /* first: a channel is a connection */
	struct core_engine *engine;
	struct eng_transport *transport;
	const struct core_upcalls *up;
	int err;          /* not 0: failed, nothing more is taken in or sent */
	bool up_reported; /* core knows the channel */
	bool attached;    /* the transport polls it */
	bool stopped;     /* core wants its memory and nothing else */
	struct core_ep *ep;
	struct core_engine_ep *eep;
	struct cm_conn *cm;
	size_t mem;                 /* counted in engine->mem */
	struct util_list fail_link; /* in engine->failed: core has to hear of it */
	struct util_list conn_link; /* in eep->conns, from prepare to free */
};

static inline struct eng_conn *eng_conn_of(struct core_chan *chan)
{
	return (struct eng_conn *)chan;
}

/** Marks it as failed with `err` (-FI_E*); core hears of it in the next progress. Once. */
void eng_conn_fail(struct eng_conn *conn, int err);

/** News of the control thread: both ends are ready; the peer is gone, or it came to nothing. */
void eng_conn_up(struct eng_conn *conn);
void eng_conn_down(struct eng_conn *conn, int err);

/** Core hears of a connection that eng_conn_fail put aside. */
void eng_conn_failed(struct eng_conn *conn);

/** Frees a connection in any state. */
void eng_conn_free(struct eng_conn *conn);

/** core_chan_ops.drain, stop and close, for every transport. */
void eng_chan_drain(struct core_chan *chan);
void eng_chan_stop(struct core_chan *chan);
void eng_chan_close(struct core_chan *chan);

#endif
