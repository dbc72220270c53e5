/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels to the peers of a fuzzer, which side.c makes: see side.h. */
#ifndef FUZZ_CORE_SIDE_CHAN_H
#define FUZZ_CORE_SIDE_CHAN_H

#include <stdbool.h>

#include "core/core_chan.h"

/** Returns a new channel to a peer that has none. */
struct core_chan *side_chan_open(unsigned peer);
bool side_chan_is_open(unsigned peer);
/** Ends what has ended since the last run, and reports that the channel is broken. */
void side_chan_run(unsigned peer);
/** Returns true if memory is exposed to a peer. */
bool side_chan_is_exposed(void);

#endif
