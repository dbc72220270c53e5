/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which endpoints of a domain meet in one lock?
 *
 * Those of a group: a core domain, with an engine and a lock of its own. A domain begins with one.
 * Where threads are to be expected (cpr_domain.splits) an endpoint whose queues and counters
 * are in no group yet gets one of its own at fi_enable, and they come with it; otherwise it goes to
 * theirs. If they are in several, these become allies (core_dom.h): correct whatever is
 * bound to whatever, and apart where nothing is in common. The first group has connected endpoints, and
 * what is bound to shared contexts and event queues.
 *
 * What groups have in common (address vectors, memory regions, the list of groups itself) is changed
 * with all locks held, cpr_pdom_lock_all, so that one is enough to look at it. Lock order:
 * domain.changes -> groups, oldest first -> the rest. A group stays until its domain closes;
 * one that nobody is in any more is used again.
 *
 * A reader who finds nothing for a while makes the progress of groups that nobody reads. Who
 * goes to sleep does so for those that he was the last to use, and is woken for them too: else one
 * thread that has two endpoints and waits for one of them would sleep for ever.
 *
 * Shown by test/unit/ofi/domain/test_cpr_pdom.c and test/stress/stress_pdoms.c.
 */
#ifndef CPR_PDOM_H
#define CPR_PDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_dom.h"
#include "ofi/domain/cpr_wakeup.h"

struct cpr_cntr;
struct cpr_domain;
struct cpr_ep;

/* Each has an engine: descriptors and a few pages. Endpoints beyond are in the first one. */
#define CPR_PDOMS_MAX 32u
/* A power of two: empty reads in a row, after which others are looked after. */
#define CPR_PDOM_IDLE_READS 64u

struct cpr_pdom {
	struct core_dom core;
	uint64_t
		app_reads; /* of its queues and counters, if it is locked; atomic, under the lock */
	uint64_t seen_reads; /* of these, what cpr_pdom_progress_others last saw; atomic */
	unsigned members;    /* endpoints, queues, counters; under domain.changes */
	unsigned number;     /* of groups that are older */
	bool is_inherited;   /* in a forked child: its parent's (cpr_fork.h) */
	struct cpr_domain *domain;
	struct cpr_wakeup wakeup; /* who sleeps on it */
	struct cpr_pdom *next;    /* younger; atomic, written once */
};

/** Where a queue or counter is. */
struct cpr_member {
	struct cpr_pdom *pdom; /* the first one until it is taken; atomic, changed under its lock */
	bool taken;            /* for good, with the first endpoint; under domain.changes */
	struct cpr_wakeup_user *wakeup; /* of who sleeps on the object */
};

/** A number for each group of a domain. */
#define CPR_PDOM_BIT(pdom) (UINT64_C(1) << (pdom)->number)

/** A younger one, or NULL. Not locked: there may be more in a moment. */
static inline struct cpr_pdom *cpr_pdom_next(const struct cpr_pdom *pdom)
{
	return __atomic_load_n(&pdom->next, __ATOMIC_ACQUIRE);
}

void cpr_member_init(struct cpr_member *place, struct cpr_domain *domain,
		     struct cpr_wakeup_user *wakeup);
/** The object is closed. */
void cpr_member_fini(struct cpr_member *place, struct cpr_domain *domain);

/** The same for a group with a lock: not inlined, for the sake of those without. */
struct cpr_pdom *cpr_member_lock_guarded(struct cpr_member *place);

/** Locks the object's group, which the caller gives back. */
static inline struct cpr_pdom *cpr_member_lock(struct cpr_member *place)
{
	struct cpr_pdom *pdom = __atomic_load_n(&place->pdom, __ATOMIC_ACQUIRE);

	return UTIL_UNLIKELY(pdom->core.locked) ? cpr_member_lock_guarded(place) : pdom;
}

static inline void cpr_pdom_lock(struct cpr_pdom *pdom)
{
	core_dom_lock(&pdom->core);
}

static inline void cpr_pdom_unlock(struct cpr_pdom *pdom)
{
	core_dom_unlock(&pdom->core);
}

/** The application looks after it. Locked. */
static inline void cpr_pdom_count_read(struct cpr_pdom *pdom)
{
	__atomic_store_n(&pdom->app_reads, pdom->app_reads + 1, __ATOMIC_RELAXED);
}

/** Its progress, as a read of one of its queues makes it. Locked. */
static inline void cpr_pdom_progress(struct cpr_pdom *pdom)
{
	core_dom_progress(&pdom->core);
}

/** fi_enable: where the endpoint, ep->dom, and all that is bound to it are from now on; its end. */
void cpr_pdom_enter(struct cpr_ep *ep);
void cpr_pdom_leave(struct cpr_ep *ep);

/** The counter's changes will make the endpoint, which is enabled, do something. Not locked. */
void cpr_pdom_assign(struct cpr_ep *ep, struct cpr_cntr *cntr);
/** What is reported to its event queue comes from progress of the first group. Not locked. */
void cpr_pdom_assign_eq(struct cpr_ep *ep);
/** All groups are allies from now on, those to come included. Not locked. */
void cpr_pdom_merge_two(struct cpr_domain *domain);

/** All locks of the domain. */
void cpr_pdom_lock_all(struct cpr_domain *domain);
void cpr_pdom_unlock_all(struct cpr_domain *domain);
/** Progress of all groups: under all locks; or each under its own. */
void cpr_pdom_progress_locked(struct cpr_domain *domain);
void cpr_pdom_progress_all(struct cpr_domain *domain);

/** The caller reads a queue of `own` (not locked), and there is nothing: others may want progress. */
void cpr_pdom_progress_others(struct cpr_domain *domain, struct cpr_pdom *own);

enum cpr_pdom_idle {
	CPR_PDOM_SLEEPS,   /* the caller itself */
	CPR_PDOM_PROMISES, /* that one can sleep (fi_trywait) */
	CPR_PDOM_SHARES,   /* the same, for one object of several: each of them counts */
};

/**
 * The caller, who has `own` locked, found nothing to do there. Sets its alarm, makes the progress of
 * other groups that he was the last to use (CPR_PDOM_SHARES: unless somebody relies on them
 * already), and sets theirs. 0, and the groups (CPR_PDOM_BIT) that wake him; or -FI_E*: there is something to
 * do first.
 */
int cpr_pdom_idle(struct cpr_pdom *own, enum cpr_pdom_idle how, uint64_t *pdoms);

/** The first group, when its core is there. */
void cpr_pdom_init(struct cpr_pdom *pdom, struct cpr_domain *domain);

/** The domain closes: the groups but the first one go. */
void cpr_pdom_close_all(struct cpr_domain *domain);

#endif
