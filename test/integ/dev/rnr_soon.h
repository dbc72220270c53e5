/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Short retry time for messages that find no receive work request.
 *
 * rnr_soon.c stands between the program and libibverbs: once rnr_is_soon is set, queue pairs
 * request a retry after 10 us, whatever the driver sets, so that a test of short receive queues
 * waits for the queues and not for timers.
 */
#ifndef INTEG_RNR_SOON_H
#define INTEG_RNR_SOON_H

#include <stdbool.h>

extern bool rnr_is_soon; /* set before the device is opened */

#endif
