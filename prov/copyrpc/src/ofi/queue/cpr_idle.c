/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rest of a read that found nothing: see cpr_idle.h. */
#include "ofi/queue/cpr_idle.h"

#include <sched.h>

#include "util/clock.h"

/* Yields the processor. Returns how long that took, in nanoseconds. */
static uint64_t cpr_idle_yield(void)
{
	uint64_t start_ns = util_clock_ns();

	sched_yield();
	return util_clock_ns() - start_ns;
}

struct cpr_pdom *cpr_idle(struct cpr_member *member, struct cpr_domain *domain,
			  struct cpr_pdom *pdom, struct cpr_yield *idle)
{
	bool helps = idle->reads % CPR_PDOM_IDLE_READS == 0;
	bool yields = idle->reads % idle->step == 0;
	uint64_t ns = 0;

	cpr_pdom_unlock(pdom);
	if (helps)
		cpr_pdom_progress_others(domain, pdom);
	if (yields)
		ns = cpr_idle_yield();
	pdom = cpr_member_lock(member);
	if (yields)
		cpr_yield_took(idle, ns);
	return pdom;
}
