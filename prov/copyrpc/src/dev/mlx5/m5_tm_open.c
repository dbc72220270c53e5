/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of tag matching by the device, and of its peers (m5_tm.h).
 *
 * libmlx5 makes a command queue pair with each list and keeps it to itself. The device takes
 * operations from any queue pair of the list, so this one makes another. On RoCE libmlx5 cannot
 * connect its own: hence InfiniBand only.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/ib/ib_qp.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_tm_poll.h"
#include "util/log.h"

#define M5_TM_SRQ       127u  /* receive WQEs; the device wants 33 before it delivers anything */
#define M5_TM_OPS_MIN   256u  /* operations that may be in flight, of a short list */
#define M5_TM_PEER_WRS  8u    /* requests and fetches of a peer that may be in flight, at least */
#define M5_TM_BLOCKS_WR 4u    /* upper limit of the library's count */
#define M5_TM_ROOM      8192u /* blocks of all peers' send queues: of 256, with libmlx5 */

uint32_t m5_tm_most(const struct m5_dev *dev)
{
	uint32_t cnt = dev->ib.attr.tm_caps.max_num_tags;

	cnt = cnt < M5_TAGS_MAX ? cnt : M5_TAGS_MAX;
	return dev->ib.is_eth || !cnt ? 0 : cnt - 1;
}

/* Returns the blocks of a command queue whose half has room to remove all (m5_tm_leaves_half). */
static uint32_t m5_tm_ops(uint32_t tags)
{
	return 2 * tags < M5_TM_OPS_MIN ? M5_TM_OPS_MIN : 2 * tags;
}

/* Returns 0 or -FI_EOPNOTSUPP. */
static int m5_tm_check(const struct m5_dev *dev, uint32_t tags)
{
	const struct ibv_tm_caps *caps = &dev->ib.attr.tm_caps;

	if (!dev->ib.is_eth && caps->flags & IBV_TM_CAP_RC && tags < caps->max_num_tags &&
	    tags < M5_TAGS_MAX && caps->max_ops >= m5_tm_ops(tags) &&
	    caps->max_rndv_hdr_size >= M5_TM_REQUEST)
		return 0;
	UTIL_INFO(EP_CTRL, "%s: no tag matching by the device for %u receives%s\n",
		  ib_dev_name(&dev->ib), tags, dev->ib.is_eth ? ": it needs InfiniBand" : "");
	return -FI_EOPNOTSUPP;
}

/* A receive completes twice, an operation, a receive WQE and a block of a peer once. */
static int m5_tm_make_cq(struct m5_tm *tm, uint32_t tags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2 * (2 * tags + 2 * m5_tm_ops(tags) + M5_TM_SRQ + M5_TM_ROOM) - 1,
		.cq_context = &tm->cq,
		.channel = tm->dev->chan,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	tm->cq_obj = ibv_create_cq_ex(tm->dev->ib.ctx, &attr);
	if (!tm->cq_obj)
		return ib_dev_refuse(&tm->dev->ib, "completion queue");
	return m5_dev_take_cq(&tm->cq, ibv_cq_ex_to_cq(tm->cq_obj));
}

static void m5_tm_fill_srq(struct m5_tm *tm)
{
	for (uint32_t i = 0; i <= tm->srq.mask; i++) {
		struct m5_data *data = (void *)(m5_srq_at(&tm->srq, (uint16_t)i) + 1);

		data->len = htobe32(M5_TM_BUF);
		data->lkey = htobe32(tm->mem.mr->lkey);
		data->addr = htobe64((uintptr_t)tm->mem.addr + (uint64_t)i * M5_TM_BUF);
		if (tm->srq.stride > sizeof(struct m5_srq_next) + sizeof(*data))
			data[1].lkey = htobe32(M5_LKEY_NONE);
	}
	m5_srq_post(&tm->srq);
}

static int m5_tm_make_srq(struct m5_tm *tm, uint32_t tags)
{
	struct ib_dev *ib = &tm->dev->ib;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = M5_TM_SRQ, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = ib->pd,
		.cq = ibv_cq_ex_to_cq(tm->cq_obj),
		.tm_cap = { .max_num_tags = tags + 1, .max_ops = 1 },
	};
	int ret;

	tm->srq_obj = ibv_create_srq_ex(ib->ctx, &attr);
	if (!tm->srq_obj)
		return ib_dev_refuse(ib, "shared receive queue with tag matching");
	ret = m5_dev_take_srq(tm->dev, tm->srq_obj, tm->cq.size, &tm->srq);
	if (!ret)
		ret = ib_mem_init(&tm->mem, ib, (tm->srq.mask + 1u) * M5_TM_BUF,
				  IBV_ACCESS_LOCAL_WRITE);
	if (!ret)
		m5_tm_fill_srq(tm);
	return ret;
}

/* Makes a queue pair of the list that may have `wrs` sends in flight; 0: the device's alone. */
static int m5_tm_make_qp(struct m5_tm *tm, uint32_t wrs, struct ibv_qp **out)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(tm->cq_obj);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = tm->srq_obj,
		.cap = { .max_send_wr = wrs, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	*out = ibv_create_qp(tm->dev->ib.pd, &attr);
	if (!*out)
		return ib_dev_refuse(&tm->dev->ib, "queue pair with tag matching");
	return ib_qp_init(*out, &tm->dev->ib);
}

static int m5_tm_take_sq(struct m5_tm *tm, struct ibv_qp *qp, uint32_t wrs, struct m5_sq *sq,
			 struct m5_sparse *users)
{
	int ret;

	pthread_mutex_lock(&tm->dev->lock);
	ret = m5_dev_take_sq(tm->dev, qp, 2 * M5_TM_BLOCKS_WR * wrs, sq, users);
	pthread_mutex_unlock(&tm->dev->lock);
	return ret;
}

static void m5_tm_drop_qp(struct m5_tm *tm, struct ibv_qp *qp, struct m5_sq *sq,
			  struct m5_sparse *users)
{
	if (qp && ibv_destroy_qp(qp))
		UTIL_WARN(EP_CTRL, "queue pair 0x%06x stays: %s\n", qp->qp_num, strerror(errno));
	if (sq && sq->uar) {
		pthread_mutex_lock(&tm->dev->lock);
		m5_reg_put(tm->dev, sq->uar);
		pthread_mutex_unlock(&tm->dev->lock);
		free(users->user);
	}
}

static void m5_tm_describe(const struct m5_tm *tm, const struct ibv_qp *qp, uint32_t psn,
			   struct ib_desc *desc)
{
	const struct ib_dev *ib = &tm->dev->ib;

	*desc = (struct ib_desc){
		.qpn = qp->qp_num,
		.psn = psn,
		.lid = ib->port_attr.lid,
		.mtu = (uint8_t)ib->port_attr.active_mtu,
		.rd_atomic = ib->rd_atomic,
		.is_eth = ib->is_eth,
		.gid = ib->gid,
	};
}

static int m5_tm_make_command(struct m5_tm *tm, uint32_t tags)
{
	uint32_t wrs = (m5_tm_ops(tags) + M5_TM_BLOCKS_WR - 1) / M5_TM_BLOCKS_WR;
	uint32_t psn = ib_qp_psn();
	struct ib_desc self;
	uint8_t reads;
	int ret = m5_tm_make_qp(tm, wrs, &tm->qp);

	if (!ret)
		ret = m5_tm_take_sq(tm, tm->qp, wrs, &tm->sq, &tm->users);
	if (ret)
		return ret;
	if (tm->sq.mask + 1u < m5_tm_ops(tags)) {
		UTIL_WARN(EP_CTRL,
			  "%s: no tag matching by the device: its queue of operations has %u "
			  "blocks of %u. Rings carry all messages; FI_COPYRPC_TAG_OFFLOAD=0 "
			  "does without this warning\n",
			  ib_dev_name(&tm->dev->ib), tm->sq.mask + 1u, m5_tm_ops(tags));
		return -FI_EOPNOTSUPP;
	}
	m5_tm_describe(tm, tm->qp, psn, &self);
	return ib_qp_connect(tm->qp, &tm->dev->ib, psn, &self, false, &reads);
}

static int m5_tm_make(struct m5_tm *tm, uint32_t tags)
{
	struct m5_tags_entry *entry = calloc(tags + 1, sizeof(*entry));
	int ret;

	if (!entry)
		return -FI_ENOMEM;
	m5_tags_init(&tm->tags, entry, tags + 1);
	ret = m5_tm_make_cq(tm, tags);
	if (!ret)
		ret = m5_tm_make_srq(tm, tags);
	if (!ret)
		ret = m5_tm_make_command(tm, tags);
	return ret;
}

int m5_tm_open(struct m5_dev *dev, uint32_t tags, struct m5_tm **out)
{
	int ret = m5_tm_check(dev, tags);
	struct m5_tm *tm;

	if (ret)
		return ret;
	tm = calloc(1, sizeof(*tm));
	if (!tm)
		return -FI_ENOMEM;
	tm->dev = dev;
	tm->room = M5_TM_ROOM;
	util_list_init(&tm->in_dev);
	util_list_init(&tm->failed);
	util_list_init(&tm->closing);
	util_idmap_init(&tm->sends);
	ret = m5_tm_make(tm, tags);
	if (ret) {
		m5_tm_close(tm);
		return ret;
	}
	pthread_mutex_lock(&dev->lock);
	util_list_push_back(&dev->tms, &tm->in_dev);
	pthread_mutex_unlock(&dev->lock);
	*out = tm;
	return 0;
}

/* Holds the lock: m5_dev_disarm may be about to read an event of this CQ. */
static void m5_tm_drop_cq(struct m5_tm *tm)
{
	pthread_mutex_lock(&tm->dev->lock);
	util_list_remove(&tm->in_dev);
	if (tm->cq_obj)
		ibv_destroy_cq(ibv_cq_ex_to_cq(tm->cq_obj));
	pthread_mutex_unlock(&tm->dev->lock);
}

void m5_tm_close(struct m5_tm *tm)
{
	struct util_list *it;

	while ((it = util_list_first(&tm->closing)))
		m5_tm_peer_free(UTIL_CONTAINER_OF(it, struct m5_tm_peer, in_tm));
	m5_tm_drop_qp(tm, tm->qp, &tm->sq, &tm->users);
	if (tm->srq_obj)
		ibv_destroy_srq(tm->srq_obj);
	m5_tm_drop_cq(tm);
	ib_mem_fini(&tm->mem);
	ib_qpns_fini(&tm->peers);
	util_idmap_fini(&tm->sends);
	free(tm->tags.entry);
	free(tm);
}

/* ---- peers ---- */

static int m5_tm_peer_make(struct m5_tm_peer *peer)
{
	struct m5_tm *tm = peer->tm;
	int ret = m5_tm_make_qp(tm, M5_TM_PEER_WRS, &peer->tx);

	if (!ret)
		ret = m5_tm_make_qp(tm, 0, &peer->rx);
	if (!ret)
		ret = m5_tm_take_sq(tm, peer->tx, M5_TM_PEER_WRS, &peer->sq, &peer->users);
	if (ret)
		return ret;
	if (peer->sq.mask >= tm->room)
		return -FI_ENOSPC;
	peer->room = peer->sq.mask + 1u;
	tm->room -= peer->room;
	ret = ib_qpns_set(&tm->peers, peer->tx->qp_num, peer);
	return ret ? ret : ib_qpns_set(&tm->peers, peer->rx->qp_num, peer);
}

int m5_tm_peer_open(struct m5_tm *tm, void *user, struct m5_tm_peer **out)
{
	struct m5_tm_peer *peer;
	int ret;

	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -FI_ENOMEM;
	peer->tm = tm;
	peer->user = user;
	peer->tx_psn = ib_qp_psn();
	peer->rx_psn = ib_qp_psn();
	util_list_init(&peer->in_tm);
	util_list_init(&peer->sends);
	ret = m5_tm_peer_make(peer);
	if (ret)
		m5_tm_peer_free(peer);
	else
		*out = peer;
	return ret;
}

void m5_tm_peer_describe(const struct m5_tm_peer *peer, struct ib_desc *tx, struct ib_desc *rx)
{
	m5_tm_describe(peer->tm, peer->tx, peer->tx_psn, tx);
	m5_tm_describe(peer->tm, peer->rx, peer->rx_psn, rx);
}

int m5_tm_peer_connect(struct m5_tm_peer *peer, const struct ib_desc *tx, const struct ib_desc *rx)
{
	const struct ib_dev *ib = &peer->tm->dev->ib;
	uint8_t reads;
	int ret = ib_qp_connect(peer->rx, ib, peer->rx_psn, tx, false, &reads);

	return ret ? ret : ib_qp_connect(peer->tx, ib, peer->tx_psn, rx, false, &reads);
}

static void m5_tm_reset_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	/* Fails only if the device is gone. Then no completion follows either. */
	if (qp && ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		UTIL_INFO(EP_CTRL, "queue pair 0x%06x cannot be reset: %s\n", qp->qp_num,
			  strerror(errno));
}

void m5_tm_peer_close(struct m5_tm_peer *peer)
{
	struct m5_tm *tm = peer->tm;
	struct util_list *it;

	peer->is_closed = true;
	peer->err = peer->err ? peer->err : -FI_ECONNABORTED;
	m5_tm_reset_qp(peer->tx);
	m5_tm_reset_qp(peer->rx);
	while ((it = util_list_pop(&peer->sends)))
		m5_tm_send_end(UTIL_CONTAINER_OF(it, struct m5_tm_send, in_peer));
	util_list_remove(&peer->in_tm);
	util_list_push_back(&tm->closing, &peer->in_tm);
}

void m5_tm_peer_free(struct m5_tm_peer *peer)
{
	struct m5_tm *tm = peer->tm;

	util_list_remove(&peer->in_tm);
	if (peer->tx)
		ib_qpns_clear(&tm->peers, peer->tx->qp_num);
	if (peer->rx)
		ib_qpns_clear(&tm->peers, peer->rx->qp_num);
	tm->room += peer->room;
	m5_tm_drop_qp(tm, peer->tx, &peer->sq, &peer->users);
	m5_tm_drop_qp(tm, peer->rx, NULL, NULL);
	free(peer);
}
