/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A directory with files of /proc and /sys that a test chooses, and findings about them. */
#ifndef TEST_INFO_TREE_H
#define TEST_INFO_TREE_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "info/info.h"

struct info_tree {
	char root[32];
	struct info info;
};

static inline void info_tree_open(struct info_tree *tree)
{
	memset(tree, 0, sizeof(*tree));
	strcpy(tree->root, "/tmp/info_tree.XXXXXX");
	cr_assert(mkdtemp(tree->root));
	tree->info.root = tree->root;
}

/* Writes a file, and the directories above it. */
static inline void info_tree_put(struct info_tree *tree, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	cr_assert_lt((size_t)snprintf(path, sizeof(path), "%s%s", tree->root, name), sizeof(path));
	for (char *at = path + strlen(tree->root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(path, 0755);
	}
	file = fopen(path, "w");
	cr_assert(file);
	fputs(text, file);
	fclose(file);
}

static inline int info_tree_drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void info_tree_close(struct info_tree *tree)
{
	nftw(tree->root, info_tree_drop, 8, FTW_DEPTH | FTW_PHYS);
	info_report_fini(&tree->info.report);
}

/* Fails unless there is a finding with this verdict, whose remedy contains `mend` (NULL: none). */
static inline const struct info_finding *info_expect(const struct info_report *report,
						     enum info_verdict verdict, const char *id,
						     const char *mend)
{
	const struct info_finding *it = info_report_find(report, id);

	cr_assert(it, "no finding %s", id);
	cr_expect_eq(it->verdict, verdict, "%s is %s", id, info_verdict_name(it->verdict));
	cr_expect_eq(!it->mend, !mend);
	cr_expect(!mend || strstr(it->mend, mend), "%s: %s", id, it->mend);
	return it;
}

#endif
