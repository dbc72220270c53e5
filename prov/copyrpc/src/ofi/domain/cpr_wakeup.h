/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who relies on being woken by the engine of a group?
 *
 * Those who sleep on its descriptor, and those to whom fi_trywait promised that it works. The alarm is
 * set under the group's lock, when there was nothing to do, and stays set while somebody relies on
 * it. Who finds that it cannot be set, because something came in between, wakes all the others: each
 * looks for itself. So does who turns two groups into allies, for these are armed together, and who
 * takes a queue to another group.
 *
 * All calls but the first with the group locked.
 * Shown by test/unit/ofi/domain/test_cpr_wakeup.c and test/stress/stress_sleep.c.
 */
#ifndef CPR_WAKEUP_H
#define CPR_WAKEUP_H

#include <stdbool.h>

#include "util/list.h"

struct cpr_pdom;

struct cpr_wakeup {
	struct util_list users; /* cpr_wakeup_user.link: who relies on it */
	bool attended; /* for good: by FI_PROGRESS_AUTO's thread, or fi_trywait of another group */
};

/** In one list at most, that of the group where its owner is. */
struct cpr_wakeup_user {
	struct util_list link;
	void (*wake)(struct cpr_wakeup_user *user); /* out of the list by then */
};

void cpr_wakeup_user_init(struct cpr_wakeup_user *user, void (*wake)(struct cpr_wakeup_user *user));

/** The group is new, and nobody knows it. */
void cpr_wakeup_init(struct cpr_pdom *pdom);
/** Somebody else's promise holds for the group, too, from now on. */
void cpr_wakeup_drain(struct cpr_pdom *pdom);
/** Works out core_dom.watched, for the group and its allies, after a change of the rest. */
void cpr_wakeup_update(struct cpr_pdom *pdom);

/** 0: from now on news make the descriptors of the group and its allies readable; else: look again. */
int cpr_wakeup_set(struct cpr_pdom *pdom);
/** The alarm was set since the lock was taken. */
void cpr_wakeup_use(struct cpr_pdom *pdom, struct cpr_wakeup_user *user);
/** Harmless for who is in no list. */
void cpr_wakeup_release(struct cpr_pdom *pdom, struct cpr_wakeup_user *user);
/** As release, and wakes who relied on it. */
void cpr_wakeup_invalidate(struct cpr_pdom *pdom, struct cpr_wakeup_user *user);
/** All who rely on it, of allies too. */
void cpr_wakeup_invalidate_all(struct cpr_pdom *pdom);

/** Does nobody rely on this very group? */
static inline bool cpr_wakeup_is_idle(const struct cpr_wakeup *wakeup)
{
	return util_list_is_empty(&wakeup->users);
}

#endif
