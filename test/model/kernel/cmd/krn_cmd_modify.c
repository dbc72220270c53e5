/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State machine of queue pairs: the transitions, the attributes that each needs, and the
 * attributes' values. After the table of the InfiniBand specification, 10.3.1 and 11.2.5; for DC
 * initiators and targets after the kernel's driver, which permits no other attributes than these.
 */
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/fabric/mdl_nic.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

enum {
	A_STATE = 1 << 0,
	A_ACCESS = 1 << 3,
	A_PKEY = 1 << 4,
	A_PORT = 1 << 5,
	A_QKEY = 1 << 6,
	A_AV = 1 << 7,
	A_MTU = 1 << 8,
	A_TIMEOUT = 1 << 9,
	A_RETRY = 1 << 10,
	A_RNR_RETRY = 1 << 11,
	A_RQ_PSN = 1 << 12,
	A_RD_ATOMIC = 1 << 13,
	A_ALT_PATH = 1 << 14,
	A_MIN_RNR = 1 << 15,
	A_SQ_PSN = 1 << 16,
	A_DEST_RD = 1 << 17,
	A_MIG = 1 << 18,
	A_DEST_QPN = 1 << 20,
};

/* Attributes that a transition needs besides the state; types in the order RC, UC, UD. */
static const struct transition {
	uint8_t from, to;
	uint32_t needed[3];
} transitions[] = {
	{ MDL_QPS_RESET,
	  MDL_QPS_INIT,
	  { A_PKEY | A_PORT | A_ACCESS, A_PKEY | A_PORT | A_ACCESS, A_PKEY | A_PORT | A_QKEY } },
	{ MDL_QPS_INIT, MDL_QPS_INIT, { 0, 0, 0 } },
	{ MDL_QPS_INIT,
	  MDL_QPS_RTR,
	  { A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_DEST_RD | A_MIN_RNR,
	    A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN, 0 } },
	{ MDL_QPS_RTR,
	  MDL_QPS_RTS,
	  { A_TIMEOUT | A_RETRY | A_RNR_RETRY | A_SQ_PSN | A_RD_ATOMIC, A_SQ_PSN, A_SQ_PSN } },
	{ MDL_QPS_RTS, MDL_QPS_RTS, { 0, 0, 0 } },
	{ MDL_QPS_RTS, MDL_QPS_SQD, { 0, 0, 0 } },
	{ MDL_QPS_SQD, MDL_QPS_SQD, { 0, 0, 0 } },
	{ MDL_QPS_SQD, MDL_QPS_RTS, { 0, 0, 0 } },
	{ MDL_QPS_SQE, MDL_QPS_RTS, { 0, 0, 0 } },
};

/* Attributes that a transition of DC needs, and those that it permits besides. */
static const struct dc_transition {
	uint32_t type;
	uint8_t from, to;
	uint32_t needed, permitted;
} dc_transitions[] = {
	{ MDL_QPT_DCT, MDL_QPS_RESET, MDL_QPS_INIT, A_PKEY | A_PORT | A_ACCESS, 0 },
	{ MDL_QPT_DCT, MDL_QPS_INIT, MDL_QPS_RTR, A_AV | A_MTU | A_MIN_RNR, 0 },
	{ MDL_QPT_DCI, MDL_QPS_RESET, MDL_QPS_INIT, A_PKEY | A_PORT, 0 },
	{ MDL_QPT_DCI, MDL_QPS_INIT, MDL_QPS_INIT, 0, A_PKEY | A_PORT },
	{ MDL_QPT_DCI, MDL_QPS_INIT, MDL_QPS_RTR, A_MTU, A_PKEY | A_AV },
	{ MDL_QPT_DCI, MDL_QPS_RTR, MDL_QPS_RTS,
	  A_TIMEOUT | A_RETRY | A_RNR_RETRY | A_SQ_PSN | A_RD_ATOMIC, A_MIN_RNR },
	{ MDL_QPT_DCI, MDL_QPS_RTS, MDL_QPS_RTS, 0, A_MIN_RNR },
};

static int check_dc_transition(const struct mdl_qp *qp, uint32_t to, uint32_t mask)
{
	mask &= ~(uint32_t)A_STATE;
	if (qp->type == MDL_QPT_DCI &&
	    (to == MDL_QPS_RESET || (to == MDL_QPS_ERR && qp->state != MDL_QPS_RESET)))
		return mask ? -EINVAL : 0;
	for (size_t i = 0; i < sizeof(dc_transitions) / sizeof(dc_transitions[0]); i++) {
		const struct dc_transition *row = &dc_transitions[i];

		if (row->type == qp->type && row->from == qp->state && row->to == to)
			return (mask & row->needed) != row->needed ||
					       mask & ~(row->needed | row->permitted)
				       ? -EINVAL
				       : 0;
	}
	return -EINVAL;
}

static bool is_dc(const struct mdl_qp *qp)
{
	return qp->type == MDL_QPT_DCI || qp->type == MDL_QPT_DCT;
}

static int check_transition(const struct mdl_qp *qp, uint32_t to, uint32_t mask)
{
	if (is_dc(qp))
		return check_dc_transition(qp, to, mask);
	if (to == MDL_QPS_RESET || to == MDL_QPS_ERR)
		return 0;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		uint32_t needed = transitions[i].needed[qp->type - MDL_QPT_RC];

		if (transitions[i].from == qp->state && transitions[i].to == to)
			return (mask & needed) == needed ? 0 : -EINVAL;
	}
	return -EINVAL;
}

/* Rejects attribute values that are invalid in every transition. */
static int check_values(const struct ib_uverbs_modify_qp *req)
{
	uint32_t mask = req->attr_mask;

	if ((mask & A_PORT && req->port_num != 1) || (mask & A_PKEY && req->pkey_index) ||
	    (mask & A_MTU && (req->path_mtu < 1 || req->path_mtu > 5)) ||
	    (mask & A_RD_ATOMIC && req->max_rd_atomic > 16) ||
	    (mask & A_DEST_RD && req->max_dest_rd_atomic > 16) ||
	    (mask & A_TIMEOUT && req->timeout > 31) || (mask & A_RETRY && req->retry_cnt > 7) ||
	    (mask & A_RNR_RETRY && req->rnr_retry > 7) ||
	    (mask & A_MIN_RNR && req->min_rnr_timer > 31))
		return -EINVAL;
	if (mask & A_AV && req->dest.port_num != 1)
		return -EINVAL;
	if (mask & A_AV && req->dest.is_global && req->dest.sgid_index >= 8)
		return -EINVAL;
	/* RoCE has no LIDs: a path without a GRH has no destination. */
	if (mask & A_AV && mdl_self.seg->link == MDL_LINK_ROCE && !req->dest.is_global)
		return -EINVAL;
	return 0;
}

static void take_path(struct mdl_path *path, const struct ib_uverbs_qp_dest *dest)
{
	memcpy(path->dgid, dest->dgid, sizeof(path->dgid));
	path->flow_label = dest->flow_label;
	path->dlid = dest->dlid;
	path->sgid_index = dest->sgid_index;
	path->hop_limit = dest->hop_limit;
	path->traffic_class = dest->traffic_class;
	path->sl = dest->sl;
	path->src_path_bits = dest->src_path_bits;
	path->static_rate = dest->static_rate;
	path->is_global = dest->is_global;
	path->port = dest->port_num;
}

static void give_path(struct ib_uverbs_qp_dest *dest, const struct mdl_path *path)
{
	memcpy(dest->dgid, path->dgid, sizeof(path->dgid));
	dest->flow_label = path->flow_label;
	dest->dlid = path->dlid;
	dest->sgid_index = path->sgid_index;
	dest->hop_limit = path->hop_limit;
	dest->traffic_class = path->traffic_class;
	dest->sl = path->sl;
	dest->src_path_bits = path->src_path_bits;
	dest->static_rate = path->static_rate;
	dest->is_global = path->is_global;
	dest->port_num = path->port;
}

#define TAKE(bit, field, from)                                                                     \
	do {                                                                                       \
		if (req->attr_mask & (bit))                                                        \
			qp->field = req->from;                                                     \
	} while (0)

static void take_attributes(struct mdl_qp *qp, const struct ib_uverbs_modify_qp *req)
{
	TAKE(A_ACCESS, access, qp_access_flags);
	TAKE(A_PKEY, pkey_index, pkey_index);
	TAKE(A_PORT, port, port_num);
	TAKE(A_QKEY, qkey, qkey);
	TAKE(A_MTU, path_mtu, path_mtu);
	TAKE(A_TIMEOUT, timeout, timeout);
	TAKE(A_RETRY, retry_cnt, retry_cnt);
	TAKE(A_RNR_RETRY, rnr_retry, rnr_retry);
	TAKE(A_RQ_PSN, rq_psn, rq_psn);
	TAKE(A_RD_ATOMIC, max_rd_atomic, max_rd_atomic);
	TAKE(A_MIN_RNR, min_rnr_timer, min_rnr_timer);
	TAKE(A_SQ_PSN, sq_psn, sq_psn);
	TAKE(A_DEST_RD, max_dest_rd_atomic, max_dest_rd_atomic);
	TAKE(A_MIG, path_mig_state, path_mig_state);
	TAKE(A_DEST_QPN, dest_qpn, dest_qp_num);
	if (req->attr_mask & A_AV)
		take_path(&qp->path, &req->dest);
	if (req->attr_mask & A_ALT_PATH)
		take_path(&qp->alt_path, &req->alt_dest);
}

static int modify(struct mdl_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *to)
{
	uint32_t from = qp->state;
	int err;

	*to = req->attr_mask & A_STATE ? req->qp_state : from;
	if (qp->type == MDL_QPT_DCT && !(req->attr_mask & A_STATE))
		return -EINVAL;
	err = check_values(req);
	if (!err && req->attr_mask & A_STATE)
		err = check_transition(qp, *to, req->attr_mask);
	if (err)
		return err;
	take_attributes(qp, req);
	nic_qp_modify(qp, from, *to);
	qp->state = *to;
	return 0;
}

/* Returns true unless this makes a DCT ready and the driver's response cannot carry its number. */
static bool has_room_for_number(const struct krn_cmd *cmd, const struct mdl_qp *qp)
{
	const struct ib_uverbs_modify_qp *req = cmd->core;
	size_t least = offsetof(struct mlx5_ib_modify_qp_resp, dctn) + sizeof(uint32_t);

	return qp->type != MDL_QPT_DCT || req->qp_state != MDL_QPS_RTR ||
	       cmd->drv_resp_len >= least;
}

/* Returns true for a transition that a device that has failed executes. */
static bool is_end(const struct ib_uverbs_modify_qp *req)
{
	return req->attr_mask & A_STATE &&
	       (req->qp_state == MDL_QPS_RESET || req->qp_state == MDL_QPS_ERR);
}

int krn_cmd_modify_qp(struct krn_cmd *cmd)
{
	const struct ib_uverbs_modify_qp *req = cmd->core; /* first member of the extended struct */
	struct mdl_qp *qp = krn_object_own(MDL_TABLE_QP, cmd->ctx_index, req->qp_handle);
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct mlx5_ib_modify_qp_resp drv = { .response_length = sizeof(drv) };
	uint32_t to;
	int err;

	if (!qp || !has_room_for_number(cmd, qp))
		return -EINVAL;
	if (nic_fault_has_failed(cmd->ctx->device, cmd->ctx->opened_ns) && !is_end(req))
		return -EIO;
	mdl_lock(&qp->sq_lock);
	mdl_lock(&qp->rq_lock);
	err = modify(qp, req, &to);
	mdl_unlock(&qp->rq_lock);
	mdl_unlock(&qp->sq_lock);
	if (err)
		return err;
	nic_qp_modified(qp);
	if (qp->type == MDL_QPT_DCT && to == MDL_QPS_RTR)
		drv.dctn = qp->number;
	krn_cmd_reply(cmd, &resp, sizeof(resp), &drv, sizeof(drv));
	return 0;
}

/* Returns false where the kernel refuses to query a DCT: before it is ready, other attributes. */
static bool may_query(const struct mdl_qp *qp, uint32_t mask)
{
	const uint32_t known = A_STATE | A_ACCESS | A_PKEY | A_AV | A_MTU | A_MIN_RNR;

	return qp->type != MDL_QPT_DCT || (qp->state == MDL_QPS_RTR && !(mask & ~known));
}

int krn_cmd_query_qp(struct krn_cmd *cmd)
{
	const struct ib_uverbs_query_qp *req = cmd->core;
	const struct mdl_qp *qp = krn_object_own(MDL_TABLE_QP, cmd->ctx_index, req->qp_handle);
	struct ib_uverbs_query_qp_resp resp = { 0 };

	if (!qp || !may_query(qp, req->attr_mask))
		return -EINVAL;
	give_path(&resp.dest, &qp->path);
	give_path(&resp.alt_dest, &qp->alt_path);
	resp.max_send_wr = qp->max_send_wr;
	resp.max_recv_wr = qp->max_recv_wr;
	resp.max_send_sge = qp->max_send_sge;
	resp.max_recv_sge = qp->max_recv_sge;
	resp.max_inline_data = qp->max_inline;
	resp.qkey = qp->qkey;
	resp.rq_psn = qp->rq_psn;
	resp.sq_psn = qp->sq_psn;
	resp.dest_qp_num = qp->dest_qpn;
	resp.qp_access_flags = qp->access;
	resp.pkey_index = qp->pkey_index;
	resp.qp_state = resp.cur_qp_state = (uint8_t)qp->state;
	resp.path_mtu = qp->path_mtu;
	resp.path_mig_state = qp->path_mig_state;
	resp.max_rd_atomic = qp->max_rd_atomic;
	resp.max_dest_rd_atomic = qp->max_dest_rd_atomic;
	resp.min_rnr_timer = qp->min_rnr_timer;
	resp.port_num = qp->port;
	resp.timeout = qp->timeout;
	resp.retry_cnt = qp->retry_cnt;
	resp.rnr_retry = qp->rnr_retry;
	krn_cmd_reply(cmd, &resp, sizeof(resp), NULL, 0);
	return 0;
}
