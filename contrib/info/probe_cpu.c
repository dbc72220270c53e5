/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processors: number, quota, frequency governor, idle states. What the kernel does not show, as in
 * most virtual machines, is not judged.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_group.h"
#include "info/info_probes.h"
#include "info/info_sys.h"

#define TOPIC       "processor"
#define CPU         "/sys/devices/system/cpu"
#define STATES_MAX  16u
#define LATENCY_MAX 50u /* us until a processor runs again; deeper states double a round trip */

static unsigned cpu_usable(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* Stores the time that a group of version 2 or 1 may use, and of what. Returns false: no limit. */
static bool cpu_quota_of(const struct info *info, const struct info_group *group, uint64_t *quota,
			 uint64_t *period)
{
	char line[64];

	if (info_sys_line(line, sizeof(line), info->root, "%s/cpu.max", group->path))
		return sscanf(line, "%" SCNu64 " %" SCNu64, quota, period) == 2 && *period;
	return info_sys_number(quota, info->root, "%s/cpu.cfs_quota_us", group->path) &&
	       info_sys_number(period, info->root, "%s/cpu.cfs_period_us", group->path) && *period;
}

/* Returns processors that the control groups grant, in hundredths; 0: no limit. */
static uint64_t cpu_quota(const struct info *info)
{
	static const char *const controllers[] = { NULL, "cpu" }; /* of version 2, and of 1 */
	uint64_t quota, period, least = 0;
	struct info_group group;

	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		info_group_open(&group, info->root, controllers[i]);
		do {
			if (cpu_quota_of(info, &group, &quota, &period) &&
			    (!least || quota * 100 / period < least))
				least = quota * 100 / period;
		} while (info_group_up(&group));
	}
	return least;
}

static void cpu_number(struct info *info)
{
	unsigned usable = cpu_usable();
	uint64_t quota = cpu_quota(info);

	if (quota && quota < 100ull * usable) {
		info_add(&info->report, INFO_SLOW, TOPIC, "cpu-quota",
			 "the control group grants %" PRIu64 ".%02" PRIu64
			 " of %u processors: ranks that poll are stopped when the quota is used up",
			 quota / 100, quota % 100, usable);
		info_mend(&info->report,
			  "raise cpu.max (docker run --cpus %u), or start at most %" PRIu64
			  " ranks",
			  usable, quota / 100 ? quota / 100 : 1);
		return;
	}
	info_add(&info->report, INFO_GOOD, TOPIC, "cpu",
		 "%u processors; with more ranks than that, start jobs with "
		 "OMPI_MCA_mpi_yield_when_idle=1",
		 usable);
}

static void cpu_governor(struct info *info)
{
	char governor[64], driver[64] = "";

	if (!info_sys_line(governor, sizeof(governor), info->root,
			   CPU "/cpu0/cpufreq/scaling_governor"))
		return;
	info_sys_line(driver, sizeof(driver), info->root, CPU "/cpu0/cpufreq/scaling_driver");
	/* The governor "powersave" of these drivers follows the load. */
	if (!strcmp(governor, "performance") || strstr(driver, "pstate")) {
		info_add(&info->report, strcmp(governor, "performance") ? INFO_NOTE : INFO_GOOD,
			 TOPIC, "governor", "frequency governor %s (driver %s)", governor, driver);
		return;
	}
	info_add(&info->report, INFO_SLOW, TOPIC, "governor-slow",
		 "frequency governor %s (driver %s): processors run below their frequency",
		 governor, driver);
	info_mend(&info->report, "cpupower frequency-set -g performance (as root)");
}

/* Returns the longest latency of an idle state that is enabled, in us, and its name. */
static uint64_t cpu_deepest(const struct info *info, char *name, size_t len)
{
	uint64_t deepest = 0, latency, off;

	for (unsigned i = 0; i < STATES_MAX; i++) {
		if (!info_sys_number(&latency, info->root, CPU "/cpu0/cpuidle/state%u/latency", i))
			break;
		if (info_sys_number(&off, info->root, CPU "/cpu0/cpuidle/state%u/disable", i) &&
		    off)
			continue;
		if (latency <= deepest)
			continue;
		deepest = latency;
		info_sys_line(name, len, info->root, CPU "/cpu0/cpuidle/state%u/name", i);
	}
	return deepest;
}

static void cpu_idle(struct info *info)
{
	char name[64] = "";
	uint64_t latency = cpu_deepest(info, name, sizeof(name));

	if (latency <= LATENCY_MAX)
		return;
	info_add(&info->report, INFO_NOTE, TOPIC, "idle-deep",
		 "idle processors sleep as deeply as %s, and wake after %" PRIu64
		 " us: ranks that sleep (fi_cq_sread, mpi_yield_when_idle) react that much "
		 "later; ranks that poll do not",
		 name, latency);
	info_mend(&info->report, "cpupower idle-set -D %u (as root)", LATENCY_MAX);
}

void info_probe_cpu(struct info *info)
{
	cpu_number(info);
	cpu_governor(info);
	cpu_idle(info);
}
