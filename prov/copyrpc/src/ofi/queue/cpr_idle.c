/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rest of a read that found nothing: see cpr_idle.h. */
#include "ofi/queue/cpr_idle.h"

#include <sched.h>

#include "util/clock.h"

uint64_t cpr_idle_rest(struct cpr_domain *domain, struct cpr_pdom *own, struct cpr_yield seen)
{
	uint64_t start_ns;

	if (seen.reads % CPR_PDOM_IDLE_READS == 0)
		cpr_pdom_progress_others(domain, own);
	if (seen.reads % seen.step)
		return 0;
	start_ns = util_clock_ns();
	sched_yield();
	return util_clock_ns() - start_ns;
}

struct cpr_pdom *cpr_idle(struct cpr_member *member, struct cpr_domain *domain,
			  struct cpr_pdom *pdom, struct cpr_yield *idle)
{
	struct cpr_yield seen = *idle;
	uint64_t ns;

	cpr_pdom_unlock(pdom);
	ns = cpr_idle_rest(domain, pdom, seen);
	pdom = cpr_member_lock(member);
	if (ns)
		cpr_yield_took(idle, ns);
	return pdom;
}
