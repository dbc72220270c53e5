/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files of /proc and /sys, and search in a list of directories. */
#include "info/info_sys.h"

#include <rdma/fabric.h>

#include "unit/info/info_tree.h"

static struct info_tree tree;

Test(info_sys, reads_lines_and_numbers_below_the_root)
{
	uint64_t number = 1;
	char line[16];

	info_tree_open(&tree);
	info_tree_put(&tree, "/sys/a3/one", "word\nnext\n");
	info_tree_put(&tree, "/sys/number", "18446744073709551615\n");
	info_tree_put(&tree, "/sys/large", "18446744073709551616\n");
	info_tree_put(&tree, "/sys/max", "max\n");
	info_tree_put(&tree, "/sys/empty", "");
	cr_expect(info_sys_line(line, sizeof(line), tree.root, "/sys/a%d/one", 3));
	cr_expect_str_eq(line, "word");
	cr_expect(info_sys_number(&number, tree.root, "/sys/number"));
	cr_expect_eq(number, UINT64_MAX);
	cr_expect_not(info_sys_number(&number, tree.root, "/sys/large"));
	cr_expect_not(info_sys_number(&number, tree.root, "/sys/max"));
	cr_expect_not(info_sys_number(&number, tree.root, "/sys/empty"));
	cr_expect_not(info_sys_number(&number, tree.root, "/sys/missing"));
	info_tree_close(&tree);
}

Test(info_sys, the_chosen_entry_is_in_brackets)
{
	char one[] = "always [madvise] never", none[] = "never", open[] = "a [b";

	cr_expect_str_eq(info_sys_chosen(one), "madvise");
	cr_expect_str_eq(info_sys_chosen(none), "never");
	cr_expect_str_eq(info_sys_chosen(open), "a [b");
}

Test(info_sys, the_first_directory_that_has_the_file_is_found)
{
	char *found = NULL, *list, *want;

	info_tree_open(&tree);
	info_tree_put(&tree, "/b/file", "");
	info_tree_put(&tree, "/c/file", "");
	list = info_print("%s/a::%s/b:%s/c", tree.root, tree.root, tree.root);
	want = info_print("%s/b/file", tree.root);
	cr_assert(info_sys_find(list, "file", &found));
	cr_expect_str_eq(found, want);
	cr_expect_not(info_sys_find(list, "other", &found));
	cr_expect_not(info_sys_find("", "file", &found));
	free(found);
	free(list);
	free(want);
	info_tree_close(&tree);
}

Test(info_sys, an_address_belongs_to_its_library)
{
	char *path = info_sys_object((const void *)(uintptr_t)fi_version);

	cr_assert(path);
	cr_expect(strstr(path, "libfabric"), "%s", path);
	free(path);
}
