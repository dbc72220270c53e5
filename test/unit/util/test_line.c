/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* First lines of files. (util/line.h) */
#include "util/line.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads the first line of a file with this text. */
static bool read_text(const char *text, char *line, size_t len)
{
	char path[] = "/tmp/copyrpc-line-XXXXXX";
	int fd = mkstemp(path);
	bool got;

	cr_assert_geq(fd, 0);
	cr_assert_gt(dprintf(fd, "%s", text), -1);
	close(fd);
	got = util_line_read(path, line, len);
	unlink(path);
	return got;
}

Test(line, the_first_line_is_read_without_its_end)
{
	char line[16];

	cr_assert(read_text("one\ntwo\n", line, sizeof(line)));
	cr_expect_str_eq(line, "one");
	cr_assert(read_text("no end", line, sizeof(line)));
	cr_expect_str_eq(line, "no end");
	cr_assert(read_text("\n", line, sizeof(line)));
	cr_expect_str_eq(line, "");
	cr_assert(read_text("0123456789", line, 5));
	cr_expect_str_eq(line, "0123");
}

Test(line, an_empty_or_missing_file_has_none)
{
	char line[16];

	cr_expect_not(read_text("", line, sizeof(line)));
	cr_expect_not(util_line_read("/nowhere", line, sizeof(line)));
}
