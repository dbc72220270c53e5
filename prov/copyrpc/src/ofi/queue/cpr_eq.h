/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where do control events go?
 *
 * An event queue: a list of events under a mutex of its own, usable from any thread. It belongs to
 * the fabric; domains whose objects were bound to it are progressed by its reads. What happens to
 * connections in the control thread becomes events in the domain's progress; the queue is only told
 * that there is news, so that who sleeps on it looks. Lock order: `bind_lock` -> a domain -> `lock`.
 *
 * Shown by test/unit/ofi/queue/test_cpr_eq.c and test_cpr_eq_cm.c.
 */
#ifndef CPR_EQ_H
#define CPR_EQ_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "ofi/base/cpr_ref.h"
#include "ofi/queue/cpr_wait.h"
#include "util/list.h"

struct cpr_domain;
struct cpr_fabric;

struct cpr_eq {
	struct fid_eq fid;
	struct cpr_fabric *fabric;
	struct cpr_ref refs; /* what is bound to it */
	bool may_write;      /* FI_WRITE: fi_eq_write is allowed */
	pthread_mutex_t lock;
	struct util_list events; /* struct cpr_eq_event, oldest first */
	void *err_data;          /* of the last error read, where it is ours (fi_eq(3)) */
	bool has_news;           /* atomic: progress was asked for since it was made last */
	struct cpr_wait wait;    /* without an engine */
	pthread_mutex_t bind_lock;
	struct util_list users; /* cpr_eq_user.link */
};

struct cpr_eq_event {
	struct util_list link;
	fid_t fid;   /* whose it is, for cpr_eq_forget; NULL: nobody's */
	bool is_err; /* data is a struct fi_eq_err_entry and its err_data */
	uint32_t event;
	size_t len_min; /* bytes that a reader must take; the rest may be cut off */
	size_t len;
	void (*drop)(struct cpr_eq_event *ev); /* nobody will read it; NULL: nothing to do */
	_Alignas(16) uint8_t data[];
};

/** Embedded in what is bound to a queue. */
struct cpr_eq_user {
	struct util_list link;
	struct cpr_eq *eq; /* NULL: not bound */
	struct cpr_domain *domain;
};

static inline struct cpr_eq *cpr_eq_of(struct fid *fid)
{
	return container_of(fid, struct cpr_eq, fid.fid);
}

int cpr_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);

/** Queues an event / an error. 0 or -FI_ENOMEM. */
int cpr_eq_post(struct cpr_eq *eq, uint32_t event, const void *buf, size_t len);
int cpr_eq_post_err(struct cpr_eq *eq, const struct fi_eq_err_entry *err);

/** An event with room for `len` bytes, to be filled in and pushed; NULL: no memory. */
struct cpr_eq_event *cpr_eq_event_new(uint32_t event, size_t len);
void cpr_eq_push(struct cpr_eq *eq, struct cpr_eq_event *ev);
void cpr_eq_event_drop(struct cpr_eq_event *ev);

/** Connection events (cpr_eq_cm.c): of `fid`, with the peer's data. 0 or -FI_ENOMEM. */
int cpr_eq_post_cm(struct cpr_eq *eq, uint32_t event, fid_t fid, const void *data, size_t len);
/** A connection that could not be made: `err` is -FI_E*. */
int cpr_eq_post_cm_err(struct cpr_eq *eq, fid_t fid, int err, const void *data, size_t len);
/** A connection request: info becomes the reader's, or is dropped by `drop` with the event. */
int cpr_eq_post_connreq(struct cpr_eq *eq, fid_t pep, struct fi_info *info, const void *data,
			size_t len, void (*drop)(struct cpr_eq_event *ev));
/** `fid` is about to be closed: its events go. */
void cpr_eq_forget(struct cpr_eq *eq, fid_t fid);

/** Progress of the queue's domains would bring events: wakes who sleeps. Any thread, any lock. */
void cpr_eq_tell(struct cpr_eq *eq);

/**
 * Something of `domain` is bound to the queue: from now on reads of it, from whatever thread, make
 * the domain's progress, so the domain takes its lock. Binding is serialised with all else
 * (fi_endpoint(3)). -FI_EINVAL if it is bound to another queue already.
 */
int cpr_eq_attach(struct cpr_eq *eq, struct cpr_domain *domain, struct cpr_eq_user *user);
void cpr_eq_detach(struct cpr_eq_user *user);

/** For fi_trywait: 0, -FI_EAGAIN (events), -FI_EINVAL (no descriptor). */
int cpr_eq_trywait(struct cpr_eq *eq);

/* Longest sleep on its descriptor, in ms, while domains depend on the queue's progress. */
#define CPR_EQ_LOOK_MS 10
/** True if that is so. */
bool cpr_eq_looks(struct cpr_eq *eq);

#endif
