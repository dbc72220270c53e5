/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files of the system: see info_sys.h. */
#include "info/info_sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info/info.h"
#include "util/line.h"

static bool info_sys_vline(char *line, size_t len, const char *root, const char *format,
			   va_list args)
{
	char path[PATH_MAX];
	int begin = snprintf(path, sizeof(path), "%s", root);

	if (begin < 0 || (size_t)begin >= sizeof(path))
		return false;
	vsnprintf(path + begin, sizeof(path) - (size_t)begin, format, args);
	return util_line_read(path, line, len);
}

bool info_sys_line(char *line, size_t len, const char *root, const char *format, ...)
{
	va_list args;
	bool got;

	va_start(args, format);
	got = info_sys_vline(line, len, root, format, args);
	va_end(args);
	return got;
}

bool info_sys_number(uint64_t *number, const char *root, const char *format, ...)
{
	char line[64], *end;
	va_list args;
	bool got;

	va_start(args, format);
	got = info_sys_vline(line, sizeof(line), root, format, args);
	va_end(args);
	if (!got || line[0] < '0' || line[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(line, &end, 10);
	return !errno;
}

const char *info_sys_chosen(char *line)
{
	char *begin = strchr(line, '['), *end = begin ? strchr(begin, ']') : NULL;

	if (!end)
		return line;
	*end = '\0';
	return begin + 1;
}

bool info_sys_find(const char *list, const char *file, char **found)
{
	while (list) {
		size_t len = strcspn(list, ":");
		char *path = info_print("%.*s/%s", (int)len, list, file);

		if (len && !access(path, F_OK)) {
			*found = path;
			return true;
		}
		free(path);
		list = list[len] ? list + len + 1 : NULL;
	}
	return false;
}

char *info_sys_object(const void *address)
{
	Dl_info about;

	return dladdr(address, &about) && about.dli_fname ? realpath(about.dli_fname, NULL) : NULL;
}

char *info_sys_dirname(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
	return path;
}
