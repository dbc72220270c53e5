/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is due next?
 *
 * A pairing heap of timers that live in the objects they wake: arming never allocates and cannot
 * fail; arm and the look at the first are O(1), cancel and expiry O(log n) amortised.
 * Not locked: the node's mutex covers it. Times are util_clock_ns().
 *
 * Shown by test/unit/cm/base/test_cm_timer.c.
 */
#ifndef CM_CM_TIMER_H
#define CM_CM_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct cm_timer {
	uint64_t at_ns;
	void (*fire)(struct cm_timer *timer); /* called unarmed: may arm it again, or free it */
	struct cm_timer *child;
	struct cm_timer *next; /* sibling */
	struct cm_timer *prev; /* sibling, or the parent of a first child */
	bool is_armed;
};

struct cm_timers {
	struct cm_timer *root; /* the earliest, or NULL */
};

void cm_timer_init(struct cm_timer *timer, void (*fire)(struct cm_timer *timer));
/** Due at `at_ns`, in place of any earlier arming. */
void cm_timer_arm(struct cm_timers *timers, struct cm_timer *timer, uint64_t at_ns);
/** Harmless if it is not armed. */
void cm_timer_cancel(struct cm_timers *timers, struct cm_timer *timer);
/** Fires all that are due at `now_ns`, earliest first; one armed meanwhile may be among them. */
void cm_timers_run(struct cm_timers *timers, uint64_t now_ns);

#endif
