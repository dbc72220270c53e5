/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One control thread exists while any engine needs it. (eng_node.h) */
#include <criterion/criterion.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/eng_node.h"

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

Test(eng_node, the_first_engine_starts_the_thread_and_the_last_stops_it, .timeout = 200)
{
	unsigned before = threads();
	struct cm_node *first, *second;
	unsigned i;

	for (i = 0; i < 3; i++) {
		cr_assert_eq(eng_node_get(&first), 0);
		cr_assert_eq(eng_node_get(&second), 0);
		cr_expect_eq(first, second);
		cr_expect_eq(threads(), before + 1);
		eng_node_put(first);
		cr_expect_eq(threads(), before + 1);
		eng_node_put(second);
		cr_expect_eq(threads(), before);
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
	pid = fork();
	if (!pid) {
		bool ok = threads() == 1 && !eng_node_get(&own) && own != parents && threads() == 2;

		eng_node_put(parents);
		ok = ok && threads() == 2;
		eng_node_put(own);
		_exit(ok && threads() == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(threads(), before + 1);
	eng_node_put(parents);
	cr_expect_eq(threads(), before);
}
