/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics pages of the processes of this host that the caller may read. Called by copyrpc_top.
 *
 * A page is found as a link in /proc/PID/fd, and taken only if it is sealed, so that it cannot
 * shrink while it is read, and if it names a process of that number. A forked child that still has
 * its parent's descriptor therefore is not listed. Tested by test/suite.d/54-stats.
 */
#ifndef TOP_TOP_PAGES_H
#define TOP_TOP_PAGES_H

#include "stats/stats_view.h"

struct top_pages {
	struct stats_view *views; /* by process id */
	size_t cnt;
	size_t refused; /* files with the name of a page that are none */
};

/** Reads all pages. Returns 0 or -errno, -ENOENT if /proc is not mounted. */
int top_pages_read(struct top_pages *pages);
/**
 * Reads the pages of one process, or the file that one has written (util/event.h): `name` is a
 * number, or the name of that file or of the report beside it. Returns 0, -EINVAL if the file is
 * no page, or another -errno; -ESRCH: the process has no page that the caller may read.
 */
int top_pages_find(struct top_pages *pages, const char *name);
void top_pages_free(struct top_pages *pages);

#endif
