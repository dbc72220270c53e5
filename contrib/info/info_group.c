/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control groups: see info_group.h. */
#include "info/info_group.h"

#include <stdio.h>
#include <string.h>

#include "info/info_sys.h"

#define MOUNT "/sys/fs/cgroup"

/* Returns the group if a line of /proc/self/cgroup, NUMBER:CONTROLLER,...:GROUP, is about it. */
static const char *group_of_line(char *line, const char *controller)
{
	char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;

	if (!group)
		return NULL;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	for (char *word = strtok(++list, ","); word && controller; word = strtok(NULL, ","))
		if (!strcmp(word, controller))
			return group;
	return controller || *list ? NULL : group;
}

void info_group_open(struct info_group *group, const char *root, const char *controller)
{
	char path[PATH_MAX], line[PATH_MAX];
	const char *found = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = group_of_line(line, controller);
	group->top = (size_t)snprintf(group->path, sizeof(group->path), MOUNT "%s%s",
				      controller ? "/" : "", controller ? controller : "");
	if (found && strcmp(found, "/") && group->top + strlen(found) < sizeof(group->path))
		strcpy(group->path + group->top, found);
	if (file)
		fclose(file);
}

bool info_group_up(struct info_group *group)
{
	size_t len = strlen(group->path);

	if (len == group->top)
		return false;
	while (len > group->top && group->path[--len] != '/')
		;
	group->path[len] = '\0';
	return true;
}
