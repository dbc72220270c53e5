/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of DC: creation and states (m5_dct.h). */
#include "dev/mlx5/m5_dct.h"

#include <assert.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "dev/ib/ib_qp.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_dv.h"
#include "util/log.h"
#include "util/param.h"

#define M5_DCI_BLOCKS_PER_WR 2u /* least number of blocks that the library counts per WQE */

/* Fills the local part of an address: the routing of both ends is in the address vectors. */
static struct ibv_ah_attr m5_dct_local(const struct ib_dev *ib)
{
	return (struct ibv_ah_attr){
		.port_num = ib->port,
		.is_global = ib->is_eth,
		.grh = { .sgid_index = ib_dev_gid(ib).index, .hop_limit = IB_HOP_LIMIT },
	};
}

static int m5_dct_to_init(struct ibv_qp *qp, const struct ib_dev *ib, bool is_target)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = ib->port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (is_target ? IBV_QP_ACCESS_FLAGS : 0));
}

static int m5_dct_to_rtr(struct ibv_qp *qp, const struct ib_dev *ib, bool is_target)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = ib->port_attr.active_mtu,
		.min_rnr_timer = IB_RNR_TIMER,
		.ah_attr = m5_dct_local(ib),
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV |
				     (is_target ? IBV_QP_MIN_RNR_TIMER : 0));
}

static int m5_dct_to_rts(struct ibv_qp *qp, const struct ib_dev *ib)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = ib_qp_timeout((unsigned)util_params.peer_timeout_ms),
		.retry_cnt = IB_RETRIES,
		.rnr_retry = IB_RNR_FOREVER,
		.max_rd_atomic = ib->rd_atomic,
		.sq_psn = ib_qp_psn(),
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN);
}

static struct ibv_qp *m5_dct_create(struct m5_dev *dev)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = dev->rx_obj,
		.recv_cq = dev->rx_obj,
		.srq = dev->srq_obj,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = dev->ib.pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = dev->dc.key },
	};

	return m5_dv_get()->create_qp(dev->ib.ctx, &init, &dv);
}

/* Returns NULL, or the reason why there is no target. */
static const char *m5_dct_make(struct m5_dev *dev)
{
	int err;

	if (!m5_dv_get()->create_qp)
		return "libmlx5 is too old";
	if (getrandom(&dev->dc.key, sizeof(dev->dc.key), 0) != sizeof(dev->dc.key))
		return "no random numbers";
	dev->dc.ids = malloc(sizeof(*dev->dc.ids));
	if (!dev->dc.ids)
		return "no memory";
	m5_ids_init(dev->dc.ids);
	dev->dc.dct = m5_dct_create(dev);
	if (!dev->dc.dct)
		return strerror(errno);
	err = m5_dct_to_init(dev->dc.dct, &dev->ib, true);
	if (!err)
		err = m5_dct_to_rtr(dev->dc.dct, &dev->ib, true);
	if (err)
		return strerror(err);
	return dev->dc.dct->qp_num ? NULL : "the target has no number";
}

void m5_dct_open(struct m5_dev *dev)
{
	const char *why;

	m5_dcis_init(&dev->dc.pool);
	why = m5_dct_make(dev);
	if (!why) {
		dev->dc.dctn = dev->dc.dct->qp_num;
		return;
	}
	UTIL_INFO(DOMAIN, "%s: no DC: %s\n", ib_dev_name(&dev->ib), why);
	m5_dct_close(dev);
}

static int m5_dci_create(struct m5_dev *dev, struct m5_dci *dci)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = dci->scq->obj,
		.recv_cq = dci->scq->obj,
		.cap = { .max_send_wr = m5_tune.sq_blocks / M5_DCI_BLOCKS_PER_WR,
			 .max_send_sge = 1 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = dev->ib.pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};

	dci->qp = m5_dv_get()->create_qp(dev->ib.ctx, &init, &dv);
	return dci->qp ? 0 : ib_dev_refuse(&dev->ib, "DC initiator");
}

static int m5_dci_start(struct m5_dev *dev, const struct m5_dci *dci)
{
	const char *state = "INIT";
	int err = m5_dct_to_init(dci->qp, &dev->ib, false);

	if (!err) {
		state = "RTR";
		err = m5_dct_to_rtr(dci->qp, &dev->ib, false);
	}
	if (!err) {
		state = "RTS";
		err = m5_dct_to_rts(dci->qp, &dev->ib);
	}
	return err ? ib_qp_fail(&dev->ib, state, err) : 0;
}

static void m5_dci_destroy(struct m5_dev *dev, struct m5_dci *dci)
{
	if (dci->qp && ibv_destroy_qp(dci->qp))
		UTIL_WARN(DOMAIN, "DC initiator 0x%06x stays: %s\n", dci->sq.qpn, strerror(errno));
	if (dci->sq.uar)
		m5_reg_put(dev, dci->sq.uar);
	if (dci->scq)
		m5_scq_put(dci->scq, dci->sq_blocks);
	free(dci->users.user);
	memset(dci, 0, sizeof(*dci));
}

static int m5_dci_make(struct m5_dev *dev, struct m5_dci *dci)
{
	int ret;

	dci->sq_blocks = 4 * m5_tune.sq_blocks; /* upper limit; the library rounds up */
	ret = m5_scq_get(dev, dci->sq_blocks, &dci->scq);
	if (ret)
		return ret;
	ret = m5_dci_create(dev, dci);
	if (!ret)
		ret = m5_dev_take_sq(dev, dci->qp, dci->sq_blocks, &dci->sq, &dci->users);
	if (ret)
		return ret;
	dci->scq->room += dci->sq_blocks - (dci->sq.mask + 1u);
	dci->sq_blocks = dci->sq.mask + 1u;
	return m5_dci_start(dev, dci);
}

int m5_dct_make_pool(struct m5_dev *dev)
{
	struct m5_dcis *pool = &dev->dc.pool;
	uint32_t i, cnt = (uint32_t)util_params.dci_count;
	int ret;

	if (pool->cnt)
		return 0;
	assert(cnt && cnt <= M5_DCIS_MAX);
	for (i = 0; i < cnt; i++) {
		ret = m5_dci_make(dev, &pool->dci[i]);
		if (!ret)
			continue;
		do
			m5_dci_destroy(dev, &pool->dci[i]);
		while (i--);
		return ret;
	}
	__atomic_store_n(&pool->cnt, cnt, __ATOMIC_RELEASE);
	return 0;
}

void m5_dct_close(struct m5_dev *dev)
{
	struct m5_dcis *pool = &dev->dc.pool;

	for (uint32_t i = 0; i < pool->cnt; i++)
		m5_dci_destroy(dev, &pool->dci[i]);
	pool->cnt = 0;
	if (dev->dc.dct && ibv_destroy_qp(dev->dc.dct))
		UTIL_WARN(DOMAIN, "DC target 0x%06x stays: %s\n", dev->dc.dctn, strerror(errno));
	free(dev->dc.ids);
	dev->dc.ids = NULL;
	dev->dc.dct = NULL;
	dev->dc.dctn = 0;
}

void m5_dct_reset(struct m5_dev *dev, struct m5_dci *dci)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct m5_sq *sq = &dci->sq;

	/* Fails only if the device is gone. Then no completion follows either. */
	if (ibv_modify_qp(dci->qp, &attr, IBV_QP_STATE))
		dci->broken = true;
	m5_cq_clean(&dci->scq->cq, sq->qpn);
	memset(dci->users.user, 0, (sq->mask + 1u) * sizeof(*dci->users.user));
	*sq->record = 0;
	m5_sq_init(sq, sq->buf, sq->mask + 1u, sq->record, sq->uar, sq->qpn, 0);
	if (!dci->broken && m5_dci_start(dev, dci))
		dci->broken = true;
}

void m5_dct_restart(struct m5_dev *dev)
{
	struct m5_dcis *pool = &dev->dc.pool;

	for (uint32_t i = 0; i < pool->cnt; i++) {
		struct m5_dci *dci = &pool->dci[i];

		if (!dci->broken)
			continue;
		dci->broken = false;
		m5_dct_reset(dev, dci);
		if (!dci->broken)
			m5_dcis_pass_on(pool, dci);
	}
}
