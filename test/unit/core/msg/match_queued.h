/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives and messages of which a test expects that nothing matches them. */
#ifndef UNIT_CORE_MATCH_QUEUED_H
#define UNIT_CORE_MATCH_QUEUED_H

#include "core/msg/core_match.h"
#include "unit/core/must.h"

/** Posts a receive, which no message matches. */
static inline struct core_match_recv *post(struct core_match *m, struct core_match_recv *r,
					   uint64_t tag, uint64_t ignore, uint64_t src)
{
	r->tag = tag;
	r->ignore = ignore;
	r->src = src;
	MUST(!core_match_post(m, r));
	return r;
}

/** Keeps a message, which no receive matches. */
static inline void keep(struct core_match *m, struct core_match_msg *msg, uint64_t tag,
			uint64_t src)
{
	msg->tag = tag;
	msg->src = src;
	MUST(!core_match_arrive(m, tag, src));
	core_match_keep(m, msg);
}

#endif
