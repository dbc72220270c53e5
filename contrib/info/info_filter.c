/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See info_filter.h. */
#include "info/info_filter.h"

#include <string.h>
#include <strings.h>

#define INFO_FILTER_NAME "copyrpc"

/* Returns whether an item names copyrpc, alone or below or above another ("copyrpc;ofi_rxm"). */
static bool info_filter_item(const char *item, size_t len)
{
	size_t want = strlen(INFO_FILTER_NAME);

	while (len) {
		const char *end = memchr(item, ';', len);
		size_t part = end ? (size_t)(end - item) : len;

		if (part == want && !strncasecmp(item, INFO_FILTER_NAME, part))
			return true;
		item += part + (end != NULL);
		len -= part + (end != NULL);
	}
	return false;
}

bool info_filter_permits(const char *value)
{
	bool excludes = value && *value == '^';
	bool found = false;

	if (!value)
		return true;
	for (const char *at = value + excludes;;) {
		size_t len = strcspn(at, ",");

		found |= info_filter_item(at, len);
		if (!at[len])
			break;
		at += len + 1;
	}
	return found != excludes;
}

const char *info_log_warning(const char **log, size_t *len)
{
	while (**log) {
		const char *line = *log;
		size_t n = strcspn(line, "\n");
		const char *text = memmem(line, n, "<warn> ", 7);

		*log = line + n + (line[n] == '\n');
		if (!text || !memmem(line, (size_t)(text - line), ":copyrpc:", 9))
			continue;
		text += 7;
		*len = (size_t)(line + n - text);
		return text;
	}
	return NULL;
}
