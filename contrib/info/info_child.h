/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work that may fail, hang or write messages, in a process of its own.
 *
 * libfabric, providers and tools of Open MPI run in a child, so that a crash or a wait without end
 * is a finding and not the end of copyrpc_info. What the child writes to standard error, the log of
 * libfabric among it, is captured.
 */
#ifndef INFO_INFO_CHILD_H
#define INFO_INFO_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#define INFO_CHILD_SECONDS 60u /* far above what any probe takes on a loaded machine */

struct info_child {
	bool ended; /* false: it was killed, because its time was over */
	int status; /* exit status, or 128 and the signal that ended it */
	char *out;  /* bytes that it wrote to `out`, with a 0 behind them */
	size_t len; /* number of these bytes */
	char *log;  /* text that it wrote to standard error */
};

/** Work of a child. Returns its exit status. Results are written to the descriptor `out`. */
typedef int info_child_fn(void *arg, int out);

/** Runs `fn` in a forked child. Returns 0 or -errno if there is no child; *child is then zeroed. */
int info_child_run(info_child_fn *fn, void *arg, unsigned seconds, struct info_child *child);

/** Runs a program, found through PATH, whose standard output is child->out. As info_child_run. */
int info_child_exec(const char *const argv[], unsigned seconds, struct info_child *child);

void info_child_fini(struct info_child *child);

#endif
