/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sleepers of a progress domain: see cpr_wakeup.h. */
#include "ofi/base/cpr_wakeup.h"

#include "ofi/base/cpr_pdom.h"
#include "util/param.h"

static struct cpr_pdom *cpr_wakeup_next_merged(const struct cpr_pdom *pdom)
{
	return UTIL_CONTAINER_OF(pdom->core.merged_next, struct cpr_pdom, core);
}

void cpr_wakeup_user_init(struct cpr_wakeup_user *user, void (*wake)(struct cpr_wakeup_user *user))
{
	util_list_init(&user->link);
	user->wake = wake;
}

/* Returns true if a thread relies on the progress domain or on one merged with it. */
static bool cpr_wakeup_has_users(const struct cpr_pdom *pdom)
{
	const struct cpr_pdom *g = pdom;

	do {
		if (!cpr_wakeup_is_idle(&g->wakeup))
			return true;
		g = cpr_wakeup_next_merged(g);
	} while (g != pdom);
	return false;
}

void cpr_wakeup_init(struct cpr_pdom *pdom)
{
	util_list_init(&pdom->wakeup.users);
	pdom->wakeup.attended = false;
	cpr_wakeup_update(pdom);
}

void cpr_wakeup_update(struct cpr_pdom *pdom)
{
	bool watched = cpr_wakeup_has_users(pdom) || !util_params.hold;
	struct cpr_pdom *g = pdom;

	do {
		core_dom_set_watched(&g->core, watched || g->wakeup.attended);
		g = cpr_wakeup_next_merged(g);
	} while (g != pdom);
}

void cpr_wakeup_attend(struct cpr_pdom *pdom)
{
	pdom->wakeup.attended = true;
	cpr_wakeup_update(pdom);
}

int cpr_wakeup_set(struct cpr_pdom *pdom)
{
	int ret = core_dom_arm(&pdom->core);

	if (ret) {
		cpr_wakeup_invalidate_all(pdom);
		core_dom_disarm(&pdom->core);
	}
	return ret;
}

void cpr_wakeup_use(struct cpr_pdom *pdom, struct cpr_wakeup_user *user)
{
	if (util_list_is_empty(&user->link))
		util_list_push_back(&pdom->wakeup.users, &user->link);
	cpr_wakeup_update(pdom);
}

void cpr_wakeup_release(struct cpr_pdom *pdom, struct cpr_wakeup_user *user)
{
	util_list_remove(&user->link);
	cpr_wakeup_update(pdom);
	if (!cpr_wakeup_has_users(pdom))
		core_dom_disarm(&pdom->core);
}

void cpr_wakeup_invalidate(struct cpr_pdom *pdom, struct cpr_wakeup_user *user)
{
	bool relied = !util_list_is_empty(&user->link);

	cpr_wakeup_release(pdom, user);
	if (relied)
		user->wake(user);
}

void cpr_wakeup_invalidate_all(struct cpr_pdom *pdom)
{
	struct cpr_pdom *g = pdom;
	struct util_list *first;

	do {
		while ((first = util_list_pop(&g->wakeup.users))) {
			struct cpr_wakeup_user *user =
				UTIL_CONTAINER_OF(first, struct cpr_wakeup_user, link);

			user->wake(user);
		}
		g = cpr_wakeup_next_merged(g);
	} while (g != pdom);
	cpr_wakeup_update(pdom);
}
