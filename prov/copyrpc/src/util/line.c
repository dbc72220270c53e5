/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* First lines of files: see line.h. */
#include "util/line.h"

#include <stdio.h>
#include <string.h>

bool util_line_read(const char *path, char *line, size_t len)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(line, (int)len, file);

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}
