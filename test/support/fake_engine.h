/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine for tests of core/: endpoints of one process, a FIFO per direction, no device.
 *
 * Tests set the conditions of the transport: little room (-FI_EAGAIN), little credit, no get, small
 * frames, a failed channel, a refused connect, no delivery. Progress delivers frames from memory
 * that is overwritten after the up-call unless it is retained, as on a ring.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_engine.h"

/** Conditions of the transport; the first five apply to new channels, the others at once. */
struct fake_engine_cfg {
	size_t eager_max;
	size_t eager_min;
	uint32_t caps;
	size_t resp_max;
	uint32_t held_max;
	unsigned room;         /* undelivered frames per direction */
	unsigned credit;       /* calls without a reply per channel */
	bool no_delivery;      /* progress delivers no frames */
	int connect_err;       /* error of every connect, or 0 */
	int expose_err;        /* error of every expose, or 0 */
	int get_err;           /* status of every get, or 0 */
	unsigned gets_refused; /* next gets that find no room */
	bool gets_last;        /* gets end with their channel */
	unsigned lazy_up;      /* progress calls before a channel is up */
	uint32_t better;       /* paths that both ends can use and no channel takes */
	uint32_t wants;        /* reasons to ask for besides, which no end has to offer */
	unsigned enlarged;     /* channels that were to be followed by a larger one */
	unsigned reduced;      /* likewise by a smaller one */
	bool no_acks;          /* CORE_CHAN_ASYNC: progress reports no acknowledgements */
	bool acks_when_asked;  /* no_acks ends with the first question whether a channel is busy */
};

extern struct fake_engine_cfg fake_engine_cfg;
extern const struct core_progress_ops fake_progress_ops;
extern const struct core_engine_ops fake_engine_ops;

/** Sets the defaults: much room, get, 4 KiB frames. */
void fake_engine_reset(void);

/** Fails the channels between two endpoints: on_down(err) follows in the progress of both. */
void fake_engine_kill(struct core_ep *a, struct core_ep *b, int err);
/** Makes the endpoint one of a new process at its address, for connections made from now on. */
void fake_engine_restart(struct core_ep *ep);

/** Returns the number of calls of await since the reset. */
unsigned fake_engine_awaits(void);

/** Returns the number of connects to peers that were up before, since the reset. */
unsigned fake_engine_reconnects(void);

/** Returns the number of undelivered frames of all channels. */
unsigned fake_engine_queued(void);

/** Returns the number of retained frames. */
unsigned fake_engine_retained(void);

/** Returns the number of successful gets since the reset. */
unsigned fake_engine_gets(void);

/** Returns the number of exposures that have not ended. */
unsigned fake_engine_exposed(void);
/** Returns how many there were when the last channel was stopped while the other end was open. */
unsigned fake_engine_exposed_at_stop(void);

#endif
