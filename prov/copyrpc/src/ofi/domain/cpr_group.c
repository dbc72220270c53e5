/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who is in which group, and all groups at once: see cpr_group.h. */
#include "ofi/domain/cpr_group.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/domain/cpr_domain.h"
#include "ofi/ep/cpr_ep.h"
#include "util/log.h"

/* Queues of both directions, and all counters. */
#define CPR_GROUP_PLACES (2 + CPR_EP_CNTR_CNT)

static struct cpr_group *cpr_group_of(struct core_dom *dom)
{
	return UTIL_CONTAINER_OF(dom, struct cpr_group, core);
}

/* --- all of them ---------------------------------------------------------------------------- */

static bool cpr_group_leads(const struct cpr_group *group)
{
	return core_dom_bias(&group->core) == &group->core.own_lock;
}

void cpr_group_lock_all(struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g))
		if (cpr_group_leads(g))
			core_dom_lock_transient(&g->core);
}

void cpr_group_unlock_all(struct cpr_domain *domain)
{
	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g))
		if (cpr_group_leads(g))
			cpr_group_unlock(g);
	pthread_mutex_unlock(&domain->changes);
}

void cpr_group_progress_locked(struct cpr_domain *domain)
{
	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g))
		if (cpr_group_leads(g))
			core_dom_progress(&g->core);
}

void cpr_group_progress_all(struct cpr_domain *domain)
{
	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g)) {
		if (!cpr_group_leads(g))
			continue;
		cpr_group_lock(g);
		core_dom_progress(&g->core);
		cpr_group_unlock(g);
	}
}

/* Did nobody read its queues since the last time that somebody asked? Not locked. */
static bool cpr_group_is_idle(struct cpr_group *group)
{
	uint64_t reads = __atomic_load_n(&group->app_reads, __ATOMIC_RELAXED);

	return __atomic_exchange_n(&group->seen_reads, reads, __ATOMIC_RELAXED) == reads;
}

void cpr_group_help(struct cpr_domain *domain, struct cpr_group *own)
{
	if (!cpr_group_next(&domain->main))
		return;
	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g)) {
		/* Asked first: to take its lock from a busy thread would cost that one. */
		if (g == own || !cpr_group_is_idle(g) || !core_dom_trylock(&g->core))
			continue;
		core_dom_progress(&g->core);
		cpr_group_unlock(g);
	}
}

static bool cpr_group_is_with(const struct cpr_group *a, const struct cpr_group *b)
{
	return core_dom_bias(&a->core) == core_dom_bias(&b->core);
}

/* With the caller's promise, if he makes one; locked, but not `own`. 0 or -FI_E*. */
static int cpr_group_rest_locked(struct cpr_group *group, enum cpr_group_rest how, uint64_t *groups)
{
	int ret;

	if (how == CPR_GROUP_SHARES && !cpr_alarm_is_idle(&group->alarm))
		return 0;
	core_dom_progress(&group->core);
	ret = cpr_alarm_set(group);
	if (ret)
		return ret;
	if (how != CPR_GROUP_SLEEPS)
		cpr_alarm_attend(group);
	*groups |= CPR_GROUP_BIT(group);
	return 0;
}

static int cpr_group_rest_other(struct cpr_group *group, enum cpr_group_rest how, uint64_t *groups)
{
	int ret;

	if (!util_bias_is_mine(core_dom_bias(&group->core)) || !core_dom_trylock(&group->core))
		return 0;
	ret = cpr_group_rest_locked(group, how, groups);
	cpr_group_unlock(group);
	return ret;
}

int cpr_group_rest(struct cpr_group *own, enum cpr_group_rest how, uint64_t *groups)
{
	int ret = 0;

	*groups = 0;
	for (struct cpr_group *g = &own->domain->main; g && !ret; g = cpr_group_next(g)) {
		if (cpr_group_is_with(g, own))
			*groups |= CPR_GROUP_BIT(g);
		else
			ret = cpr_group_rest_other(g, how, groups);
	}
	return ret ? ret : cpr_alarm_set(own);
}

/* --- allies; domain.changes is held, and no group ------------------------------------------- */

static void cpr_group_ally(struct cpr_group *a, struct cpr_group *b)
{
	if (core_dom_bias(&a->core) == core_dom_bias(&b->core))
		return;
	cpr_group_lock(a);
	cpr_group_lock(b);
	cpr_alarm_dismiss_all(a);
	cpr_alarm_dismiss_all(b);
	core_dom_merge(&a->core, &b->core);
	cpr_alarm_update(a);
	cpr_group_unlock(a);
}

/* Oldest first: two locks are never held in another order. */
static void cpr_group_ally_sorted(struct cpr_domain *domain, struct cpr_group *a,
				  struct cpr_group *b)
{
	struct util_bias *lock_a = core_dom_bias(&a->core), *lock_b = core_dom_bias(&b->core);

	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g)) {
		if (lock_a == &g->core.own_lock)
			break;
		if (lock_b == &g->core.own_lock) {
			cpr_group_ally(b, a);
			return;
		}
	}
	cpr_group_ally(a, b);
}

void cpr_group_unite(struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
	domain->splits = false;
	for (struct cpr_group *g = cpr_group_next(&domain->main); g; g = cpr_group_next(g))
		cpr_group_ally_sorted(domain, &domain->main, g);
	pthread_mutex_unlock(&domain->changes);
}

/* --- places --------------------------------------------------------------------------------- */

void cpr_place_init(struct cpr_place *place, struct cpr_domain *domain,
		    struct cpr_alarm_user *alarm)
{
	place->group = &domain->main;
	place->taken = false;
	place->alarm = alarm;
}

void cpr_place_fini(struct cpr_place *place, struct cpr_domain *domain)
{
	pthread_mutex_lock(&domain->changes);
	cpr_group_lock(place->group);
	cpr_alarm_release(place->group, place->alarm);
	cpr_group_unlock(place->group);
	if (place->taken)
		place->group->members--;
	place->taken = false;
	pthread_mutex_unlock(&domain->changes);
}

/* It moves with the lock of where it was held: who has the lock and still finds it there, has it. */
struct cpr_group *cpr_place_lock_guarded(struct cpr_place *place)
{
	struct cpr_group *group;

	while (true) {
		group = __atomic_load_n(&place->group, __ATOMIC_ACQUIRE);
		cpr_group_lock(group);
		if (UTIL_LIKELY(__atomic_load_n(&place->group, __ATOMIC_RELAXED) == group)) {
			cpr_group_count_read(group);
			return group;
		}
		cpr_group_unlock(group);
	}
}

/* domain.changes is held: nobody else moves it. */
static void cpr_place_take(struct cpr_place *place, struct cpr_group *group)
{
	struct cpr_group *from = place->group;

	if (place->taken)
		return;
	place->taken = true;
	group->members++;
	cpr_group_lock(from);
	if (group != from)
		cpr_alarm_dismiss(from, place->alarm);
	__atomic_store_n(&place->group, group, __ATOMIC_RELEASE);
	cpr_group_unlock(from);
}

/* --- endpoints ------------------------------------------------------------------------------ */

void cpr_group_init(struct cpr_group *group, struct cpr_domain *domain)
{
	group->domain = domain;
	group->number = domain->group_cnt;
	cpr_alarm_init(group);
}

static struct cpr_group *cpr_group_open(struct cpr_domain *domain)
{
	struct cpr_group *group = calloc(1, sizeof(*group)), *last = &domain->main;
	struct core_dom *main = &domain->main.core;
	int ret = group ? core_dom_init(&group->core, main->engine_ops, &main->limits, true)
			: -FI_ENOMEM;

	if (ret) {
		UTIL_INFO(DOMAIN, "endpoints share a lock, for want of an engine: %s\n",
			  fi_strerror(-ret));
		free(group);
		return NULL;
	}
	core_dom_share_mrs(&group->core, main);
	while (cpr_group_next(last))
		last = cpr_group_next(last);
	domain->group_cnt++;
	cpr_group_init(group, domain);
	__atomic_store_n(&last->next, group, __ATOMIC_RELEASE);
	return group;
}

/* One that nobody is in, if need be a new one; or the first. */
static struct cpr_group *cpr_group_pick(struct cpr_domain *domain)
{
	struct cpr_group *group = NULL;

	for (struct cpr_group *g = &domain->main; g; g = cpr_group_next(g))
		if (!g->members && !core_dom_is_merged(&g->core))
			return g;
	if (domain->group_cnt < CPR_GROUPS_MAX)
		group = cpr_group_open(domain);
	return group ? group : &domain->main;
}

static size_t cpr_group_places(struct cpr_ep *ep, struct cpr_place *places[CPR_GROUP_PLACES])
{
	size_t cnt = 0;

	if (ep->tx_cq)
		places[cnt++] = &ep->tx_cq->place;
	if (ep->rx_cq)
		places[cnt++] = &ep->rx_cq->place;
	for (unsigned i = 0; i < CPR_EP_CNTR_CNT; i++)
		if (ep->cntr[i])
			places[cnt++] = &ep->cntr[i]->place;
	return cnt;
}

/* Must it be in the first group, whatever its queues want? */
static bool cpr_group_is_fixed(const struct cpr_ep *ep)
{
	return !ep->domain->splits || ep->core_ep.conn || ep->srx || ep->eq_user.eq;
}

static struct cpr_group *cpr_group_find(struct cpr_ep *ep, struct cpr_place *const *places,
					size_t cnt)
{
	struct cpr_domain *domain = ep->domain;
	struct cpr_group *group = cpr_group_is_fixed(ep) ? &domain->main : NULL;

	for (size_t i = 0; i < cnt; i++) {
		if (!places[i]->taken)
			continue;
		if (!group)
			group = places[i]->group;
		cpr_group_ally_sorted(domain, group, places[i]->group);
	}
	return group ? group : cpr_group_pick(domain);
}

void cpr_group_enter(struct cpr_ep *ep)
{
	struct cpr_place *places[CPR_GROUP_PLACES];
	size_t cnt = cpr_group_places(ep, places);
	struct cpr_group *group;

	pthread_mutex_lock(&ep->domain->changes);
	group = cpr_group_find(ep, places, cnt);
	for (size_t i = 0; i < cnt; i++)
		cpr_place_take(places[i], group);
	group->members++;
	ep->dom = &group->core;
	util_list_push_back(&ep->domain->eps, &ep->domain_link);
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_group_leave(struct cpr_ep *ep)
{
	pthread_mutex_lock(&ep->domain->changes);
	cpr_group_of(ep->dom)->members--;
	util_list_remove(&ep->domain_link);
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_group_tie(struct cpr_ep *ep, struct cpr_cntr *cntr)
{
	struct cpr_group *group = cpr_group_of(ep->dom);

	pthread_mutex_lock(&ep->domain->changes);
	cpr_place_take(&cntr->place, group);
	cpr_group_ally_sorted(ep->domain, group, cntr->place.group);
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_group_tie_eq(struct cpr_ep *ep)
{
	pthread_mutex_lock(&ep->domain->changes);
	if (ep->is_enabled)
		cpr_group_ally_sorted(ep->domain, &ep->domain->main, cpr_group_of(ep->dom));
	pthread_mutex_unlock(&ep->domain->changes);
}

void cpr_group_close_all(struct cpr_domain *domain)
{
	struct cpr_group *group, *next;

	for (group = cpr_group_next(&domain->main); group; group = next) {
		next = cpr_group_next(group);
		core_dom_fini(&group->core);
		free(group);
	}
	domain->main.next = NULL;
}
