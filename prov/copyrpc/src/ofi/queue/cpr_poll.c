/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll sets: see cpr_poll.h. Their lock comes before those of progress domains. */
#include "ofi/queue/cpr_poll.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/queue/cpr_idle.h"
#include "util/list.h"

struct cpr_poll {
	struct fid_poll fid;
	struct cpr_domain *domain;
	pthread_mutex_t lock;     /* guards the rest */
	struct util_list members; /* cpr_poll_member.link */
	struct cpr_yield idle;    /* polls that found nothing */
	struct cpr_rest rest;     /* yield after which no poll has looked yet */
};

struct cpr_poll_member {
	struct util_list link;
	struct fid *fid; /* a completion queue or a counter of the domain */
};

static inline struct cpr_poll *cpr_poll_of(struct fid_poll *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_poll, fid);
}

static struct cpr_member *cpr_poll_member_of(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return &UTIL_CONTAINER_OF(fid, struct cpr_cq, fid.fid)->member;
	return &UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid.fid)->member;
}

static bool cpr_poll_has_event(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return cpr_cq_has_event(UTIL_CONTAINER_OF(fid, struct cpr_cq, fid.fid));
	return cpr_cntr_has_changed(UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid.fid));
}

/* Checks a member; makes progress once for members in a row of one progress domain. */
static bool cpr_poll_look(struct fid *member, struct cpr_pdom **last)
{
	struct cpr_pdom *pdom = cpr_member_lock(cpr_poll_member_of(member));
	bool found;

	if (pdom != *last)
		cpr_pdom_progress(pdom);
	*last = pdom;
	found = cpr_poll_has_event(member);
	cpr_pdom_unlock(pdom);
	return found;
}

/* Ends a poll that found nothing, after many in a row. */
static void cpr_poll_rest(struct cpr_poll *poll, struct cpr_pdom *own, struct cpr_yield seen)
{
	struct cpr_rest rest = cpr_idle_rest(poll->domain, own, seen);

	if (!rest.end_ns)
		return;
	pthread_mutex_lock(&poll->lock);
	poll->rest = rest;
	pthread_mutex_unlock(&poll->lock);
}

static int cpr_poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct cpr_poll *poll = cpr_poll_of(fid);
	struct cpr_pdom *last = NULL;
	struct util_list *it, *tmp;
	struct cpr_yield seen;
	int found = 0;
	bool rests;

	pthread_mutex_lock(&poll->lock);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &poll->members) {
		struct fid *member = UTIL_CONTAINER_OF(it, struct cpr_poll_member, link)->fid;

		if (found < count && cpr_poll_look(member, &last))
			context[found++] = member->context;
	}
	if (poll->rest.end_ns)
		cpr_yield_took(&poll->idle, poll->rest, found);
	poll->rest = (struct cpr_rest){ 0 };
	if (found)
		cpr_yield_found(&poll->idle);
	rests = !found && cpr_yield_is_due(&poll->idle);
	seen = poll->idle;
	pthread_mutex_unlock(&poll->lock);
	if (rests)
		cpr_poll_rest(poll, last, seen);
	return found;
}

/* Returns the reference count of a member, or NULL for an object that cannot be one. */
static struct cpr_ref *cpr_poll_ref(const struct cpr_poll *poll, struct fid *fid)
{
	struct cpr_cq *cq = UTIL_CONTAINER_OF(fid, struct cpr_cq, fid.fid);
	struct cpr_cntr *cntr = UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid.fid);

	if (fid->fclass == FI_CLASS_CQ && cq->domain == poll->domain)
		return &cq->refs;
	if (fid->fclass == FI_CLASS_CNTR && cntr->domain == poll->domain)
		return &cntr->refs;
	return NULL;
}

static int cpr_poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct cpr_poll *poll = cpr_poll_of(fid);
	struct cpr_ref *ref = cpr_poll_ref(poll, event_fid);
	struct cpr_poll_member *member;

	if (!ref || flags)
		return -FI_EINVAL;
	member = malloc(sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = event_fid;
	cpr_ref_get(ref);
	pthread_mutex_lock(&poll->lock);
	util_list_push_back(&poll->members, &member->link);
	pthread_mutex_unlock(&poll->lock);
	return 0;
}

static void cpr_poll_drop(struct cpr_poll *poll, struct cpr_poll_member *member)
{
	util_list_remove(&member->link);
	cpr_ref_put(cpr_poll_ref(poll, member->fid));
	free(member);
}

static int cpr_poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct cpr_poll *poll = cpr_poll_of(fid);
	struct util_list *it, *tmp;
	int ret = -FI_EINVAL;

	if (flags)
		return ret;
	pthread_mutex_lock(&poll->lock);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &poll->members) {
		struct cpr_poll_member *member =
			UTIL_CONTAINER_OF(it, struct cpr_poll_member, link);

		if (ret && member->fid == event_fid) {
			cpr_poll_drop(poll, member);
			ret = 0;
		}
	}
	pthread_mutex_unlock(&poll->lock);
	return ret;
}

static int cpr_poll_close(struct fid *fid)
{
	struct cpr_poll *poll = UTIL_CONTAINER_OF(fid, struct cpr_poll, fid.fid);
	bool busy;

	pthread_mutex_lock(&poll->lock);
	busy = !util_list_is_empty(&poll->members);
	pthread_mutex_unlock(&poll->lock);
	if (busy)
		return -FI_EBUSY;
	cpr_ref_put(&poll->domain->refs);
	pthread_mutex_destroy(&poll->lock);
	free(poll);
	return 0;
}

static struct fi_ops cpr_poll_fi_ops = CPR_FID_OPS(cpr_poll_close, cpr_no_bind, cpr_no_control);

static struct fi_ops_poll cpr_poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = cpr_poll_poll,
	.poll_add = cpr_poll_add,
	.poll_del = cpr_poll_del,
};

int cpr_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct cpr_poll *poll;

	if (attr && attr->flags)
		return -FI_EINVAL;
	poll = cpr_fid_new(sizeof(*poll), FI_CLASS_POLL, &cpr_poll_fi_ops, NULL);
	if (!poll)
		return -FI_ENOMEM;
	poll->fid.ops = &cpr_poll_ops;
	util_list_init(&poll->members);
	cpr_yield_init(&poll->idle);
	poll->rest = (struct cpr_rest){ 0 };
	pthread_mutex_init(&poll->lock, NULL);
	poll->domain = cpr_domain_of(domain);
	cpr_ref_get(&poll->domain->refs);
	*out = &poll->fid;
	return 0;
}
