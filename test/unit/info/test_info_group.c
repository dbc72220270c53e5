/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The groups of a process from its own one to the outermost. */
#include "info/info_group.h"
#include "unit/info/info_tree.h"

static struct info_tree tree;

static void open_tree(void)
{
	info_tree_open(&tree);
}

static void close_tree(void)
{
	info_tree_close(&tree);
}

TestSuite(info_group, .init = open_tree, .fini = close_tree);

/* Compares the groups of a controller with paths that spaces separate. */
static void expect_groups(const char *controller, const char *paths)
{
	char all[512] = "";
	struct info_group group;

	info_group_open(&group, tree.root, controller);
	do {
		strcat(all, *all ? " " : "");
		strcat(all, group.path);
	} while (info_group_up(&group));
	cr_expect_str_eq(all, paths);
}

Test(info_group, all_from_the_own_one_to_the_outermost)
{
	info_tree_put(&tree, "/proc/self/cgroup", "0::/slurm/job_1/step_0\n");
	expect_groups(NULL, "/sys/fs/cgroup/slurm/job_1/step_0 /sys/fs/cgroup/slurm/job_1 "
			    "/sys/fs/cgroup/slurm /sys/fs/cgroup");
	expect_groups("memory", "/sys/fs/cgroup/memory");
}

Test(info_group, each_controller_of_version_1_has_its_own)
{
	info_tree_put(
		&tree, "/proc/self/cgroup",
		"12:cpu,cpuacct:/a\n11:cpuset:/b\n4:memory:/c/d:e\n1:name=systemd:/f\n0::/\n");
	expect_groups("cpu", "/sys/fs/cgroup/cpu/a /sys/fs/cgroup/cpu");
	expect_groups("memory", "/sys/fs/cgroup/memory/c/d:e /sys/fs/cgroup/memory/c "
				"/sys/fs/cgroup/memory");
	expect_groups("set", "/sys/fs/cgroup/set");
	expect_groups(NULL, "/sys/fs/cgroup");
}

Test(info_group, without_a_list_the_outermost_one)
{
	expect_groups(NULL, "/sys/fs/cgroup");
	info_tree_put(&tree, "/proc/self/cgroup", "junk\n\n:\n");
	expect_groups(NULL, "/sys/fs/cgroup");
	expect_groups("memory", "/sys/fs/cgroup/memory");
}
