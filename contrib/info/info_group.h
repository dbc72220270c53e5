/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control group of this process and those around it, whose limits hold too: a batch system sets
 * those of the job, and the process is in a group of a step or task of it. Used by
 * probe_container.c and probe_cpu.c.
 */
#ifndef INFO_GROUP_H
#define INFO_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct info_group {
	char path[PATH_MAX]; /* directory below the root, without a slash at its end */
	size_t top;          /* length of the path of the outermost group */
};

/**
 * Selects this process's group: in version 1 of control groups that of `controller`, in version 2
 * the one of all controllers (NULL). It may not exist: in a container, only the outermost one may.
 */
void info_group_open(struct info_group *group, const char *root, const char *controller);

/** Selects the group around the present one. Returns false if there is none. */
bool info_group_up(struct info_group *group);

#endif
