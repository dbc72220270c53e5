/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event queues: see cpr_eq.h. */
#include "ofi/queue/cpr_eq.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/queue/cpr_strerror.h"
#include "ofi/queue/cpr_waitset.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"

static inline struct cpr_eq *cpr_eq_of_eq(struct fid_eq *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_eq, fid);
}

struct cpr_eq_event *cpr_eq_event_new(uint32_t event, size_t len)
{
	struct cpr_eq_event *ev = calloc(1, sizeof(*ev) + len);

	if (!ev)
		return NULL;
	ev->event = event;
	ev->len_min = len;
	ev->len = len;
	return ev;
}

static bool cpr_eq_is_request(const struct util_list *link)
{
	return UTIL_CONTAINER_OF(link, const struct cpr_eq_event, link)->event == FI_CONNREQ;
}

/*
 * Returns the list position for a new event. FI_CONNECTED goes ahead of connection requests: the
 * peer may send a second request as soon as its first connection is established, and that request
 * is queued without progress, while FI_CONNECTED of the first connection needs progress.
 */
static struct util_list *cpr_eq_position(struct cpr_eq *eq, const struct cpr_eq_event *ev)
{
	struct util_list *at = &eq->events;

	while (ev->event == FI_CONNECTED && at->prev != &eq->events && cpr_eq_is_request(at->prev))
		at = at->prev;
	return at;
}

void cpr_eq_push(struct cpr_eq *eq, struct cpr_eq_event *ev)
{
	pthread_mutex_lock(&eq->lock);
	util_list_push_back(cpr_eq_position(eq, ev), &ev->link);
	cpr_wait_kick(&eq->wait);
	pthread_mutex_unlock(&eq->lock);
}

int cpr_eq_post(struct cpr_eq *eq, uint32_t event, const void *buf, size_t len)
{
	struct cpr_eq_event *ev = cpr_eq_event_new(event, len);

	if (!ev)
		return -FI_ENOMEM;
	if (len)
		memcpy(ev->data, buf, len);
	cpr_eq_push(eq, ev);
	return 0;
}

int cpr_eq_post_err(struct cpr_eq *eq, const struct fi_eq_err_entry *err)
{
	struct cpr_eq_event *ev = cpr_eq_event_new(0, sizeof(*err));

	if (!ev)
		return -FI_ENOMEM;
	ev->is_err = true;
	memcpy(ev->data, err, sizeof(*err));
	cpr_eq_push(eq, ev);
	return 0;
}

void cpr_eq_event_drop(struct cpr_eq_event *ev)
{
	if (ev->drop)
		ev->drop(ev);
	free(ev);
}

void cpr_eq_notify(struct cpr_eq *eq)
{
	__atomic_store_n(&eq->notified, true, __ATOMIC_SEQ_CST);
	cpr_wait_kick(&eq->wait);
}

/*
 * Makes the progress of all domains with objects bound to this queue. Returns true if there are
 * any.
 */
static bool cpr_eq_progress(struct cpr_eq *eq)
{
	struct util_list *it, *tmp;
	bool any;

	__atomic_store_n(&eq->notified, false, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&eq->bind_lock);
	any = !util_list_is_empty(&eq->users);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &eq->users) {
		struct cpr_domain *domain = UTIL_CONTAINER_OF(it, struct cpr_eq_user, link)->domain;

		cpr_domain_lock(domain);
		cpr_domain_progress(domain);
		cpr_domain_unlock(domain);
	}
	pthread_mutex_unlock(&eq->bind_lock);
	return any;
}

bool cpr_eq_needs_progress(struct cpr_eq *eq)
{
	bool needs_progress;

	pthread_mutex_lock(&eq->bind_lock);
	needs_progress = !util_list_is_empty(&eq->users);
	pthread_mutex_unlock(&eq->bind_lock);
	return needs_progress;
}

/*
 * Copies the oldest event into buf, locked. Returns its bytes, -FI_EAGAIN, -FI_EAVAIL or
 * -FI_ETOOSMALL.
 */
static ssize_t cpr_eq_take(struct cpr_eq *eq, uint32_t *event, void *buf, size_t len,
			   uint64_t flags)
{
	struct util_list *first = util_list_first(&eq->events);
	struct cpr_eq_event *ev;
	ssize_t ret;

	if (!first)
		return -FI_EAGAIN;
	ev = UTIL_CONTAINER_OF(first, struct cpr_eq_event, link);
	if (ev->is_err)
		return -FI_EAVAIL;
	if (len < ev->len_min)
		return -FI_ETOOSMALL;
	ret = (ssize_t)(len < ev->len ? len : ev->len);
	*event = ev->event;
	if (ret)
		memcpy(buf, ev->data, (size_t)ret);
	if (!(flags & FI_PEEK)) {
		util_list_remove(first);
		free(ev);
	}
	return ret;
}

static ssize_t cpr_eq_read_locked(struct cpr_eq *eq, uint32_t *event, void *buf, size_t len,
				  uint64_t flags)
{
	struct util_list *first;
	ssize_t ret;
	bool is_request;

	pthread_mutex_lock(&eq->lock);
	first = util_list_first(&eq->events);
	is_request = first && cpr_eq_is_request(first);
	pthread_mutex_unlock(&eq->lock);
	if (is_request) /* established connections go first: see cpr_eq_position */
		cpr_eq_progress(eq);
	pthread_mutex_lock(&eq->lock);
	ret = cpr_eq_take(eq, event, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t cpr_eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			   uint64_t flags)
{
	struct cpr_eq *eq = cpr_eq_of_eq(fid);

	cpr_eq_progress(eq);
	return cpr_eq_read_locked(eq, event, buf, len, flags);
}

/*
 * Empties the descriptor. Returns it, -FI_EAGAIN if there are events already, or another error
 * code.
 */
static int cpr_eq_prepare_sleep(struct cpr_eq *eq)
{
	int fd;

	pthread_mutex_lock(&eq->lock);
	fd = cpr_wait_fd(&eq->wait);
	if (fd >= 0 && !util_list_is_empty(&eq->events))
		fd = -FI_EAGAIN;
	if (fd >= 0)
		cpr_wait_drain(&eq->wait);
	if (fd >= 0 && __atomic_load_n(&eq->notified, __ATOMIC_SEQ_CST))
		fd = -FI_EAGAIN;
	pthread_mutex_unlock(&eq->lock);
	return fd;
}

/*
 * Sleeps until an event is queued, `deadline` (0: none) is reached, or progress of the domains is
 * due.
 */
static int cpr_eq_sleep(struct cpr_eq *eq, uint64_t deadline, bool needs_progress)
{
	struct pollfd pfd = { .events = POLLIN };
	uint64_t now = deadline ? util_clock_ns() : 0;
	int ms = -1;

	if (deadline && now >= deadline)
		return -FI_EAGAIN;
	if (eq->wait.obj == FI_WAIT_YIELD)
		return sched_yield();
	if (deadline)
		ms = (int)((deadline - now + UTIL_NS_PER_MS - 1) / UTIL_NS_PER_MS);
	if (needs_progress && (ms < 0 || ms > CPR_EQ_PROGRESS_MS))
		ms = CPR_EQ_PROGRESS_MS;
	pfd.fd = cpr_eq_prepare_sleep(eq);
	if (pfd.fd == -FI_EAGAIN)
		return 0;
	if (pfd.fd < 0)
		return pfd.fd;
	/* A signal ends the call (fi_eq(3)). */
	return cpr_wait_poll_fds(&pfd, 1, ms) ? -FI_EAGAIN : 0;
}

static ssize_t cpr_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			    uint64_t flags)
{
	struct cpr_eq *eq = cpr_eq_of_eq(fid);
	uint64_t deadline = 0;
	ssize_t ret;
	bool needs_progress;
	int err;

	if (!cpr_wait_blocks(eq->wait.obj))
		return -FI_ENOSYS;
	if (timeout >= 0)
		deadline = util_clock_ns() + (uint64_t)timeout * UTIL_NS_PER_MS;
	do {
		needs_progress = cpr_eq_progress(eq);
		ret = cpr_eq_read_locked(eq, event, buf, len, flags);
		if (ret != -FI_EAGAIN)
			return ret;
		err = cpr_eq_sleep(eq, deadline, needs_progress);
	} while (!err);
	return err;
}

int cpr_eq_trywait(struct cpr_eq *eq)
{
	int fd;

	if (!cpr_wait_has_fd(eq->wait.obj))
		return -FI_EINVAL;
	cpr_eq_progress(eq);
	fd = cpr_eq_prepare_sleep(eq);
	return fd < 0 ? fd : 0;
}

/* Removes and returns the oldest event if it is an error, else NULL. */
static struct cpr_eq_event *cpr_eq_take_err(struct cpr_eq *eq)
{
	struct cpr_eq_event *ev = NULL;
	struct util_list *first;

	pthread_mutex_lock(&eq->lock);
	first = util_list_first(&eq->events);
	if (first)
		ev = UTIL_CONTAINER_OF(first, struct cpr_eq_event, link);
	if (ev && ev->is_err)
		util_list_remove(first);
	else
		ev = NULL;
	pthread_mutex_unlock(&eq->lock);
	return ev;
}

/*
 * Copies error data into the user's buffer, or into the queue's, which is valid until the next
 * call.
 */
static void cpr_eq_give_err_data(struct cpr_eq *eq, struct fi_eq_err_entry *to, void *buf,
				 size_t room, const void *data, size_t len)
{
	if (room && FI_VERSION_GE(eq->fabric->api_version, FI_VERSION(1, 5))) {
		len = len < room ? len : room;
		to->err_data = buf;
	} else {
		free(eq->err_data);
		eq->err_data = len ? malloc(len) : NULL;
		len = eq->err_data ? len : 0;
		to->err_data = eq->err_data;
	}
	if (len)
		memcpy(to->err_data, data, len);
	to->err_data_size = len;
}

static ssize_t cpr_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct cpr_eq *eq = cpr_eq_of_eq(fid);
	struct cpr_eq_event *ev = cpr_eq_take_err(eq);
	void *user_data = buf->err_data;
	size_t room = buf->err_data_size;

	if (!ev)
		return -FI_EAGAIN;
	memcpy(buf, ev->data, sizeof(*buf));
	cpr_eq_give_err_data(eq, buf, user_data, room, ev->data + sizeof(*buf),
			     ev->len - sizeof(*buf));
	free(ev);
	return sizeof(*buf);
}

static ssize_t cpr_eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			    uint64_t flags)
{
	struct cpr_eq *eq = cpr_eq_of_eq(fid);
	int ret;

	if (!eq->may_write)
		return -FI_EINVAL;
	ret = cpr_eq_post(eq, event, buf, len);
	return ret ? ret : (ssize_t)len;
}

static const char *cpr_eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
				   char *buf, size_t len)
{
	return cpr_strerror(prov_errno, buf, len);
}

int cpr_eq_attach(struct cpr_eq *eq, struct cpr_domain *domain, struct cpr_eq_user *user)
{
	if (user->eq)
		return user->eq == eq ? 0 : -FI_EINVAL;
	/* Written only when it changes: the progress thread reads the field. */
	if (!domain->main.core.locked)
		core_dom_set_locked(&domain->main.core);
	user->eq = eq;
	user->domain = domain;
	cpr_ref_get(&eq->refs);
	pthread_mutex_lock(&eq->bind_lock);
	util_list_push_back(&eq->users, &user->link);
	pthread_mutex_unlock(&eq->bind_lock);
	return 0;
}

void cpr_eq_detach(struct cpr_eq_user *user)
{
	struct cpr_eq *eq = user->eq;

	if (!eq)
		return;
	pthread_mutex_lock(&eq->bind_lock);
	util_list_remove(&user->link);
	pthread_mutex_unlock(&eq->bind_lock);
	user->eq = NULL;
	cpr_ref_put(&eq->refs);
}

static void cpr_eq_free(struct cpr_eq *eq)
{
	pthread_mutex_destroy(&eq->bind_lock);
	pthread_mutex_destroy(&eq->lock);
	free(eq);
}

static int cpr_eq_close(struct fid *fid)
{
	struct cpr_eq *eq = cpr_eq_of(fid);
	struct util_list *first;

	if (cpr_ref_is_busy(&eq->refs))
		return -FI_EBUSY;
	while ((first = util_list_pop(&eq->events)))
		cpr_eq_event_drop(UTIL_CONTAINER_OF(first, struct cpr_eq_event, link));
	free(eq->err_data);
	cpr_waitset_close_member(&eq->wait);
	cpr_ref_put(&eq->fabric->refs);
	cpr_eq_free(eq);
	return 0;
}

static int cpr_eq_control(struct fid *fid, int command, void *arg)
{
	struct cpr_eq *eq = cpr_eq_of(fid);
	int ret;

	/* A set, which is constant, has a lock of its own, and locks its members under it. */
	if (eq->wait.set)
		return cpr_wait_control(&eq->wait, NULL, command, arg);
	pthread_mutex_lock(&eq->lock);
	ret = cpr_wait_control(&eq->wait, NULL, command, arg);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static struct fi_ops cpr_eq_fi_ops = CPR_FID_OPS(cpr_eq_close, cpr_no_bind, cpr_eq_control);

static struct fi_ops_eq cpr_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = cpr_eq_read,
	.readerr = cpr_eq_readerr,
	.write = cpr_eq_write,
	.sread = cpr_eq_sread,
	.strerror = cpr_eq_strerror,
};

static int cpr_eq_check(const struct fi_eq_attr *attr)
{
	if (!attr)
		return -FI_EINVAL;
	return attr->flags & ~(FI_WRITE | FI_AFFINITY) ? -FI_ENOSYS : 0;
}

static int cpr_eq_init(struct cpr_eq *eq, const struct fi_eq_attr *attr)
{
	eq->fid.ops = &cpr_eq_ops;
	eq->may_write = attr->flags & FI_WRITE;
	util_list_init(&eq->events);
	util_list_init(&eq->users);
	pthread_mutex_init(&eq->lock, NULL);
	pthread_mutex_init(&eq->bind_lock, NULL);
	return cpr_waitset_open_member(&eq->wait, attr->wait_obj, attr->wait_set, &eq->fid.fid);
}

int cpr_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		void *context)
{
	struct cpr_eq *eq;
	int ret = cpr_eq_check(attr);

	if (ret)
		return ret;
	eq = cpr_fid_new(sizeof(*eq), FI_CLASS_EQ, &cpr_eq_fi_ops, context);
	if (!eq)
		return -FI_ENOMEM;
	ret = cpr_eq_init(eq, attr);
	if (ret) {
		cpr_eq_free(eq);
		return ret;
	}
	eq->fabric = cpr_fabric_of(fabric);
	cpr_ref_get(&eq->fabric->refs);
	*out = &eq->fid;
	return 0;
}
