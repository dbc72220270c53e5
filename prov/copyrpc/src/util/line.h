/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * First lines of small files, such as those of /proc and /sys. Used for interfaces and by
 * copyrpc_info.
 *
 * Any thread. Tested by test/unit/util/test_line.c.
 */
#ifndef UTIL_LINE_H
#define UTIL_LINE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Reads the first line of a file, at most len - 1 bytes of it, without its end. Returns false if
 * there is none.
 */
bool util_line_read(const char *path, char *line, size_t len);

#endif
