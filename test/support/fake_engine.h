/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine for tests of core/: endpoints of one process, a FIFO per direction, no device.
 *
 * Everything that a transport may do to messaging can be asked of it: little room (-FI_EAGAIN),
 * little credit, no get, small frames, a death, a refusal, a delivery that waits. Frames are
 * delivered by progress, from memory that is overwritten after the up-call unless it was held, as on a ring.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_chan.h"

/** What the transport is like from now on; channels read it at every operation. */
struct fake_engine_cfg {
	size_t eager_max;   /* of channels made from now on */
	uint32_t caps;      /* the same */
	size_t resp_max;    /* the same */
	unsigned room;      /* messages that may wait per direction */
	unsigned credit;    /* calls that may wait for a reply per channel */
	bool hold_delivery; /* progress delivers nothing */
	int connect_err;    /* connects fail with this (-FI_E*) */
	int lend_err;       /* nothing can be lent (-FI_E*) */
	int get_err;        /* every get ends with this (-FI_E*) */
	unsigned lazy_up;   /* progress calls before a connect comes up */
	/* With CORE_CHAN_ASYNC in caps: progress does not say what has arrived. */
	bool hold_arrival;
};

extern struct fake_engine_cfg fake_engine_cfg;
extern const struct core_engine_ops fake_engine_ops;

/** Defaults: roomy, with get, 4 KiB frames. */
void fake_engine_reset(void);

/** Kills the channels between two endpoints: both hear on_down(err) in their next progress. */
void fake_engine_kill(struct core_ep *a, struct core_ep *b, int err);

/** CORE_CHAN_ASYNC: how often somebody waited for what had CORE_SEND_NOW. */
unsigned fake_engine_awaits(void);

/** Frames that sit in any direction. */
unsigned fake_engine_queued(void);

/** Bytes that receivers hold at the moment. */
unsigned fake_engine_held(void);

/** Gets that ended well since the reset. */
unsigned fake_engine_gets(void);

/** Loans that were not ended yet. */
unsigned fake_engine_lent(void);

#endif
