/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters: see cpr_cntr.h. */
#include "ofi/queue/cpr_cntr.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/queue/cpr_idle.h"
#include "ofi/queue/cpr_waitset.h"
#include "util/bits.h"
#include "util/log.h"

static inline struct cpr_cntr *cpr_cntr_of(struct fid_cntr *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid);
}

/*
 * Returns true if the counter changed since the last read, which then reports it without progress.
 * Not twice in a row: a caller that sends and reads in turns makes progress by reads alone.
 */
static bool cpr_cntr_may_skip_progress(struct cpr_cntr *cntr)
{
	cntr->skipped_progress = !cntr->skipped_progress && cntr->core.value != cntr->read_value;
	return cntr->skipped_progress;
}

static uint64_t cpr_cntr_read(struct fid_cntr *fid)
{
	struct cpr_cntr *cntr = cpr_cntr_of(fid);
	struct cpr_pdom *pdom = cpr_member_lock(&cntr->member);
	struct cpr_rest rest;
	uint64_t value;

	if (!cpr_cntr_may_skip_progress(cntr))
		cpr_pdom_progress(pdom);
	if (cntr->core.value == cntr->read_value && UTIL_UNLIKELY(cpr_yield_is_due(&cntr->idle))) {
		pdom = cpr_idle(&cntr->member, cntr->domain, pdom, cntr->idle, &rest);
		cpr_pdom_progress(pdom);
		if (rest.end_ns)
			cpr_yield_took(&cntr->idle, rest, cntr->core.value != cntr->read_value);
	}
	value = cntr->core.value;
	if (value != cntr->read_value) {
		cntr->read_value = value;
		cpr_yield_found(&cntr->idle);
	}
	cpr_pdom_unlock(pdom);
	return value;
}

static uint64_t cpr_cntr_readerr(struct fid_cntr *fid)
{
	struct cpr_cntr *cntr = cpr_cntr_of(fid);
	struct cpr_pdom *pdom = cpr_member_lock(&cntr->member);
	uint64_t errors;

	cpr_pdom_progress(pdom);
	errors = cntr->core.errors;
	cntr->read_errors = errors;
	cpr_pdom_unlock(pdom);
	return errors;
}

/* Handles a change by the user: fi_poll does not report it, but it wakes waiting threads. */
static void cpr_cntr_user_changed(struct cpr_cntr *cntr)
{
	cntr->seen_value = cntr->core.value;
	cntr->seen_errors = cntr->core.errors;
	if (cntr->core.notify)
		cntr->core.notify(&cntr->core);
}

static int cpr_cntr_change(struct fid_cntr *fid, uint64_t value, bool add, bool err)
{
	struct cpr_cntr *cntr = cpr_cntr_of(fid);
	uint64_t *word = err ? &cntr->core.errors : &cntr->core.value;
	struct cpr_pdom *pdom = cpr_member_lock(&cntr->member);

	*word = add ? *word + value : value;
	cpr_cntr_user_changed(cntr);
	cpr_pdom_unlock(pdom);
	return 0;
}

static int cpr_cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return cpr_cntr_change(fid, value, true, false);
}

static int cpr_cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return cpr_cntr_change(fid, value, false, false);
}

static int cpr_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return cpr_cntr_change(fid, value, true, true);
}

static int cpr_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return cpr_cntr_change(fid, value, false, true);
}

static void cpr_cntr_notify(struct core_cntr *core)
{
	struct cpr_cntr *cntr = UTIL_CONTAINER_OF(core, struct cpr_cntr, core);

	core->notify = NULL;
	if (cntr->on_change)
		cntr->on_change(cntr);
	cpr_wait_kick(&cntr->wait);
}

void cpr_cntr_watch(struct cpr_cntr *cntr)
{
	cntr->core.notify = cpr_cntr_notify;
}

/* Waits for the threshold or for a new error. Locked; *pdom changes if the counter moved. */
static int cpr_cntr_wait_locked(struct cpr_cntr *cntr, struct cpr_pdom **pdom, uint64_t threshold,
				int timeout)
{
	uint64_t errors = cntr->core.errors;
	struct cpr_wait_call call;
	int ret = 0;

	cpr_wait_begin(&cntr->wait, &call, timeout);
	while (!ret) {
		cpr_pdom_progress(*pdom);
		if (cntr->core.value >= threshold)
			return 0;
		if (cntr->core.errors != errors)
			return -FI_EAVAIL;
		cpr_cntr_watch(cntr);
		ret = cpr_wait_sleep(&cntr->wait, &cntr->member, pdom, &call);
		if (ret == -FI_EINTR) /* fi_cntr(3) lets no signal end the call */
			ret = 0;
	}
	return ret == -FI_EAGAIN ? -FI_ETIMEDOUT : ret;
}

/* Returns true once if the counter changed since the user last read it. */
static bool cpr_cntr_is_unread(struct cpr_cntr *cntr)
{
	bool unread =
		cntr->core.value != cntr->read_value || cntr->core.errors != cntr->read_errors;

	cntr->read_value = cntr->core.value;
	cntr->read_errors = cntr->core.errors;
	return unread;
}

/* Without a wait object this polls; members of a set do not block alone. */
static int cpr_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct cpr_cntr *cntr = cpr_cntr_of(fid);
	struct cpr_pdom *pdom;
	bool unread;
	int ret;

	if (cntr->wait.obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	pdom = cpr_member_lock(&cntr->member);
	ret = cpr_cntr_wait_locked(cntr, &pdom, threshold, timeout);
	unread = cpr_cntr_is_unread(cntr);
	/* This call may have drained a wakeup that others need. */
	if (cntr->wait.sleepers || (cntr->wait.promised && unread))
		cpr_wait_kick(&cntr->wait);
	else if (util_list_is_empty(&cntr->triggers) && !cpr_wait_is_used(&cntr->wait))
		cntr->core.notify = NULL;
	cpr_pdom_unlock(pdom);
	return ret;
}

int cpr_cntr_trywait(struct cpr_cntr *cntr, bool shares)
{
	struct cpr_pdom *pdom;
	int ret = -FI_EAGAIN;

	if (!cpr_wait_has_fd(cntr->wait.obj))
		return -FI_EINVAL;
	pdom = cpr_member_lock(&cntr->member);
	cpr_pdom_progress(pdom);
	if (!cpr_cntr_is_unread(cntr)) {
		cpr_cntr_watch(cntr);
		ret = cpr_wait_try(&cntr->wait, pdom, shares);
	}
	cpr_pdom_unlock(pdom);
	return ret;
}

bool cpr_cntr_has_changed(struct cpr_cntr *cntr)
{
	bool changed =
		cntr->core.value != cntr->seen_value || cntr->core.errors != cntr->seen_errors;

	cntr->seen_value = cntr->core.value;
	cntr->seen_errors = cntr->core.errors;
	return changed;
}

/* Triggered operations that are gone may have left their work with the progress domain. */
static void cpr_cntr_drop_work(struct cpr_cntr *cntr)
{
	struct cpr_pdom *pdom = cpr_member_lock(&cntr->member);

	if (cntr->on_change)
		util_list_remove(&cntr->trigger_work.link);
	cpr_pdom_unlock(pdom);
}

static int cpr_cntr_close(struct fid *fid)
{
	struct cpr_cntr *cntr = UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid.fid);

	if (cpr_ref_is_busy(&cntr->refs))
		return -FI_EBUSY;
	cpr_cntr_drop_work(cntr);
	cpr_waitset_leave(&cntr->wait);
	cpr_member_fini(&cntr->member, cntr->domain);
	cpr_waitset_close_member(&cntr->wait);
	cpr_ref_put(&cntr->domain->refs);
	free(cntr);
	return 0;
}

static int cpr_cntr_control(struct fid *fid, int command, void *arg)
{
	struct cpr_cntr *cntr = UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid.fid);

	/* Counters have no operational flags. */
	if (arg && command == FI_GETOPSFLAG) {
		*(uint64_t *)arg = 0;
		return 0;
	}
	if (arg && command == FI_SETOPSFLAG)
		return *(uint64_t *)arg ? -FI_EBADFLAGS : 0;
	return cpr_wait_control(&cntr->wait, &cntr->member, command, arg);
}

static struct fi_ops cpr_cntr_fi_ops = CPR_FID_OPS(cpr_cntr_close, cpr_no_bind, cpr_cntr_control);

static struct fi_ops_cntr cpr_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cpr_cntr_read,
	.readerr = cpr_cntr_readerr,
	.add = cpr_cntr_add,
	.set = cpr_cntr_set,
	.wait = cpr_cntr_wait,
	.adderr = cpr_cntr_adderr,
	.seterr = cpr_cntr_seterr,
};

static int cpr_cntr_check(const struct fi_cntr_attr *attr, enum fi_wait_obj *obj)
{
	*obj = attr ? attr->wait_obj : FI_WAIT_NONE;
	if (!attr)
		return 0;
	if (attr->flags)
		return -FI_EINVAL;
	if (attr->events == FI_CNTR_EVENTS_COMP)
		return 0;
	UTIL_INFO(CNTR, "counter of events %d: offered FI_CNTR_EVENTS_COMP\n", attr->events);
	return -FI_ENOSYS;
}

int cpr_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out,
		  void *context)
{
	struct cpr_cntr *cntr;
	enum fi_wait_obj obj;
	int ret = cpr_cntr_check(attr, &obj);

	if (ret)
		return ret;
	cntr = cpr_fid_new(sizeof(*cntr), FI_CLASS_CNTR, &cpr_cntr_fi_ops, context);
	if (!cntr)
		return -FI_ENOMEM;
	cntr->fid.ops = &cpr_cntr_ops;
	cntr->domain = cpr_domain_of(domain);
	cpr_member_init(&cntr->member, cntr->domain, &cntr->wait.wakeup);
	cpr_yield_init(&cntr->idle);
	util_list_init(&cntr->triggers);
	ret = cpr_waitset_open_member(&cntr->wait, obj, attr ? attr->wait_set : NULL,
				      &cntr->fid.fid);
	if (ret) {
		free(cntr);
		return ret;
	}
	cpr_ref_get(&cntr->domain->refs);
	*out = &cntr->fid;
	return 0;
}
