/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes of a queue pair for its connection: INIT_QP_ATTR. */
#include "model/kernel/cm/krn_cm.h"
#include "model/fabric/mdl_segment.h"

#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

/* Bits of the attribute mask, with the values of ibv_qp_attr_mask. */
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
	A_MIN_RNR = 1 << 15,
	A_SQ_PSN = 1 << 16,
	A_DEST_RD = 1 << 17,
	A_DEST_QPN = 1 << 20,
};

#define QKEY_UDP 0x01234567

static void for_init(const struct mdl_cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = A_STATE | A_PKEY | A_PORT;
	attr->port_num = 1;
	if (id->ps == RDMA_PS_UDP) {
		attr->qp_attr_mask |= A_QKEY;
		attr->qkey = QKEY_UDP;
		return;
	}
	/* Access rights are part of the connection. */
	attr->qp_attr_mask |= A_ACCESS;
	if (id->peer)
		attr->qp_access_flags =
			MDL_ACCESS_REMOTE_WRITE | MDL_ACCESS_REMOTE_READ | MDL_ACCESS_REMOTE_ATOMIC;
}

static void fill_path(struct ib_uverbs_ah_attr *ah, const struct mdl_port *to)
{
	uint32_t gid = to->gid_cnt - 1;

	ah->dlid = to->lid;
	ah->port_num = 1;
	if (mdl_self.seg->link != MDL_LINK_ROCE)
		return;
	ah->is_global = 1;
	ah->grh.sgid_index = (uint8_t)gid;
	ah->grh.hop_limit = 64;
	memcpy(ah->grh.dgid, to->gid[gid], 16);
}

static int for_rtr(const struct mdl_cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	const struct mdl_cm_id *peer = krn_cm_find(id->peer);

	if (!peer)
		return -ENOTCONN;
	attr->qp_attr_mask = A_STATE | A_AV | A_MTU | A_DEST_QPN | A_RQ_PSN | A_DEST_RD | A_MIN_RNR;
	fill_path(&attr->ah_attr, &mdl_self.seg->port[peer->node]);
	attr->path_mtu = mdl_self.seg->link == MDL_LINK_ROCE ? 3 : 5;
	attr->dest_qp_num = peer->qpn;
	attr->rq_psn = peer->psn;
	attr->max_dest_rd_atomic = id->responder_resources;
	return 0;
}

static void for_rts(const struct mdl_cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = A_STATE | A_TIMEOUT | A_RETRY | A_RNR_RETRY | A_SQ_PSN | A_RD_ATOMIC;
	attr->timeout = 14;
	attr->retry_cnt = id->retry_count > 7 ? 7 : id->retry_count;
	attr->rnr_retry = id->rnr_retry > 7 ? 7 : id->rnr_retry;
	attr->sq_psn = id->psn;
	attr->max_rd_atomic = id->initiator_depth;
}

int krn_cm_init_qp_attr(struct krn_cm_cmd *cmd)
{
	const struct rdma_ucm_init_qp_attr *req = cmd->in;
	struct mdl_cm_id *id = krn_cm_own(req->id);
	struct ib_uverbs_qp_attr attr = { .qp_state = req->qp_state };
	int err = 0;

	if (!id)
		return -EINVAL;
	if (req->qp_state == MDL_QPS_INIT)
		for_init(id, &attr);
	else if (req->qp_state == MDL_QPS_RTR)
		err = for_rtr(id, &attr);
	else if (req->qp_state == MDL_QPS_RTS)
		for_rts(id, &attr);
	else
		err = -EINVAL;
	if (!err)
		krn_cm_reply(cmd, req->response, &attr, sizeof(attr));
	return err;
}
