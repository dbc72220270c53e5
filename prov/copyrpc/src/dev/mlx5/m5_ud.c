/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram endpoint: open, close, addresses, waiting, rare completions (m5_ud.h). */
#include "dev/mlx5/m5_ud.h"

#include <stdlib.h>

#include "dev/mlx5/m5_cqe_err.h"
#include "dev/mlx5/m5_dv.h"
#include "util/log.h"

const struct dev_dgram_ops m5_dgram_ops = M5_DGRAM_OPS_INIT;

static int m5_ud_make_cq(struct m5_ud *ud, const struct dev_dgram_attr *attr)
{
	/* All receives may complete at once, and each block of the send queue may be a WQE. */
	uint64_t depth = util_pow2_ceil(attr->rx_cnt) + util_pow2_ceil(M5_UD_BB * attr->tx_cnt);

	return m5_dev_make_cq(ud->dev, (uint32_t)util_pow2_ceil(depth), ud, ud->ib.chan,
			      &ud->ib.cq_obj, &ud->cq);
}

static int m5_ud_make_qp(struct m5_ud *ud, const struct dev_dgram_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ud->ib.cq_obj,
		.recv_cq = ud->ib.cq_obj,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = attr->tx_cnt,
			 .max_send_sge = DEV_DGRAM_PIECES,
			 .max_recv_wr = attr->rx_cnt,
			 .max_recv_sge = 1,
			 .max_inline_data = M5_UD_INLINE },
	};

	ud->ib.qp = ibv_create_qp(ud->dev->ib.pd, &init);
	return ud->ib.qp ? 0 : ib_dev_refuse(&ud->dev->ib, "datagram queue pair");
}

/* Checks the queues that the library made. All later counts rely on their sizes. */
static int m5_ud_check(const struct m5_ud *ud, const struct mlx5dv_qp *dv)
{
	bool sq = dv->sq.stride == M5_BB && util_is_pow2(dv->sq.wqe_cnt) &&
		  dv->sq.wqe_cnt >= M5_SQ_MIN_BB && dv->sq.wqe_cnt <= M5_SQ_MAX_BB;
	bool rq = dv->rq.stride >= sizeof(struct m5_data) && util_is_pow2(dv->rq.wqe_cnt) &&
		  dv->rq.wqe_cnt >= ud->ib.base.rx_cnt && dv->rq.wqe_cnt <= DEV_DGRAM_CNT_MAX;

	if (sq && rq && dv->sq.wqe_cnt + dv->rq.wqe_cnt <= ud->cq.size)
		return 0;
	UTIL_WARN(EP_CTRL, "%s: libmlx5 made queues of %u x %u and %u x %u bytes\n",
		  ib_dev_name(&ud->dev->ib), dv->sq.wqe_cnt, dv->sq.stride, dv->rq.wqe_cnt,
		  dv->rq.stride);
	return -FI_ENOSYS;
}

static int m5_ud_take_qp(struct m5_ud *ud)
{
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj objs = { .qp = { .in = ud->ib.qp, .out = &dv } };
	struct m5_uar *uar;
	uint64_t *sends, *recvs;
	int ret;

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_QP))
		return ib_dev_refuse(&ud->dev->ib, "access to a datagram queue pair");
	ret = m5_ud_check(ud, &dv);
	if (ret)
		return ret;
	sends = calloc(dv.sq.wqe_cnt, sizeof(*sends));
	recvs = calloc(dv.rq.wqe_cnt, sizeof(*recvs));
	m5_sparse_init(&ud->users, sends, dv.sq.wqe_cnt);
	m5_rq_init(&ud->rq, dv.rq.buf, dv.rq.wqe_cnt, dv.rq.stride,
		   (uint32_t *)&dv.dbrec[M5_DBR_RECV], recvs, IB_UD_GRH_LEN + ud->ib.base.mtu,
		   ud->ib.rx.mr->lkey, 0);
	if (!sends || !recvs)
		return -FI_ENOMEM;
	pthread_mutex_lock(&ud->dev->lock);
	ret = m5_reg_get(ud->dev, dv.bf.reg, dv.bf.size, &uar);
	pthread_mutex_unlock(&ud->dev->lock);
	if (!ret)
		m5_sq_init(&ud->sq, dv.sq.buf, dv.sq.wqe_cnt, (uint32_t *)&dv.dbrec[M5_DBR_SEND],
			   uar, ud->ib.qp->qp_num, 0);
	return ret;
}

static void m5_ud_post_all(struct m5_ud *ud)
{
	for (uint32_t slot = 0; slot < ud->ib.base.rx_cnt; slot++)
		m5_rq_put(&ud->rq, ib_ud_slot(&ud->ib, slot) + IB_UD_GRH_OFF, slot);
	m5_rq_publish(&ud->rq);
}

/* Posts receives between INIT and RTR, so that the first datagrams find buffers. */
static int m5_ud_make(struct m5_ud *ud, const struct dev_dgram_attr *attr)
{
	int ret = ib_ud_init(&ud->ib, &ud->dev->ib, attr);

	if (!ret)
		ret = m5_ud_make_cq(ud, attr);
	if (!ret)
		ret = m5_ud_make_qp(ud, attr);
	if (!ret)
		ret = m5_ud_take_qp(ud);
	if (!ret)
		ret = ib_ud_start(&ud->ib);
	if (ret)
		return ret;
	m5_ud_post_all(ud);
	return ib_ud_run(&ud->ib);
}

int m5_ud_open(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **out)
{
	struct m5_ud *ud = calloc(1, sizeof(*ud));
	int ret;

	if (!ud)
		return -FI_ENOMEM;
	ud->dev = (struct m5_dev *)dev;
	util_list_init(&ud->ib.in_dev);
	ud->ib.base.ops = &m5_dgram_ops;
	ud->ib.base.inline_max = M5_UD_INLINE;
	ud->ib.base.copies_ah = true; /* into each WQE */
	ret = m5_ud_make(ud, attr);
	if (ret) {
		m5_ud_close(&ud->ib.base);
		return ret;
	}
	util_list_push_back(&ud->dev->uds, &ud->ib.in_dev);
	*out = &ud->ib.base;
	return 0;
}

void m5_ud_close(struct dev_dgram *base)
{
	struct m5_ud *ud = (struct m5_ud *)base;

	util_list_remove(&ud->ib.in_dev);
	if (ud->ib.cq_obj)
		m5_ud_disarm(base);
	ib_ud_fini(&ud->ib);
	if (ud->sq.uar) {
		pthread_mutex_lock(&ud->dev->lock);
		m5_reg_put(ud->dev, ud->sq.uar);
		pthread_mutex_unlock(&ud->dev->lock);
	}
	free(ud->users.user);
	free(ud->rq.recv.user);
	free(ud);
}

void m5_ud_av(struct m5_av *av, const void *made, const struct ib_ud_desc *d)
{
	bool extended;

	memcpy(av, made, sizeof(*av));
	extended = d->is_eth || be32toh(av->dqp_dct) & M5_AV_EXT ||
		   be32toh(av->grh_gid_fl) & M5_AV_GRH;
	av->qkey = htobe32(d->qkey);
	av->rsvd = 0;
	av->dqp_dct = htobe32(d->qpn | (extended ? M5_AV_EXT : 0));
}

static int m5_ud_copy_av(struct m5_ud *ud, struct ibv_ah *obj, const struct ib_ud_desc *d,
			 struct m5_av *av)
{
	struct mlx5dv_ah dv = { 0 };
	struct mlx5dv_obj objs = { .ah = { .in = obj, .out = &dv } };

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_AH))
		return ib_dev_refuse(&ud->dev->ib, "access to an address handle");
	m5_ud_av(av, dv.av, d);
	return 0;
}

int m5_ud_resolve(struct dev_dgram *base, const struct dev_desc *peer, struct dev_dgram_ah **out)
{
	struct m5_ud *ud = (struct m5_ud *)base;
	struct ib_ud_desc d;
	struct m5_ud_ah *ah;
	struct ibv_ah *obj;
	int ret = ib_ud_desc_decode(peer, &d);

	if (ret)
		return ret;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -FI_ENOMEM;
	ret = ib_ud_route(&ud->ib, &d, &ah->base, &obj);
	if (!ret) {
		ret = m5_ud_copy_av(ud, obj, &d, &ah->av);
		ibv_destroy_ah(obj);
	}
	if (ret) {
		free(ah);
		return ret;
	}
	*out = &ah->base;
	return 0;
}

void m5_ud_forget(struct dev_dgram *base, struct dev_dgram_ah *ah)
{
	free(ah);
}

static void m5_ud_failed(struct m5_ud *ud, const struct m5_cqe *cqe)
{
	struct m5_err err;

	if (ud->ib.status) /* flushed after the first error */
		return;
	m5_cqe_err_decode(cqe, &err);
	ib_ud_log(&ud->ib, err.name, err.vendor, err.advice);
	ud->ib.status = err.status;
}

void m5_ud_other_cold(struct m5_ud *ud, const struct m5_cqe *cqe)
{
	uint16_t counter = m5_cqe_counter(cqe);
	uint64_t user;

	if (m5_cqe_is_error(cqe)) {
		m5_ud_failed(ud, cqe);
	} else if (m5_cqe_opcode(cqe) == M5_CQE_REQ) {
		if (m5_sq_retire(&ud->sq, counter))
			ud->ib.base.tx_done = (uint32_t)m5_sparse_take(&ud->users, counter);
	} else if (m5_rq_take(&ud->rq, counter, &user)) {
		/* Unexpected opcode, for example with an immediate: dropped. */
		ud->ib.base.rx_retained++;
		m5_ud_release(&ud->ib.base, (uint32_t)user);
	}
	m5_cq_publish(&ud->cq);
}

bool m5_ud_take_cold(struct m5_ud *ud, const struct m5_cqe *cqe, uint8_t *slot)
{
	uint32_t len = be32toh(cqe->len);
	const void *at = m5_cqe_scattered(cqe);

	if (len < IB_UD_GRH_LEN || len > IB_UD_GRH_LEN + ud->ib.base.mtu)
		return false;
	if (at)
		memcpy(slot + IB_UD_GRH_OFF, at, len);
	return true;
}

int m5_ud_arm(struct dev_dgram *base)
{
	struct m5_ud *ud = (struct m5_ud *)base;

	m5_ud_disarm(base);
	m5_cq_arm(&ud->cq);
	return m5_cq_is_empty(&ud->cq) && !ud->ib.status ? 0 : -FI_EAGAIN;
}

void m5_ud_disarm(struct dev_dgram *base)
{
	struct m5_ud *ud = (struct m5_ud *)base;
	struct ibv_cq *obj;
	void *context;

	while (!ibv_get_cq_event(ud->ib.chan, &obj, &context)) {
		m5_cq_event(&ud->cq);
		ibv_ack_cq_events(obj, 1);
	}
}
