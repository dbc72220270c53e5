/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait sets: see cpr_waitset.h. */
#include "ofi/queue/cpr_waitset.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/queue/cpr_cntr.h"
#include "ofi/queue/cpr_cq.h"
#include "ofi/queue/cpr_eq.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"

/* Looks at a member with work that cannot be finished yet, before naps begin. */
#define CPR_WAITSET_BUSY 1000

int cpr_waitset_trywait_fid(struct fid *fid, bool shares)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return cpr_cq_trywait(UTIL_CONTAINER_OF(fid, struct cpr_cq, fid.fid), shares);
	case FI_CLASS_CNTR:
		return cpr_cntr_trywait(UTIL_CONTAINER_OF(fid, struct cpr_cntr, fid.fid), shares);
	case FI_CLASS_EQ: return cpr_eq_trywait(UTIL_CONTAINER_OF(fid, struct cpr_eq, fid.fid));
	case FI_CLASS_WAIT:
		return cpr_waitset_trywait(UTIL_CONTAINER_OF(fid, struct cpr_waitset, fid.fid));
	default: return -FI_EINVAL;
	}
}

static bool cpr_waitset_needs_progress(struct cpr_waitset *set)
{
	struct util_list *it;
	bool needs_progress = false;

	pthread_mutex_lock(&set->lock);
	for (it = set->members.next; it != &set->members && !needs_progress; it = it->next) {
		struct fid *fid = UTIL_CONTAINER_OF(it, struct cpr_wait, set_link)->fid;

		needs_progress =
			fid->fclass == FI_CLASS_EQ && cpr_eq_needs_progress(cpr_eq_of(fid));
	}
	pthread_mutex_unlock(&set->lock);
	return needs_progress;
}

/*
 * Calls trywait for every member, locked. Returns the first result but 0 and -FI_EBUSY, else
 * -FI_EBUSY if a member returned it, else 0.
 */
static int cpr_waitset_trywait_members(struct cpr_waitset *set)
{
	struct util_list *it;
	int ret, state = 0;

	for (it = set->members.next; it != &set->members; it = it->next) {
		ret = cpr_waitset_trywait_fid(UTIL_CONTAINER_OF(it, struct cpr_wait, set_link)->fid,
					      true);
		if (ret && ret != -FI_EBUSY)
			return ret;
		if (ret)
			state = ret;
	}
	return state;
}

int cpr_waitset_trywait(struct cpr_waitset *set)
{
	int ret;

	if (set->wait.obj == FI_WAIT_YIELD)
		return -FI_EINVAL;
	pthread_mutex_lock(&set->lock);
	ret = cpr_wait_fd(&set->wait);
	if (ret >= 0)
		ret = cpr_waitset_trywait_members(set);
	pthread_mutex_unlock(&set->lock);
	return ret;
}

/* Returns the members' state for a set that never sleeps. */
static int cpr_waitset_poll(struct cpr_waitset *set)
{
	int ret;

	pthread_mutex_lock(&set->lock);
	ret = cpr_waitset_trywait_members(set);
	pthread_mutex_unlock(&set->lock);
	return ret ? ret : -FI_EBUSY;
}

/*
 * Returns the milliseconds until `deadline`, rounded up, 0 if it is over, -1 without one
 * (UINT64_MAX).
 */
static int cpr_waitset_left(uint64_t deadline)
{
	uint64_t now;

	if (deadline == UINT64_MAX)
		return -1;
	now = util_clock_ns();
	return now >= deadline ? 0 : (int)((deadline - now + UTIL_NS_PER_MS - 1) / UTIL_NS_PER_MS);
}

/*
 * Sleeps, naps or yields the processor before the next look, according to the members' `state`.
 * Returns 0, or -FI_EINTR if a signal handler has run.
 */
static int cpr_waitset_sleep(struct cpr_waitset *set, int state, unsigned *busy, int left)
{
	struct pollfd pfd = { .fd = set->wait.epoll_fd, .events = POLLIN };

	if (state == -FI_EBUSY) {
		if (set->wait.obj != FI_WAIT_YIELD && ++*busy > CPR_WAITSET_BUSY)
			return cpr_wait_poll_fds(NULL, 0, 1);
		sched_yield();
		return 0;
	}
	if ((left < 0 || left > CPR_EQ_PROGRESS_MS) && cpr_waitset_needs_progress(set))
		left = CPR_EQ_PROGRESS_MS;
	return cpr_wait_poll_fds(&pfd, 1, left);
}

static int cpr_waitset_wait(struct fid_wait *fid, int timeout)
{
	struct cpr_waitset *set = UTIL_CONTAINER_OF(fid, struct cpr_waitset, fid);
	uint64_t deadline = UINT64_MAX;
	unsigned busy = 0;
	int state, left;

	if (timeout >= 0)
		deadline = util_clock_ns() + (uint64_t)timeout * UTIL_NS_PER_MS;
	for (;;) {
		state = set->wait.obj == FI_WAIT_YIELD ? cpr_waitset_poll(set)
						       : cpr_waitset_trywait(set);
		if (state == -FI_EAGAIN)
			return 0;
		if (state && state != -FI_EBUSY)
			return state;
		left = cpr_waitset_left(deadline);
		if (!left)
			return -FI_ETIMEDOUT;
		state = cpr_waitset_sleep(set, state, &busy, left);
		if (state)
			return state;
	}
}

/* Adds a member and its descriptor to the set. */
static int cpr_waitset_join(struct cpr_waitset *set, struct cpr_wait *wait)
{
	int fd = cpr_wait_fd(wait);
	int ret;

	if (fd < 0)
		return fd;
	pthread_mutex_lock(&set->lock);
	ret = cpr_wait_fd(&set->wait);
	if (ret >= 0)
		ret = cpr_wait_watch(&set->wait, fd);
	if (!ret) {
		util_list_push_back(&set->members, &wait->set_link);
		wait->set = set;
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

int cpr_waitset_open_member(struct cpr_wait *wait, enum fi_wait_obj obj, struct fid_wait *fid,
			    struct fid *member)
{
	int ret = cpr_wait_open(wait, obj);

	if (ret) {
		UTIL_INFO(FABRIC,
			  "wait object %s: offered none, unspecified, wait set, file descriptor, "
			  "pollfd, yield\n",
			  cpr_wait_name(obj));
		return ret;
	}
	if (obj != FI_WAIT_SET)
		return 0;
	if (!fid) {
		UTIL_INFO(FABRIC, "FI_WAIT_SET without a wait_set\n");
		return -FI_EINVAL;
	}
	wait->fid = member;
	ret = cpr_waitset_join(UTIL_CONTAINER_OF(fid, struct cpr_waitset, fid), wait);
	if (ret)
		cpr_wait_close(wait);
	return ret;
}

void cpr_waitset_leave(struct cpr_wait *wait)
{
	struct cpr_waitset *set = wait->set;

	if (!set)
		return;
	pthread_mutex_lock(&set->lock);
	util_list_remove(&wait->set_link);
	epoll_ctl(set->wait.epoll_fd, EPOLL_CTL_DEL, wait->epoll_fd, NULL);
	pthread_mutex_unlock(&set->lock);
	wait->set = NULL;
}

void cpr_waitset_close_member(struct cpr_wait *wait)
{
	cpr_waitset_leave(wait);
	cpr_wait_close(wait);
}

static int cpr_waitset_control(struct fid *fid, int command, void *arg)
{
	struct cpr_waitset *set = UTIL_CONTAINER_OF(fid, struct cpr_waitset, fid.fid);
	int ret;

	pthread_mutex_lock(&set->lock);
	ret = cpr_wait_control(&set->wait, NULL, command, arg);
	pthread_mutex_unlock(&set->lock);
	return ret;
}

static int cpr_waitset_close(struct fid *fid)
{
	struct cpr_waitset *set = UTIL_CONTAINER_OF(fid, struct cpr_waitset, fid.fid);

	if (!util_list_is_empty(&set->members))
		return -FI_EBUSY;
	cpr_wait_close(&set->wait);
	pthread_mutex_destroy(&set->lock);
	cpr_ref_put(&set->fabric->refs);
	free(set);
	return 0;
}

static struct fi_ops cpr_waitset_fi_ops =
	CPR_FID_OPS(cpr_waitset_close, cpr_no_bind, cpr_waitset_control);

static struct fi_ops_wait cpr_waitset_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = cpr_waitset_wait,
};

static int cpr_waitset_check(const struct fi_wait_attr *attr)
{
	if (!attr || attr->flags)
		return -FI_EINVAL;
	switch (attr->wait_obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
	case FI_WAIT_YIELD: return 0;
	case FI_WAIT_NONE:
	case FI_WAIT_SET: return -FI_EINVAL;
	default:
		UTIL_INFO(FABRIC,
			  "wait object %s of a wait set: offered unspecified, file descriptor, "
			  "pollfd, yield\n",
			  cpr_wait_name(attr->wait_obj));
		return -FI_ENOSYS;
	}
}

int cpr_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **out)
{
	struct cpr_waitset *set;
	int ret = cpr_waitset_check(attr);

	if (ret)
		return ret;
	set = cpr_fid_new(sizeof(*set), FI_CLASS_WAIT, &cpr_waitset_fi_ops, NULL);
	if (!set)
		return -FI_ENOMEM;
	cpr_wait_open(&set->wait, attr->wait_obj);
	set->fid.ops = &cpr_waitset_ops;
	pthread_mutex_init(&set->lock, NULL);
	util_list_init(&set->members);
	set->fabric = cpr_fabric_of(fabric);
	cpr_ref_get(&set->fabric->refs);
	*out = &set->fid;
	return 0;
}
