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
 * with all locks held, cpr_group_lock_all, so that one is enough to look at it. Lock order:
 * domain.changes -> groups, oldest first -> the rest. A group stays until its domain closes;
 * one that nobody is in any more is used again.
 *
 * A reader who finds nothing for a while makes the progress of groups that nobody reads. Who
 * goes to sleep does so for those that he was the last to use, and is woken for them too: else one
 * thread that has two endpoints and waits for one of them would sleep for ever.
 *
 * Shown by test/unit/ofi/domain/test_cpr_group.c and test/stress/stress_groups.c.
 */
#ifndef CPR_GROUP_H
#define CPR_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_dom.h"
#include "ofi/domain/cpr_alarm.h"

struct cpr_cntr;
struct cpr_domain;
struct cpr_ep;

/* Each has an engine: descriptors and a few pages. Endpoints beyond are in the first one. */
#define CPR_GROUPS_MAX 32u
/* A power of two: empty reads in a row, after which others are looked after. */
#define CPR_GROUP_IDLE_READS 64u

struct cpr_group {
	struct core_dom core;
	uint64_t
		app_reads; /* of its queues and counters, if it is locked; atomic, under the lock */
	uint64_t seen_reads; /* of these, what cpr_group_help last saw; atomic */
	unsigned members;    /* endpoints, queues, counters; under domain.changes */
	unsigned number;     /* of groups that are older */
	bool is_inherited;   /* in a forked child: its parent's (cpr_fork.h) */
	struct cpr_domain *domain;
	struct cpr_alarm alarm; /* who sleeps on it */
	struct cpr_group *next; /* younger; atomic, written once */
};

/** Where a queue or counter is. */
struct cpr_place {
	struct cpr_group
		*group; /* the first one until it is taken; atomic, changed under its lock */
	bool taken;     /* for good, with the first endpoint; under domain.changes */
	struct cpr_alarm_user *alarm; /* of who sleeps on the object */
};

/** A number for each group of a domain. */
#define CPR_GROUP_BIT(group) (UINT64_C(1) << (group)->number)

/** A younger one, or NULL. Not locked: there may be more in a moment. */
static inline struct cpr_group *cpr_group_next(const struct cpr_group *group)
{
	return __atomic_load_n(&group->next, __ATOMIC_ACQUIRE);
}

void cpr_place_init(struct cpr_place *place, struct cpr_domain *domain,
		    struct cpr_alarm_user *alarm);
/** The object is closed. */
void cpr_place_fini(struct cpr_place *place, struct cpr_domain *domain);

/** The same for a group with a lock: not inlined, for the sake of those without. */
struct cpr_group *cpr_place_lock_guarded(struct cpr_place *place);

/** Locks the object's group, which the caller gives back. */
static inline struct cpr_group *cpr_place_lock(struct cpr_place *place)
{
	struct cpr_group *group = __atomic_load_n(&place->group, __ATOMIC_ACQUIRE);

	return UTIL_UNLIKELY(group->core.locked) ? cpr_place_lock_guarded(place) : group;
}

static inline void cpr_group_lock(struct cpr_group *group)
{
	core_dom_lock(&group->core);
}

static inline void cpr_group_unlock(struct cpr_group *group)
{
	core_dom_unlock(&group->core);
}

/** The application looks after it. Locked. */
static inline void cpr_group_count_read(struct cpr_group *group)
{
	__atomic_store_n(&group->app_reads, group->app_reads + 1, __ATOMIC_RELAXED);
}

/** Its progress, as a read of one of its queues makes it. Locked. */
static inline void cpr_group_progress(struct cpr_group *group)
{
	core_dom_progress(&group->core);
}

/** fi_enable: where the endpoint, ep->dom, and all that is bound to it are from now on; its end. */
void cpr_group_enter(struct cpr_ep *ep);
void cpr_group_leave(struct cpr_ep *ep);

/** The counter's changes will make the endpoint, which is enabled, do something. Not locked. */
void cpr_group_tie(struct cpr_ep *ep, struct cpr_cntr *cntr);
/** What is reported to its event queue comes from progress of the first group. Not locked. */
void cpr_group_tie_eq(struct cpr_ep *ep);
/** All groups are allies from now on, those to come included. Not locked. */
void cpr_group_unite(struct cpr_domain *domain);

/** All locks of the domain. */
void cpr_group_lock_all(struct cpr_domain *domain);
void cpr_group_unlock_all(struct cpr_domain *domain);
/** Progress of all groups: under all locks; or each under its own. */
void cpr_group_progress_locked(struct cpr_domain *domain);
void cpr_group_progress_all(struct cpr_domain *domain);

/** The caller reads a queue of `own` (not locked), and there is nothing: others may want progress. */
void cpr_group_help(struct cpr_domain *domain, struct cpr_group *own);

enum cpr_group_rest {
	CPR_GROUP_SLEEPS,   /* the caller itself */
	CPR_GROUP_PROMISES, /* that one can sleep (fi_trywait) */
	CPR_GROUP_SHARES,   /* the same, for one object of several: each of them counts */
};

/**
 * The caller, who has `own` locked, found nothing to do there. Sets its alarm, makes the progress of
 * other groups that he was the last to use (CPR_GROUP_SHARES: unless somebody relies on them
 * already), and sets theirs. 0, and the groups (CPR_GROUP_BIT) that wake him; or -FI_E*: there is something to
 * do first.
 */
int cpr_group_rest(struct cpr_group *own, enum cpr_group_rest how, uint64_t *groups);

/** The first group, when its core is there. */
void cpr_group_init(struct cpr_group *group, struct cpr_domain *domain);

/** The domain closes: the groups but the first one go. */
void cpr_group_close_all(struct cpr_domain *domain);

#endif
