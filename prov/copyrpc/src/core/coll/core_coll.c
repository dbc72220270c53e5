/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collective groups: join, number, leave, failure. See core_coll.h. */
#include "core/coll/core_coll.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll_msg.h"
#include "core/coll/core_coll_op.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "util/log.h"
#include "util/name.h"

#define CORE_COLL_HASH_START 0xCBF29CE484222325ull
#define CORE_COLL_HASH_PRIME 0x100000001B3ull

int core_coll_init(struct core_ep *ep)
{
	struct core_coll *coll = calloc(1, sizeof(*coll));

	if (!coll)
		return -FI_ENOMEM;
	util_list_init(&coll->groups);
	util_list_init(&coll->unexp);
	ep->coll = coll;
	return 0;
}

void core_coll_fini(struct core_ep *ep)
{
	struct core_coll *coll = ep->coll;
	struct util_list *first;

	if (!coll)
		return;
	while ((first = util_list_first(&coll->unexp)))
		core_coll_unexp_free(ep, UTIL_CONTAINER_OF(first, struct core_coll_unexp, link));
	ep->coll = NULL;
	free(coll->joins);
	free(coll);
}

struct core_coll_group *core_coll_find(struct core_ep *ep, uint64_t id)
{
	struct util_list *it, *tmp;
	struct core_coll_group *group;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->coll->groups) {
		group = UTIL_CONTAINER_OF(it, struct core_coll_group, link);
		if (group->id == id)
			return group;
	}
	return NULL;
}

/* Frees messages that were kept for the group: PUTs, and with `aborts` also aborts. */
static void core_coll_drop_kept(const struct core_coll_group *group, bool aborts)
{
	struct util_list *it, *tmp;
	struct core_coll_unexp *unexp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ep->coll->unexp) {
		unexp = UTIL_CONTAINER_OF(it, struct core_coll_unexp, link);
		if (unexp->group == group->id && (aborts || !unexp->abort))
			core_coll_unexp_free(group->ep, unexp);
	}
}

void core_coll_abort(struct core_coll_group *group, int err, bool notify)
{
	uint32_t i;

	if (group->err)
		return;
	group->err = err;
	UTIL_INFO(EP_DATA, "collective group of %u: aborted: %s\n", group->cnt, fi_strerror(-err));
	for (i = 0; notify && i < group->cnt; i++)
		if (i != group->me)
			core_coll_msg_abort(group, i);
	core_coll_drop_kept(group, false);
	core_coll_op_fail_all(group, err);
}

static uint64_t core_coll_hash(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * CORE_COLL_HASH_PRIME;
	return hash;
}

/*
 * Hashes the members' addresses, which are the same at all members. Returns 0 and *hash, or
 * -FI_EINVAL.
 */
static int core_coll_hash_members(const struct core_coll_group *group, uint64_t *hash)
{
	struct sockaddr_storage addr;
	socklen_t len;

	for (uint32_t i = 0; i < group->cnt; i++) {
		memset(&addr, 0, sizeof(addr));
		len = core_av_addr(group->ep->av, group->members[i], &addr);
		if (!len)
			return -FI_EINVAL;
		*hash = core_coll_hash(*hash, &addr, len);
	}
	return 0;
}

/*
 * Counts a join of a group with these members. Returns 0 and the number of earlier joins, or
 * -FI_ENOMEM.
 */
static int core_coll_count_join(struct core_coll *coll, uint64_t members, uint64_t *before)
{
	struct core_coll_joins *joins = coll->joins;
	size_t i;

	for (i = 0; i < coll->join_cnt && joins[i].members != members; i++)
		;
	if (i == coll->join_cnt) {
		joins = realloc(joins, (i + 1) * sizeof(*joins));
		if (!joins)
			return -FI_ENOMEM;
		joins[i] = (struct core_coll_joins){ .members = members };
		coll->joins = joins;
		coll->join_cnt++;
	}
	*before = joins[i].cnt++;
	return 0;
}

static int core_coll_number(struct core_coll_group *group, uint64_t parent)
{
	uint64_t hash = core_coll_hash(CORE_COLL_HASH_START, &parent, sizeof(parent)), before;
	int ret = core_coll_hash_members(group, &hash);

	if (!ret)
		ret = core_coll_count_join(group->ep->coll, hash, &before);
	if (!ret)
		group->id = core_coll_hash(hash, &before, sizeof(before)) | 1;
	return ret;
}

/* Finds this endpoint, by any address of its name. Returns 0 and group->me, or -FI_EINVAL. */
static int core_coll_find_self(struct core_coll_group *group)
{
	const struct core_ep *ep = group->ep;
	struct sockaddr_storage own, addr;

	core_ep_addr(ep, &own);
	for (uint32_t i = 0; i < group->cnt; i++) {
		if (core_av_addr(ep->av, group->members[i], &addr) &&
		    util_name_has((struct sockaddr *)&own, (struct sockaddr *)&addr)) {
			group->me = i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

int core_coll_rank_of(const struct core_coll_group *group, fi_addr_t addr, uint32_t *rank)
{
	for (uint32_t i = 0; i < group->cnt; i++) {
		if (group->members[i] == addr) {
			*rank = i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

/* Aborts the group if an abort arrived before the join. */
static void core_coll_apply_aborts(struct core_coll_group *group)
{
	struct util_list *it, *tmp;
	struct core_coll_unexp *unexp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ep->coll->unexp) {
		unexp = UTIL_CONTAINER_OF(it, struct core_coll_unexp, link);
		if (unexp->group == group->id && unexp->abort) {
			core_coll_abort(group, unexp->abort, false);
			return;
		}
	}
}

int core_coll_join(struct core_ep *ep, struct core_coll_group *group, const fi_addr_t *members,
		   uint32_t cnt, uint64_t parent, bool managed)
{
	struct core_coll_args barrier = { .call = { .coll = FI_BARRIER } };
	int ret;

	util_list_init(&group->ops);
	group->ep = ep;
	group->cnt = cnt;
	group->members = malloc(cnt * sizeof(*members));
	if (!group->members)
		return -FI_ENOMEM;
	memcpy(group->members, members, cnt * sizeof(*members));
	ret = core_coll_find_self(group);
	if (!ret)
		ret = core_coll_number(group, parent);
	if (ret) {
		free(group->members);
		return ret;
	}
	util_list_push_back(&ep->coll->groups, &group->link);
	if (managed)
		group->joined(group, 0);
	else
		ret = core_coll_op_post(group, &barrier, true);
	if (!ret)
		core_coll_apply_aborts(group);
	else
		core_coll_leave(group);
	return ret;
}

void core_coll_leave(struct core_coll_group *group)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ops)
		core_coll_op_cancel(UTIL_CONTAINER_OF(it, struct core_coll_op, link));
	core_coll_drop_kept(group, true);
	util_list_remove(&group->link);
	free(group->members);
	group->members = NULL;
}

ssize_t core_coll_post(struct core_coll_group *group, const struct core_coll_args *args)
{
	return group->err ? group->err : core_coll_op_post(group, args, false);
}

/* --- peers that come up or fail ------------------------------------------------------------ */

/* Finds the rank of a peer in the group. Returns false if it is another process. */
static bool core_coll_find_peer(const struct core_coll_group *group, const struct core_peer *peer,
				uint32_t *rank)
{
	for (*rank = 0; *rank < group->cnt; ++*rank)
		if (core_coll_is_member(group, peer, *rank))
			return true;
	return false;
}

static bool core_coll_group_needs(struct core_coll_group *group, const struct core_peer *peer)
{
	struct util_list *it, *tmp;
	uint32_t member;

	if (!core_coll_find_peer(group, peer, &member))
		return false;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ops)
		if (core_coll_op_needs(UTIL_CONTAINER_OF(it, struct core_coll_op, link), member))
			return true;
	return false;
}

/* Frees messages of the peer, all or those of its predecessors. */
static void core_coll_drop_peer(struct core_peer *peer, bool all)
{
	struct core_coll_unexp *unexp;
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->ep->coll->unexp) {
		unexp = UTIL_CONTAINER_OF(it, struct core_coll_unexp, link);
		if (unexp->peer == peer && (all || unexp->incarnation != peer->incarnation))
			core_coll_unexp_free(peer->ep, unexp);
	}
}

void core_coll_peer_up(struct core_peer *peer)
{
	struct core_coll *coll = peer->ep->coll;
	struct core_coll_group *group;
	struct util_list *it, *tmp;
	uint32_t member;

	if (!coll)
		return;
	core_coll_drop_peer(peer, false);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &coll->groups) {
		group = UTIL_CONTAINER_OF(it, struct core_coll_group, link);
		if (group->err && core_coll_find_peer(group, peer, &member) && member != group->me)
			core_coll_msg_abort_later(group, peer);
	}
}

void core_coll_fail_peer(struct core_peer *peer, int err)
{
	struct core_coll *coll = peer->ep->coll;
	struct core_coll_group *group;
	struct core_coll_unexp *unexp;
	struct util_list *it, *tmp;

	if (!coll || !err)
		return;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &coll->unexp) {
		unexp = UTIL_CONTAINER_OF(it, struct core_coll_unexp, link);
		if (unexp->peer == peer && !unexp->whole && !unexp->abort)
			core_coll_unexp_free(peer->ep, unexp);
	}
	UTIL_LIST_FOREACH_SAFE (it, tmp, &coll->groups) {
		group = UTIL_CONTAINER_OF(it, struct core_coll_group, link);
		if (core_coll_group_needs(group, peer))
			core_coll_abort(group, err, true);
	}
}

void core_coll_forget_peer(struct core_peer *peer)
{
	if (peer->ep->coll)
		core_coll_drop_peer(peer, true);
}
