/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Users that the kernel cannot name here.
 *
 * In a user namespace whose map lacks a user, the kernel reports the overflow uid in its place, for
 * this process too (user_namespaces(7)). Two processes with that uid may belong to two users, so it
 * is no proof that they are one. Used where the user of a peer is checked, and by the library of
 * local channels.
 *
 * Any thread. Tested by test/unit/util/test_uid.c.
 */
#ifndef UTIL_UID_H
#define UTIL_UID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define UTIL_UID_OVERFLOW 65534u /* default of the sysctl kernel.overflowuid */

/* Returns true if the map of this user namespace has that user. */
static inline bool util_uid_is_mapped(uid_t uid)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long first, cnt;
	bool found = false;

	while (map && !found && fscanf(map, "%lu %*u %lu", &first, &cnt) == 2)
		found = uid - first < cnt;
	if (map)
		fclose(map);
	return found;
}

/** Returns true if an equal user id of another process is the same user. */
static inline bool util_uid_is_known(uid_t uid)
{
	return uid != UTIL_UID_OVERFLOW || util_uid_is_mapped(uid);
}

#endif
