/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a thread sleep until there is something to read?
 *
 * A wait object belongs to a completion queue, counter or event queue. It is one descriptor, an
 * epoll set of an eventfd of its own, written when a completion is queued or fi_cq_signal is
 * called, and of engines' descriptors, readable when something arrived: that of the group where the
 * queue is, of its allies, and of groups that nobody else looks after (cpr_pdom_idle). Which ones
 * is worked out anew before every sleep.
 *
 *   reader				 whoever completes / the peer
 *   nothing to read
 *   hook = set, arm engines		 completes: hook -> kick -> eventfd
 *   still nothing to read		 sends: sees "armed" -> engine's descriptor
 *   poll(descriptor)
 *   disarm (unless others sleep)
 *
 * The hook is the queue's `notify`; it fires once and takes itself out, so that nobody pays a
 * system call per completion. All fields are covered by the lock of the queue's group but `signals`, which
 * any thread may raise. A thread that sleeps does not hold the lock; meanwhile the queue may go
 * to another group, or its group get allies, and then it is woken to look there.
 *
 * FI_WAIT_POLLFD shows the same descriptor in an array of one. Under FI_WAIT_YIELD nobody sleeps.
 * FI_WAIT_MUTEX_COND is refused: a peer cannot signal a condition variable. An object in a wait set
 * (cpr_waitset.h) has its own descriptor too, which the set watches.
 *
 * Shown by test/unit/ofi/queue/test_cpr_wait.c, test_cpr_cq.c and test_cpr_cntr.c.
 */
#ifndef CPR_WAIT_H
#define CPR_WAIT_H

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

#include "ofi/domain/cpr_wakeup.h"
#include "ofi/queue/cpr_look.h"
#include "util/list.h"

struct cpr_pdom;
struct cpr_member;
struct cpr_waitset;

struct cpr_wait {
	enum fi_wait_obj obj; /* one that cpr_wait_open takes */
	int epoll_fd;         /* -1 until first needed; so is event_fd */
	int event_fd;
	unsigned sleepers;
	bool promised; /* fi_trywait said that the descriptor works: never disarm */
	struct cpr_wakeup_user wakeup;
	uint64_t pdoms;          /* whose engines it watches: CPR_PDOM_BIT */
	uint32_t signals;        /* atomic: calls of cpr_wait_signal */
	uint32_t signals_seen;   /* of these, how many a sleeper has answered */
	struct cpr_waitset *set; /* FI_WAIT_SET; the rest belongs to the set */
	struct util_list set_link;
	struct fid *fid; /* whose object this is */
};

/** One blocking call. */
struct cpr_wait_call {
	uint64_t deadline_ns; /* UINT64_MAX: none; 0: not known yet */
	int timeout_ms;
	struct cpr_look look; /* before the first sleep */
	unsigned looks;       /* from then on */
	bool spins;           /* has not slept yet */
	uint32_t signals;
};

/** 0, or -FI_ENOSYS for a kind of object that we do not have. */
int cpr_wait_open(struct cpr_wait *wait, enum fi_wait_obj obj);
void cpr_wait_close(struct cpr_wait *wait);
/** "FI_WAIT_FD" and so on, for messages. */
const char *cpr_wait_name(enum fi_wait_obj obj);
/** May the user call what blocks on this one object (fi_cq_sread and so on)? */
bool cpr_wait_blocks(enum fi_wait_obj obj);
/** Has it a descriptor on which the user may sleep (after fi_trywait)? */
bool cpr_wait_has_fd(enum fi_wait_obj obj);

/** The descriptor: >= 0, or -FI_E*. */
int cpr_wait_fd(struct cpr_wait *wait);

/** Wakes who sleeps on the descriptor when `fd` is readable, too. 0 or -FI_E*. */
int cpr_wait_watch(struct cpr_wait *wait, int fd);

/** fi_control: FI_GETWAIT, FI_GETWAITOBJ; of a member, the set's. `place` is not locked; NULL: none. */
int cpr_wait_control(struct cpr_wait *wait, struct cpr_member *place, int command, void *arg);

/** Wakes all sleepers: there is something to read. */
void cpr_wait_kick(struct cpr_wait *wait);
/** The descriptor says nothing any more: the owner looked, and found nothing. */
void cpr_wait_drain(struct cpr_wait *wait);
/** Wakes all sleepers, or the next one, for nothing. Any thread. */
void cpr_wait_signal(struct cpr_wait *wait);

void cpr_wait_begin(struct cpr_wait *wait, struct cpr_wait_call *call, int timeout_ms);
/** True once per signal for the next call, and for every call that was in progress. */
bool cpr_wait_is_signaled(struct cpr_wait *wait, const struct cpr_wait_call *call);
/** The call must end, unless something is found now. */
bool cpr_wait_is_over(struct cpr_wait_call *call);
/**
 * The caller, with the group locked, found nothing and has set the hook. Spins, then sleeps; the
 * group may be another one afterwards. 0: look again; -FI_EAGAIN: the time is over; another -FI_E*: cannot
 * sleep.
 */
int cpr_wait_sleep(struct cpr_wait *wait, struct cpr_member *place, struct cpr_pdom **pdom,
		   struct cpr_wait_call *call);

/**
 * fi_trywait, of several objects at once if `shares`: the hook is set, nothing was found. 0: sleep on
 * the descriptor; -FI_EBUSY: not now, look again; -FI_EINVAL: there is no descriptor.
 */
int cpr_wait_try(struct cpr_wait *wait, struct cpr_pdom *pdom, bool shares);

#endif
