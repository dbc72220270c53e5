/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Groups and their operations: see core_coll.h. */
#include "core/coll/core_coll.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll_msg.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "util/log.h"

#define CORE_COLL_HASH_START 0xCBF29CE484222325ull
#define CORE_COLL_HASH_PRIME 0x100000001B3ull

int core_coll_init(struct core_ep *ep)
{
	struct core_coll *coll = calloc(1, sizeof(*coll));

	if (!coll)
		return -FI_ENOMEM;
	util_list_init(&coll->groups);
	util_list_init(&coll->early);
	ep->coll = coll;
	return 0;
}

static void core_coll_early_free(struct core_ep *ep, struct core_coll_early *early)
{
	util_list_remove(&early->link);
	ep->dom->unexpected_used -= sizeof(*early) + (early->whole ? early->len : 0);
	free(early);
}

void core_coll_fini(struct core_ep *ep)
{
	struct core_coll *coll = ep->coll;
	struct util_list *first;

	if (!coll)
		return;
	while ((first = util_list_first(&coll->early)))
		core_coll_early_free(ep, UTIL_CONTAINER_OF(first, struct core_coll_early, link));
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

/* ---- the end of an operation ---- */

static void core_coll_tell(const struct core_coll_op *op)
{
	struct core_ep *ep = op->group->ep;
	struct fi_cq_err_entry entry = {
		.op_context = op->context,
		.flags = FI_COLLECTIVE,
		.err = -op->err,
		.prov_errno = -op->err,
	};

	core_cntr_count(ep->rma_cntr[CORE_CNTR_WRITE], op->err);
	if (!ep->tx.cq)
		return;
	if (op->err)
		core_cq_write_err(ep->tx.cq, &entry, FI_ADDR_NOTAVAIL);
	else if (!ep->tx.selective || (op->flags & FI_COMPLETION))
		core_cq_write(ep->tx.cq, op->context, FI_COLLECTIVE, 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

static void core_coll_op_free(struct core_coll_op *op)
{
	core_coll_msg_forget(op);
	util_list_remove(&op->link);
	core_coll_plan_free(&op->plan);
	free(op);
}

static void core_coll_op_end(struct core_coll_op *op)
{
	struct core_coll_group *group = op->group;
	int err = op->err;

	if (!op->is_join) {
		core_coll_tell(op);
		core_coll_op_free(op);
		return;
	}
	core_coll_op_free(op);
	group->joined(group, err);
}

/* Every operation ends; one that is being started ends when that is over. */
static void core_coll_fail_ops(struct core_coll_group *group, int err)
{
	struct util_list *it, *tmp;
	struct core_coll_op *op;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ops) {
		op = UTIL_CONTAINER_OF(it, struct core_coll_op, link);
		op->err = err;
		if (!op->running)
			core_coll_op_end(op);
	}
}

void core_coll_give_up(struct core_coll_group *group, int err, bool tell)
{
	uint32_t i;

	if (group->err)
		return;
	group->err = err;
	UTIL_INFO(EP_DATA, "collective group of %u: given up: %s\n", group->cnt, fi_strerror(-err));
	for (i = 0; tell && i < group->cnt; i++)
		if (i != group->me)
			core_coll_msg_abort(group, i);
	core_coll_fail_ops(group, err);
}

/* ---- phases ---- */

static struct core_coll_early *core_coll_early_find(struct core_coll_op *op, uint32_t member)
{
	struct core_coll_group *group = op->group;
	struct util_list *it, *tmp;
	struct core_coll_early *early;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ep->coll->early) {
		early = UTIL_CONTAINER_OF(it, struct core_coll_early, link);
		if (early->group == group->id && early->seq == op->seq && early->from == member &&
		    !early->abort && early->peer->fi_addr == group->members[member])
			return early;
	}
	return NULL;
}

bool core_coll_agrees(const struct core_coll_move *move, size_t len)
{
	if (len == move->len)
		return true;
	UTIL_WARN(EP_DATA,
		  "collective operation: %zu bytes here, %zu at member %u: call it with the same "
		  "count and datatype everywhere\n",
		  move->len, len, move->member);
	return false;
}

void core_coll_take(struct core_coll_op *op, struct core_coll_move *move, const uint8_t *data)
{
	size_t off;

	if (move->kind != CORE_COLL_REDUCE) {
		if (move->len)
			memcpy(move->buf, data, move->len);
		return;
	}
	for (off = 0; off < move->len; off += op->size)
		op->reduce(move->buf + off, data + off, NULL);
}

static void core_coll_move_done(struct core_coll_op *op, struct core_coll_move *move)
{
	move->state = CORE_COLL_DONE;
	op->open--;
}

/* Nothing has come yet: it will, or the member is found dead. */
static int core_coll_await(const struct core_coll_op *op, const struct core_coll_move *move)
{
	struct core_peer *peer = core_peer_get(op->group->ep, op->group->members[move->member]);

	return peer ? core_peer_connect(peer) : -FI_EINVAL;
}

static int core_coll_receive(struct core_coll_op *op, struct core_coll_move *move)
{
	struct core_coll_early *early = core_coll_early_find(op, move->member);
	int ret = 0;

	if (!early)
		return core_coll_await(op, move);
	if (!core_coll_agrees(move, early->len))
		ret = -FI_EINVAL;
	else if (!early->whole)
		ret = core_coll_msg_read(op, move);
	else
		core_coll_take(op, move, early->data);
	if (!ret && early->whole)
		core_coll_move_done(op, move);
	core_coll_early_free(op->group->ep, early);
	return ret;
}

static int core_coll_start(struct core_coll_op *op, struct core_coll_move *move)
{
	move->state = CORE_COLL_OPEN;
	op->open++;
	switch (move->kind) {
	case CORE_COLL_SEND: return core_coll_msg_put(op, move);
	case CORE_COLL_COPY:
		if (move->len)
			memmove(move->buf, move->from, move->len);
		core_coll_move_done(op, move);
		return 0;
	default: return core_coll_receive(op, move);
	}
}

static bool core_coll_is_over(const struct core_coll_op *op)
{
	return op->err || (!op->open && op->next == op->plan.cnt);
}

/* Starts whole phases until one has to wait. The operation may be gone afterwards. */
static void core_coll_go_on(struct core_coll_op *op)
{
	struct core_coll_move *moves = op->plan.moves;
	uint32_t phase;
	int ret = 0;

	if (op->running)
		return;
	op->running = true;
	while (!op->open && !core_coll_is_over(op)) {
		phase = moves[op->next].phase;
		while (!op->err && op->next < op->plan.cnt && moves[op->next].phase == phase) {
			ret = core_coll_start(op, &moves[op->next++]);
			if (ret)
				core_coll_give_up(op->group, ret, true);
		}
	}
	op->running = false;
	if (core_coll_is_over(op))
		core_coll_op_end(op);
}

void core_coll_move_end(struct core_coll_op *op, struct core_coll_move *move, int err)
{
	if (err) {
		core_coll_give_up(op->group, err, true);
		return;
	}
	core_coll_move_done(op, move);
	core_coll_go_on(op);
}

struct core_coll_move *core_coll_open_move(struct core_coll_group *group, uint32_t seq,
					   uint32_t member, bool send, struct core_coll_op **op)
{
	struct util_list *it, *tmp;
	struct core_coll_move *move;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ops) {
		*op = UTIL_CONTAINER_OF(it, struct core_coll_op, link);
		if ((*op)->seq != seq)
			continue;
		for (size_t i = 0; i < (*op)->next; i++) {
			move = &(*op)->plan.moves[i];
			if (move->member == member && move->state == CORE_COLL_OPEN &&
			    (move->kind == CORE_COLL_SEND) == send)
				return move;
		}
	}
	return NULL;
}

/* ---- groups ---- */

static uint64_t core_coll_hash(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * CORE_COLL_HASH_PRIME;
	return hash;
}

/* The members' addresses, as all members know them: 0 and *hash. */
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

/* How often such a group was joined before, counted up: 0 and *before. */
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

static int core_coll_find_self(struct core_coll_group *group)
{
	struct core_ep *ep = group->ep;
	struct sockaddr_storage own;

	core_ep_addr(ep, &own);
	return core_coll_place(group, core_av_find(ep->av, (struct sockaddr *)&own), &group->me);
}

int core_coll_place(const struct core_coll_group *group, fi_addr_t addr, uint32_t *place)
{
	for (uint32_t i = 0; i < group->cnt; i++) {
		if (group->members[i] == addr) {
			*place = i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

/* Others have given this group up before it was joined here. */
static void core_coll_hear_aborts(struct core_coll_group *group)
{
	struct util_list *it, *tmp;
	struct core_coll_early *early;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ep->coll->early) {
		early = UTIL_CONTAINER_OF(it, struct core_coll_early, link);
		if (early->group == group->id && early->abort) {
			core_coll_give_up(group, early->abort, false);
			return;
		}
	}
}

static int core_coll_post_op(struct core_coll_group *group, const struct core_coll_args *args,
			     bool is_join)
{
	struct core_coll_call call = args->call;
	struct core_coll_op *op = calloc(1, sizeof(*op));

	call.me = group->me;
	call.cnt = group->cnt;
	if (!op || core_coll_plan_make(&op->plan, &call)) {
		free(op);
		return -FI_ENOMEM;
	}
	op->group = group;
	op->seq = group->seq++;
	op->is_join = is_join;
	op->reduce = args->reduce;
	op->size = args->size;
	op->context = args->context;
	op->flags = args->flags;
	util_list_init(&op->msgs);
	util_list_push_back(&group->ops, &op->link);
	core_coll_go_on(op);
	return 0;
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
		ret = core_coll_post_op(group, &barrier, true);
	if (!ret)
		core_coll_hear_aborts(group);
	else
		core_coll_leave(group);
	return ret;
}

void core_coll_leave(struct core_coll_group *group)
{
	struct util_list *it, *tmp;
	struct core_coll_op *op;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ops) {
		op = UTIL_CONTAINER_OF(it, struct core_coll_op, link);
		op->err = -FI_ECANCELED;
		if (!op->is_join)
			core_coll_tell(op);
		core_coll_op_free(op);
	}
	util_list_remove(&group->link);
	free(group->members);
	group->members = NULL;
}

ssize_t core_coll_post(struct core_coll_group *group, const struct core_coll_args *args)
{
	return group->err ? group->err : core_coll_post_op(group, args, false);
}

/* ---- peers that go ---- */

/* Is there anything left to send to it, or to hear from it? */
static bool core_coll_needs(struct core_coll_op *op, uint32_t member)
{
	const struct core_coll_early *early;
	const struct core_coll_move *move;

	for (size_t i = 0; i < op->plan.cnt; i++) {
		move = &op->plan.moves[i];
		if (move->member != member || move->kind == CORE_COLL_COPY ||
		    move->state == CORE_COLL_DONE)
			continue;
		early = move->kind == CORE_COLL_SEND ? NULL : core_coll_early_find(op, member);
		if (!early || !early->whole)
			return true;
	}
	return false;
}

static bool core_coll_group_needs(struct core_coll_group *group, fi_addr_t addr)
{
	struct util_list *it, *tmp;
	uint32_t member;

	if (core_coll_place(group, addr, &member))
		return false;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ops)
		if (core_coll_needs(UTIL_CONTAINER_OF(it, struct core_coll_op, link), member))
			return true;
	return false;
}

void core_coll_fail_peer(struct core_peer *peer, int err)
{
	struct core_coll *coll = peer->ep->coll;
	struct core_coll_group *group;
	struct core_coll_early *early;
	struct util_list *it, *tmp;

	if (!coll)
		return;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &coll->early) {
		early = UTIL_CONTAINER_OF(it, struct core_coll_early, link);
		if (early->peer == peer && !early->whole && !early->abort)
			core_coll_early_free(peer->ep, early);
	}
	UTIL_LIST_FOREACH_SAFE (it, tmp, &coll->groups) {
		group = UTIL_CONTAINER_OF(it, struct core_coll_group, link);
		if (core_coll_group_needs(group, peer->fi_addr))
			core_coll_give_up(group, err, true);
	}
}

void core_coll_forget_peer(struct core_peer *peer)
{
	struct core_coll_early *early;
	struct util_list *it, *tmp;

	if (!peer->ep->coll)
		return;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->ep->coll->early) {
		early = UTIL_CONTAINER_OF(it, struct core_coll_early, link);
		if (early->peer == peer)
			core_coll_early_free(peer->ep, early);
	}
}
