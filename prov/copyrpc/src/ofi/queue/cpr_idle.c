/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rest of a read that found nothing: see cpr_idle.h. */
#include "ofi/queue/cpr_idle.h"

#include <sched.h>

#include "util/clock.h"

/* Yields the processor and notes how long that took. */
static void cpr_idle_yield(struct cpr_member *member, struct cpr_yield *idle)
{
	uint64_t start_ns = util_clock_ns(), ns;
	struct cpr_pdom *pdom;

	sched_yield();
	ns = util_clock_ns() - start_ns;
	pdom = cpr_member_lock(member);
	cpr_yield_took(idle, ns);
	cpr_pdom_unlock(pdom);
}

void cpr_idle_unlock(struct cpr_member *member, struct cpr_domain *domain, struct cpr_pdom *pdom,
		     struct cpr_yield *idle)
{
	bool helps = idle->reads % CPR_PDOM_IDLE_READS == 0;
	bool yields = idle->reads % idle->step == 0;

	cpr_pdom_unlock(pdom);
	if (helps)
		cpr_pdom_progress_others(domain, pdom);
	if (yields)
		cpr_idle_yield(member, idle);
}
