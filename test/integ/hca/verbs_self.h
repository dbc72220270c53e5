/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RC queue pair that is connected to itself: what the tests share that speak plain verbs alone.
 *
 * Runs on the device model, or on an adapter; on a RoCE port the GID of index 1 is used.
 */
#ifndef INTEG_VERBS_SELF_H
#define INTEG_VERBS_SELF_H

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#define SELF_BUF 4096u
#define SELF_WRS 16u

static inline void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

struct self {
	struct ibv_cq *cq; /* of both its queues, 10 places */
	struct ibv_qp *qp; /* SELF_WRS each way */
	struct ibv_mr *mr;
	char *buf; /* SELF_BUF bytes */
};

static inline void self_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("cannot go to INIT");
}

static inline void self_to_rtr(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = qp->qp_num,
				    .min_rnr_timer = 12,
				    .ah_attr = { .port_num = 1 } };
	struct ibv_port_attr port;

	if (ibv_query_port(qp->context, 1, &port))
		die("cannot query the port");
	attr.ah_attr.dlid = port.lid;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.sgid_index = 1;
		attr.ah_attr.grh.hop_limit = 64;
		if (ibv_query_gid(qp->context, 1, 1, &attr.ah_attr.grh.dgid))
			die("cannot query the GID");
	}
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("cannot go to RTR");
}

static inline void self_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("cannot go to RTS");
}

static inline struct ibv_context *self_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context)
		die("no device");
	return context;
}

/** inline_len: bytes that a send may carry in its WQE. */
static inline void self_open(struct self *self, struct ibv_context *context, uint32_t inline_len)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = SELF_WRS,
						  .max_recv_wr = SELF_WRS,
						  .max_send_sge = 1,
						  .max_recv_sge = 1,
						  .max_inline_data = inline_len },
					 .qp_type = IBV_QPT_RC };
	struct ibv_pd *pd = ibv_alloc_pd(context);

	self->buf = aligned_alloc(4096, SELF_BUF);
	self->cq = ibv_create_cq(context, 10, NULL, NULL, 0);
	if (!pd || !self->buf || !self->cq)
		die("cannot create the completion queue");
	self->mr = ibv_reg_mr(pd, self->buf, SELF_BUF, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = self->cq;
	self->qp = self->mr ? ibv_create_qp(pd, &init) : NULL;
	if (!self->qp)
		die("cannot create the queue pair");
	self_to_init(self->qp);
	self_to_rtr(self->qp);
	self_to_rts(self->qp);
}

static inline void self_close(struct self *self)
{
	if (ibv_destroy_qp(self->qp) || ibv_destroy_cq(self->cq) || ibv_dereg_mr(self->mr))
		die("cannot destroy");
}

#endif
