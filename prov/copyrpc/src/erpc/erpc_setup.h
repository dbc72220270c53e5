/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open and close of endpoints (erpc_ep_setup.c) and sessions (erpc_session_setup.c). Called by
 * transport/ and, through core_chan_ops, by core.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c and test_erpc_session.c.
 */
#ifndef ERPC_ERPC_SETUP_H
#define ERPC_ERPC_SETUP_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"

struct erpc_ep_attr {
	struct dev_dgram *dg; /* owned from here on: closed with the endpoint, also if open fails */
	struct dev *dev;      /* device of dg and its operations, or NULL */
	const struct dev_ops *dev_ops;
	uint32_t tx_cnt; /* the device's limit of posted datagrams */
	const struct core_upcalls *up;
	double link_rate; /* bytes per second, the initial rate of Timely; 0: no pacing */
	uint64_t host_ns; /* share of a round trip that wake-ups of processes may take */
	uint64_t seed;    /* for tokens; 0: from the system */
	uint8_t mark;     /* low byte of all tokens from the system */
	size_t eager_min; /* core_chan.eager_min of sessions */
	/*
	 * Called at the end of progress, after all up-calls: a session has failed (session->err).
	 */
	void (*failed)(struct erpc_session *session);
};

/** Returns 0 or -FI_E*. */
int erpc_ep_open(const struct erpc_ep_attr *attr, struct erpc_ep **ep);
/**
 * Moves the counters of packets to a row of the statistics page, which stays valid until the
 * endpoint is closed. Without, they are in the endpoint.
 */
void erpc_ep_count_in(struct erpc_ep *ep, struct copyrpc_stats_packets *stats);
/** Requires that all sessions are closed. */
void erpc_ep_close(struct erpc_ep *ep);

/**
 * Allocates a session and its parameters for the peer. Returns 0, -FI_ENOMEM, or -FI_EAGAIN if all
 * numbers are in use. The caller sets `user`, chan.ops and chan.peer. Any thread.
 */
int erpc_session_open(struct erpc_ep *ep, struct wire_erpc_params *params,
		      struct erpc_session **session);

/**
 * Connects to the peer with its parameters and address, which the session owns from here on, also
 * on error. Returns 0, -FI_EAGAIN if a second attempt may succeed, or -FI_E*, logged. Any thread.
 */
int erpc_session_connect(struct erpc_session *s, const struct wire_erpc_params *peer,
			 struct dev_dgram_ah *ah);

/** Starts to process received packets. */
void erpc_session_attach(struct erpc_session *s);

/** After a failure: ends all gets with `err` and takes packets out of the burst. */
void erpc_session_end(struct erpc_session *s);

/** Frees all resources but retained memory. */
void erpc_session_stop(struct erpc_session *s);

/** Frees the session, in any state, with its retained memory. */
void erpc_session_close(struct erpc_session *s);

/** Frees closed sessions with all datagrams completed by the device, or all. */
void erpc_session_reap(struct erpc_ep *ep, bool all);

/** Operations without an engine, and with one, which ends the connection (eng_conn.h). */
extern const struct core_chan_ops erpc_chan_ops;
extern const struct core_chan_ops erpc_chan_eng_ops;

#endif
