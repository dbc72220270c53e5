/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How quickly two processes exchange messages, and whether that is slow. Used by probe_trial.c and
 * info_peer.c.
 *
 * The typical time is a median: on a machine that has other work, few messages take most of the
 * time. How often other threads had the processor meanwhile tells a busy machine from a slow path.
 */
#ifndef INFO_INFO_PACE_H
#define INFO_INFO_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct info_fab;
struct info_report;

#define INFO_PACE_ROUNDS      200u /* round trips of short messages */
#define INFO_PACE_ROUNDS_LONG 10u

/** Half round trips, medians unless stated otherwise. */
struct info_pace {
	uint64_t short_ns, long_ns; /* of INFO_FAB_SHORT and INFO_FAB_LONG bytes */
	uint64_t best_ns;           /* the fastest short one */
	uint64_t shared;            /* times that others had this processor during the short ones */
	double load;                /* load average of this host then; 0: not known */
};

/** A path, and from when on a short message over it is slow. */
struct info_pace_path {
	const char *topic, *good, *slow; /* topic and names of the findings */
	uint64_t bound_ns;
	bool is_far; /* to another host */
};

/** Exchanges messages; the other end does the same. Returns 0 or an error. */
int info_pace_measure(struct info_fab *fab, bool first, struct info_pace *pace);

/** Adds the finding, whose text begins with `what`. */
void info_pace_judge(struct info_report *report, const struct info_pace_path *path,
		     const char *what, const struct info_pace *pace);

#endif
