/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who is woken by a group's engine: see cpr_alarm.h. */
#include "ofi/domain/cpr_alarm.h"

#include "ofi/domain/cpr_group.h"
#include "util/param.h"

static struct cpr_group *cpr_alarm_next_ally(const struct cpr_group *group)
{
	return UTIL_CONTAINER_OF(group->core.merged_next, struct cpr_group, core);
}

void cpr_alarm_user_init(struct cpr_alarm_user *user, void (*wake)(struct cpr_alarm_user *user))
{
	util_list_init(&user->link);
	user->wake = wake;
}

/* Does somebody rely on the group or an merged_next? */
static bool cpr_alarm_has_users(const struct cpr_group *group)
{
	const struct cpr_group *g = group;

	do {
		if (!cpr_alarm_is_idle(&g->alarm))
			return true;
		g = cpr_alarm_next_ally(g);
	} while (g != group);
	return false;
}

void cpr_alarm_init(struct cpr_group *group)
{
	util_list_init(&group->alarm.users);
	group->alarm.attended = false;
	cpr_alarm_update(group);
}

void cpr_alarm_update(struct cpr_group *group)
{
	bool watched = cpr_alarm_has_users(group) || !util_params.hold;
	struct cpr_group *g = group;

	do {
		core_dom_set_watched(&g->core, watched || g->alarm.attended);
		g = cpr_alarm_next_ally(g);
	} while (g != group);
}

void cpr_alarm_attend(struct cpr_group *group)
{
	group->alarm.attended = true;
	cpr_alarm_update(group);
}

int cpr_alarm_set(struct cpr_group *group)
{
	int ret = core_dom_arm(&group->core);

	if (ret) {
		cpr_alarm_dismiss_all(group);
		core_dom_disarm(&group->core);
	}
	return ret;
}

void cpr_alarm_rely(struct cpr_group *group, struct cpr_alarm_user *user)
{
	if (util_list_is_empty(&user->link))
		util_list_push_back(&group->alarm.users, &user->link);
	cpr_alarm_update(group);
}

void cpr_alarm_release(struct cpr_group *group, struct cpr_alarm_user *user)
{
	util_list_remove(&user->link);
	cpr_alarm_update(group);
	if (!cpr_alarm_has_users(group))
		core_dom_disarm(&group->core);
}

void cpr_alarm_dismiss(struct cpr_group *group, struct cpr_alarm_user *user)
{
	bool relied = !util_list_is_empty(&user->link);

	cpr_alarm_release(group, user);
	if (relied)
		user->wake(user);
}

void cpr_alarm_dismiss_all(struct cpr_group *group)
{
	struct cpr_group *g = group;
	struct util_list *first;

	do {
		while ((first = util_list_pop(&g->alarm.users))) {
			struct cpr_alarm_user *user =
				UTIL_CONTAINER_OF(first, struct cpr_alarm_user, link);

			user->wake(user);
		}
		g = cpr_alarm_next_ally(g);
	} while (g != group);
	cpr_alarm_update(group);
}
