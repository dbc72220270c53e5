/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of a player of hca_chaos: an RC queue pair to every other one, a shared receive queue and
 * a UD queue pair.
 */
#include "hca_chaos.h"

#include <stdlib.h>
#include <string.h>

struct me me;

void post_recv(uint32_t slot)
{
	struct ibv_sge sge = sge_of(me.memory->recv[slot], SLOT);
	struct ibv_recv_wr *bad,
		wr = { .wr_id = (uint64_t)GOT_RC << 32 | slot, .sg_list = &sge, .num_sge = 1 };

	NEED(!ibv_post_srq_recv(me.srq, &wr, &bad));
}

void post_ud_recv(uint32_t slot)
{
	struct ibv_sge sge = sge_of(me.memory->ud_recv[slot], SLOT);
	struct ibv_recv_wr *bad,
		wr = { .wr_id = (uint64_t)GOT_UD << 32 | slot, .sg_list = &sge, .num_sge = 1 };

	NEED(!ibv_post_recv(me.ud, &wr, &bad));
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = me.cq,
					 .recv_cq = me.cq,
					 .srq = type == IBV_QPT_RC ? me.srq : NULL,
					 .qp_type = type,
					 .sq_sig_all = 1,
					 .cap = { .max_send_wr = 4 * WINDOW,
						  .max_recv_wr = UD_DEPTH,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qkey = QKEY,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp *qp = ibv_create_qp(me.pd, &init);

	NEED(qp);
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (type == IBV_QPT_RC ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)));
	return qp;
}

void open_device(void)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	NEED(list && count);
	me.ctx = ibv_open_device(list[0]);
	NEED(me.ctx);
	me.pd = ibv_alloc_pd(me.ctx);
	NEED(me.pd);
}

void make_all(void)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_port_attr port;

	open_device();
	me.memory = aligned_alloc(4096, (sizeof(*me.memory) + 4095) & ~4095ul);
	NEED(me.memory);
	memset(me.memory, 0, sizeof(*me.memory));
	me.mr = ibv_reg_mr(me.pd, me.memory, sizeof(*me.memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	me.cq = ibv_create_cq(me.ctx, 512, NULL, NULL, 0);
	me.srq = ibv_create_srq(me.pd, &srq);
	NEED(me.mr && me.cq && me.srq);
	NEED(!ibv_query_port(me.ctx, 1, &port));
	board->proc[me.rank].lid = port.lid;
	board->proc[me.rank].rkey = me.mr->rkey;
	board->proc[me.rank].words = (uintptr_t)me.memory->words;
	for (uint32_t peer = 0; peer < PROCS; peer++) {
		if (peer == me.rank)
			continue;
		me.qp[peer] = make_qp(IBV_QPT_RC);
		board->proc[me.rank].qpn[peer] = me.qp[peer]->qp_num;
	}
	me.ud = make_qp(IBV_QPT_UD);
	board->proc[me.rank].ud_qpn = me.ud->qp_num;
}

static void connect_rc(uint32_t peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = board->proc[peer].qpn[me.rank],
				    .rq_psn = 77,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 1,
				    .ah_attr = { .dlid = board->proc[peer].lid, .port_num = 1 } };

	NEED(!ibv_modify_qp(me.qp[peer], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 12,
				     .retry_cnt = 3,
				     .rnr_retry = 7,
				     .sq_psn = 77,
				     .max_rd_atomic = 1 };
	NEED(!ibv_modify_qp(me.qp[peer], &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void connect_all(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	for (uint32_t slot = 0; slot < DEPTH; slot++)
		post_recv(slot);
	NEED(!ibv_modify_qp(me.ud, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(me.ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	for (uint32_t slot = 0; slot < UD_DEPTH; slot++)
		post_ud_recv(slot);
	for (uint32_t peer = 0; peer < PROCS; peer++) {
		struct ibv_ah_attr ah = { .dlid = board->proc[peer].lid, .port_num = 1 };

		if (peer == me.rank)
			continue;
		connect_rc(peer);
		me.ah[peer] = ibv_create_ah(me.pd, &ah);
		NEED(me.ah[peer]);
	}
}
