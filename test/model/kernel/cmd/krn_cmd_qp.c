/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Creation and destruction of queue pairs.
 *
 * libmlx5 lays out the buffer: the receive queue first, the send queue right behind it. A DC target
 * has neither, nor a doorbell record; its number is reported when it becomes ready to receive. XRC
 * and raw packets are not implemented.
 */
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/kernel/krn_share.h"
#include "model/fabric/mdl_nic.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

#define WQES_MAX 32768

/* Common fields of the legacy and the extended command, and the driver's. */
struct create {
	struct ib_uverbs_ex_create_qp core;
	struct mlx5_ib_create_qp drv;
};

static void take_create(const struct krn_cmd *cmd, struct create *create)
{
	const struct ib_uverbs_create_qp *old = cmd->core;

	krn_cmd_driver(cmd, &create->drv, sizeof(create->drv));
	if (cmd->extended) {
		memcpy(&create->core, cmd->core, sizeof(create->core));
		return;
	}
	create->core = (struct ib_uverbs_ex_create_qp){
		.user_handle = old->user_handle,
		.pd_handle = old->pd_handle,
		.send_cq_handle = old->send_cq_handle,
		.recv_cq_handle = old->recv_cq_handle,
		.srq_handle = old->srq_handle,
		.max_send_wr = old->max_send_wr,
		.max_recv_wr = old->max_recv_wr,
		.max_send_sge = old->max_send_sge,
		.max_recv_sge = old->max_recv_sge,
		.max_inline_data = old->max_inline_data,
		.sq_sig_all = old->sq_sig_all,
		.qp_type = old->qp_type,
		.is_srq = old->is_srq,
	};
}

/* Returns the model's type of a queue pair, or 0. */
static uint32_t type_of(const struct create *create)
{
	const uint32_t both = MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_TYPE_DCT;
	uint32_t dc = create->drv.flags & both;

	switch (create->core.qp_type) {
	case MDL_QPT_RC:
	case MDL_QPT_UC:
	case MDL_QPT_UD: return dc ? 0 : create->core.qp_type;
	case MDL_QPT_DRIVER:
		return dc == MLX5_QP_FLAG_TYPE_DCI   ? MDL_QPT_DCI
		       : dc == MLX5_QP_FLAG_TYPE_DCT ? MDL_QPT_DCT
						     : 0;
	default: return 0;
	}
}

static bool power_of_two(uint32_t count)
{
	return !(count & (count - 1));
}

static int check_queues(const struct mlx5_ib_create_qp *drv)
{
	if (drv->sq_wqe_count > WQES_MAX || drv->rq_wqe_count > WQES_MAX ||
	    !power_of_two(drv->sq_wqe_count) || !power_of_two(drv->rq_wqe_count))
		return -EINVAL;
	if (drv->rq_wqe_count && (drv->rq_wqe_shift < 4 || drv->rq_wqe_shift > 9))
		return -EINVAL;
	return drv->db_addr % 8 || drv->buf_addr % 64 ? -EINVAL : 0;
}

/* A DCT receives from an SRQ only, and sends nothing. */
static int check_dct(const struct krn_cmd *cmd, const struct create *create)
{
	const uint32_t flags = MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_SCATTER_CQE;
	const struct ib_uverbs_ex_create_qp *core = &create->core;
	uint32_t ctx = cmd->ctx_index;

	if (create->drv.flags & ~flags || !core->is_srq ||
	    !krn_object_own(MDL_TABLE_PD, ctx, core->pd_handle) ||
	    !krn_object_own(MDL_TABLE_CQ, ctx, core->recv_cq_handle) ||
	    !krn_object_own(MDL_TABLE_SRQ, ctx, core->srq_handle))
		return -EINVAL;
	return 0;
}

/* A DCI receives nothing. */
static int check_dci(const struct create *create)
{
	const struct mlx5_ib_create_qp *drv = &create->drv;

	if (create->core.max_recv_wr || create->core.max_recv_sge || drv->rq_wqe_count)
		return -EINVAL;
	if (!(drv->flags & MLX5_QP_FLAG_DCI_STREAM))
		return 0;
	return drv->dci_streams.log_num_concurent > MDL_LOG_STREAMS_MAX ||
			       drv->dci_streams.log_num_errored > MDL_LOG_ERRORED_MAX
		       ? -EINVAL
		       : 0;
}

static int check_create(const struct krn_cmd *cmd, const struct create *create)
{
	const struct ib_uverbs_ex_create_qp *core = &create->core;
	uint32_t ctx = cmd->ctx_index, type = type_of(create);

	if (!type)
		return -EOPNOTSUPP;
	if (core->comp_mask || core->source_qpn ||
	    create->drv.flags & (MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_UAR_PAGE_INDEX |
				 MLX5_QP_FLAG_BFREG_INDEX))
		return -EOPNOTSUPP;
	if (type == MDL_QPT_DCT)
		return check_dct(cmd, create);
	if (type == MDL_QPT_DCI && check_dci(create))
		return -EINVAL;
	if (!krn_object_own(MDL_TABLE_PD, ctx, core->pd_handle) ||
	    !krn_object_own(MDL_TABLE_CQ, ctx, core->send_cq_handle) ||
	    !krn_object_own(MDL_TABLE_CQ, ctx, core->recv_cq_handle) ||
	    (core->is_srq && !krn_object_own(MDL_TABLE_SRQ, ctx, core->srq_handle)))
		return -EINVAL;
	return check_queues(&create->drv);
}

static int share_qp(struct mdl_qp *qp, const struct mlx5_ib_create_qp *drv)
{
	uint64_t rq_len = (uint64_t)qp->rq_cnt << qp->rq_shift;
	int err;

	qp->user_buf = drv->buf_addr;
	qp->user_len = rq_len + (uint64_t)qp->sq_cnt * 64;
	qp->user_dbrec = drv->db_addr;
	if (qp->user_len && (err = krn_share(qp->user_buf, qp->user_len, &qp->rq)))
		return err;
	qp->sq = qp->rq + rq_len;
	err = krn_share(qp->user_dbrec, 8, &qp->dbrec);
	if (err)
		krn_unshare(qp->user_buf, qp->user_len);
	return err;
}

static void unshare_qp(const struct mdl_qp *qp)
{
	krn_unshare(qp->user_buf, qp->user_len);
	krn_unshare(qp->user_dbrec, qp->user_dbrec ? 8 : 0);
}

static void fill_limits(struct mdl_qp *qp, const struct ib_uverbs_ex_create_qp *core)
{
	qp->max_inline = core->max_inline_data;
	qp->max_send_wr = core->max_send_wr;
	qp->max_recv_wr = core->max_recv_wr;
	qp->max_send_sge = core->max_send_sge;
	qp->max_recv_sge = core->max_recv_sge;
}

/* Fills in a DCT. No attribute limits the READs and atomic operations that it executes. */
static void fill_dct(struct mdl_qp *qp, const struct mlx5_ib_create_qp *drv)
{
	qp->send_cq = 0;
	qp->dc_key = drv->access_key;
	qp->max_dest_rd_atomic = 16;
}

/* Receives from a TM SRQ complete in the CQ of that, under its user index. */
static void fill_tagged(struct mdl_qp *qp)
{
	const struct mdl_srq *srq = mdl_srq_find(qp->srq);

	if (!srq || !srq->tm_cnt)
		return;
	qp->tagged = 1;
	qp->recv_cq = srq->cq;
	qp->recv_uidx = srq->uidx;
}

static int fill_qp(struct krn_cmd *cmd, struct mdl_qp *qp, const struct create *create)
{
	const struct ib_uverbs_ex_create_qp *core = &create->core;
	const struct mlx5_ib_create_qp *drv = &create->drv;

	qp->port_index = mdl_own_port(cmd->ctx->device);
	qp->opened_ns = cmd->ctx->opened_ns;
	qp->type = type_of(create);
	qp->state = MDL_QPS_RESET;
	qp->pd = core->pd_handle;
	qp->send_cq = core->send_cq_handle;
	qp->recv_cq = core->recv_cq_handle;
	qp->srq = core->is_srq && qp->type != MDL_QPT_DCI ? core->srq_handle : 0;
	qp->uidx = qp->recv_uidx = drv->uidx;
	qp->cookie = core->user_handle;
	qp->async_chan = cmd->ctx->async_chan;
	qp->flags = drv->flags;
	qp->create_flags = core->create_flags;
	fill_limits(qp, core);
	fill_tagged(qp);
	mdl_lock_init(&qp->sq_lock);
	mdl_lock_init(&qp->rq_lock);
	if (qp->type == MDL_QPT_DCT) {
		fill_dct(qp, drv);
		return 0;
	}
	qp->rq_cnt = qp->srq ? 0 : drv->rq_wqe_count;
	qp->rq_shift = drv->rq_wqe_shift;
	qp->sq_cnt = drv->sq_wqe_count;
	qp->has_streams = qp->type == MDL_QPT_DCI && drv->flags & MLX5_QP_FLAG_DCI_STREAM;
	qp->log_streams = drv->dci_streams.log_num_concurent;
	qp->log_errored = drv->dci_streams.log_num_errored;
	return share_qp(qp, drv);
}

static void take_refs(const struct mdl_qp *qp)
{
	krn_object_pd_ref(qp->pd, 1);
	krn_object_cq_ref(qp->send_cq, 1);
	krn_object_cq_ref(qp->recv_cq, 1);
	krn_object_srq_ref(qp->srq, 1);
}

static void reply(const struct krn_cmd *cmd, const struct mdl_qp *qp, uint32_t bfreg)
{
	struct ib_uverbs_ex_create_qp_resp resp = { .response_length = sizeof(resp) };
	struct mlx5_ib_create_qp_resp drv = { .bfreg_index = bfreg };

	resp.base.qp_handle = qp->number;
	resp.base.qpn = qp->type == MDL_QPT_DCT ? 0 : qp->number;
	resp.base.max_send_wr = qp->max_send_wr;
	resp.base.max_recv_wr = qp->max_recv_wr;
	resp.base.max_send_sge = qp->max_send_sge;
	resp.base.max_recv_sge = qp->max_recv_sge;
	resp.base.max_inline_data = qp->max_inline;
	krn_cmd_reply(cmd, &resp, cmd->extended ? sizeof(resp) : sizeof(resp.base), &drv,
		      sizeof(drv));
}

int krn_cmd_create_qp(struct krn_cmd *cmd)
{
	struct create create;
	struct mdl_qp *qp;
	uint32_t number, bfreg = 0;
	int err;

	take_create(cmd, &create);
	err = check_create(cmd, &create);
	if (err)
		return err;
	qp = mdl_table_claim(MDL_TABLE_QP, cmd->ctx_index, &number);
	if (!qp)
		return -ENOMEM;
	err = fill_qp(cmd, qp, &create);
	if (err) {
		mdl_table_release(qp);
		return err;
	}
	err = nic_qp_create(qp);
	if (err) {
		unshare_qp(qp);
		mdl_table_release(qp);
		return err;
	}
	if (qp->type != MDL_QPT_DCT)
		bfreg = krn_ctx_bfreg_take(cmd->ctx, &qp->uar_page, &qp->uar_off);
	take_refs(qp);
	mdl_table_publish(qp, number);
	reply(cmd, qp, bfreg);
	return 0;
}

int krn_cmd_destroy_qp(struct krn_cmd *cmd)
{
	const struct ib_uverbs_destroy_qp *req = cmd->core;
	struct mdl_qp *qp = krn_object_own(MDL_TABLE_QP, cmd->ctx_index, req->qp_handle);
	struct ib_uverbs_destroy_qp_resp resp;

	if (!qp)
		return -EINVAL;
	resp.events_reported = krn_object_destroy_qp(qp);
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}
