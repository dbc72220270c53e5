/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collective operations: phases, moves and completion. See core_coll_op.h. */
#include "core/coll/core_coll_op.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll/core_coll_msg.h"
#include "core/core_dom.h"
#include "core/core_ep.h"
#include "core/core_peer.h"
#include "util/log.h"

/* --- unexpected messages ------------------------------------------------------------------- */

void core_coll_unexp_free(struct core_ep *ep, struct core_coll_unexp *unexp)
{
	util_list_remove(&unexp->link);
	if (!unexp->abort)
		ep->dom->unexpected_used -= sizeof(*unexp) + (unexp->whole ? unexp->len : 0);
	free(unexp);
}

static struct core_coll_unexp *core_coll_unexp_find(struct core_coll_op *op, uint32_t member)
{
	struct core_coll_group *group = op->group;
	struct util_list *it, *tmp;
	struct core_coll_unexp *unexp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &group->ep->coll->unexp) {
		unexp = UTIL_CONTAINER_OF(it, struct core_coll_unexp, link);
		if (unexp->group == group->id && unexp->seq == op->seq && unexp->from == member &&
		    !unexp->abort && core_coll_is_member(group, unexp->peer, member))
			return unexp;
	}
	return NULL;
}

/* --- end of an operation ------------------------------------------------------------------- */

static void core_coll_complete(const struct core_coll_op *op)
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
		core_coll_complete(op);
		core_coll_op_free(op);
		return;
	}
	core_coll_op_free(op);
	group->joined(group, err);
}

void core_coll_op_cancel(struct core_coll_op *op)
{
	op->err = -FI_ECANCELED;
	if (!op->is_join)
		core_coll_complete(op);
	core_coll_op_free(op);
}

void core_coll_op_fail_all(struct core_coll_group *group, int err)
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

/* --- phases -------------------------------------------------------------------------------- */

bool core_coll_len_matches(const struct core_coll_move *move, size_t len)
{
	if (len == move->len)
		return true;
	UTIL_WARN(EP_DATA,
		  "collective operation: %zu bytes here, %zu at member %u: call it with the same "
		  "count and datatype everywhere\n",
		  move->len, len, move->member);
	return false;
}

void core_coll_deliver(struct core_coll_op *op, struct core_coll_move *move, const uint8_t *data)
{
	size_t off;

	if (move->kind != CORE_COLL_REDUCE) {
		if (move->len)
			memcpy(move->buf, data, move->len);
		return;
	}
	for (off = 0; off < move->len; off += op->size)
		op->reduce(op->type, move->buf + off, data + off, NULL);
}

static void core_coll_move_done(struct core_coll_op *op, struct core_coll_move *move)
{
	move->state = CORE_COLL_DONE;
	op->open--;
}

/* Waits for a message: connects to the member, so that its failure is noticed. */
static int core_coll_wait_connected(const struct core_coll_op *op,
				    const struct core_coll_move *move)
{
	struct core_peer *peer = core_peer_get(op->group->ep, op->group->members[move->member]);

	return peer ? core_peer_connect(peer) : -FI_EINVAL;
}

static int core_coll_receive(struct core_coll_op *op, struct core_coll_move *move)
{
	struct core_coll_unexp *unexp = core_coll_unexp_find(op, move->member);
	int ret = 0;

	if (!unexp)
		return core_coll_wait_connected(op, move);
	util_list_remove(&unexp->link); /* an abort meanwhile frees those in the list */
	if (!core_coll_len_matches(move, unexp->len))
		ret = -FI_EINVAL;
	else if (!unexp->whole)
		ret = core_coll_msg_read(op, move);
	else
		core_coll_deliver(op, move, unexp->data);
	if (!ret && unexp->whole)
		core_coll_move_done(op, move);
	core_coll_unexp_free(op->group->ep, unexp);
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

/* Starts whole phases until one has to wait. May free the operation. */
static void core_coll_run(struct core_coll_op *op)
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
				core_coll_abort(op->group, ret, true);
		}
	}
	op->running = false;
	if (core_coll_is_over(op))
		core_coll_op_end(op);
}

void core_coll_move_end(struct core_coll_op *op, struct core_coll_move *move, int err)
{
	if (err) {
		core_coll_abort(op->group, err, true);
		return;
	}
	core_coll_move_done(op, move);
	core_coll_run(op);
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

int core_coll_op_post(struct core_coll_group *group, const struct core_coll_args *args,
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
	op->type = args->type;
	op->size = args->size;
	op->context = args->context;
	op->flags = args->flags;
	util_list_init(&op->msgs);
	util_list_push_back(&group->ops, &op->link);
	core_coll_run(op);
	return 0;
}

bool core_coll_op_needs(struct core_coll_op *op, uint32_t member)
{
	const struct core_coll_unexp *unexp;
	const struct core_coll_move *move;

	for (size_t i = 0; i < op->plan.cnt; i++) {
		move = &op->plan.moves[i];
		if (move->member != member || move->kind == CORE_COLL_COPY ||
		    move->state == CORE_COLL_DONE)
			continue;
		unexp = move->kind == CORE_COLL_SEND ? NULL : core_coll_unexp_find(op, member);
		if (!unexp || !unexp->whole)
			return true;
	}
	return false;
}
