/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Small files of /proc and /sys, below a root that tests replace, and files of libraries. */
#ifndef INFO_INFO_SYS_H
#define INFO_INFO_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Reads the first line of root + path, which is printed. Returns false if it cannot be read. */
bool info_sys_line(char *line, size_t len, const char *root, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** Reads a number, likewise. Returns false if there is none. */
bool info_sys_number(uint64_t *number, const char *root, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Returns the entry in brackets of a line such as "always [madvise] never", in place. */
const char *info_sys_chosen(char *line);

/** Returns whether a directory of `list`, separated by ":", has `file`; its path is in *found. */
bool info_sys_find(const char *list, const char *file, char **found);

/** Returns the resolved path of the library or program that contains `address`, or NULL. */
char *info_sys_object(const void *address);

/** Returns the directory of `path`, in place. */
char *info_sys_dirname(char *path);

#endif
