/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a thread sleep until any of several queues and counters has something to read?
 *
 * A wait set belongs to the fabric. Completion queues, counters and event queues of any of its
 * domains that are opened with FI_WAIT_SET become its members until they are closed. Its wait
 * object is an epoll set of theirs: so fi_wait asks every member as fi_trywait would, and sleeps
 * if all of them say that they may be slept on.
 *
 * The list of members has a mutex of its own. Lock order: set -> a domain, an event queue.
 *
 * Shown by test/unit/ofi/queue/test_cpr_waitset.c.
 */
#ifndef CPR_WAITSET_H
#define CPR_WAITSET_H

#include <pthread.h>
#include <rdma/fi_eq.h>

#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"
#include "util/list.h"

struct cpr_fabric;

struct cpr_waitset {
	struct fid_wait fid;
	struct cpr_fabric *fabric;
	struct cpr_wait wait; /* its descriptor watches those of the members */
	pthread_mutex_t lock;
	struct util_list members; /* cpr_wait.set_link */
};

int cpr_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);

/**
 * A queue or counter that is being opened, known as `fid`, with the wait object `obj` or in `set`:
 * 0 or -FI_E*, logged.
 */
int cpr_waitset_open_member(struct cpr_wait *wait, enum fi_wait_obj obj, struct fid_wait *set,
			    struct fid *fid);
/** The other end, for members and for those who are none: cpr_wait_close. */
void cpr_waitset_close_member(struct cpr_wait *wait);

/** For fi_trywait, as cpr_wait_try: every member. */
int cpr_waitset_trywait(struct cpr_waitset *set);

/**
 * fi_trywait of anything, with others in the same call if `shares`: 0, -FI_EAGAIN (something to read), -FI_EBUSY
 * (look again), -FI_EINVAL.
 */
int cpr_waitset_trywait_fid(struct fid *fid, bool shares);

#endif
