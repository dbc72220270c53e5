/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells whether the calling thread shares its processor with others that run between its events.
 *
 * A thread that waits for a peer and yields loses its processor once for each wait if the peer,
 * or another rank of the job, runs there. The kernel counts that: a switch that the thread did not
 * request by sleeping. A thread on a processor of its own is switched out a few hundred times a
 * second at most.
 *
 * Thread rules: the caller locks. The count is that of the calling thread; if several threads take
 * turns, the result is a guess.
 */
#ifndef UTIL_SWITCHES_H
#define UTIL_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

/** Events between two readings of the kernel's count, a system call. */
#define UTIL_SWITCHES_EVENTS 16u
/** Switches between two readings from which the processor counts as shared. */
#define UTIL_SWITCHES_SHARED 4

/** Zeroed: not shared. */
struct util_switches {
	uint32_t events;
	bool shared;
	long seen; /* switches at the last reading */
};

/** Reads the kernel's count, at first only that. Returns true if the processor is shared. */
bool util_switches_read(struct util_switches *s);

/** Counts an event, such as a message sent. Returns true if the processor is shared. */
static inline bool util_switches_event(struct util_switches *s)
{
	return s->events++ % UTIL_SWITCHES_EVENTS ? s->shared : util_switches_read(s);
}

#endif
