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

#include "dev/mlx5/m5_dlink.h"
#include "util/copy.h"
#include "util/log.h"

#define M5_BULK_PIECES 16u

/** Send queue that a transfer is posted to: the link's own, or that of a DC initiator. */
struct m5_bulk_queue {
	struct m5_sq *sq;
	struct m5_sparse *users;
	const struct m5_av *av; /* NULL: the link's own */
	struct m5_dci *dci;
};

/** Returns false if there is none now: the link is dead, or waits for an initiator. */
static bool m5_bulk_find(struct m5_link *link, struct m5_bulk_queue *q)
{
	struct m5_dci *dci;

	*q = (struct m5_bulk_queue){ .sq = &link->sq, .users = &link->users };
	if (link->ib.dead || !link->dc.is_on)
		return !link->ib.dead;
	dci = m5_dcis_take(&link->dev->dc.pool, &link->dc.pool);
	if (dci)
		*q = (struct m5_bulk_queue){ &dci->sq, &dci->users, &link->dc.av, dci };
	return dci;
}

static void m5_bulk_begin(struct m5_wqe *wqe, const struct m5_bulk_queue *q, uint16_t bb,
			  uint64_t addr, uint32_t rkey)
{
	m5_wqe_begin(wqe, m5_sq_reserve(q->sq, bb));
	if (q->av)
		m5_wqe_av(wqe, q->av);
	m5_wqe_raddr(wqe, addr, rkey);
}

/** Ends the WQE, requests a CQE if one is due for its room, and stores its user word. */
static void m5_bulk_end(struct m5_wqe *wqe, const struct m5_bulk_queue *q, enum m5_opcode opcode,
			uint8_t flags, uint64_t user)
{
	uint16_t bb = (uint16_t)M5_WQE_BLOCKS((size_t)(wqe->end - (uint8_t *)wqe->ctrl));

	flags |= m5_sq_signal(q->sq, bb);
	m5_wqe_end(wqe, q->sq->pi, opcode, q->sq->qpn, flags, 0);
	if (flags & M5_CTRL_SIGNAL)
		m5_sparse_put(q->users, q->sq->pi, user);
	m5_sq_commit(q->sq, bb, flags);
}

/** Rings the doorbell, unless more follows on a queue of the link's own. */
static void m5_bulk_ring(struct m5_link *link, const struct m5_bulk_queue *q, unsigned flags)
{
	if (q->dci) {
		m5_sq_ring(q->sq);
		m5_dcis_posted(&link->dev->dc.pool, q->dci);
	} else if (!(flags & DEV_GET_MORE)) {
		m5_link_ring(link);
	}
}

/** Builds one WQE for `len` bytes of iov from `skip` on. The caller checked the room. */
static void m5_bulk_post(const struct m5_bulk_queue *q, enum m5_opcode opcode,
			 const struct dev_get *get, size_t skip, size_t len, uint8_t flags)
{
	struct iovec part[DEV_GET_IOV_MAX];
	size_t i, k = 0, cnt, before = 0;
	struct m5_wqe wqe;

	cnt = util_iov_slice(part, DEV_GET_IOV_MAX, get->iov, get->iov_cnt, skip, len);
	/* Finds the entry of iov in which the slice begins, to use its keys. */
	while (before + get->iov[k].iov_len <= skip)
		before += get->iov[k++].iov_len;
	m5_bulk_begin(&wqe, q, q->av ? 3 : 2, get->remote_addr + skip, (uint32_t)get->remote_key);
	for (i = 0; i < cnt; i++, k++) {
		while (!get->iov[k].iov_len)
			k++;
		m5_wqe_data(&wqe, (uintptr_t)part[i].iov_base, (uint32_t)part[i].iov_len,
			    ((const struct ib_user *)get->mem[k])->mr->lkey);
	}
	m5_bulk_end(&wqe, q, opcode, flags, M5_USER_NONE);
}

/** Builds one WRITE with the bytes of all buffers in it. */
static void m5_bulk_post_inline(const struct m5_bulk_queue *q, const struct dev_get *get)
{
	uint8_t bytes[M5_INLINE_MAX];
	const void *src = get->iov[0].iov_base;
	struct m5_wqe wqe;

	if (get->iov_cnt > 1) {
		util_iov_gather(bytes, get->iov, get->iov_cnt, 0, get->len);
		src = bytes;
	}
	m5_bulk_begin(&wqe, q, q->av ? M5_WQE_MAX_BB : (uint16_t)M5_WQE_BLOCKS(36 + get->len),
		      get->remote_addr, (uint32_t)get->remote_key);
	m5_wqe_inline(&wqe, src, (uint32_t)get->len);
	m5_bulk_end(&wqe, q, M5_OP_WRITE, get->flags & DEV_GET_PLACED ? 0 : M5_CTRL_SIGNAL,
		    M5_USER_NONE);
}

static void m5_bulk_post_pieces(const struct m5_link *link, const struct m5_bulk_queue *q,
				enum m5_opcode opcode, const struct dev_get *get)
{
	uint8_t end = get->flags & DEV_GET_PLACED ? 0 : M5_CTRL_SIGNAL;
	size_t skip, len;

	for (skip = 0; skip < get->len; skip += len) {
		bool last = get->len - skip <= link->max_piece;

		len = last ? get->len - skip : link->max_piece;
		m5_bulk_post(q, opcode, get, skip, len, last ? end : 0);
	}
}

/** Builds a READ of the consumer word into `to`. The caller checked the room. */
static void m5_bulk_post_word(const struct m5_link *link, const struct m5_bulk_queue *q,
			      const uint64_t *to, uint64_t user)
{
	struct m5_wqe wqe;

	m5_bulk_begin(&wqe, q, q->av ? 2 : 1, link->ib.peer_word, link->ib.peer_word_rkey);
	m5_wqe_data(&wqe, (uintptr_t)to, sizeof(uint64_t), link->ib.tx_lkey);
	m5_bulk_end(&wqe, q, M5_OP_READ, M5_CTRL_SIGNAL, user);
}

/**
 * Two blocks hold four gather entries, three do so behind an address vector, four hold a full
 * inline WQE, one a READ of a word, or two. One WQE of several blocks may need the tail of the ring
 * in addition.
 */
static bool m5_bulk_has_room(const struct m5_bulk_queue *q, const struct dev_get *get,
			     size_t pieces)
{
	size_t each = q->av ? 3 : 2;
	size_t blocks = get->flags & DEV_GET_INLINE ? 7 : each * pieces + each - 1;

	if (get->flags & DEV_GET_PLACED)
		blocks += q->av ? 3 : 1;
	return m5_sq_in_flight(q->sq) + blocks <= (size_t)q->sq->mask + 1;
}

static void m5_bulk_build(struct m5_link *link, const struct m5_bulk_queue *q,
			  enum m5_opcode opcode, struct dev_get *get)
{
	if (get->flags & DEV_GET_INLINE)
		m5_bulk_post_inline(q, get);
	else
		m5_bulk_post_pieces(link, q, opcode, get);
	if (get->flags & DEV_GET_PLACED)
		m5_bulk_post_word(link, q, m5_link_sink(link), (uintptr_t)get);
	else
		m5_sparse_put(q->users, q->sq->last, (uintptr_t)get);
}

static int m5_bulk_start(struct m5_link *link, enum m5_opcode opcode, struct dev_get *get)
{
	size_t pieces = (get->len + link->max_piece - 1) / link->max_piece;
	bool reads = opcode == M5_OP_READ || (get->flags & DEV_GET_PLACED);
	struct m5_bulk_queue q;

	if (pieces > M5_BULK_PIECES || get->iov_cnt > DEV_GET_IOV_MAX)
		return -FI_EMSGSIZE;
	if (link->run.is_open)
		m5_link_end_run(link);
	if ((reads && link->ib.reads_out == link->ib.reads_max) || !m5_bulk_find(link, &q) ||
	    !m5_bulk_has_room(&q, get, pieces))
		return -FI_EAGAIN;
	if (!pieces) {
		get->status = 0;
		return 1;
	}
	m5_bulk_build(link, &q, opcode, get);
	link->ib.reads_out += reads;
	m5_bulk_ring(link, &q, get->flags);
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
	struct m5_bulk_queue q;

	if (link->ib.reading || !m5_bulk_find(link, &q) || !m5_sq_has_room(q.sq, q.av ? 2 : 1))
		return -FI_EAGAIN;
	if (link->run.is_open)
		m5_link_end_run(link);
	m5_bulk_post_word(link, &q, m5_link_landing(link), M5_USER_WORD);
	link->ib.reading = true;
	m5_bulk_ring(link, &q, 0);
	return 0;
}
