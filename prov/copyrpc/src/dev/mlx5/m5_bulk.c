/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RDMA READ and WRITE of a link: get, put and the peer's consumer word. Called through
 * dev_link_ops.
 *
 * A transfer is one WQE up to max_piece bytes and four local buffers, several WQEs beyond. The last
 * one is signalled and carries the struct dev_get. The completion of a WRITE means that the peer's
 * device has it. Behind a put with DEV_GET_PLACED follows a READ of the peer's consumer word, which
 * PCI Express executes behind the WRITE: its completion means that the bytes are in memory.
 *
 * READs in flight are counted: more of them than the peer serves at a time would stall the writes
 * queued behind.
 */
#include <string.h>

#include "dev/mlx5/m5_link.h"
#include "util/copy.h"
#include "util/log.h"

#define M5_BULK_PIECES 16u

/** Builds one WQE for `len` bytes of iov from `skip` on. The caller checked the room. */
static void m5_bulk_post(struct m5_link *link, enum m5_opcode opcode, const struct dev_get *get,
			 size_t skip, size_t len, uint8_t flags)
{
	struct iovec part[DEV_GET_IOV_MAX];
	size_t i, k = 0, cnt, before = 0;
	struct m5_wqe wqe;
	uint16_t bb;

	cnt = util_iov_slice(part, DEV_GET_IOV_MAX, get->iov, get->iov_cnt, skip, len);
	/* Finds the entry of iov in which the slice begins, to use its keys. */
	while (before + get->iov[k].iov_len <= skip)
		before += get->iov[k++].iov_len;
	m5_wqe_begin(&wqe, m5_sq_reserve(&link->sq, 2));
	m5_wqe_raddr(&wqe, get->remote_addr + skip, (uint32_t)get->remote_key);
	for (i = 0; i < cnt; i++, k++) {
		while (!get->iov[k].iov_len)
			k++;
		m5_wqe_data(&wqe, (uintptr_t)part[i].iov_base, (uint32_t)part[i].iov_len,
			    ((const struct ib_user *)get->mem[k])->mr->lkey);
	}
	bb = (uint16_t)M5_WQE_BLOCKS((size_t)(wqe.end - (uint8_t *)wqe.ctrl));
	flags |= m5_sq_signal(&link->sq, bb);
	m5_wqe_end(&wqe, link->sq.pi, opcode, link->sq.qpn, flags, 0);
	m5_link_commit(link, bb, flags, M5_USER_NONE);
}

/** Builds one WRITE with the bytes of all buffers in it. */
static void m5_bulk_post_inline(struct m5_link *link, const struct dev_get *get)
{
	uint16_t bb = (uint16_t)M5_WQE_BLOCKS(36 + get->len);
	uint8_t flags = get->flags & DEV_GET_PLACED ? m5_sq_signal(&link->sq, bb) : M5_CTRL_SIGNAL;
	uint8_t bytes[M5_INLINE_MAX];
	const void *src = get->iov[0].iov_base;
	struct m5_wqe wqe;

	if (get->iov_cnt > 1) {
		util_iov_gather(bytes, get->iov, get->iov_cnt, 0, get->len);
		src = bytes;
	}
	m5_wqe_begin(&wqe, m5_sq_reserve(&link->sq, bb));
	m5_wqe_raddr(&wqe, get->remote_addr, (uint32_t)get->remote_key);
	m5_wqe_inline(&wqe, src, (uint32_t)get->len);
	m5_wqe_end(&wqe, link->sq.pi, M5_OP_WRITE, link->sq.qpn, flags, 0);
	m5_link_commit(link, bb, flags, M5_USER_NONE);
}

static void m5_bulk_post_pieces(struct m5_link *link, enum m5_opcode opcode,
				const struct dev_get *get)
{
	uint8_t end = get->flags & DEV_GET_PLACED ? 0 : M5_CTRL_SIGNAL;
	size_t skip, len;

	for (skip = 0; skip < get->len; skip += len) {
		bool last = get->len - skip <= link->max_piece;

		len = last ? get->len - skip : link->max_piece;
		m5_bulk_post(link, opcode, get, skip, len, last ? end : 0);
	}
}

/** Builds a READ of the consumer word into `to`. The caller checked the room. */
static void m5_bulk_post_word(struct m5_link *link, const uint64_t *to, uint64_t user)
{
	struct m5_wqe wqe;

	m5_wqe_begin(&wqe, m5_sq_reserve(&link->sq, 1));
	m5_wqe_raddr(&wqe, link->ib.peer_word, link->ib.peer_word_rkey);
	m5_wqe_data(&wqe, (uintptr_t)to, sizeof(uint64_t), link->ib.tx_lkey);
	m5_wqe_end(&wqe, link->sq.pi, M5_OP_READ, link->sq.qpn, M5_CTRL_SIGNAL, 0);
	m5_link_commit(link, 1, M5_CTRL_SIGNAL, user);
}

/**
 * Two blocks hold four gather entries, four a full inline WQE. One WQE may need the tail of the
 * ring in addition.
 */
static bool m5_bulk_has_room(const struct m5_link *link, const struct dev_get *get, size_t pieces)
{
	size_t blocks = get->flags & DEV_GET_INLINE ? 7 : 2 * pieces + 1;

	if (get->flags & DEV_GET_PLACED)
		blocks++;
	return m5_sq_in_flight(&link->sq) + blocks <= (size_t)link->sq.mask + 1;
}

static int m5_bulk_start(struct m5_link *link, enum m5_opcode opcode, struct dev_get *get)
{
	size_t pieces = (get->len + link->max_piece - 1) / link->max_piece;
	bool reads = opcode == M5_OP_READ || (get->flags & DEV_GET_PLACED);

	if (pieces > M5_BULK_PIECES || get->iov_cnt > DEV_GET_IOV_MAX)
		return -FI_EMSGSIZE;
	if (link->run.is_open)
		m5_link_end_run(link);
	if (link->ib.dead || !m5_bulk_has_room(link, get, pieces))
		return -FI_EAGAIN;
	if (reads && link->ib.reads_out == link->ib.reads_max)
		return -FI_EAGAIN;
	if (!pieces) {
		get->status = 0;
		return 1;
	}
	if (get->flags & DEV_GET_INLINE)
		m5_bulk_post_inline(link, get);
	else
		m5_bulk_post_pieces(link, opcode, get);
	if (get->flags & DEV_GET_PLACED)
		m5_bulk_post_word(link, m5_link_sink(link), (uintptr_t)get);
	else
		m5_sparse_put(&link->users, link->sq.last, (uintptr_t)get);
	link->ib.reads_out += reads;
	if (!(get->flags & DEV_GET_MORE))
		m5_link_ring(link);
	return 0;
}

int m5_link_get(struct dev_link *base, struct dev_get *get)
{
	return m5_bulk_start((struct m5_link *)base, M5_OP_READ, get);
}

int m5_link_put(struct dev_link *base, struct dev_get *get)
{
	return m5_bulk_start((struct m5_link *)base, M5_OP_WRITE, get);
}

void m5_link_kick(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;

	if (!link->ib.dead)
		m5_link_ring(link);
}

int m5_link_read_consumer(struct dev_link *base, uint64_t *value)
{
	struct m5_link *link = (struct m5_link *)base;

	if (link->ib.dead || link->ib.reading || !m5_sq_has_room(&link->sq, 1))
		return -FI_EAGAIN;
	if (link->run.is_open)
		m5_link_end_run(link);
	m5_bulk_post_word(link, m5_link_landing(link), M5_USER_WORD);
	link->ib.reading = true;
	m5_link_ring(link);
	return 0;
}
