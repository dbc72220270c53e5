/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Channels of the fake engine (fake_engine.h): two ends, each with a FIFO of frames that the other
 * one has sent. fake_engine.c makes and connects them, and runs them in its progress.
 */
#ifndef FAKE_CHAN_H
#define FAKE_CHAN_H

#include <netinet/in.h>

#include "core/core_engine.h"
#include "util/idmap.h"
#include "util/list.h"

struct fake_frame;

struct fake_chan {
	struct core_chan chan;
	struct fake_chan *other; /* NULL: the other end is closed */
	struct core_ep *ep;
	const struct core_upcalls *up;
	struct util_list in;       /* fake_frame.link */
	struct util_list retained; /* likewise: freed by release or close */
	unsigned in_cnt;
	unsigned calls_open;
	struct fake_frame *response; /* response in on_reply; NULL once it is retained */
	struct util_idmap calls;
	struct util_list link; /* core_engine_ep.chans */
	int down;              /* -FI_E* for on_down */
	bool up_reported;
	uint64_t taken;  /* CORE_CHAN_ASYNC: end of the last message */
	uint64_t sent;   /* frames that the other end was given */
	uint64_t parsed; /* frames of the other end that were delivered here */
	struct sockaddr_in peer_addr;
	uint64_t incarnation; /* of the peer */
};

/** Clears the counters of fake_engine.h that are about channels. */
void fake_chan_reset(void);

/** Returns a channel of `ep` to `peer`, in no list and without another end. */
struct fake_chan *fake_chan_new(struct core_ep *ep, const struct core_upcalls *up,
				const struct sockaddr_in *peer);

/** Delivers the frames, and reports what has happened since the last run. */
void fake_chan_run(struct fake_chan *fc);

/** Closes this end and frees it. The other end reports -FI_ESHUTDOWN. */
void fake_chan_close(struct fake_chan *fc);

#endif
