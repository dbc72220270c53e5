/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Governors, idle states and quotas, as files of a tree show them. */
#include "info/info_probes.h"
#include "unit/info/info_tree.h"

#define CPU0 "/sys/devices/system/cpu/cpu0"

static struct info_tree tree;

static void open_tree(void)
{
	info_tree_open(&tree);
}

static void close_tree(void)
{
	info_tree_close(&tree);
}

TestSuite(probe_cpu, .init = open_tree, .fini = close_tree);

static void put_governor(const char *governor, const char *driver)
{
	info_tree_put(&tree, CPU0 "/cpufreq/scaling_governor", governor);
	info_tree_put(&tree, CPU0 "/cpufreq/scaling_driver", driver);
	info_probe_cpu(&tree.info);
}

Test(probe_cpu, a_machine_that_shows_nothing_is_not_judged)
{
	info_probe_cpu(&tree.info);
	cr_expect_eq(tree.info.report.cnt, 1);
	info_expect(&tree.info.report, INFO_GOOD, "cpu", NULL);
}

Test(probe_cpu, a_governor_that_saves_power_is_slow)
{
	put_governor("powersave\n", "acpi-cpufreq\n");
	info_expect(&tree.info.report, INFO_SLOW, "governor-slow", "-g performance");
}

Test(probe_cpu, the_governor_performance_is_good)
{
	put_governor("performance\n", "acpi-cpufreq\n");
	info_expect(&tree.info.report, INFO_GOOD, "governor", NULL);
}

Test(probe_cpu, powersave_of_intel_pstate_follows_the_load)
{
	put_governor("powersave\n", "intel_pstate\n");
	info_expect(&tree.info.report, INFO_NOTE, "governor", NULL);
}

static void put_state(int number, const char *name, const char *latency, const char *off)
{
	char path[128];

	snprintf(path, sizeof(path), CPU0 "/cpuidle/state%d/name", number);
	info_tree_put(&tree, path, name);
	snprintf(path, sizeof(path), CPU0 "/cpuidle/state%d/latency", number);
	info_tree_put(&tree, path, latency);
	snprintf(path, sizeof(path), CPU0 "/cpuidle/state%d/disable", number);
	info_tree_put(&tree, path, off);
}

Test(probe_cpu, the_deepest_enabled_state_counts)
{
	put_state(0, "POLL\n", "0\n", "0\n");
	put_state(1, "C1\n", "2\n", "0\n");
	put_state(2, "C6\n", "133\n", "0\n");
	put_state(3, "C8\n", "400\n", "1\n");
	info_probe_cpu(&tree.info);
	cr_expect(strstr(info_expect(&tree.info.report, INFO_NOTE, "idle-deep", "idle-set")->text,
			 "as C6, and wake after 133 us"));
}

Test(probe_cpu, shallow_states_are_nothing)
{
	put_state(0, "C1\n", "2\n", "0\n");
	put_state(1, "C6\n", "133\n", "1\n");
	info_probe_cpu(&tree.info);
	cr_expect_null(info_report_find(&tree.info.report, "idle-deep"));
}

Test(probe_cpu, a_quota_below_the_processors_is_slow)
{
	info_tree_put(&tree, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
	info_probe_cpu(&tree.info);
	cr_expect(strstr(info_expect(&tree.info.report, INFO_SLOW, "cpu-quota", "cpu.max")->text,
			 "0.50 of"));
}

Test(probe_cpu, a_quota_of_a_group_around_holds)
{
	info_tree_put(&tree, "/proc/self/cgroup", "3:cpu,cpuacct:/job_1/step_0\n");
	info_tree_put(&tree, "/sys/fs/cgroup/cpu/job_1/step_0/cpu.cfs_quota_us", "-1\n");
	info_tree_put(&tree, "/sys/fs/cgroup/cpu/job_1/step_0/cpu.cfs_period_us", "100000\n");
	info_tree_put(&tree, "/sys/fs/cgroup/cpu/job_1/cpu.cfs_quota_us", "50000\n");
	info_tree_put(&tree, "/sys/fs/cgroup/cpu/job_1/cpu.cfs_period_us", "100000\n");
	info_probe_cpu(&tree.info);
	cr_expect(strstr(info_expect(&tree.info.report, INFO_SLOW, "cpu-quota", "cpu.max")->text,
			 "grants 0.50 of"));
}

Test(probe_cpu, no_quota_is_good)
{
	info_tree_put(&tree, "/sys/fs/cgroup/cpu.max", "max 100000\n");
	info_probe_cpu(&tree.info);
	info_expect(&tree.info.report, INFO_GOOD, "cpu", NULL);
}
