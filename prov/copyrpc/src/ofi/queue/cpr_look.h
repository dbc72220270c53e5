/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often does one look before the first sleep, and when may others have the processor?
 *
 * A look takes tens of nanoseconds over shared memory, and a system call over sockets. What is to
 * be given away and when to stop is a matter of time, and asking for the time at each look would
 * cost as much as a cheap look. So the clock is asked at the fourth look, and then after as many as
 * seem to take CPR_LOOK_GIVE_NS: more or fewer each time.
 *
 * Who gives the processor away lets the peer run that is to answer, where both are bound to this one.
 *
 * Pure: the clock is the caller's. Shown by test/unit/ofi/queue/test_cpr_look.c.
 */
#ifndef CPR_LOOK_H
#define CPR_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Longer than it takes when both ends sleep and wake each other: then two who answer each other find back to
 * answering at once.
 */
#define CPR_LOOK_SPIN_NS 50000u
#define CPR_LOOK_GIVE_NS 4000u
#define CPR_LOOK_FIRST   4u
#define CPR_LOOK_MOST    256u /* looks without asking for the time */

struct cpr_look {
	uint32_t left;   /* looks until the clock is asked */
	uint32_t step;   /* and then, the last time */
	uint64_t end_ns; /* 0: the clock was never asked */
	uint64_t asked_ns;
	uint64_t gave_ns;
};

enum cpr_look_next {
	CPR_LOOK_AGAIN,
	CPR_LOOK_GIVE, /* the processor away, then again */
	CPR_LOOK_OVER, /* long enough: sleep */
};

static inline void cpr_look_init(struct cpr_look *l)
{
	*l = (struct cpr_look){ .left = CPR_LOOK_FIRST, .step = CPR_LOOK_FIRST };
}

/** A look found nothing: is the clock to be asked? */
static inline bool cpr_look_asks(struct cpr_look *l)
{
	return !--l->left;
}

/** The clock was asked. */
static inline enum cpr_look_next cpr_look_at(struct cpr_look *l, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - l->asked_ns;
	bool gives;

	if (!l->end_ns) {
		l->end_ns = now_ns + CPR_LOOK_SPIN_NS;
		l->gave_ns = now_ns;
	} else if (took_ns < CPR_LOOK_GIVE_NS && l->step < CPR_LOOK_MOST) {
		l->step *= 2;
	} else if (took_ns > 2 * CPR_LOOK_GIVE_NS && l->step > 1) {
		l->step /= 2;
	}
	gives = now_ns - l->gave_ns >= CPR_LOOK_GIVE_NS;
	if (gives)
		l->gave_ns = now_ns;
	l->left = l->step;
	l->asked_ns = now_ns;
	if (now_ns > l->end_ns)
		return CPR_LOOK_OVER;
	return gives ? CPR_LOOK_GIVE : CPR_LOOK_AGAIN;
}

#endif
