/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Set of sessions of an endpoint, in the order in which they entered.
 *
 * Used where each of thousands of sessions enters with a message and leaves soon: a list would need
 * links in each session, and touch its neighbours. A member notes in itself that it is one, so it
 * enters once. The array has room for all sessions; its first entries, which are used again and
 * again, stay in the cache.
 *
 * Owner: the endpoint. Tested in test/unit/erpc/test_erpc_set.c.
 */
#ifndef ERPC_BASE_ERPC_SET_H
#define ERPC_BASE_ERPC_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct erpc_session;

struct erpc_set {
	struct erpc_session **at; /* ERPC_SESSIONS_MAX, of which `cnt` are used */
	uint32_t cnt;
};

static inline bool erpc_set_is_empty(const struct erpc_set *set)
{
	return !set->cnt;
}

/** Adds a session that is not a member. */
static inline void erpc_set_add(struct erpc_set *set, struct erpc_session *s)
{
	set->at[set->cnt++] = s;
}

/** Removes a member. Passes those that entered earlier. */
static inline void erpc_set_remove(struct erpc_set *set, const struct erpc_session *s)
{
	uint32_t i = 0;

	while (set->at[i] != s)
		i++;
	set->cnt--;
	memmove(&set->at[i], &set->at[i + 1], (set->cnt - i) * sizeof(set->at[0]));
}

#endif
