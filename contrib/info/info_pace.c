/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Times of messages and what they mean: see info_pace.h. */
#include "info/info_pace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_fab.h"

/* Returns how often another thread had the processor of this one, which was ready to go on. */
static uint64_t pace_shared(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)usage.ru_nivcsw;
}

static int pace_order(const void *a, const void *b)
{
	const uint64_t *one = a, *two = b;

	return (*one > *two) - (*one < *two);
}

int info_pace_measure(struct info_fab *fab, bool first, struct info_pace *pace)
{
	uint64_t ns[INFO_PACE_ROUNDS], shared = pace_shared();
	int ret;

	ret = info_fab_ping(fab, first, INFO_FAB_SHORT, INFO_PACE_ROUNDS, ns);
	if (ret)
		return ret;
	pace->shared = pace_shared() - shared;
	if (getloadavg(&pace->load, 1) < 1)
		pace->load = 0;
	qsort(ns, INFO_PACE_ROUNDS, sizeof(ns[0]), pace_order);
	pace->short_ns = ns[INFO_PACE_ROUNDS / 2];
	pace->best_ns = ns[0];
	ret = info_fab_ping(fab, first, INFO_FAB_LONG, INFO_PACE_ROUNDS_LONG, ns);
	if (ret)
		return ret;
	qsort(ns, INFO_PACE_ROUNDS_LONG, sizeof(ns[0]), pace_order);
	pace->long_ns = ns[INFO_PACE_ROUNDS_LONG / 2];
	return 0;
}

static void pace_print(char *text, size_t len, const char *what, const struct info_pace *pace)
{
	snprintf(text, len,
		 "%s: %.2f us one way for 8 bytes (the fastest: %.2f us), %.0f MB/s with 1 MiB",
		 what, (double)pace->short_ns / 1000, (double)pace->best_ns / 1000,
		 (double)INFO_FAB_LONG * 1000 / (double)(pace->long_ns ? pace->long_ns : 1));
}

/*
 * This end lost its processor in every fourth round, or more often; or the other end may have, as
 * more threads are ready than there are processors.
 */
static bool pace_is_shared(const struct info_pace *pace)
{
	return pace->shared >= INFO_PACE_ROUNDS / 4 ||
	       pace->load > (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static void pace_add_shared(struct info_report *report, const struct info_pace_path *path,
			    const char *text, const struct info_pace *pace)
{
	info_add(report, INFO_SLOW, path->topic, path->slow,
		 "%s, because processes wait for a processor: others had this one %" PRIu64
		 " times meanwhile, and the load is %.1f",
		 text, pace->shared, pace->load);
	info_mend(report, "top: leave a processor to each rank, then repeat this");
}

static void pace_add_slow(struct info_report *report, const struct info_pace_path *path,
			  const char *text)
{
	info_add(report, INFO_SLOW, path->topic, path->slow, "%s, which is slow", text);
	info_mend(report, path->is_far
				  ? "ping between both hosts, top on the other one; choose the "
				    "network: FI_COPYRPC_IFACE"
				  : "copyrpc_info --only processor,memory,container");
}

void info_pace_judge(struct info_report *report, const struct info_pace_path *path,
		     const char *what, const struct info_pace *pace)
{
	char text[256];

	pace_print(text, sizeof(text), what, pace);
	if (pace->short_ns <= path->bound_ns)
		info_add(report, INFO_GOOD, path->topic, path->good, "%s", text);
	else if (pace_is_shared(pace))
		pace_add_shared(report, path, text, pace);
	else
		pace_add_slow(report, path, text);
}
