/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device and link without a NIC: the structs as open and connect fill them, on queues in memory,
 * and the device's side of those queues.
 */
#ifndef UNIT_MLX5_FAKE_DEV_H
#define UNIT_MLX5_FAKE_DEV_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cq_device.h"
#include "dev/mlx5/m5_link.h"
#include "dev/mlx5/m5_poll.h"
#include "sq_device.h"

#define FAKE_CQES  32u
#define FAKE_SRQ   8u
#define FAKE_RING  4096u
#define FAKE_QPN   0x123456u
#define FAKE_LKEY  0x00111111u
#define FAKE_RKEY  0x00222222u
#define FAKE_PEER  0x7f0000000000ull
#define FAKE_WORD  0x7e0000000000ull
#define FAKE_WRKEY 0x00333333u

struct fake_dev {
	struct m5_dev dev;
	struct ibv_comp_channel chan; /* never has an event */
	struct cq_device rx, tx;      /* device's side; their .cq is copied into dev at start */
	struct m5_scq scq;
	uint8_t *srq_buf;
	uint32_t srq_record;
};

static inline struct fake_dev *fake_dev_make(void)
{
	struct fake_dev *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);

	memset(f, 0, sizeof(*f));
	cq_device_init(&f->rx, FAKE_CQES, 64, 0);
	cq_device_init(&f->tx, FAKE_CQES, 64, 0);
	f->dev.rx = f->rx.cq;
	f->scq.cq = f->tx.cq;
	f->srq_buf = guard_alloc(FAKE_SRQ * 32);
	m5_srq_init(&f->dev.srq, f->srq_buf, FAKE_SRQ, 32, &f->srq_record, 0);
	m5_srq_post(&f->dev.srq);
	util_list_init(&f->dev.early);
	util_list_init(&f->dev.waiting);
	util_list_init(&f->dev.to_free);
	util_list_init(&f->dev.scqs);
	util_list_init(&f->dev.regs);
	pthread_mutex_init(&f->dev.lock, NULL);
	f->chan.fd = eventfd(0, EFD_NONBLOCK);
	f->dev.chan = &f->chan;
	strcpy(f->dev.ib.name, "fake_0:1");
	return f;
}

static inline void fake_dev_free(struct fake_dev *f)
{
	close(f->chan.fd);
	cq_device_fini(&f->rx);
	cq_device_fini(&f->tx);
	guard_free(f->srq_buf, FAKE_SRQ * 32);
	ib_qpns_fini(&f->dev.qpns);
	free(f->dev.active);
	free(f);
}

struct fake_link {
	struct m5_link link;
	struct sq_device d; /* .sq is unused: link.sq is in use */
	uint64_t words[SQ_DEVICE_MAX];
	uint8_t page[4096 + FAKE_RING];
};

/** Makes a connected link with a send queue of `blocks`; not attached. */
static inline struct fake_link *fake_link_make(struct fake_dev *f, uint32_t blocks, uint32_t qpn)
{
	struct fake_link *l = aligned_alloc(64, (sizeof(*l) + 63) / 64 * 64);
	struct m5_link *link = &l->link;

	memset(l, 0, sizeof(*l));
	sq_device_init(&l->d, blocks, 256, 0);
	link->sq = l->d.sq;
	link->sq.uar = &l->d.uar;
	link->sq.qpn = qpn;
	link->ib.qpn = qpn;
	link->dev = &f->dev;
	link->scq = &f->scq;
	link->sq_blocks = blocks;
	link->ib.base.ops = &m5_link_ops;
	link->ib.base.tx_base = l->page + 4096;
	link->ib.base.tx_len = FAKE_RING;
	link->ib.tx.addr = l->page;
	link->ib.tx_lkey = FAKE_LKEY;
	link->ib.peer_ring = FAKE_PEER;
	link->ib.peer_rkey = FAKE_RKEY;
	link->ib.peer_word = FAKE_WORD;
	link->ib.peer_word_rkey = FAKE_WRKEY;
	link->ib.reads_max = 2;
	link->max_piece = 1u << 30;
	m5_sparse_init(&link->users, l->words, blocks);
	util_list_init(&link->ib.cold);
	return l;
}

static inline void fake_link_free(struct fake_link *l)
{
	sq_device_fini(&l->d);
	ib_early_fini(&l->link.ib.early);
	free(l);
}

/** Returns block `counter` of the link's send queue. */
static inline const uint8_t *fake_link_wqe(const struct fake_link *l, uint16_t counter)
{
	return l->d.buf + (size_t)(counter % l->d.blocks) * 64;
}

/** Simulates an arrival: takes the next receive WQE and writes a CQE. */
static inline void fake_arrive(struct fake_dev *f, uint32_t qpn, uint16_t wqe, uint32_t imm)
{
	cq_device_write(&f->rx, M5_CQE_RESP_WRITE_IMM << 4, qpn, wqe, imm);
}

#endif
