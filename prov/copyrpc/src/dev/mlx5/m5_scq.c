/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Send CQs and doorbell registers, shared between links (m5_dev.h). Called by m5_link.c and
 * m5_ud.c.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_dv.h"
#include "util/log.h"

int m5_dev_take_cq(struct m5_cq *cq, struct ibv_cq *obj)
{
	struct mlx5dv_cq dv = { 0 };
	struct mlx5dv_obj objs = { .cq = { .in = obj, .out = &dv } };

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_CQ) ||
	    (dv.cqe_size != 64 && dv.cqe_size != 128) || !util_is_pow2(dv.cqe_cnt)) {
		UTIL_WARN(CQ, "libmlx5 made a completion queue that direct verbs cannot read\n");
		return -FI_ENOSYS;
	}
	m5_cq_init(cq, dv.buf, dv.cqe_cnt, dv.cqe_size, (uint32_t *)dv.dbrec, 0);
	cq->uar = dv.cq_uar;
	cq->cqn = dv.cqn;
	return 0;
}

int m5_dev_make_cq(struct m5_dev *dev, uint32_t depth, void *context, struct ibv_comp_channel *chan,
		   struct ibv_cq **obj, struct m5_cq *cq)
{
	int ret;

	*obj = ibv_create_cq(dev->ib.ctx, (int)depth - 1, context, chan, 0);
	if (!*obj)
		return ib_dev_refuse(&dev->ib, "completion queue");
	ret = m5_dev_take_cq(cq, *obj);
	if (ret) {
		ibv_destroy_cq(*obj);
		*obj = NULL;
	}
	return ret;
}

static int m5_scq_make(struct m5_dev *dev, uint32_t wqes, struct m5_scq **out)
{
	uint32_t depth = wqes > m5_tune.cq ? wqes : m5_tune.cq;
	struct m5_scq *scq = calloc(1, sizeof(*scq));
	int ret;

	if (!scq)
		return -FI_ENOMEM;
	ret = m5_dev_make_cq(dev, depth, scq, dev->chan, &scq->obj, &scq->cq);
	if (ret) {
		free(scq);
		return ret;
	}
	scq->room = scq->cq.size;
	util_list_push_back(&dev->scqs, &scq->in_dev);
	*out = scq;
	return 0;
}

int m5_scq_get(struct m5_dev *dev, uint32_t wqes, struct m5_scq **out)
{
	struct m5_scq *scq = NULL;
	struct util_list *it, *tmp;
	int ret;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->scqs) {
		scq = UTIL_CONTAINER_OF(it, struct m5_scq, in_dev);
		if (scq->room >= wqes)
			break;
		scq = NULL;
	}
	if (!scq) {
		ret = m5_scq_make(dev, wqes, &scq);
		if (ret)
			return ret;
	}
	scq->room -= wqes;
	scq->link_cnt++;
	*out = scq;
	return 0;
}

void m5_scq_put(struct m5_scq *scq, uint32_t wqes)
{
	scq->room += wqes;
	if (--scq->link_cnt)
		return;
	util_list_remove(&scq->in_dev);
	ibv_destroy_cq(scq->obj);
	free(scq);
}

int m5_scq_activate(struct m5_dev *dev, struct m5_scq *scq)
{
	if (scq->attached_cnt++)
		return 0;
	if (dev->active_cnt == dev->active_cap) {
		uint32_t cap = dev->active_cap ? dev->active_cap * 2 : 4;
		struct m5_scq **more = realloc(dev->active, cap * sizeof(struct m5_scq *));

		if (!more) {
			scq->attached_cnt--;
			return -FI_ENOMEM;
		}
		dev->active = more;
		dev->active_cap = cap;
	}
	dev->active[dev->active_cnt++] = scq;
	return 0;
}

void m5_scq_deactivate(struct m5_dev *dev, struct m5_scq *scq)
{
	uint32_t i;

	if (--scq->attached_cnt)
		return;
	for (i = 0; dev->active[i] != scq; i++)
		;
	dev->active[i] = dev->active[--dev->active_cnt];
	dev->cursor = 0;
}

int m5_dev_take_sq(struct m5_dev *dev, struct ibv_qp *qp, uint32_t blocks, struct m5_sq *sq,
		   struct m5_sparse *users)
{
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj objs = { .qp = { .in = qp, .out = &dv } };
	struct m5_uar *uar;
	uint64_t *words;
	int ret;

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_QP) || dv.sq.stride != M5_BB ||
	    !util_is_pow2(dv.sq.wqe_cnt) || dv.sq.wqe_cnt < M5_SQ_MIN_BB ||
	    dv.sq.wqe_cnt > blocks) {
		UTIL_WARN(EP_CTRL, "%s: libmlx5 made a send queue of %u x %u bytes\n",
			  ib_dev_name(&dev->ib), dv.sq.wqe_cnt, dv.sq.stride);
		return -FI_ENOSYS;
	}
	words = calloc(dv.sq.wqe_cnt, sizeof(*words));
	if (!words)
		return -FI_ENOMEM;
	ret = m5_reg_get(dev, dv.bf.reg, dv.bf.size, &uar);
	if (ret) {
		free(words);
		return ret;
	}
	m5_sparse_init(users, words, dv.sq.wqe_cnt);
	m5_sq_init(sq, dv.sq.buf, dv.sq.wqe_cnt, (uint32_t *)&dv.dbrec[M5_DBR_SEND], uar,
		   qp->qp_num, 0);
	return 0;
}

int m5_reg_get(struct m5_dev *dev, void *at, uint32_t half, struct m5_uar **uar)
{
	struct util_list *it, *tmp;
	struct m5_reg *reg;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->regs) {
		reg = UTIL_CONTAINER_OF(it, struct m5_reg, in_dev);
		if (reg->uar.reg == at) {
			reg->uar.user_cnt++;
			*uar = &reg->uar;
			return 0;
		}
	}
	reg = calloc(1, sizeof(*reg));
	if (!reg)
		return -FI_ENOMEM;
	m5_uar_init(&reg->uar, at, half);
	reg->uar.user_cnt = 1;
	util_list_push_back(&dev->regs, &reg->in_dev);
	*uar = &reg->uar;
	return 0;
}

void m5_reg_put(struct m5_dev *dev, struct m5_uar *uar)
{
	struct m5_reg *reg = UTIL_CONTAINER_OF(uar, struct m5_reg, uar);

	if (--uar->user_cnt)
		return;
	util_list_remove(&reg->in_dev);
	free(reg);
}
