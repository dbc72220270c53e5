/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flight recorder: the last events in the life of connections, in a ring of the statistics page
 * (copyrpc/stats.h, docs/statistics.md). Called by cm/ and engine/ where connections are made and
 * end, never per message.
 *
 * Any thread, without a lock: a writer takes the next number, claims the row of that number, fills
 * it, and stores the number last. A row that another thread is writing, a whole lap behind, is left
 * to it, and the event is dropped.
 *
 * With a file each event is also written there, so that it survives the process, and the other
 * tables every few seconds. The file is of the format of the page. A forked child does not write
 * the file of its parent.
 *
 * Tested by test/unit/util/test_event.c and test/stress/stress_event.c.
 */
#ifndef UTIL_EVENT_H
#define UTIL_EVENT_H

#include <copyrpc/stats.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/** Records an event. NULL: no peer. */
void util_event(enum copyrpc_stats_event_kind kind, const struct sockaddr *peer, uint64_t value0,
		uint64_t value1);

/** Returns the time, by util_clock_ns, from which times in the page count. */
uint64_t util_event_clock(void);

/** States in the page that progress looked at its peers at this time, by util_clock_ns. */
void util_event_looked(uint64_t now_ns);

/** Returns what a cause of waits says that is waited for, "?" if it is unknown. */
static inline const char *util_event_cause(uint32_t cause)
{
	switch (cause) {
	case COPYRPC_STATS_FOR_CONNECTION: return "a connection";
	case COPYRPC_STATS_FOR_ROOM: return "room in the ring";
	case COPYRPC_STATS_FOR_CREDIT: return "credit";
	case COPYRPC_STATS_FOR_QUEUE: return "the send queue of the device";
	case COPYRPC_STATS_FOR_ACK: return "an acknowledgement";
	case COPYRPC_STATS_FOR_RECEIVE: return "a receive buffer";
	case COPYRPC_STATS_FOR_RESPONSE: return "a response";
	case COPYRPC_STATS_FOR_MESSAGE: return "a message";
	default: return "?";
	}
}

/** Returns the word between what a cause says and the peer. */
static inline const char *util_event_cause_of(uint32_t cause)
{
	return cause == COPYRPC_STATS_FOR_CONNECTION || cause == COPYRPC_STATS_FOR_QUEUE ? "to"
											 : "of";
}

/** Word of a row, whatever the fields in it. */
typedef uint64_t __attribute__((may_alias)) util_event_word;

/**
 * Copies an event that may be written meanwhile, also by another process. Returns false if there is
 * none, or it changed.
 */
static inline bool util_event_read(const struct copyrpc_stats_event *row,
				   struct copyrpc_stats_event *event)
{
	const util_event_word *from = (const void *)row;
	util_event_word *to = (void *)event;

	/* Each load is an acquire: none moves before the one in front of it. */
	for (size_t i = 0; i < sizeof(*row) / 8; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	return to[0] && to[0] % 2 == 0 && __atomic_load_n(&from[0], __ATOMIC_RELAXED) == to[0];
}

/**
 * Writes the head of the page and all events into the empty file `fd`, reserves its space, and from
 * now on writes each event there, too. Takes over `fd`. Returns 0, or an errno: then it is closed.
 */
int util_event_to_file(int fd);

/**
 * Writes the counters into the file, if there is one, unless that was done less than `period_ns`
 * ago. Called by a thread that may wait for the disk.
 */
void util_event_save_counters(uint64_t period_ns);

/** Forgets the file. Called in a forked child. */
void util_event_in_child(void);

#endif
