/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State machine as a table: names of the states, and the set of legal successors of each.
 *
 * Used by conns, requests and connection requests. Their tests check the tables.
 */
#ifndef CM_BASE_CM_STATE_H
#define CM_BASE_CM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define CM_STATE_BIT(state) (1u << (state))

struct cm_states {
	unsigned cnt;
	const char *const *names;
	const uint8_t *next; /* CM_STATE_BIT of each successor */
};

static inline bool cm_state_may(const struct cm_states *states, unsigned from, unsigned to)
{
	return states->next[from] & CM_STATE_BIT(to);
}

#endif
