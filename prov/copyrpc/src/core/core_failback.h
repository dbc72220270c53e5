/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Failback, the return to a better path, or to all devices of a path, or rings of another size: the
 * two ends of a connection agree to end it while nothing is in flight, and connect again. An end
 * asks when a device of its own is back, the peer's ring limits it, or memory is short
 * (core_upcalls.on_regained).
 *
 *   asking end                                   peer
 *   drains: starts no more operations
 *   idle --FAILBACK {ASK, paths}---------------> has none of the paths: FAILBACK {NO},
 *                                                no memory now: FAILBACK {LATER}
 *                                                drains
 *        <-------------------FAILBACK {YES}----- idle; starts none until the connection ends
 *   closes, connects again                       takes that as the agreed end, connects again
 *
 * An end is idle when all operations that it has started have ended: the peer has received its
 * messages and responded to its calls. Messages arrive in order, so nothing is on its way behind
 * ASK and YES, and operations that wait begin on the next connection. An end that is not idle in
 * time goes on: the one that asks without a word, the other with LATER. After NO an end waits long
 * before it asks again. LATER is also the reply for half of the pause after a connection that was
 * replaced: the pauses of an end that knows the peer by no address end with each connection. If
 * both ask, both reply, and the receiver of a YES closes.
 *
 * Both connect again, even if no operation waits, so that each end learns of the other's death. An
 * end that knows the peer by no address waits for it.
 *
 * Tests: test/unit/core/test_core_failback.c, _sizes.c and _traffic.c; test/integ/peer/outage.
 */
#ifndef CORE_CORE_FAILBACK_H
#define CORE_CORE_FAILBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "core/core_dom.h"
#include "util/clock.h"

struct core_ep;
struct core_head;
struct core_peer;

#define CORE_FAILBACK_DRAIN_NS  (1000 * UTIL_NS_PER_MS) /* for operations in flight */
#define CORE_FAILBACK_PAUSE_NS  (10 * UTIL_NS_PER_S) /* doubled by each attempt that follows soon */
#define CORE_FAILBACK_PAUSE_MAX (640 * UTIL_NS_PER_S)
#define CORE_FAILBACK_BURST     256u /* peers of an endpoint that begin per look */

/** Question of this end to the peer. All but QUIET hold operations back. */
enum core_failback_question {
	CORE_FAILBACK_QUIET,
	CORE_FAILBACK_DRAINS,  /* asks as soon as this end is idle */
	CORE_FAILBACK_ASKED,   /* ASK was sent */
	CORE_FAILBACK_GRANTED, /* YES has arrived: this end closes */
};

/** Reply of this end to a question of the peer. WILLING and AGREED hold operations back. */
enum core_failback_reply {
	CORE_FAILBACK_NONE,    /* the peer has not asked, or was refused */
	CORE_FAILBACK_WILLING, /* YES as soon as this end is idle */
	CORE_FAILBACK_NO,      /* to be sent */
	CORE_FAILBACK_LATER,   /* to be sent */
	CORE_FAILBACK_AGREED,  /* YES was sent: only the end of the connection follows */
};

struct core_failback {
	struct core_work work;
	enum core_failback_question question;
	enum core_failback_reply reply;
	uint32_t paths;    /* to ask with; those and sizes are what core_chan_ops.better returns */
	uint32_t common;   /* reasons in the peer's question that this end has, too */
	uint64_t until_ns; /* end of the time to become idle */
	uint64_t last_ns;  /* last attempt; 0: none */
	uint64_t pause_ns; /* from it to the next one */
	uint64_t rest_ns;  /* the peer may not ask before: a connection was replaced */
};

/** Begins to replace the connections for which this end knows something better. */
void core_failback_look(struct core_ep *ep);

/** Handles FAILBACK. */
enum core_rx_verdict core_failback_on_msg(struct core_chan *chan, struct core_head *head,
					  core_retain_t retain);

/** core_peer.failback.work.run and retry. */
void core_failback_run(struct core_work *work);
bool core_failback_retry(struct core_work *work);

/** The connection has ended, and with it all that was agreed on. */
void core_failback_reset(struct core_peer *peer);

/** Returns true if the end of the connection with `err` is the one that the ends agreed on. */
bool core_failback_is_agreed(const struct core_peer *peer, int err);

/** Ends the connection as agreed: operations that wait start on the next one. */
void core_failback_end(struct core_peer *peer);

#endif
