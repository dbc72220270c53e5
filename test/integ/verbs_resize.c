/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resizes a completion queue that holds completions, up and down, and reads every one of them: libmlx5
 * moves what it finds in the old buffer, up to the adapter's resize CQE. Runs on the device model, or on an
 * adapter.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE  64
#define BATCH 3

static void die(const char *what)
{
	fprintf(stderr, "verbs_resize: %s\n", what);
	exit(1);
}

/* A queue pair that is connected to itself. */
struct loop {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buf;
};

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("cannot go to INIT");
}

static void to_rtr(struct ibv_qp *qp)
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

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("cannot go to RTS");
}

static void open_loop(struct loop *loop, struct ibv_context *context)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = 16,
						  .max_recv_wr = 16,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_pd *pd = ibv_alloc_pd(context);

	loop->buf = aligned_alloc(4096, 4096);
	loop->cq = ibv_create_cq(context, 10, NULL, NULL, 0);
	if (!pd || !loop->buf || !loop->cq)
		die("cannot create the completion queue");
	loop->mr = ibv_reg_mr(pd, loop->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = loop->cq;
	loop->qp = loop->mr ? ibv_create_qp(pd, &init) : NULL;
	if (!loop->qp)
		die("cannot create the queue pair");
	to_init(loop->qp);
	to_rtr(loop->qp);
	to_rts(loop->qp);
}

/* A message to itself: two completions. */
static void send_one(struct loop *loop, uint64_t id)
{
	struct ibv_sge from = { (uintptr_t)loop->buf, SIZE, loop->mr->lkey };
	struct ibv_sge to = { (uintptr_t)loop->buf + 2048, SIZE, loop->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = id, .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = id,
				    .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;

	if (ibv_post_recv(loop->qp, &recv, &bad_recv) || ibv_post_send(loop->qp, &send, &bad_send))
		die("cannot post");
}

/* Reads 2 * BATCH completions: each identifier once of each kind. */
static void read_all(struct loop *loop, uint64_t first)
{
	unsigned seen[2] = { 0, 0 };
	time_t start = time(NULL);
	struct ibv_wc wc;

	while (seen[0] != (1u << BATCH) - 1 || seen[1] != (1u << BATCH) - 1) {
		int got = ibv_poll_cq(loop->cq, 1, &wc);
		unsigned kind = got == 1 && wc.opcode == IBV_WC_RECV, bit;

		if (got < 0 || (got == 1 && wc.status != IBV_WC_SUCCESS))
			die("a completion with an error");
		if (!got && time(NULL) > start + 10)
			die("completions are missing");
		if (got != 1)
			continue;
		bit = 1u << (wc.wr_id - first);
		if (wc.wr_id < first || wc.wr_id >= first + BATCH || (seen[kind] & bit))
			die("a completion came twice, or of nothing");
		seen[kind] |= bit;
	}
}

int main(void)
{
	static const int sizes[] = { 10, 40, 7, 100, 16, 64, 7, 7, 200 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct loop loop;
	uint64_t id = 0;

	if (!context)
		die("no device");
	open_loop(&loop, context);
	for (size_t lap = 0; lap < sizeof(sizes) / sizeof(sizes[0]); lap++, id += BATCH) {
		for (uint64_t i = 0; i < BATCH; i++)
			send_one(&loop, id + i);
		if (ibv_resize_cq(loop.cq, sizes[lap]) || loop.cq->cqe < sizes[lap])
			die("cannot resize");
		read_all(&loop, id);
	}
	if (ibv_destroy_qp(loop.qp) || ibv_destroy_cq(loop.cq) || ibv_dereg_mr(loop.mr))
		die("cannot destroy");
	printf("verbs_resize: ok, %zu times\n", sizeof(sizes) / sizeof(sizes[0]));
	return 0;
}
