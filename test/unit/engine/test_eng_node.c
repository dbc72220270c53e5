/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One control thread exists while any engine needs it. (eng_node.h) */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/node/cm_node.h"
#include "engine/eng_node.h"
#include "util/stats.h"

static unsigned threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned cnt = 0;

	cr_assert_not_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt - 2;
}

/* Waits until there are that many: a thread that was joined is listed until its exit is over. */
static bool has_threads(unsigned cnt)
{
	for (unsigned i = 0; i < 20000 && threads() != cnt; i++)
		usleep(1000);
	return threads() == cnt;
}

Test(eng_node, the_first_engine_starts_the_thread_and_the_last_stops_it, .timeout = 200)
{
	unsigned before = threads();
	struct cm_node *first, *second;
	unsigned i;

	for (i = 0; i < 3; i++) {
		cr_assert_eq(eng_node_get(&first), 0);
		cr_assert_eq(eng_node_get(&second), 0);
		cr_expect_eq(first, second);
		cr_expect(has_threads(before + 1));
		eng_node_put(first);
		cr_expect(has_threads(before + 1));
		eng_node_put(second);
		cr_expect(has_threads(before));
	}
}

/* Returns whether all threads but this one sleep. */
static bool others_sleep(void)
{
	char path[300], line[300];
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");
	bool sleep = true;

	cr_assert_not_null(dir);
	while ((entry = readdir(dir))) {
		int tid = atoi(entry->d_name);
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
		file = tid && tid != gettid() ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (fgets(line, sizeof(line), file))
			sleep &= strrchr(line, ')')[2] == 'S';
		fclose(file);
	}
	closedir(dir);
	return sleep;
}

/*
 * Waits until the new control thread waits for events. A sanitizer's allocator is not prepared for
 * a fork while another thread allocates: the child would wait for its lock without an end.
 */
static void await_quiet(void)
{
	for (unsigned quiet = 0, i = 0; quiet < 20 && i < 20000; i++) {
		usleep(1000);
		quiet = others_sleep() ? quiet + 1 : 0;
	}
}

/* The parent's thread continues; the child does not release what it inherited. */
Test(eng_node, a_forked_child_starts_its_own_thread, .timeout = 200)
{
	struct cm_node *parents, *own = NULL;
	unsigned before = threads();
	int status;
	pid_t pid;

	cr_assert_eq(eng_node_get(&parents), 0);
	await_quiet();
	pid = fork();
	if (!pid) {
		bool ok = has_threads(1) && !eng_node_get(&own) && own != parents && has_threads(2);

		eng_node_put(parents);
		ok = ok && has_threads(2);
		eng_node_put(own);
		_exit(ok && has_threads(1) ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect(has_threads(before + 1));
	eng_node_put(parents);
	cr_expect(has_threads(before));
}

static void *fork_once(void *unused)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
	return unused;
}

/* The control thread saves the statistics, with the lock of the node. */
Test(eng_node, a_fork_takes_the_lock_of_the_statistics_last, .timeout = 60)
{
	struct cm_node *node;
	pthread_t thread;

	cr_assert_eq(eng_node_get(&node), 0);
	util_stats_end(util_stats_get(COPYRPC_STATS_ENDPOINTS));
	await_quiet();
	cm_node_lock(node);
	cr_assert_eq(pthread_create(&thread, NULL, fork_once, NULL), 0);
	usleep(100000);
	util_stats_end(util_stats_get(COPYRPC_STATS_ENDPOINTS));
	cm_node_unlock(node);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	eng_node_put(node);
}
