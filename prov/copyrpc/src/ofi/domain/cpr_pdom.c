/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Progress domains of a domain and their members: see cpr_pdom.h. */
#include "ofi/base/cpr_pdom.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "util/log.h"

/* Queues of both directions, and all counters. */
#define CPR_PDOM_MEMBERS (2 + CPR_EP_CNTR_CNT)

static struct cpr_pdom *cpr_pdom_of(struct core_dom *dom)
{
	return UTIL_CONTAINER_OF(dom, struct cpr_pdom, core);
}

/* --- all progress domains --- */

static bool cpr_pdom_owns_lock(const struct cpr_pdom *pdom)
{
	return core_dom_bias(&pdom->core) == &pdom->core.own_lock;
}

void cpr_pdom_lock_all(struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g))
		if (cpr_pdom_owns_lock(g))
			core_dom_lock_transient(&g->core);
}

void cpr_pdom_unlock_all(struct cpr_domain *domain)
{
	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g))
		if (cpr_pdom_owns_lock(g))
			cpr_pdom_unlock(g);
	pthread_mutex_unlock(&domain->changes);
}

void cpr_pdom_progress_locked(struct cpr_domain *domain)
{
	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g))
		if (cpr_pdom_owns_lock(g))
			core_dom_progress(&g->core);
}

void cpr_pdom_progress_all(struct cpr_domain *domain)
{
	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g)) {
		if (!cpr_pdom_owns_lock(g))
			continue;
		cpr_pdom_lock(g);
		core_dom_progress(&g->core);
		cpr_pdom_unlock(g);
	}
}

/* Returns true if no queue of it was read since the last call. Not locked. */
static bool cpr_pdom_is_idle(struct cpr_pdom *pdom)
{
	uint64_t reads = __atomic_load_n(&pdom->app_reads, __ATOMIC_RELAXED);

	return __atomic_exchange_n(&pdom->seen_reads, reads, __ATOMIC_RELAXED) == reads;
}

void cpr_pdom_progress_others(struct cpr_domain *domain, struct cpr_pdom *own)
{
	if (!cpr_pdom_next(&domain->main))
		return;
	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g)) {
		/*
		 * Idleness is checked first: taking the lock from a busy thread would slow that
		 * thread.
		 */
		if (g == own || !cpr_pdom_is_idle(g) || !core_dom_trylock(&g->core))
			continue;
		core_dom_progress(&g->core);
		cpr_pdom_unlock(g);
	}
}

static bool cpr_pdom_shares_lock(const struct cpr_pdom *a, const struct cpr_pdom *b)
{
	return core_dom_bias(&a->core) == core_dom_bias(&b->core);
}

/*
 * Prepares a progress domain for sleep, in the mode of the caller. Locked, but not for `own`.
 * Returns 0 or a negative error code.
 */
static int cpr_pdom_idle_locked(struct cpr_pdom *pdom, enum cpr_pdom_idle how, uint64_t *pdoms)
{
	int ret;

	if (how == CPR_PDOM_SHARES && !cpr_wakeup_is_idle(&pdom->wakeup))
		return 0;
	core_dom_progress(&pdom->core);
	ret = cpr_wakeup_set(pdom);
	if (ret)
		return ret;
	if (how != CPR_PDOM_SLEEPS)
		cpr_wakeup_attend(pdom);
	*pdoms |= CPR_PDOM_BIT(pdom);
	return 0;
}

static int cpr_pdom_idle_other(struct cpr_pdom *pdom, enum cpr_pdom_idle how, uint64_t *pdoms)
{
	int ret;

	if (!util_bias_is_mine(core_dom_bias(&pdom->core)) || !core_dom_trylock(&pdom->core))
		return 0;
	ret = cpr_pdom_idle_locked(pdom, how, pdoms);
	cpr_pdom_unlock(pdom);
	return ret;
}

int cpr_pdom_idle(struct cpr_pdom *own, enum cpr_pdom_idle how, uint64_t *pdoms)
{
	int ret = 0;

	*pdoms = 0;
	for (struct cpr_pdom *g = &own->domain->main; g && !ret; g = cpr_pdom_next(g)) {
		if (cpr_pdom_shares_lock(g, own))
			*pdoms |= CPR_PDOM_BIT(g);
		else
			ret = cpr_pdom_idle_other(g, how, pdoms);
	}
	return ret ? ret : cpr_wakeup_set(own);
}

/* --- merging; domain.changes is held, and no progress domain's lock --- */

static void cpr_pdom_merge(struct cpr_pdom *a, struct cpr_pdom *b)
{
	if (core_dom_bias(&a->core) == core_dom_bias(&b->core))
		return;
	cpr_pdom_lock(a);
	cpr_pdom_lock(b);
	cpr_wakeup_invalidate_all(a);
	cpr_wakeup_invalidate_all(b);
	core_dom_merge(&a->core, &b->core);
	cpr_wakeup_update(a);
	cpr_pdom_unlock(a);
}

/* Merges in order of age: two locks are never held in another order. */
static void cpr_pdom_merge_sorted(struct cpr_domain *domain, struct cpr_pdom *a, struct cpr_pdom *b)
{
	struct util_bias *lock_a = core_dom_bias(&a->core), *lock_b = core_dom_bias(&b->core);

	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g)) {
		if (lock_a == &g->core.own_lock)
			break;
		if (lock_b == &g->core.own_lock) {
			cpr_pdom_merge(b, a);
			return;
		}
	}
	cpr_pdom_merge(a, b);
}

void cpr_pdom_merge_all(struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
	domain->splits = false;
	for (struct cpr_pdom *g = cpr_pdom_next(&domain->main); g; g = cpr_pdom_next(g))
		cpr_pdom_merge_sorted(domain, &domain->main, g);
	pthread_mutex_unlock(&domain->changes);
}

/* --- members --- */

void cpr_member_init(struct cpr_member *member, struct cpr_domain *domain,
		     struct cpr_wakeup_user *wakeup)
{
	member->pdom = &domain->main;
	member->assigned = false;
	member->wakeup = wakeup;
}

void cpr_member_fini(struct cpr_member *member, struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
	cpr_pdom_lock(member->pdom);
	cpr_wakeup_release(member->pdom, member->wakeup);
	cpr_pdom_unlock(member->pdom);
	if (member->assigned)
		member->pdom->members--;
	member->assigned = false;
	pthread_mutex_unlock(&domain->changes);
}

/*
 * A member moves under the lock of the progress domain that it leaves. If it is still there once
 * that lock is held, the lock is the right one.
 */
struct cpr_pdom *cpr_member_lock_guarded(struct cpr_member *member)
{
	struct cpr_pdom *pdom;

	while (true) {
		pdom = __atomic_load_n(&member->pdom, __ATOMIC_ACQUIRE);
		cpr_pdom_lock(pdom);
		if (UTIL_LIKELY(__atomic_load_n(&member->pdom, __ATOMIC_RELAXED) == pdom)) {
			cpr_pdom_count_read(pdom);
			return pdom;
		}
		cpr_pdom_unlock(pdom);
	}
}

/* Moves a member for good. domain.changes is held, so it does not move elsewhere meanwhile. */
static void cpr_member_assign(struct cpr_member *member, struct cpr_pdom *pdom)
{
	struct cpr_pdom *from = member->pdom;

	if (member->assigned)
		return;
	member->assigned = true;
	pdom->members++;
	cpr_pdom_lock(from);
	if (pdom != from)
		cpr_wakeup_invalidate(from, member->wakeup);
	__atomic_store_n(&member->pdom, pdom, __ATOMIC_RELEASE);
	cpr_pdom_unlock(from);
}

/* --- endpoints --- */

void cpr_pdom_init(struct cpr_pdom *pdom, struct cpr_domain *domain)
{
	pdom->domain = domain;
	pdom->number = domain->pdom_cnt;
	cpr_wakeup_init(pdom);
}

static struct cpr_pdom *cpr_pdom_open(struct cpr_domain *domain)
{
	struct cpr_pdom *pdom = calloc(1, sizeof(*pdom)), *last = &domain->main;
	struct core_dom *main = &domain->main.core;
	int ret = pdom ? core_dom_init(&pdom->core, main->progress_ops, main->engine_ops,
				       &main->limits, true)
		       : -FI_ENOMEM;

	if (ret) {
		UTIL_INFO(DOMAIN, "endpoints share a lock, no further engine: %s\n",
			  fi_strerror(-ret));
		free(pdom);
		return NULL;
	}
	core_dom_share_mrs(&pdom->core, main);
	while (cpr_pdom_next(last))
		last = cpr_pdom_next(last);
	domain->pdom_cnt++;
	cpr_pdom_init(pdom, domain);
	__atomic_store_n(&last->next, pdom, __ATOMIC_RELEASE);
	return pdom;
}

/* Returns an empty progress domain, opened if need be; or `main`. */
static struct cpr_pdom *cpr_pdom_pick(struct cpr_domain *domain)
{
	struct cpr_pdom *pdom = NULL;

	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g))
		if (!g->members && !core_dom_is_merged(&g->core))
			return g;
	if (domain->pdom_cnt < CPR_PDOMS_MAX)
		pdom = cpr_pdom_open(domain);
	return pdom ? pdom : &domain->main;
}

static size_t cpr_pdom_members(struct cpr_ep *ep, struct cpr_member *members[CPR_PDOM_MEMBERS])
{
	size_t cnt = 0;

	if (ep->tx_cq)
		members[cnt++] = &ep->tx_cq->member;
	if (ep->rx_cq)
		members[cnt++] = &ep->rx_cq->member;
	for (unsigned i = 0; i < CPR_EP_CNTR_CNT; i++)
		if (ep->cntr[i])
			members[cnt++] = &ep->cntr[i]->member;
	return cnt;
}

/* Returns true if the endpoint belongs in `main`, whatever its queues are in. */
static bool cpr_pdom_is_fixed(const struct cpr_ep *ep)
{
	return !ep->domain->splits || ep->core_ep.conn || ep->srx || ep->eq_user.eq;
}

static struct cpr_pdom *cpr_pdom_find(struct cpr_ep *ep, struct cpr_member *const *members,
				      size_t cnt)
{
	struct cpr_domain *domain = ep->domain;
	struct cpr_pdom *pdom = cpr_pdom_is_fixed(ep) ? &domain->main : NULL;

	for (size_t i = 0; i < cnt; i++) {
		if (!members[i]->assigned)
			continue;
		if (!pdom)
			pdom = members[i]->pdom;
		cpr_pdom_merge_sorted(domain, pdom, members[i]->pdom);
	}
	return pdom ? pdom : cpr_pdom_pick(domain);
}

void cpr_pdom_enter(struct cpr_ep *ep)
{
	struct cpr_member *members[CPR_PDOM_MEMBERS];
	size_t cnt = cpr_pdom_members(ep, members);
	struct cpr_pdom *pdom;

	pthread_mutex_lock(&ep->domain->changes);
	pdom = cpr_pdom_find(ep, members, cnt);
	for (size_t i = 0; i < cnt; i++)
		cpr_member_assign(members[i], pdom);
	pdom->members++;
	ep->dom = &pdom->core;
	util_list_push_back(&ep->domain->eps, &ep->domain_link);
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_pdom_leave(struct cpr_ep *ep)
{
	pthread_mutex_lock(&ep->domain->changes);
	cpr_pdom_of(ep->dom)->members--;
	util_list_remove(&ep->domain_link);
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_pdom_assign(struct cpr_ep *ep, struct cpr_cntr *cntr)
{
	struct cpr_pdom *pdom = cpr_pdom_of(ep->dom);

	pthread_mutex_lock(&ep->domain->changes);
	cpr_member_assign(&cntr->member, pdom);
	cpr_pdom_merge_sorted(ep->domain, pdom, cntr->member.pdom);
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_pdom_assign_main(struct cpr_domain *domain, struct cpr_member *member)
{
	pthread_mutex_lock(&domain->changes);
	cpr_member_assign(member, &domain->main);
	cpr_pdom_merge_sorted(domain, &domain->main, member->pdom);
	pthread_mutex_unlock(&domain->changes);
}

void cpr_pdom_assign_eq(struct cpr_ep *ep)
{
	pthread_mutex_lock(&ep->domain->changes);
	if (ep->is_enabled)
		cpr_pdom_merge_sorted(ep->domain, &ep->domain->main, cpr_pdom_of(ep->dom));
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_pdom_close_all(struct cpr_domain *domain)
{
	struct cpr_pdom *pdom, *next;

	for (pdom = cpr_pdom_next(&domain->main); pdom; pdom = next) {
		next = cpr_pdom_next(pdom);
		core_dom_fini(&pdom->core);
		free(pdom);
	}
	domain->main.next = NULL;
}
