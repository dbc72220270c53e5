/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Progress of a long run on the terminal: see bench.h. */
#include "bench.h"

#include <unistd.h>

#define SILENT_NS 2000000000u

static uint64_t progress_start;
static bool progress_shown;

void bench_progress(const char *test, size_t size, int done, int total)
{
	uint64_t now = bench_now_ns();

	if (!progress_start)
		progress_start = now;
	if (now - progress_start < SILENT_NS || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s, %zu bytes: %d of %d, %.0f s so far", test, size, done + 1,
		total, (double)(now - progress_start) / 1e9);
	progress_shown = true;
}

void bench_progress_clear(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}
