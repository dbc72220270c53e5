/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress domains: the endpoints of a domain that share an engine and a lock. Called by all
 * objects of ofi that lock or make progress.
 *
 * A domain begins with one, `main`. If several threads are expected (cpr_domain.splits), an
 * endpoint gets a new one at fi_enable, and its queues and counters enter with it. If these are in
 * one already, the endpoint enters that one; if they are in several, these are merged (core_dom.h).
 * So any binding is correct, and objects with nothing in common stay apart. Connected endpoints,
 * and those bound to shared contexts or event queues, are in `main`.
 *
 * State that progress domains share (address vectors, memory regions, their own list) changes with
 * all locks held, cpr_pdom_lock_all; one lock is enough to read it. Lock order: domain.changes ->
 * progress domains, oldest first -> the rest. A progress domain lives until its domain closes; an
 * empty one is used again.
 *
 * A reader that finds nothing for a while makes the progress of those that are not read. A thread
 * that sleeps does so for those that it used last, and is woken for them too: a thread with two
 * endpoints that waits for one of them makes progress for both.
 *
 * Tested by test/unit/ofi/domain/test_cpr_pdom.c and test/stress/stress_pdoms.c.
 */
#ifndef OFI_BASE_CPR_PDOM_H
#define OFI_BASE_CPR_PDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_dom.h"
#include "ofi/base/cpr_wakeup.h"

struct cpr_cntr;
struct cpr_domain;
struct cpr_ep;

/* Each has an engine: descriptors and a few pages. Endpoints beyond the limit are in `main`. */
#define CPR_PDOMS_MAX 32u
/* Empty reads in a row after which others get progress. A power of two. */
#define CPR_PDOM_IDLE_READS 64u

struct cpr_pdom {
	struct core_dom core;
	uint64_t app_reads;  /* reads of queues and counters, if locked; atomic, under the lock */
	uint64_t seen_reads; /* app_reads at the last cpr_pdom_progress_others; atomic */
	unsigned members;    /* endpoints, queues, counters; under domain.changes */
	unsigned number;     /* progress domains opened before */
	bool is_inherited;   /* opened by the parent of this forked child (cpr_fork.h) */
	struct cpr_domain *domain;
	struct cpr_wakeup wakeup; /* threads that sleep on it */
	struct cpr_pdom *next;    /* younger; atomic, written once */
};

/** Membership of a queue or counter. */
struct cpr_member {
	struct cpr_pdom *pdom; /* `main` until assigned; atomic, changed under its lock */
	bool assigned;         /* assigned for good by the first endpoint; under domain.changes */
	struct cpr_wakeup_user *wakeup; /* of the thread that sleeps on the object */
};

/** Bit of a progress domain, unique in its domain. */
#define CPR_PDOM_BIT(pdom) (UINT64_C(1) << (pdom)->number)

/** Returns the next younger one, or NULL. Not locked: more may be added at any time. */
static inline struct cpr_pdom *cpr_pdom_next(const struct cpr_pdom *pdom)
{
	return __atomic_load_n(&pdom->next, __ATOMIC_ACQUIRE);
}

void cpr_member_init(struct cpr_member *member, struct cpr_domain *domain,
		     struct cpr_wakeup_user *wakeup);
/** Leaves the progress domain when the object is closed. */
void cpr_member_fini(struct cpr_member *member, struct cpr_domain *domain);

/** Locks a progress domain that has a lock. Not inlined: keeps the path without locks short. */
struct cpr_pdom *cpr_member_lock_guarded(struct cpr_member *member);

/** Locks and returns the object's progress domain; the caller unlocks. */
static inline struct cpr_pdom *cpr_member_lock(struct cpr_member *member)
{
	struct cpr_pdom *pdom = __atomic_load_n(&member->pdom, __ATOMIC_ACQUIRE);

	return UTIL_UNLIKELY(pdom->core.locked) ? cpr_member_lock_guarded(member) : pdom;
}

static inline void cpr_pdom_lock(struct cpr_pdom *pdom)
{
	core_dom_lock(&pdom->core);
}

static inline void cpr_pdom_unlock(struct cpr_pdom *pdom)
{
	core_dom_unlock(&pdom->core);
}

/** Counts a read of a queue by the application. Locked. */
static inline void cpr_pdom_count_read(struct cpr_pdom *pdom)
{
	__atomic_store_n(&pdom->app_reads, pdom->app_reads + 1, __ATOMIC_RELAXED);
}

/** Makes progress, as a read of one of its queues does. Locked. */
static inline void cpr_pdom_progress(struct cpr_pdom *pdom)
{
	core_dom_progress(&pdom->core);
}

/** Sets ep->dom at fi_enable and assigns all that is bound to the endpoint; leaves at its close. */
void cpr_pdom_enter(struct cpr_ep *ep);
void cpr_pdom_leave(struct cpr_ep *ep);

/** Assigns a counter to the enabled endpoint that works when the counter changes. Not locked. */
void cpr_pdom_assign(struct cpr_ep *ep, struct cpr_cntr *cntr);
/** Assigns the queue of a shared context, which is in `main` and no endpoint. Not locked. */
void cpr_pdom_assign_main(struct cpr_domain *domain, struct cpr_member *member);
/** Merges the endpoint's progress domain with `main`, which reports to event queues. Not locked. */
void cpr_pdom_assign_eq(struct cpr_ep *ep);
/** Merges all progress domains; later endpoints enter `main`. Not locked. */
void cpr_pdom_merge_all(struct cpr_domain *domain);

/** Takes and releases all locks of the domain. */
void cpr_pdom_lock_all(struct cpr_domain *domain);
void cpr_pdom_unlock_all(struct cpr_domain *domain);
/** Makes progress for all progress domains: under all locks, or each under its own. */
void cpr_pdom_progress_locked(struct cpr_domain *domain);
void cpr_pdom_progress_all(struct cpr_domain *domain);

/** Makes progress for idle others. Called by a reader of `own` that found nothing. Not locked. */
void cpr_pdom_progress_others(struct cpr_domain *domain, struct cpr_pdom *own);

enum cpr_pdom_idle {
	CPR_PDOM_SLEEPS,   /* the caller sleeps */
	CPR_PDOM_PROMISES, /* the caller may sleep later (fi_trywait) */
	CPR_PDOM_SHARES,   /* CPR_PDOM_PROMISES for one of several objects */
};

/**
 * Prepares for sleep a caller that holds the lock of `own` and found nothing to do there. Sets its
 * wakeup, makes progress for others that the caller used last, and sets theirs. CPR_PDOM_SHARES
 * skips others with a sleeper. Returns 0 and the bits (CPR_PDOM_BIT) of those that wake the caller,
 * or a negative error code if there is work to do first.
 */
int cpr_pdom_idle(struct cpr_pdom *own, enum cpr_pdom_idle how, uint64_t *pdoms);

/** Initializes `main`, or another one, once its core is open. */
void cpr_pdom_init(struct cpr_pdom *pdom, struct cpr_domain *domain);

/** Frees all but `main` when the domain closes. */
void cpr_pdom_close_all(struct cpr_domain *domain);

#endif
