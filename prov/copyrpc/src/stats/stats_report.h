/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Report of FI_COPYRPC_STATS: the statistics page of this process, written to stderr or a file when
 * its last domain closes, or at its end if a domain is still open. Called by ofi/ at these points.
 *
 * The file is opened with the first domain, too, so that a wrong name is known at the start of a
 * job, and so is the file of events (util/event.h), which outlives the process. A name or a file
 * that cannot be used is logged, and the job goes on. A report of a process that had no connection
 * is left out. Sums are those of the process: a later report replaces an earlier one. Tested by
 * test/unit/stats/test_stats_report.c and test/suite.d/54-stats.
 */
#ifndef STATS_STATS_REPORT_H
#define STATS_STATS_REPORT_H

#include <stddef.h>

/** Ending that the name of the report gets for the file of events. */
#define STATS_REPORT_EVENTS ".events"

/** A domain opens, and closes after its last endpoint. Any thread. */
void stats_report_open(void);
void stats_report_close(void);
/** The process ends. */
void stats_report_end(void);

/**
 * Replaces %r (rank, 0 if unknown), %h (host), %p (process id) and %% in a name. Returns 0, -EINVAL
 * for another conversion or an empty name, or -ENAMETOOLONG.
 */
int stats_report_name(const char *form, char *name, size_t size);

#endif
