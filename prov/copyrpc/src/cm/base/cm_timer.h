/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Timers in a pairing heap.
 *
 * Timers are embedded in the objects they wake: arming never allocates and cannot fail. Arming and
 * reading the earliest deadline are O(1), cancelling and expiry O(log n) amortised. Not locked: the
 * node's mutex covers them. Times are util_clock_ns().
 */
#ifndef CM_BASE_CM_TIMER_H
#define CM_BASE_CM_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct cm_timer {
	uint64_t at_ns;
	void (*fire)(struct cm_timer *timer); /* may arm or free the timer */
	struct cm_timer *child;
	struct cm_timer *next; /* sibling */
	struct cm_timer *prev; /* previous sibling, or the parent of the first child */
	bool is_armed;
};

struct cm_timers {
	struct cm_timer *root; /* earliest timer, or NULL */
};

void cm_timer_init(struct cm_timer *timer, void (*fire)(struct cm_timer *timer));
/** Arms for `at_ns`, replacing an earlier arming. */
void cm_timer_arm(struct cm_timers *timers, struct cm_timer *timer, uint64_t at_ns);
/** Cancels if armed. */
void cm_timer_cancel(struct cm_timers *timers, struct cm_timer *timer);
/** Fires all timers due at `now_ns`, earliest first, including ones armed meanwhile. */
void cm_timers_run(struct cm_timers *timers, uint64_t now_ns);

#endif
