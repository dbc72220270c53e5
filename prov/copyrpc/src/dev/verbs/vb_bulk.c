/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Get and put (vb_bulk.h). */
#include "dev/verbs/vb_bulk.h"

#include <assert.h>

size_t vb_bulk_piece(const struct dev_get *get, const struct vb_cursor *at, size_t chunk_len)
{
	size_t left = get->len - at->pos;
	size_t here = left ? get->iov[at->iov_idx].iov_len - at->iov_off : 0;

	left = left < here ? left : here;
	return left < chunk_len ? left : chunk_len;
}

/** Skips empty buffers. */
static void vb_bulk_settle(const struct dev_get *get, struct vb_cursor *at)
{
	while (at->iov_idx < get->iov_cnt && at->iov_off == get->iov[at->iov_idx].iov_len) {
		at->iov_idx++;
		at->iov_off = 0;
	}
}

void vb_bulk_step(const struct dev_get *get, struct vb_cursor *at, size_t len)
{
	at->pos += len;
	at->iov_off += len;
	vb_bulk_settle(get, at);
}

/** Returns true if the next WQE of a transfer is a READ. */
static bool vb_bulk_reads(const struct vb_op *op)
{
	return !op->is_put || op->posted.pos == op->get->len;
}

static bool vb_bulk_may_read(const struct vb_link *link)
{
	return link->ib.reads_out + 1u < link->ib.reads_max || !link->ib.reads_out;
}

static bool vb_bulk_has_room(const struct vb_link *link, bool reads)
{
	if (link->ib.dead || vb_link_sq_room(link) <= link->sq_depth / 2)
		return false;
	return !reads || vb_bulk_may_read(link);
}

static bool vb_bulk_post(struct vb_link *link, struct vb_op *op, size_t len)
{
	const struct dev_get *get = op->get;
	const struct vb_cursor *at = &op->posted;
	struct ibv_sge sge = {
		.addr = (uintptr_t)get->iov[at->iov_idx].iov_base + at->iov_off,
		.length = (uint32_t)len,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op->is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = get->remote_addr + at->pos,
			     .rkey = (uint32_t)get->remote_key },
	};

	if (get->flags & DEV_GET_INLINE)
		wr.send_flags = IBV_SEND_INLINE;
	else
		sge.lkey = ((struct ib_user *)get->mem[at->iov_idx])->mr->lkey;
	return vb_link_post(link, &wr, VB_KIND_BULK);
}

/** Posts the READ behind a put. Its bytes are not used: they lie behind the consumer word. */
static bool vb_bulk_post_word(struct vb_link *link)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)link->ib.tx.addr + sizeof(uint64_t),
		.length = sizeof(uint64_t),
		.lkey = link->ib.tx_lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = link->ib.peer_word, .rkey = link->ib.peer_word_rkey },
	};

	return vb_link_post(link, &wr, VB_KIND_BULK);
}

static struct vb_op *vb_bulk_after(struct vb_link *link, struct vb_op *op)
{
	return op->link.next == &link->ops ? NULL
					   : UTIL_CONTAINER_OF(op->link.next, struct vb_op, link);
}

/** Posts the next WQE of a transfer. Returns false if the link has failed. */
static bool vb_bulk_next(struct vb_link *link, struct vb_op *op)
{
	size_t len = vb_bulk_piece(op->get, &op->posted, link->dev->tune.chunk_len);
	bool reads = vb_bulk_reads(op);

	if (!(len ? vb_bulk_post(link, op, len) : vb_bulk_post_word(link)))
		return false;
	link->ib.reads_out += reads;
	if (len)
		vb_bulk_step(op->get, &op->posted, len);
	else
		op->places = false;
	return true;
}

void vb_bulk_push(struct vb_link *link)
{
	while (link->op_next && vb_bulk_has_room(link, vb_bulk_reads(link->op_next))) {
		struct vb_op *op = link->op_next;

		if (!vb_bulk_next(link, op))
			return;
		if (op->posted.pos == op->get->len && !op->places)
			link->op_next = vb_bulk_after(link, op);
	}
}

static void vb_bulk_free(struct vb_link *link, struct vb_op *op)
{
	util_list_remove(&op->link);
	util_pool_release(&link->dev->ops, op);
}

struct dev_get *vb_bulk_done(struct vb_link *link)
{
	struct util_list *first = util_list_first(&link->ops);
	struct vb_op *op;
	struct dev_get *get;
	size_t len;

	assert(first);
	op = UTIL_CONTAINER_OF(first, struct vb_op, link);
	get = op->get;
	len = vb_bulk_piece(get, &op->done, link->dev->tune.chunk_len);
	link->ib.reads_out -= !op->is_put || !len;
	if (len)
		vb_bulk_step(get, &op->done, len);
	else
		op->placed = false;
	if (op->done.pos < get->len || op->placed)
		return NULL;
	vb_bulk_free(link, op);
	get->status = 0;
	return get;
}

void vb_bulk_drop(struct vb_link *link)
{
	struct util_list *it;

	link->op_next = NULL;
	while ((it = util_list_first(&link->ops)))
		vb_bulk_free(link, UTIL_CONTAINER_OF(it, struct vb_op, link));
}

/** Returns 0 if all WQEs of a put can be posted now, -FI_EAGAIN, or -FI_EMSGSIZE if never. */
static int vb_bulk_check_now(const struct vb_link *link, const struct dev_get *get)
{
	uint32_t chunk = link->dev->tune.chunk_len, room = vb_link_sq_room(link);
	bool places = get->flags & DEV_GET_PLACED;
	size_t pieces = places, i;

	for (i = 0; i < get->iov_cnt; i++)
		pieces += (get->iov[i].iov_len + chunk - 1) / chunk;
	if (pieces > link->sq_depth / 2)
		return -FI_EMSGSIZE;
	if (link->op_next || room < link->sq_depth / 2 + pieces)
		return -FI_EAGAIN;
	return places && !vb_bulk_may_read(link) ? -FI_EAGAIN : 0;
}

static int vb_bulk_start(struct vb_link *link, struct dev_get *get, bool is_put)
{
	struct vb_op *op;
	int ret;

	assert(get->iov_cnt <= DEV_GET_IOV_MAX);
	if (link->ib.dead)
		return -FI_EAGAIN;
	if (!get->len) {
		get->status = 0;
		return 1;
	}
	ret = is_put && (get->flags & DEV_GET_NOW) ? vb_bulk_check_now(link, get) : 0;
	if (ret)
		return ret;
	op = util_pool_alloc(&link->dev->ops);
	if (!op)
		return -FI_EAGAIN;
	*op = (struct vb_op){ .get = get, .is_put = is_put };
	op->places = op->placed = get->flags & DEV_GET_PLACED;
	vb_bulk_settle(get, &op->posted);
	op->done = op->posted;
	util_list_push_back(&link->ops, &op->link);
	if (!link->op_next)
		link->op_next = op;
	vb_bulk_push(link);
	return 0;
}

int vb_link_get(struct dev_link *base, struct dev_get *get)
{
	return vb_bulk_start((struct vb_link *)base, get, false);
}

int vb_link_put(struct dev_link *base, struct dev_get *get)
{
	return vb_bulk_start((struct vb_link *)base, get, true);
}
