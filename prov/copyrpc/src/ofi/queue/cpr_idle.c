/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rest of a read that found nothing: see cpr_idle.h. */
#include "ofi/queue/cpr_idle.h"

#include <sched.h>

#include "util/clock.h"

struct cpr_rest cpr_idle_rest(struct cpr_domain *domain, struct cpr_pdom *own,
			      struct cpr_yield seen)
{
	struct cpr_rest rest = { .begin_ns = 0 };

	if (seen.reads % CPR_PDOM_IDLE_READS == 0)
		cpr_pdom_progress_others(domain, own);
	if (seen.reads % seen.step)
		return rest;
	rest.begin_ns = util_clock_ns();
	sched_yield();
	rest.end_ns = util_clock_ns();
	return rest;
}

struct cpr_pdom *cpr_idle(struct cpr_member *member, struct cpr_domain *domain,
			  struct cpr_pdom *pdom, struct cpr_yield seen, struct cpr_rest *rest)
{
	cpr_pdom_unlock(pdom);
	*rest = cpr_idle_rest(domain, pdom, seen);
	return cpr_member_lock(member);
}
