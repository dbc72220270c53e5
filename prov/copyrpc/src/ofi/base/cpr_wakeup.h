/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakeups: the threads that rely on the engine of a progress domain to wake them.
 *
 * These sleep on its descriptor, or were promised by fi_trywait that it works. The wakeup is set
 * under the lock when there is nothing to do, and stays set while a thread relies on it. A thread
 * that cannot set it, because something arrived in between, wakes all the others, and each looks
 * for itself. The same happens when two progress domains are merged, for these are armed together,
 * and when a queue moves to another progress domain.
 *
 * All calls but cpr_wakeup_user_init are made locked. Tested by
 * test/unit/ofi/domain/test_cpr_wakeup.c and test/stress/stress_sleep.c.
 */
#ifndef OFI_BASE_CPR_WAKEUP_H
#define OFI_BASE_CPR_WAKEUP_H

#include <stdbool.h>

#include "util/list.h"

struct cpr_pdom;

struct cpr_wakeup {
	struct util_list users; /* cpr_wakeup_user.link */
	bool attended; /* for good: by FI_PROGRESS_AUTO's thread, or fi_trywait of another pdom */
};

/** A thread that relies on a wakeup; in one list at most, of the progress domain it sleeps on. */
struct cpr_wakeup_user {
	struct util_list link;
	void (*wake)(struct cpr_wakeup_user *user); /* called after removal from the list */
};

void cpr_wakeup_user_init(struct cpr_wakeup_user *user, void (*wake)(struct cpr_wakeup_user *user));

/** Initializes the wakeup of a new progress domain. */
void cpr_wakeup_init(struct cpr_pdom *pdom);
/** Records that a promise made for another progress domain also covers this one. */
void cpr_wakeup_attend(struct cpr_pdom *pdom);
/** Computes core_dom.watched for the progress domain and those merged with it. */
void cpr_wakeup_update(struct cpr_pdom *pdom);

/**
 * Arms the engine. Returns 0 if from now on events make the descriptors readable, of merged
 * progress domains too; else the caller looks for work again.
 */
int cpr_wakeup_set(struct cpr_pdom *pdom);
/** Adds a user. The wakeup was set since the lock was taken. */
void cpr_wakeup_use(struct cpr_pdom *pdom, struct cpr_wakeup_user *user);
/** Removes a user; harmless if it is in no list. */
void cpr_wakeup_release(struct cpr_pdom *pdom, struct cpr_wakeup_user *user);
/** Removes a user and wakes it. */
void cpr_wakeup_invalidate(struct cpr_pdom *pdom, struct cpr_wakeup_user *user);
/** Removes and wakes all users, of merged progress domains too. */
void cpr_wakeup_invalidate_all(struct cpr_pdom *pdom);

/** Returns true if no thread relies on this progress domain itself. */
static inline bool cpr_wakeup_is_idle(const struct cpr_wakeup *wakeup)
{
	return util_list_is_empty(&wakeup->users);
}

#endif
