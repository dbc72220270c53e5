/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Containers and control groups, as files of a tree show them. */
#include "info/info_probes.h"
#include "unit/info/info_tree.h"

#define HOST_USERS "         0          0 4294967295\n"

static struct info_tree tree;

static void open_host(void)
{
	unsetenv("container");
	info_tree_open(&tree);
	info_tree_put(&tree, "/proc/self/uid_map", HOST_USERS);
	info_tree_put(&tree, "/proc/self/status", "Name:\tx\nNSpid:\t12\n");
}

static void close_host(void)
{
	info_tree_close(&tree);
}

TestSuite(probe_container, .init = open_host, .fini = close_host);

Test(probe_container, a_host_is_none)
{
	info_probe_container(&tree.info);
	cr_expect_eq(tree.info.report.cnt, 1);
	info_expect(&tree.info.report, INFO_GOOD, "container-none", NULL);
}

Test(probe_container, namespaces_are_named)
{
	const struct info_finding *it;

	info_tree_put(&tree, "/proc/self/uid_map", "0 1000 1\n");
	info_tree_put(&tree, "/proc/self/status", "NSpid:\t4711\t1\n");
	info_probe_container(&tree.info);
	it = info_expect(&tree.info.report, INFO_NOTE, "container", "--pid host");
	cr_expect(strstr(it->text, "users of its own"));
	cr_expect(strstr(it->text, "process numbers of its own"));
}

Test(probe_container, docker_is_known_by_its_file)
{
	info_tree_put(&tree, "/.dockerenv", "");
	info_probe_container(&tree.info);
	cr_expect(strstr(info_expect(&tree.info.report, INFO_NOTE, "container", "--pid host")->text,
			 "Docker"));
}

Test(probe_container, a_small_memory_limit_is_slow)
{
	info_tree_put(&tree, "/proc/self/cgroup", "0::/job/1\n");
	info_tree_put(&tree, "/sys/fs/cgroup/job/1/memory.max", "536870912\n");
	info_probe_container(&tree.info);
	info_expect(&tree.info.report, INFO_SLOW, "memory-limit", "memory.max");
}

Test(probe_container, the_limit_of_the_job_holds_for_its_steps)
{
	info_tree_put(&tree, "/proc/self/cgroup", "4:memory:/job_1/step_0\n0::/job_1/step_0\n");
	info_tree_put(&tree, "/sys/fs/cgroup/job_1/step_0/memory.max", "max\n");
	info_tree_put(&tree, "/sys/fs/cgroup/job_1/memory.max", "8589934592\n");
	info_probe_container(&tree.info);
	info_expect(&tree.info.report, INFO_NOTE, "memory-limit", NULL);
	info_report_fini(&tree.info.report);
	info_tree_put(&tree, "/sys/fs/cgroup/memory/job_1/memory.limit_in_bytes", "67108864\n");
	info_probe_container(&tree.info);
	info_expect(&tree.info.report, INFO_SLOW, "memory-limit", "memory.max");
}

Test(probe_container, a_large_memory_limit_is_a_note_and_none_is_nothing)
{
	info_tree_put(&tree, "/sys/fs/cgroup/memory.max", "max\n");
	info_probe_container(&tree.info);
	cr_expect_null(info_report_find(&tree.info.report, "memory-limit"));
	info_tree_put(&tree, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "8589934592\n");
	info_probe_container(&tree.info);
	info_expect(&tree.info.report, INFO_NOTE, "memory-limit", NULL);
}
