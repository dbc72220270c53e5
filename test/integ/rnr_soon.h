/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long does a sender wait when its message found no receive work request?
 *
 * rnr_soon.c stands between the program and libibverbs: once rnr_is_soon is set, queue pairs ask their
 * peers to try again after 10 us, whatever the driver asks for, so that a test of short receive queues
 * waits for the queues and not for timers.
 */
#ifndef INTEG_RNR_SOON_H
#define INTEG_RNR_SOON_H

#include <stdbool.h>

extern bool rnr_is_soon; /* set before the device is opened */

#endif
