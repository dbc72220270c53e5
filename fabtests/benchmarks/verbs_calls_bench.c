/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Instructions of libibverbs' original calls, against its extended ones.
 *
 * usage: verbs_calls_bench post
 * wr poll
 * ex BATCH [send
 * recv]
 *
 * A queue pair connected to itself. Rounds of BATCH RDMA WRITEs with immediate, 64 bytes inline,
 * sent by ibv_post_send (a chain) or ibv_wr_*, received by ibv_poll_cq (16 at a time) or
 * ibv_start_poll, reading the fields that dev/verbs reads: status, opcode, queue pair and
 * immediate. SIGUSR2 is raised around the sends of the last round, or the receives (default:
 * sends): for insn_count, under the device model, with libmlx5.
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS    8u
#define BATCH_MAX 64u
#define DEPTH     1024u
#define LEN       64u

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_qp_ex *qp;
static struct ibv_mr *mr;
static uint8_t buf[4096];
static bool by_wr, by_ex, is_recv;
static unsigned batch;

static void must(const char *what, bool ok)
{
	if (!ok) {
		perror(what);
		exit(EXIT_FAILURE);
	}
}

static void make_objects(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 2 * DEPTH,
					       .wc_flags =
						       IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_IMM };
	struct ibv_qp_init_attr_ex attr = {
		.cap = { DEPTH, DEPTH, 1, 1, LEN },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	};

	ctx = list && *list ? ibv_open_device(*list) : NULL;
	must("no device", ctx);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq_ex(ctx, &cq_attr);
	must("objects", pd && cq);
	attr.pd = pd;
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_qp_to_qp_ex(ibv_create_qp_ex(ctx, &attr));
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must("queue pair", qp && mr);
}

static void connect_to_itself(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_port_attr port;
	struct ibv_qp *base = &qp->qp_base;

	must("INIT",
	     !ibv_modify_qp(base, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	for (unsigned i = 0; i < DEPTH; i++) {
		struct ibv_recv_wr wr = { 0 }, *bad;

		must("receive", !ibv_post_recv(base, &wr, &bad));
	}
	must("port", !ibv_query_port(ctx, 1, &port));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = port.active_mtu,
				     .dest_qp_num = base->qp_num,
				     .max_dest_rd_atomic = 1,
				     .ah_attr = { .dlid = port.lid, .port_num = 1 } };
	must("RTR", !ibv_modify_qp(base, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1 };
	must("RTS",
	     !ibv_modify_qp(base, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void send_old(void)
{
	struct ibv_send_wr wr[BATCH_MAX], *bad;
	struct ibv_sge sge = { (uintptr_t)buf, LEN, mr->lkey };

	for (unsigned i = 0; i < batch; i++) {
		wr[i].wr_id = i;
		wr[i].next = i + 1 < batch ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr[i].send_flags = IBV_SEND_INLINE | (i + 1 == batch ? IBV_SEND_SIGNALED : 0);
		wr[i].imm_data = i;
		wr[i].wr.rdma.remote_addr = (uintptr_t)buf + 2048;
		wr[i].wr.rdma.rkey = mr->rkey;
	}
	must("post", !ibv_post_send(&qp->qp_base, wr, &bad));
}

static void send_new(void)
{
	ibv_wr_start(qp);
	for (unsigned i = 0; i < batch; i++) {
		qp->wr_id = i;
		qp->wr_flags = i + 1 == batch ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write_imm(qp, mr->rkey, (uintptr_t)buf + 2048, i);
		ibv_wr_set_inline_data(qp, buf, LEN);
	}
	must("post", !ibv_wr_complete(qp));
}

/* Returns the number of completions, and in *sum the sum of their fields, so that they are read. */
static unsigned take_old(uint64_t *sum)
{
	struct ibv_wc wc[16];
	int cnt = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 16, wc);

	for (int i = 0; i < cnt; i++) {
		must("status", wc[i].status == IBV_WC_SUCCESS);
		*sum += wc[i].opcode + wc[i].qp_num + wc[i].imm_data;
	}
	return (unsigned)cnt;
}

static unsigned take_new(uint64_t *sum)
{
	struct ibv_poll_cq_attr attr = { 0 };
	unsigned cnt = 0;

	if (ibv_start_poll(cq, &attr))
		return 0;
	do {
		enum ibv_wc_opcode opcode = ibv_wc_read_opcode(cq);

		must("status", cq->status == IBV_WC_SUCCESS);
		*sum += opcode + ibv_wc_read_qp_num(cq);
		if (opcode == IBV_WC_RECV_RDMA_WITH_IMM)
			*sum += ibv_wc_read_imm_data(cq);
	} while (++cnt < 16 && !ibv_next_poll(cq));
	ibv_end_poll(cq);
	return cnt;
}

static void mark(bool now)
{
	if (now)
		raise(SIGUSR2);
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;

	if (argc < 4 || (batch = (unsigned)atoi(argv[3])) < 1 || batch > BATCH_MAX)
		return 2;
	by_wr = !strcmp(argv[1], "wr");
	by_ex = !strcmp(argv[2], "ex");
	is_recv = argc > 4 && !strcmp(argv[4], "recv");
	make_objects();
	connect_to_itself();
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool last = round + 1 == ROUNDS;
		unsigned got = 0;

		mark(last && !is_recv);
		by_wr ? send_new() : send_old();
		mark(last && !is_recv);
		mark(last && is_recv);
		while (got < batch + 1) /* the arrivals and one send completion */
			got += by_ex ? take_new(&sum) : take_old(&sum);
		mark(last && is_recv);
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
