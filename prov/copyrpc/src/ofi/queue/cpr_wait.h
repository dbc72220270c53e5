/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects: sleeping until there is something to read. Used by completion queues, counters,
 * event queues and wait sets.
 *
 * A wait object is one descriptor: an epoll set of an eventfd, written at a completion or by
 * fi_cq_signal, and of engines' descriptors, readable when something arrived. The engines are those
 * of the queue's progress domain, of domains merged with it, and of idle ones (cpr_pdom_idle); they
 * are determined before every sleep.
 *
 *	reader				completing thread / peer
 *	sets notify, arms engines	completes: notify -> kick -> eventfd
 *	finds nothing			sends: engine is armed -> engine's descriptor
 *	poll(descriptor)
 *	disarms (unless others sleep)
 *
 * notify is called once and removes itself, so completions make no system calls. All fields but
 * `signals` are under the lock of the queue's progress domain. A sleeping thread does not hold it;
 * if the queue moves or its progress domain is merged meanwhile, the thread is woken.
 *
 * FI_WAIT_POLLFD returns the descriptor in an array. Under FI_WAIT_YIELD no thread sleeps.
 * FI_WAIT_MUTEX_COND is refused: a peer cannot signal a condition variable. A wait set
 * (cpr_waitset.h) watches the descriptors of its members.
 *
 * Tested by test/unit/ofi/queue/test_cpr_wait.c, test_cpr_cq.c and test_cpr_cntr.c.
 */
#ifndef OFI_QUEUE_CPR_WAIT_H
#define OFI_QUEUE_CPR_WAIT_H

#include <poll.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

#include "ofi/base/cpr_wakeup.h"
#include "ofi/queue/cpr_look.h"
#include "util/list.h"

struct cpr_pdom;
struct cpr_member;
struct cpr_waitset;

struct cpr_wait {
	enum fi_wait_obj obj; /* a kind that cpr_wait_open accepts */
	int epoll_fd;         /* -1 until first used, as event_fd */
	int event_fd;
	unsigned sleepers;
	bool promised; /* promised by fi_trywait: never disarmed */
	struct cpr_wakeup_user wakeup;
	uint64_t pdoms;          /* CPR_PDOM_BIT of the progress domains with watched engines */
	uint32_t signals;        /* atomic: calls of cpr_wait_signal */
	uint32_t signals_seen;   /* of these, those that ended a call */
	struct cpr_waitset *set; /* FI_WAIT_SET; other fields belong to the set */
	struct util_list set_link;
	struct fid *fid; /* the object */
};

/** One blocking call. */
struct cpr_wait_call {
	uint64_t deadline_ns; /* UINT64_MAX: none; 0: not known yet */
	int timeout_ms;
	struct cpr_look look; /* state of spinning before the first sleep */
	unsigned looks;       /* looks since then */
	bool spins;           /* no sleep yet */
	uint32_t signals;
};

/** Returns true if a thread sleeps on the object, or may, as fi_trywait has permitted it. */
static inline bool cpr_wait_is_used(const struct cpr_wait *wait)
{
	return wait->sleepers || wait->promised;
}

/** Returns 0, or -FI_ENOSYS for a kind of object that is not offered. */
int cpr_wait_open(struct cpr_wait *wait, enum fi_wait_obj obj);
void cpr_wait_close(struct cpr_wait *wait);
/** Returns "FI_WAIT_FD" and so on, for messages. */
const char *cpr_wait_name(enum fi_wait_obj obj);
/** Returns true if calls that block on this one object are allowed (fi_cq_sread and so on). */
bool cpr_wait_blocks(enum fi_wait_obj obj);
/** Returns true if the user may sleep on its descriptor (after fi_trywait). */
bool cpr_wait_has_fd(enum fi_wait_obj obj);

/** Returns the descriptor, or a negative error code. */
int cpr_wait_fd(struct cpr_wait *wait);

/** Makes the wait object watch `fd` as well. Returns 0 or a negative error code. */
int cpr_wait_watch(struct cpr_wait *wait, int fd);

/**
 * Implements fi_control: FI_GETWAIT, FI_GETWAITOBJ; for a member, those of the set. `member` is not
 * locked; NULL: none.
 */
int cpr_wait_control(struct cpr_wait *wait, struct cpr_member *member, int command, void *arg);

/** Wakes all sleepers: there is something to read. */
void cpr_wait_kick(struct cpr_wait *wait);
/** Empties the eventfd, after the owner looked and found nothing. */
void cpr_wait_drain(struct cpr_wait *wait);
/** Ends the calls that wait, or the next one, without an event. Any thread. */
void cpr_wait_signal(struct cpr_wait *wait);

/**
 * Sleeps until a descriptor has an event, at most `timeout_ms` if that is not negative. Returns 0,
 * or -FI_EINTR if a signal handler has run.
 */
int cpr_wait_poll_fds(struct pollfd *fds, nfds_t cnt, int timeout_ms);

void cpr_wait_begin(struct cpr_wait *wait, struct cpr_wait_call *call, int timeout_ms);
/** Returns true once per signal for the next call, and for every call in progress. */
bool cpr_wait_is_signaled(struct cpr_wait *wait, const struct cpr_wait_call *call);
/** Returns true if the call must end unless something is found now. */
bool cpr_wait_is_over(struct cpr_wait_call *call);
/**
 * Spins, then sleeps. The caller has set notify and found nothing. Called with the progress domain
 * locked; *pdom changes if the object moved. Returns 0 to look again, -FI_EAGAIN if the time is
 * over, -FI_EINTR if a signal handler has run, or another error code if it cannot sleep.
 */
int cpr_wait_sleep(struct cpr_wait *wait, struct cpr_member *member, struct cpr_pdom **pdom,
		   struct cpr_wait_call *call);

/**
 * Implements fi_trywait, of several objects at once if `shares`. notify is set and nothing was
 * found. Returns 0 if the caller may sleep on the descriptor, -FI_EBUSY to look again, or
 * -FI_EINVAL if there is no descriptor.
 */
int cpr_wait_try(struct cpr_wait *wait, struct cpr_pdom *pdom, bool shares);

#endif
