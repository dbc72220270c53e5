/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Link of the verbs device: an RC queue pair. Called by the engine through dev_link_ops.
 *
 * write_imm is one RDMA WRITE WITH IMMEDIATE from the send ring to the same offset of the peer's
 * ring. Up to the device's inline size the bytes are in the WQE; above, the device fetches them
 * from the send ring, where they stay until the peer has released them.
 *
 * WQEs are counted from 0, wrapping at 2^32. Every signal_interval-th WQE is signalled, and every
 * one that returns an event. A completion of WQE n retires all up to n. The queue is at least twice
 * the interval deep, so a full queue always has a signalled WQE and polling makes room.
 *
 * Tests: test/unit/dev/verbs/test_vb_link.c, on a kernel device test/rxe.
 */
#ifndef DEV_VERBS_VB_LINK_H
#define DEV_VERBS_VB_LINK_H

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dev/ib/ib_link.h"
#include "dev/verbs/vb_dev.h"
#include "util/bits.h"
#include "util/list.h"

/** Purpose of a WQE: the low byte of wr_id. The rest of a send WQE's wr_id is its number. */
enum vb_kind {
	VB_KIND_RECV, /* receive of the shared receive queue */
	VB_KIND_WRITE,
	VB_KIND_ACK,  /* write that returns DEV_EV_ACK */
	VB_KIND_WORD, /* READ of the peer's consumer word */
	VB_KIND_BULK, /* piece of a get or put */
};

#define VB_KIND_BITS 8u

struct vb_link {
	struct ib_link ib;

	/* Used by writes. */
	uint32_t sq_head; /* number of the next WQE */
	uint32_t sq_done; /* number of the first WQE not known to have ended */
	uint32_t sq_depth;
	uint32_t sq_silent; /* WQEs since the last signalled one */
	uint32_t signal_interval;
	uint32_t inline_max;

	/* Bulk transfers, in order. */
	struct util_list ops;  /* open ones: struct vb_op */
	struct vb_op *op_next; /* first one with pieces still to post, or NULL */

	struct vb_dev *dev;
	bool was_attached; /* completions of the queue pair may have been fetched */
};

static inline uint32_t vb_link_sq_room(const struct vb_link *link)
{
	return link->sq_depth - (link->sq_head - link->sq_done);
}

/** Ends a link that no completion will end: DEV_EV_DOWN follows, after the early arrivals. */
void vb_link_fail(struct vb_link *link, int status);
/** Ends a link after a failed post with this errno. */
void vb_link_fail_cold(struct vb_link *link, int err);

/** Posts one WQE, for which there is room. Returns false if the link has failed. */
static inline bool vb_link_post(struct vb_link *link, struct ibv_send_wr *wr, enum vb_kind kind)
{
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = ((uint64_t)link->sq_head << VB_KIND_BITS) | kind;
	if (kind != VB_KIND_WRITE || link->sq_silent + 1 >= link->signal_interval)
		wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(link->ib.qp, wr, &bad);
	if (UTIL_UNLIKELY(err)) {
		vb_link_fail_cold(link, err);
		return false;
	}
	link->sq_silent = wr->send_flags & IBV_SEND_SIGNALED ? 0 : link->sq_silent + 1;
	link->sq_head++;
	return true;
}

UTIL_INLINE int vb_link_write(struct dev_link *base, uint64_t off, uint32_t len, uint32_t imm,
			      enum vb_kind kind)
{
	struct vb_link *link = (struct vb_link *)base;
	struct ibv_sge sge = {
		.addr = (uintptr_t)base->tx_base + off,
		.length = len,
		.lkey = link->ib.tx_lkey,
	};
	struct ibv_send_wr wr;

	if (UTIL_UNLIKELY(link->ib.dead || !vb_link_sq_room(link)))
		return -FI_EAGAIN;
	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.send_flags = len <= link->inline_max ? IBV_SEND_INLINE : 0;
	wr.imm_data = htonl(imm);
	wr.wr.rdma.remote_addr = link->ib.peer_ring + off;
	wr.wr.rdma.rkey = link->ib.peer_rkey;
	return vb_link_post(link, &wr, kind) ? 0 : -FI_EAGAIN;
}

static inline int vb_link_write_imm(struct dev_link *base, uint64_t off, uint32_t len, uint32_t imm)
{
	return vb_link_write(base, off, len, imm, VB_KIND_WRITE);
}

static inline int vb_link_write_imm_ack(struct dev_link *base, uint64_t off, uint32_t len,
					uint32_t imm)
{
	return vb_link_write(base, off, len, imm, VB_KIND_ACK);
}

/** Retires WQE `number` and all before it. */
static inline void vb_link_retire(struct vb_link *link, uint32_t number)
{
	if ((int32_t)(number + 1 - link->sq_done) > 0)
		link->sq_done = number + 1;
}

/** Drops open transfers and removes an attached link from all that poll looks at. */
void vb_link_kill(struct vb_link *link);

/* Other operations of dev_link_ops. */
int vb_link_read_consumer(struct dev_link *base, uint64_t *value);
int vb_link_get(struct dev_link *base, struct dev_get *get);
int vb_link_put(struct dev_link *base, struct dev_get *get);
int vb_link_connect(struct dev_link *base, const struct dev_desc *peer);
int vb_link_attach(struct dev_link *base);
void vb_link_detach(struct dev_link *base);
void vb_link_close(struct dev_link *base);

/* Implement dev_ops.link_create and link_beside. */
int vb_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **link);
int vb_link_beside(struct dev *dev, struct dev_link *first, struct dev_link **link);

#endif
