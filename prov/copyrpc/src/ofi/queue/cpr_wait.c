/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait objects: see cpr_wait.h. */
#include "ofi/queue/cpr_wait.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/queue/cpr_waitset.h"
#include "util/clock.h"

/* Looks at an engine with work that cannot be finished yet, before naps begin. */
#define CPR_WAIT_BUSY   1000
#define CPR_WAIT_NAP_MS 1

int cpr_wait_watch(struct cpr_wait *wait, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(wait->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void cpr_wait_close_fds(struct cpr_wait *wait)
{
	if (wait->event_fd >= 0)
		close(wait->event_fd);
	if (wait->epoll_fd >= 0)
		close(wait->epoll_fd);
	wait->event_fd = -1;
	wait->epoll_fd = -1;
	wait->pdoms = 0;
}

/*
 * Opens the descriptors, at first use: a process may open queues by the thousand. A signal without
 * a descriptor is counted, and the count is read again before the first sleep. Both sides are
 * sequentially consistent, so one of the two sees the other.
 */
static int cpr_wait_open_fds(struct cpr_wait *wait)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	__atomic_store_n(&wait->event_fd, fd, __ATOMIC_SEQ_CST);
	wait->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return wait->epoll_fd < 0 ? -errno : cpr_wait_watch(wait, fd);
}

/** Properties of a kind of wait object. */
struct cpr_wait_traits {
	const char *name;
	bool offered;
	bool blocks; /* calls such as fi_cq_sread sleep on it */
	bool has_fd; /* a descriptor that the user may sleep on */
};

static const struct cpr_wait_traits *cpr_wait_traits_of(enum fi_wait_obj obj)
{
	static const struct cpr_wait_traits unknown = { .name = "(unknown)" };
	static const struct cpr_wait_traits table[] = {
		[FI_WAIT_NONE] = { "FI_WAIT_NONE", true, false, false },
		[FI_WAIT_UNSPEC] = { "FI_WAIT_UNSPEC", true, true, true },
		[FI_WAIT_SET] = { "FI_WAIT_SET", true, false, true },
		[FI_WAIT_FD] = { "FI_WAIT_FD", true, true, true },
		[FI_WAIT_MUTEX_COND] = { "FI_WAIT_MUTEX_COND", false, false, false },
		[FI_WAIT_YIELD] = { "FI_WAIT_YIELD", true, true, false },
		[FI_WAIT_POLLFD] = { "FI_WAIT_POLLFD", true, true, true },
	};

	return (unsigned)obj < sizeof(table) / sizeof(table[0]) ? &table[obj] : &unknown;
}

/* Wakes sleepers when the wakeup is no longer valid, so that they look again. */
static void cpr_wait_woken(struct cpr_wakeup_user *user)
{
	cpr_wait_kick(UTIL_CONTAINER_OF(user, struct cpr_wait, wakeup));
}

int cpr_wait_open(struct cpr_wait *wait, enum fi_wait_obj obj)
{
	wait->obj = obj;
	wait->epoll_fd = -1;
	wait->event_fd = -1;
	wait->set = NULL;
	wait->pdoms = 0;
	cpr_wakeup_user_init(&wait->wakeup, cpr_wait_woken);
	return cpr_wait_traits_of(obj)->offered ? 0 : -FI_ENOSYS;
}

const char *cpr_wait_name(enum fi_wait_obj obj)
{
	return cpr_wait_traits_of(obj)->name;
}

bool cpr_wait_blocks(enum fi_wait_obj obj)
{
	return cpr_wait_traits_of(obj)->blocks;
}

bool cpr_wait_has_fd(enum fi_wait_obj obj)
{
	return cpr_wait_traits_of(obj)->has_fd;
}

void cpr_wait_close(struct cpr_wait *wait)
{
	cpr_wait_close_fds(wait);
}

int cpr_wait_fd(struct cpr_wait *wait)
{
	int ret;

	if (wait->epoll_fd >= 0)
		return wait->epoll_fd;
	ret = cpr_wait_open_fds(wait);
	if (!ret)
		return wait->epoll_fd;
	cpr_wait_close_fds(wait);
	return ret;
}

/*
 * Makes the descriptor watch the engines of exactly these progress domains. Returns 0 or a negative
 * error code.
 */
static int cpr_wait_watch_pdoms(struct cpr_wait *wait, struct cpr_domain *domain, uint64_t pdoms)
{
	int ret = 0;

	for (struct cpr_pdom *g = &domain->main; g && wait->pdoms != pdoms && !ret;
	     g = cpr_pdom_next(g)) {
		int fd = core_dom_wait_fd(&g->core);

		if (!((wait->pdoms ^ pdoms) & CPR_PDOM_BIT(g)))
			continue;
		if (pdoms & CPR_PDOM_BIT(g))
			ret = cpr_wait_watch(wait, fd);
		else
			epoll_ctl(wait->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		if (!ret)
			wait->pdoms ^= CPR_PDOM_BIT(g);
	}
	return ret;
}

/*
 * Prepares a sleep on the descriptor, which is empty. Returns 0, or a negative error code if the
 * caller must look again. Locked.
 */
static int cpr_wait_arm(struct cpr_wait *wait, struct cpr_pdom *pdom, enum cpr_pdom_idle how)
{
	uint64_t pdoms;
	int ret = cpr_pdom_idle(pdom, how, &pdoms);

	if (wait->sleepers) /* keeps what other sleepers are woken for */
		pdoms |= wait->pdoms;
	return ret ? ret : cpr_wait_watch_pdoms(wait, pdom->domain, pdoms);
}

/* Returns the descriptor in an array of one; it never changes. */
static int cpr_wait_get_pollfd(int fd, struct fi_wait_pollfd *arg)
{
	size_t room = arg->nfds;

	arg->change_index = 1;
	arg->nfds = 1;
	if (!room)
		return -FI_ETOOSMALL;
	arg->fd[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

static int cpr_wait_fd_unlocked(struct cpr_wait *wait, struct cpr_member *member)
{
	struct cpr_pdom *pdom;
	int fd;

	if (!member)
		return cpr_wait_fd(wait);
	pdom = cpr_member_lock(member);
	fd = cpr_wait_fd(wait);
	cpr_pdom_unlock(pdom);
	return fd;
}

static int cpr_wait_get(struct cpr_wait *wait, struct cpr_member *member, void *arg)
{
	int fd = cpr_wait_fd_unlocked(wait, member);

	if (fd < 0)
		return fd;
	if (wait->obj == FI_WAIT_POLLFD)
		return cpr_wait_get_pollfd(fd, arg);
	*(int *)arg = fd;
	return 0;
}

int cpr_wait_control(struct cpr_wait *wait, struct cpr_member *member, int command, void *arg)
{
	if (!arg)
		return -FI_EINVAL;
	if (wait->set)
		return fi_control(&wait->set->fid.fid, command, arg);
	if (wait->obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	switch (command) {
	case FI_GETWAIT:
		return cpr_wait_has_fd(wait->obj) ? cpr_wait_get(wait, member, arg) : -FI_ENOSYS;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = wait->obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait->obj;
		return 0;
	default: return -FI_ENOSYS;
	}
}

void cpr_wait_kick(struct cpr_wait *wait)
{
	int fd = __atomic_load_n(&wait->event_fd, __ATOMIC_SEQ_CST);

	/* Cannot block: a full counter is readable as well. */
	if (fd >= 0)
		eventfd_write(fd, 1);
}

void cpr_wait_signal(struct cpr_wait *wait)
{
	__atomic_add_fetch(&wait->signals, 1, __ATOMIC_SEQ_CST);
	cpr_wait_kick(wait);
}

void cpr_wait_begin(struct cpr_wait *wait, struct cpr_wait_call *call, int timeout_ms)
{
	call->timeout_ms = timeout_ms;
	call->deadline_ns = timeout_ms < 0 ? UINT64_MAX : 0;
	call->looks = 0;
	cpr_look_init(&call->look);
	call->spins = true;
	call->signals = __atomic_load_n(&wait->signals, __ATOMIC_ACQUIRE);
}

bool cpr_wait_is_signaled(struct cpr_wait *wait, const struct cpr_wait_call *call)
{
	uint32_t now = __atomic_load_n(&wait->signals, __ATOMIC_ACQUIRE);

	if (now == call->signals && now == wait->signals_seen)
		return false;
	wait->signals_seen = now;
	return true;
}

/*
 * Returns the milliseconds until the call must end, rounded up, -1 without a limit, -FI_EAGAIN if
 * the time is over.
 */
static int cpr_wait_left(struct cpr_wait_call *call)
{
	uint64_t now;

	if (call->deadline_ns == UINT64_MAX)
		return -1;
	if (!call->timeout_ms)
		return -FI_EAGAIN;
	now = util_clock_ns();
	if (!call->deadline_ns)
		call->deadline_ns = now + (uint64_t)call->timeout_ms * UTIL_NS_PER_MS;
	if (now >= call->deadline_ns)
		return -FI_EAGAIN;
	return (int)((call->deadline_ns - now + UTIL_NS_PER_MS - 1) / UTIL_NS_PER_MS);
}

bool cpr_wait_is_over(struct cpr_wait_call *call)
{
	return cpr_wait_left(call) < -1;
}

int cpr_wait_poll_fds(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	return poll(fds, cnt, timeout_ms) < 0 && errno == EINTR ? -FI_EINTR : 0;
}

/* Releases the lock for `ms` milliseconds, for other sleepers and for threads that wait for it. */
static int cpr_wait_nap(struct cpr_member *member, struct cpr_pdom **pdom, int ms)
{
	int ret;

	cpr_pdom_unlock(*pdom);
	ret = ms ? cpr_wait_poll_fds(NULL, 0, ms) : 0;
	*pdom = cpr_member_lock(member);
	return ret;
}

void cpr_wait_drain(struct cpr_wait *wait)
{
	eventfd_t cnt;

	eventfd_read(wait->event_fd, &cnt);
}

/*
 * Sleeps on the descriptor with the engines armed and the lock released. Returns 0, or -FI_EINTR if
 * a signal handler has run.
 */
static int cpr_wait_poll(struct cpr_wait *wait, struct cpr_member *member, struct cpr_pdom **pdom,
			 int timeout_ms)
{
	struct pollfd pfd = { .fd = wait->epoll_fd, .events = POLLIN };
	int ret;

	wait->sleepers++;
	cpr_wakeup_use(*pdom, &wait->wakeup);
	cpr_pdom_unlock(*pdom);
	ret = cpr_wait_poll_fds(&pfd, 1, timeout_ms);
	*pdom = cpr_member_lock(member);
	wait->sleepers--;
	if (!cpr_wait_is_used(wait))
		cpr_wakeup_release(*pdom, &wait->wakeup);
	return ret;
}

/* Returns true for one more look without sleep. Spinning ends for good when its time is over. */
static bool cpr_wait_spin(struct cpr_member *member, struct cpr_pdom **pdom,
			  struct cpr_wait_call *call)
{
	enum cpr_look_next next = CPR_LOOK_AGAIN;

	if (cpr_look_is_clock_due(&call->look))
		next = cpr_look_at(&call->look, util_clock_ns());
	if (!call->timeout_ms || next == CPR_LOOK_OVER) {
		call->spins = false;
		return false;
	}
	cpr_pdom_unlock(*pdom);
	if (next == CPR_LOOK_YIELD)
		sched_yield();
	*pdom = cpr_member_lock(member);
	return true;
}

/*
 * Yields the processor and the lock, as there is nothing to sleep on. Makes progress for others now
 * and then.
 */
static int cpr_wait_yield(struct cpr_member *member, struct cpr_pdom **pdom,
			  struct cpr_wait_call *call)
{
	bool over = cpr_wait_is_over(call);

	cpr_pdom_unlock(*pdom);
	if (++call->looks % CPR_PDOM_IDLE_READS == 0)
		cpr_pdom_progress_others((*pdom)->domain, *pdom);
	sched_yield();
	*pdom = cpr_member_lock(member);
	return over ? -FI_EAGAIN : 0;
}

/*
 * Drains the eventfd if the thread sleeps alone. Drained by one of several sleepers, an event would
 * be missed by the others; those find it full, look, and nap.
 */
static void cpr_wait_drain_if_single(struct cpr_wait *wait, struct cpr_member *member,
				     struct cpr_pdom **pdom, const struct cpr_wait_call *call)
{
	if (!wait->sleepers)
		cpr_wait_drain(wait);
	else if (call->looks > 1)
		cpr_wait_nap(member, pdom, CPR_WAIT_NAP_MS);
}

int cpr_wait_sleep(struct cpr_wait *wait, struct cpr_member *member, struct cpr_pdom **pdom,
		   struct cpr_wait_call *call)
{
	int left, fd;

	if ((*pdom)->is_inherited) /* the descriptors belong to the parent */
		return -FI_EBADF;
	if (!cpr_wait_has_fd(wait->obj))
		return cpr_wait_yield(member, pdom, call);
	if (call->spins && cpr_wait_spin(member, pdom, call))
		return 0;
	left = cpr_wait_left(call);
	if (left < -1)
		return left;
	call->looks++;
	fd = cpr_wait_fd(wait);
	if (fd < 0)
		return fd;
	cpr_wait_drain_if_single(wait, member, pdom, call);
	/* A signal before the drain wakes no sleeper and must be seen here. */
	if (__atomic_load_n(&wait->signals, __ATOMIC_SEQ_CST) != call->signals)
		return 0;
	if (!cpr_wait_arm(wait, *pdom, CPR_PDOM_SLEEPS))
		return cpr_wait_poll(wait, member, pdom, left);
	return cpr_wait_nap(member, pdom, call->looks > CPR_WAIT_BUSY ? CPR_WAIT_NAP_MS : 0);
}

int cpr_wait_try(struct cpr_wait *wait, struct cpr_pdom *pdom, bool shares)
{
	int ret;

	if (!cpr_wait_has_fd(wait->obj))
		return -FI_EINVAL;
	if (pdom->is_inherited)
		return -FI_EBADF;
	ret = cpr_wait_fd(wait);
	if (ret < 0)
		return ret;
	cpr_wait_drain(wait);
	if (cpr_wait_arm(wait, pdom, shares ? CPR_PDOM_SHARES : CPR_PDOM_PROMISES))
		return -FI_EBUSY;
	wait->promised = true;
	cpr_wakeup_use(pdom, &wait->wakeup);
	return 0;
}
