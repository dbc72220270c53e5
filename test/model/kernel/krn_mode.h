/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads of the model: the service thread for work that waits for time (RNR, delays), and in poll
 * mode the thread that watches the UAR pages.
 */
#ifndef KRN_MODE_H
#define KRN_MODE_H

#include <stdint.h>

/* Starts the threads of this process's mode. Called by GET_CONTEXT, outside of handlers. */
void krn_mode_start(void);
/* Waits until every round of the polling thread that began before has ended. */
void krn_mode_quiesce(void);
/* Raises the device events that are due and returns the time of the next (krn_port.c). */
uint64_t krn_port_service(uint64_t now_ns);
/* Resets the threads' state in a child of fork(), which has no threads. */
void krn_mode_forget(void);

#endif /* KRN_MODE_H */
