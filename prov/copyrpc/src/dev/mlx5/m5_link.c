/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of an mlx5 link: create, describe, connect, attach, detach, close (m5_link.h).
 *
 * The device reuses the number of a destroyed queue pair. So the polling thread moves the QP to
 * RESET first, after which it makes no more CQEs, removes its number from the CQEs already written
 * (m5_cq_forget) and then destroys it. A link that the control thread closes before attach is
 * halted at once and waits in m5_dev.to_free for the polling thread.
 */
#include "dev/mlx5/m5_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/mlx5/m5_dv.h"
#include "dev/mlx5/m5_poll.h"
#include "util/log.h"

const struct dev_link_ops m5_link_ops = M5_LINK_OPS_INIT;

#define M5_BLOCKS_PER_WR 4u /* upper limit of the library's count */

/* Called under the device's lock: registers and send CQs are shared. */
static int m5_link_take_sq(struct m5_link *link)
{
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj objs = { .qp = { .in = link->ib.qp, .out = &dv } };
	struct m5_uar *uar;
	uint64_t *words;
	int ret;

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_QP) || dv.sq.stride != M5_BB ||
	    !util_is_pow2(dv.sq.wqe_cnt) || dv.sq.wqe_cnt < M5_SQ_MIN_BB ||
	    dv.sq.wqe_cnt > link->sq_blocks) {
		UTIL_WARN(EP_CTRL, "%s: libmlx5 made a send queue of %u x %u bytes\n",
			  ib_dev_name(&link->dev->ib), dv.sq.wqe_cnt, dv.sq.stride);
		return -FI_ENOSYS;
	}
	words = calloc(dv.sq.wqe_cnt, sizeof(*words));
	if (!words)
		return -FI_ENOMEM;
	ret = m5_reg_get(link->dev, dv.bf.reg, dv.bf.size, &uar);
	if (ret) {
		free(words);
		return ret;
	}
	m5_sparse_init(&link->users, words, dv.sq.wqe_cnt);
	m5_sq_init(&link->sq, dv.sq.buf, dv.sq.wqe_cnt, (uint32_t *)&dv.dbrec[M5_DBR_SEND], uar,
		   link->ib.qp->qp_num, 0);
	return 0;
}

static int m5_link_make_qp(struct m5_link *link)
{
	struct ibv_qp_init_attr attr = {
		.recv_cq = link->dev->rx_obj,
		.srq = link->dev->srq_obj,
		.cap = { .max_send_wr = m5_tune.sq_blocks / M5_BLOCKS_PER_WR, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	int ret;

	link->sq_blocks = 4 * m5_tune.sq_blocks; /* upper limit; the library rounds up */
	ret = m5_scq_get(link->dev, link->sq_blocks, &link->scq);
	if (ret)
		return ret;
	attr.send_cq = link->scq->obj;
	qp = ibv_create_qp(link->dev->ib.pd, &attr);
	if (!qp)
		return ib_dev_refuse(&link->dev->ib, "queue pair");
	ret = ib_link_init_qp(&link->ib, qp);
	if (!ret)
		ret = m5_link_take_sq(link);
	if (ret)
		return ret;
	link->scq->room += link->sq_blocks - (link->sq.mask + 1u);
	link->sq_blocks = link->sq.mask + 1u;
	return 0;
}

int m5_link_create(struct dev *base, uint64_t rx_len, struct dev_link **out)
{
	struct m5_dev *dev = (struct m5_dev *)base;
	struct m5_link *link = calloc(1, sizeof(*link));
	int ret;

	if (!link)
		return -FI_ENOMEM;
	link->dev = dev;
	util_list_init(&link->ib.cold);
	ret = ib_link_make_memory(&link->ib, &dev->ib, rx_len);
	if (!ret) {
		pthread_mutex_lock(&dev->lock);
		ret = m5_link_make_qp(link);
		pthread_mutex_unlock(&dev->lock);
	}
	if (ret) {
		m5_link_destroy(link);
		return ret;
	}
	link->ib.base.ops = &m5_link_ops;
	*out = &link->ib.base;
	return 0;
}

int m5_link_connect(struct dev_link *base, const struct dev_desc *desc)
{
	struct m5_link *link = (struct m5_link *)base;

	base->inline_max = M5_INLINE_MAX;
	link->max_piece = util_pow2_floor(link->dev->ib.port_attr.max_msg_sz | 1);
	if (link->max_piece > 1u << 30)
		link->max_piece = 1u << 30;
	return ib_link_connect(&link->ib, desc, &link->dev->lock, &link->dev->waiting);
}

int m5_link_attach(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;
	struct m5_dev *dev = link->dev;
	int ret;

	m5_dev_defer_destroy(dev);
	if (link->ib.dead) /* an arrival could not be kept */
		return -FI_ENOMEM;
	ret = ib_qpns_set(&dev->qpns, link->sq.qpn, link);
	if (ret)
		return ret;
	ret = m5_scq_activate(dev, link->scq);
	if (ret) {
		ib_qpns_clear(&dev->qpns, link->sq.qpn);
		return ret;
	}
	ib_link_attached(&link->ib, &dev->lock, &dev->early);
	link->was_attached = true;
	return 0;
}

void m5_link_fail(struct m5_link *link, int err)
{
	if (link->ib.err)
		return;
	link->ib.dead = true;
	link->ib.err = err;
	if (util_list_is_empty(&link->ib.cold))
		util_list_push_back(&link->dev->early, &link->ib.cold);
}

void m5_link_halt(struct m5_link *link)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	link->ib.dead = true;
	/* Fails only if the device is gone. Then no completion follows either. */
	if (ibv_modify_qp(link->ib.qp, &attr, IBV_QP_STATE))
		UTIL_INFO(EP_CTRL, "queue pair 0x%06x cannot be reset: %s\n", link->sq.qpn,
			  strerror(errno));
}

/* Removes a halted QP's number from all queues. */
static void m5_link_forget(struct m5_link *link)
{
	ib_qpns_clear(&link->dev->qpns, link->sq.qpn);
	m5_cq_forget(&link->dev->rx, link->sq.qpn);
	m5_cq_forget(&link->scq->cq, link->sq.qpn);
}

void m5_link_detach(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;

	if (!link->ib.attached)
		return;
	link->ib.attached = false;
	m5_link_halt(link);
	m5_link_forget(link);
	m5_scq_deactivate(link->dev, link->scq);
	util_list_remove(&link->ib.cold);
}

void m5_link_destroy(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;

	pthread_mutex_lock(&dev->lock);
	if (link->ib.qp && ibv_destroy_qp(link->ib.qp))
		UTIL_WARN(EP_CTRL, "queue pair 0x%06x stays: %s\n", link->sq.qpn, strerror(errno));
	if (link->sq.uar)
		m5_reg_put(dev, link->sq.uar);
	if (link->scq)
		m5_scq_put(link->scq, link->sq_blocks);
	pthread_mutex_unlock(&dev->lock);
	ib_link_fini(&link->ib);
	free(link->users.user);
	free(link);
}

void m5_dev_defer_destroy(struct m5_dev *dev)
{
	struct util_list *it;

	for (;;) {
		pthread_mutex_lock(&dev->lock);
		it = util_list_pop(&dev->to_free);
		pthread_mutex_unlock(&dev->lock);
		if (!it)
			return;
		m5_link_forget(UTIL_CONTAINER_OF(it, struct m5_link, ib.cold));
		m5_link_destroy(UTIL_CONTAINER_OF(it, struct m5_link, ib.cold));
	}
}

void m5_link_close(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;

	if (link->was_attached || !base->tx_base) {
		m5_link_destroy(link);
		return;
	}
	m5_link_halt(link);
	pthread_mutex_lock(&link->dev->lock);
	util_list_remove(&link->ib.cold);
	util_list_push_back(&link->dev->to_free, &link->ib.cold);
	pthread_mutex_unlock(&link->dev->lock);
}
