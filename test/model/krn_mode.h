/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The threads of the model: the one that serves what waits for time (RNR, delays), and in poll mode
 * the one that watches the UAR pages.
 */
#ifndef KRN_MODE_H
#define KRN_MODE_H

#include <stdint.h>

/* Starts what the mode of this process needs; called with GET_CONTEXT, so outside of handlers. */
void krn_mode_start(void);
/* Returns when no round of the polling thread that began before is under way. */
void krn_mode_quiesce(void);
/*
 * What the device says of itself: raises what is due and returns the time of the next (krn_port.c).
 */
uint64_t krn_port_service(uint64_t now_ns);
/* After fork(), in the child: the threads are not there. */
void krn_mode_forget(void);

#endif /* KRN_MODE_H */
