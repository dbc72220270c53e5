/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rest of a read that found nothing. Used by cpr_cq, cpr_cntr and cpr_poll, whose readers often
 * poll in a loop: other progress domains need progress meanwhile, and the peer may need the
 * processor.
 */
#ifndef OFI_QUEUE_CPR_IDLE_H
#define OFI_QUEUE_CPR_IDLE_H

#include "ofi/base/cpr_domain.h"
#include "ofi/queue/cpr_yield.h"

/**
 * Makes progress for progress domains other than `own` and yields the processor, each if it is due
 * after seen.reads empty reads. Nothing is locked. Returns the yield, for cpr_yield_took.
 */
struct cpr_rest cpr_idle_rest(struct cpr_domain *domain, struct cpr_pdom *own,
			      struct cpr_yield seen);

/**
 * Unlocks `pdom`, that of `member`, after cpr_yield_is_due returned true, and rests: *rest is the
 * result of cpr_idle_rest. Returns the progress domain of `member`, locked. The caller makes
 * progress and looks once more: the peer may have run meanwhile, and an application that yields by
 * itself after an empty read would give it the processor a second time. If there was a yield, it
 * then calls cpr_yield_took.
 */
struct cpr_pdom *cpr_idle(struct cpr_member *member, struct cpr_domain *domain,
			  struct cpr_pdom *pdom, struct cpr_yield seen, struct cpr_rest *rest);

#endif
