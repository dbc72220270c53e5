/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues: a list of control events under its own mutex, usable from any thread. Opened by
 * fi_eq_open.
 *
 * A queue belongs to the fabric; its reads make progress of the domains with objects bound to it.
 * Changes of connections in the control thread become events in that progress; the control thread
 * only notifies the queue (cpr_eq_notify), so that sleepers make progress. Lock order: `bind_lock`
 * -> a domain -> `lock`.
 *
 * Tested by test/unit/ofi/queue/test_cpr_eq.c and test_cpr_eq_cm.c.
 */
#ifndef OFI_QUEUE_CPR_EQ_H
#define OFI_QUEUE_CPR_EQ_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "ofi/base/cpr_eq_user.h"
#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"
#include "util/list.h"

struct cpr_domain;
struct cpr_fabric;

struct cpr_eq {
	struct fid_eq fid;
	struct cpr_fabric *fabric;
	struct cpr_ref refs; /* bound objects */
	bool may_write;      /* FI_WRITE: fi_eq_write is allowed */
	pthread_mutex_t lock;
	struct util_list events; /* struct cpr_eq_event, oldest first */
	void *err_data;          /* data of the last error read, in the queue (fi_eq(3)) */
	bool notified;           /* atomic: notified since progress was last made */
	struct cpr_wait wait;    /* without an engine */
	pthread_mutex_t bind_lock;
	struct util_list users; /* cpr_eq_user.link */
};

struct cpr_eq_event {
	struct util_list link;
	fid_t fid;   /* owner, for cpr_eq_forget; NULL: none */
	bool is_err; /* data is a struct fi_eq_err_entry and its err_data */
	uint32_t event;
	size_t len_min; /* bytes that a reader must take; the rest may be cut off */
	size_t len;
	void (*drop)(struct cpr_eq_event *ev); /* called if the event is not read; may be NULL */
	_Alignas(16) uint8_t data[];
};

static inline struct cpr_eq *cpr_eq_of(struct fid *fid)
{
	return UTIL_CONTAINER_OF(fid, struct cpr_eq, fid.fid);
}

int cpr_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);

/** Queues an event or an error. Returns 0 or -FI_ENOMEM. */
int cpr_eq_post(struct cpr_eq *eq, uint32_t event, const void *buf, size_t len);
int cpr_eq_post_err(struct cpr_eq *eq, const struct fi_eq_err_entry *err);

/** Returns an event with `len` bytes of data, to be filled in and pushed. NULL if out of memory. */
struct cpr_eq_event *cpr_eq_event_new(uint32_t event, size_t len);
void cpr_eq_push(struct cpr_eq *eq, struct cpr_eq_event *ev);
void cpr_eq_event_drop(struct cpr_eq_event *ev);

/**
 * Queues a connection event of `fid` with the peer's data (cpr_eq_cm.c). Returns 0 or -FI_ENOMEM.
 */
int cpr_eq_post_cm(struct cpr_eq *eq, uint32_t event, fid_t fid, const void *data, size_t len);
/** Queues the failure of a connection; `err` is a negative error code. */
int cpr_eq_post_cm_err(struct cpr_eq *eq, fid_t fid, int err, const void *data, size_t len);
/** Queues a connection request. `info` becomes the reader's, or `drop` frees it with the event. */
int cpr_eq_post_connreq(struct cpr_eq *eq, fid_t pep, struct fi_info *info, const void *data,
			size_t len, void (*drop)(struct cpr_eq_event *ev));
/** Drops the events of an object that is about to be closed. */
void cpr_eq_forget(struct cpr_eq *eq, fid_t fid);

/**
 * Wakes sleepers because progress of the queue's domains would bring events. Any thread, any lock.
 */
void cpr_eq_notify(struct cpr_eq *eq);

/**
 * Binds an object of `domain` to the queue. From now on reads of the queue, from any thread, make
 * the domain's progress, so the domain uses its lock. Binding is serialised with all other calls
 * (fi_endpoint(3)). Returns 0, or -FI_EINVAL if the object is bound to another queue.
 */
int cpr_eq_attach(struct cpr_eq *eq, struct cpr_domain *domain, struct cpr_eq_user *user);
void cpr_eq_detach(struct cpr_eq_user *user);

/**
 * Implements fi_trywait: returns 0, -FI_EAGAIN if there are events, or -FI_EINVAL without a
 * descriptor.
 */
int cpr_eq_trywait(struct cpr_eq *eq);

/* Longest sleep on the descriptor, in ms, while domains depend on the queue's progress. */
#define CPR_EQ_PROGRESS_MS 10
/** Returns true if a domain depends on the queue's progress. */
bool cpr_eq_needs_progress(struct cpr_eq *eq);

#endif
