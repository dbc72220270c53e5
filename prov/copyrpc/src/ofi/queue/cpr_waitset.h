/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets: sleeping until one of several queues or counters has something to read. Opened by
 * fi_wait_open.
 *
 * A set belongs to the fabric. Completion queues, counters and event queues of its domains that are
 * opened with FI_WAIT_SET are members until they are closed. The wait object is an epoll set of
 * theirs. fi_wait calls trywait for every member and sleeps if all of them allow it.
 *
 * The list of members has its own mutex. Lock order: set -> a domain, an event queue.
 */
#ifndef OFI_QUEUE_CPR_WAITSET_H
#define OFI_QUEUE_CPR_WAITSET_H

#include <pthread.h>
#include <rdma/fi_eq.h>

#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"
#include "util/list.h"

struct cpr_fabric;

struct cpr_waitset {
	struct fid_wait fid;
	struct cpr_fabric *fabric;
	struct cpr_wait wait; /* watches the descriptors of the members */
	pthread_mutex_t lock;
	struct util_list members; /* cpr_wait.set_link */
};

int cpr_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);

/**
 * Opens the wait object of a queue or counter `fid`, of kind `obj` or in `set`. Returns 0, or a
 * negative error code, which is logged.
 */
int cpr_waitset_open_member(struct cpr_wait *wait, enum fi_wait_obj obj, struct fid_wait *set,
			    struct fid *fid);
/** Takes the wait object out of its set, if it is in one: no thread calls trywait of it there. */
void cpr_waitset_leave(struct cpr_wait *wait);
/** Closes the wait object of a queue or counter, in a set or not. */
void cpr_waitset_close_member(struct cpr_wait *wait);

/** Implements fi_trywait of a set, as cpr_wait_try: every member. */
int cpr_waitset_trywait(struct cpr_waitset *set);

/**
 * Implements fi_trywait of any object, with others in the same call if `shares`. Returns 0,
 * -FI_EAGAIN (something to read), -FI_EBUSY (look again) or -FI_EINVAL.
 */
int cpr_waitset_trywait_fid(struct fid *fid, bool shares);

#endif
