/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DC through libmlx5: an initiator with streams and a target of one process. Messages arrive;
 * errors of one stream leave the others alone, and a reset mends it; a wrong access key is refused;
 * the initiator breaks when its limit of streams in error is reached, and works again after a
 * reset; initiators of other processes that are killed harm neither the target nor the one of this
 * process.
 *
 * Runs on the device model, or on an adapter; on a RoCE port the GID of index 1 is used.
 */
#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_self.h"

#define KEY         0x1234567890abcdefull
#define LOG_STREAMS 2
#define LOG_ERRORED 1
#define WRS         32u
#define SIZE        64u
#define KILLS       20u

static struct dc {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *dct, *dci;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv;
	struct ibv_ah *ah;
	uint32_t dctn; /* number of the target that messages go to */
	char *buf;
} dc;

static void check(int good, const char *what)
{
	if (!good)
		die(what);
}

static void address(struct ibv_ah_attr *attr)
{
	struct ibv_port_attr port;

	check(!ibv_query_port(dc.context, 1, &port), "cannot query the port");
	*attr = (struct ibv_ah_attr){ .port_num = 1, .dlid = port.lid };
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return;
	attr->is_global = 1;
	attr->grh.sgid_index = 1;
	attr->grh.hop_limit = 64;
	check(!ibv_query_gid(dc.context, 1, 1, &attr->grh.dgid), "cannot query the GID");
}

static void open_shared(void)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = WRS, .max_sge = 1 } };
	struct ibv_ah_attr attr;

	dc.context = self_device();
	dc.pd = ibv_alloc_pd(dc.context);
	dc.buf = aligned_alloc(4096, SELF_BUF);
	dc.send_cq = ibv_create_cq(dc.context, WRS, NULL, NULL, 0);
	dc.recv_cq = ibv_create_cq(dc.context, WRS, NULL, NULL, 0);
	check(dc.pd && dc.buf && dc.send_cq && dc.recv_cq, "cannot create the completion queues");
	dc.mr = ibv_reg_mr(dc.pd, dc.buf, SELF_BUF, IBV_ACCESS_LOCAL_WRITE);
	dc.srq = ibv_create_srq(dc.pd, &srq);
	address(&attr);
	dc.ah = ibv_create_ah(dc.pd, &attr);
	check(dc.mr && dc.srq && dc.ah, "cannot create the shared receive queue or the address");
}

static void to_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (access ? IBV_QP_ACCESS_FLAGS : 0)),
	      "cannot go to INIT");
}

static char *slot_at(uint64_t slot)
{
	return dc.buf + SELF_BUF / 2 + slot * SIZE;
}

static void post_receive(uint64_t slot)
{
	struct ibv_sge to = { (uintptr_t)slot_at(slot), SIZE, dc.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = slot, .sg_list = &to, .num_sge = 1 }, *bad;

	memset(slot_at(slot), 0, SIZE);
	check(!ibv_post_srq_recv(dc.srq, &recv, &bad), "cannot post a receive");
}

static void open_target(void)
{
	struct ibv_qp_init_attr_ex init = { .recv_cq = dc.recv_cq,
					    .send_cq = dc.recv_cq,
					    .srq = dc.srq,
					    .qp_type = IBV_QPT_DRIVER,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = dc.pd };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = KEY } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .min_rnr_timer = 1 };

	dc.dct = mlx5dv_create_qp(dc.context, &init, &dv);
	check(dc.dct != NULL, "cannot create the target");
	to_init(dc.dct, 1);
	address(&attr.ah_attr);
	check(!ibv_modify_qp(dc.dct, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER),
	      "the target cannot go to RTR");
	dc.dctn = dc.dct->qp_num;
	check(dc.dctn != 0, "the target has no number");
	for (uint64_t slot = 0; slot < WRS; slot++)
		post_receive(slot);
}

static void initiator_to_rts(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 };

	to_init(dc.dci, 0);
	check(!ibv_modify_qp(dc.dci, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU),
	      "the initiator cannot go to RTR");
	self_to_rts(dc.dci);
}

static void open_initiator(void)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = dc.send_cq,
					    .recv_cq = dc.send_cq,
					    .cap = { .max_send_wr = WRS, .max_send_sge = 1 },
					    .sq_sig_all = 1,
					    .qp_type = IBV_QPT_DRIVER,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = dc.pd,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM };
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI,
				  .dci_streams = { LOG_STREAMS, LOG_ERRORED } }
	};

	dc.dci = mlx5dv_create_qp(dc.context, &init, &dv);
	check(dc.dci != NULL, "cannot create the initiator");
	dc.ex = ibv_qp_to_qp_ex(dc.dci);
	dc.dv = mlx5dv_qp_ex_from_ibv_qp_ex(dc.ex);
	initiator_to_rts();
}

static struct ibv_wc completion(struct ibv_cq *cq)
{
	time_t start = time(NULL);
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		check(time(NULL) <= start + 60, "a completion is missing");
	check(got == 1, "cannot poll");
	return wc;
}

static void fill(char *to, uint16_t stream)
{
	for (uint32_t i = 0; i < SIZE; i++)
		to[i] = (char)(stream + i + 1);
}

/* Checks a message, whose immediate is its stream, and posts its receive again. */
static void received(const struct ibv_wc *wc)
{
	char expected[SIZE];

	check(wc->status == IBV_WC_SUCCESS && wc->byte_len == SIZE, "a receive failed");
	fill(expected, (uint16_t)be32toh(wc->imm_data));
	check(!memcmp(slot_at(wc->wr_id), expected, SIZE), "the message differs");
	post_receive(wc->wr_id);
}

/* Sends on a stream and returns the status of its completion. */
static enum ibv_wc_status send_on(uint16_t stream, uint32_t lkey, uint64_t key)
{
	static uint64_t id;
	struct ibv_wc wc;

	ibv_wr_start(dc.ex);
	dc.ex->wr_id = ++id;
	dc.ex->wr_flags = 0;
	ibv_wr_send_imm(dc.ex, htobe32(stream));
	mlx5dv_wr_set_dc_addr_stream(dc.dv, dc.ah, dc.dctn, key, stream);
	ibv_wr_set_sge(dc.ex, lkey, (uintptr_t)dc.buf, SIZE);
	check(!ibv_wr_complete(dc.ex), "cannot post");
	wc = completion(dc.send_cq);
	check(wc.wr_id == id, "a completion of another work request");
	return wc.status;
}

/* Sends on a stream, and finds the message at the target. */
static void pass(uint16_t stream)
{
	struct ibv_wc wc;

	fill(dc.buf, stream);
	check(send_on(stream, dc.mr->lkey, KEY) == IBV_WC_SUCCESS, "a message failed");
	wc = completion(dc.recv_cq);
	check(wc.imm_data == htobe32(stream) && wc.src_qp == dc.dci->qp_num, "of another sender");
	received(&wc);
}

static enum ibv_qp_state state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check(!ibv_query_qp(dc.dci, &attr, IBV_QP_STATE, &init), "cannot query");
	return attr.qp_state;
}

static void fail_one_stream(void)
{
	check(send_on(2, dc.mr->lkey + 1, KEY) == IBV_WC_LOC_PROT_ERR, "a wrong key was taken");
	check(state() == IBV_QPS_RTS, "an error of one stream broke the initiator");
	check(send_on(2, dc.mr->lkey, KEY) == IBV_WC_WR_FLUSH_ERR, "the stream goes on");
	pass(1);
	check(mlx5dv_dci_stream_id_reset(dc.dci, 1) != 0, "a stream without an error was reset");
	check(mlx5dv_dci_stream_id_reset(dc.dci, 2) == 0, "cannot reset the stream");
	pass(2);
}

static void fail_too_many(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	check(send_on(3, dc.mr->lkey, KEY + 1) == IBV_WC_REM_ACCESS_ERR, "a wrong access key");
	check(state() == IBV_QPS_RTS, "the first stream in error broke the initiator");
	check(send_on(4, dc.mr->lkey, KEY + 1) == IBV_WC_REM_ACCESS_ERR, "a wrong access key");
	check(state() == IBV_QPS_ERR, "the limit of streams in error was passed");
	check(send_on(1, dc.mr->lkey, KEY) == IBV_WC_WR_FLUSH_ERR, "it still works");
	check(!ibv_modify_qp(dc.dci, &attr, IBV_QP_STATE), "cannot reset the initiator");
	initiator_to_rts();
}

static void close_all(void)
{
	check(!ibv_destroy_qp(dc.dci) && !ibv_destroy_qp(dc.dct) && !ibv_destroy_ah(dc.ah) &&
		      !ibv_destroy_srq(dc.srq) && !ibv_destroy_cq(dc.send_cq) &&
		      !ibv_destroy_cq(dc.recv_cq) && !ibv_dereg_mr(dc.mr) &&
		      !ibv_dealloc_pd(dc.pd) && !ibv_close_device(dc.context),
	      "cannot destroy");
	free(dc.buf);
}

/* Sends to a target of another process until it is killed. */
static void __attribute__((noreturn)) flood(uint32_t dctn)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_shared();
	open_initiator();
	dc.dctn = dctn;
	for (uint16_t stream = 0;; stream = (stream + 1) % 8) {
		fill(dc.buf, stream);
		check(send_on(stream, dc.mr->lkey, KEY) == IBV_WC_SUCCESS, "a message failed");
	}
}

static pid_t start_flood(const char *program)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%u", dc.dctn);
	pid = fork();
	if (pid == 0) {
		execl(program, program, number, NULL);
		_exit(127);
	}
	check(pid > 0, "cannot fork");
	return pid;
}

/* Kills another initiator in the middle of its messages: none is broken, none blocks the others. */
static void kill_another(const char *program, uint32_t messages)
{
	pid_t pid = start_flood(program);
	struct ibv_wc wc;

	while (messages--) {
		wc = completion(dc.recv_cq);
		check(wc.src_qp != dc.dci->qp_num, "a message of nobody");
		received(&wc);
	}
	check(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid, "cannot kill");
	while (ibv_poll_cq(dc.recv_cq, 1, &wc) == 1)
		received(&wc);
	for (uint16_t stream = 0; stream < 40; stream++)
		pass(stream);
}

int main(int argc, char **argv)
{
	struct mlx5dv_context caps = { .comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS };

	if (argc == 2)
		flood((uint32_t)strtoul(argv[1], NULL, 0));
	open_shared();
	check(!mlx5dv_query_device(dc.context, &caps), "cannot query the device");
	check(caps.dci_streams_caps.max_log_num_concurent >= LOG_STREAMS &&
		      caps.dci_streams_caps.max_log_num_errored >= LOG_ERRORED,
	      "the device has no streams");
	open_target();
	open_initiator();
	for (uint16_t stream = 0; stream < 100; stream++)
		pass(stream);
	fail_one_stream();
	fail_too_many();
	for (uint32_t round = 0; round < KILLS; round++)
		kill_another(argv[0], round * 7);
	close_all();
	printf("verbs_dc: ok\n");
	return 0;
}
