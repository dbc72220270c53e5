/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Is there one control thread, as long as somebody needs it? (eng_node.h) */
#include <criterion/criterion.h>
#include <dirent.h>

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

Test(eng_node, the_first_starts_it_and_the_last_stops_it, .timeout = 200)
{
	unsigned before = threads();
	struct cm_node *first, *second;
	unsigned i;

	for (i = 0; i < 3; i++) {
		cr_assert_eq(eng_node_get(&first), 0);
		cr_assert_eq(eng_node_get(&second), 0);
		cr_expect_eq(first, second);
		cr_expect_eq(threads(), before + 1);
		eng_node_put();
		cr_expect_eq(threads(), before + 1);
		eng_node_put();
		cr_expect_eq(threads(), before);
	}
}
