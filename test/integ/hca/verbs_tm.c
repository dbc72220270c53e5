/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching through libmlx5, between processes.
 *
 * Senders are killed in the middle of their messages: each entry of the receiver's list ends once,
 * with its data whole, canceled or removed, and the list serves the next sender. Then a receiver is
 * stopped (SIGSTOP) before a rendezvous: the sender sees its end all the same, and the receiver
 * finds the data when it goes on.
 *
 * Runs on the device model with an InfiniBand port.
 */
#include <infiniband/tm_types.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_self.h"

enum {
	ENTRIES = 8,
	LONG = 20000, /* bytes of a rendezvous */
	REGIONS = 16, /* region j is LONG bytes of value j, and has tag j */
	WQES = 63,
	WQE_BYTES = 4096,
	WRS = 16,
	KILLS = 40,
	PATIENCE_S = 100,
};

struct end {
	uint32_t qpn;
	uint16_t lid;
};

enum state { ENDED, POSTED, MATCHED };

static struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq; /* of a receiver */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint64_t tag[ENTRIES];
	uint32_t handle[ENTRIES];
	enum state state[ENTRIES];
	uint32_t unexpected, matches, canceled;
} me;

static void check(int good, const char *what)
{
	if (!good)
		die(what);
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void open_side(size_t bytes)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1024, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO
	};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;

	me.context = self_device();
	me.pd = ibv_alloc_pd(me.context);
	me.cq = ibv_create_cq_ex(me.context, &attr);
	me.buf = calloc(1, bytes);
	me.mr = me.pd && me.buf ? ibv_reg_mr(me.pd, me.buf, bytes, access) : NULL;
	check(me.cq && me.mr, "cannot open the device");
}

static void make_qp(void)
{
	struct ibv_qp_init_attr attr = { .send_cq = ibv_cq_ex_to_cq(me.cq),
					 .recv_cq = ibv_cq_ex_to_cq(me.cq),
					 .srq = me.srq,
					 .cap = { .max_send_wr = WRS,
						  .max_recv_wr = me.srq ? 0 : 4 * WRS,
						  .max_send_sge = 2,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	me.qp = ibv_create_qp(me.pd, &attr);
	check(me.qp && !ibv_modify_qp(me.qp, &init,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS),
	      "cannot make a queue pair");
}

static void connect_qp(int fd)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .max_dest_rd_atomic = 4,
				   .min_rnr_timer = 1,
				   .ah_attr.port_num = 1 };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 4 };
	struct end mine, peer;

	check(!ibv_query_port(me.context, 1, &port), "cannot query the port");
	mine = (struct end){ .qpn = me.qp->qp_num, .lid = port.lid };
	check(write(fd, &mine, sizeof(mine)) == sizeof(mine) &&
		      read(fd, &peer, sizeof(peer)) == sizeof(peer),
	      "the peer is gone");
	rtr.dest_qp_num = peer.qpn;
	rtr.ah_attr.dlid = peer.lid;
	check(!ibv_modify_qp(me.qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER) &&
		      !ibv_modify_qp(me.qp, &rts,
				     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC),
	      "cannot connect");
}

/* ---- the receiver ---------------------------------------------------------------------------- */
static uint8_t *entry_buf(uint32_t entry)
{
	return me.buf + WQES * WQE_BYTES + entry * LONG;
}

static void post_wqe(uint64_t wqe)
{
	struct ibv_sge sge = { (uintptr_t)(me.buf + wqe * WQE_BYTES), WQE_BYTES, me.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wqe, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_srq_recv(me.srq, &wr, &bad), "cannot post a receive");
}

static void make_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = WQES, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = me.pd,
		.cq = ibv_cq_ex_to_cq(me.cq),
		.tm_cap = { .max_num_tags = 2 * ENTRIES, .max_ops = 64 },
	};

	me.srq = ibv_create_srq_ex(me.context, &attr);
	check(me.srq != NULL, "cannot make an SRQ of tag matching");
	for (uint64_t i = 0; i < WQES; i++)
		post_wqe(i);
}

/* Appends an entry that matches every tag. */
static void add(uint32_t entry)
{
	struct ibv_sge sge = { (uintptr_t)entry_buf(entry), LONG, me.mr->lkey };
	struct ibv_ops_wr wr = {
		.wr_id = entry,
		.opcode = IBV_WR_TAG_ADD,
		.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
		.tm = { .unexpected_cnt = me.unexpected,
			.add = { .recv_wr_id = entry, .sg_list = &sge, .num_sge = 1 } }
	};
	struct ibv_ops_wr *bad;

	memset(entry_buf(entry), 0xff, LONG);
	check(!ibv_post_srq_ops(me.srq, &wr, &bad), "cannot append an entry");
	me.handle[entry] = wr.tm.handle;
	me.state[entry] = POSTED;
}

static void list_op(enum ibv_ops_wr_opcode opcode, uint32_t entry)
{
	struct ibv_ops_wr wr = { .wr_id = entry,
				 .opcode = opcode,
				 .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
				 .tm = { .unexpected_cnt = me.unexpected,
					 .handle = me.handle[entry % ENTRIES] } };
	struct ibv_ops_wr *bad;

	check(!ibv_post_srq_ops(me.srq, &wr, &bad), "cannot post a list operation");
}

/* Ends an entry whose data are there. */
static void take_data(uint32_t entry, uint32_t len)
{
	check(me.state[entry] == MATCHED, "data of an entry that was not matched");
	for (uint32_t i = 0; i < len; i++)
		check(entry_buf(entry)[i] == (uint8_t)me.tag[entry], "wrong data");
	me.state[entry] = ENDED;
}

static void take_match(uint32_t entry)
{
	struct ibv_wc_tm_info info;

	check(me.state[entry] == POSTED, "a match of an entry that is not in the list");
	ibv_wc_read_tm_info(me.cq, &info);
	me.tag[entry] = info.tag;
	me.state[entry] = MATCHED;
	me.matches++;
}

static void take_removed(uint32_t entry)
{
	check(me.cq->status == IBV_WC_SUCCESS && me.state[entry] == POSTED,
	      "an entry that nothing matched cannot be removed");
	me.state[entry] = ENDED;
}

static void take_one(void)
{
	int opcode = ibv_wc_read_opcode(me.cq), flags = ibv_wc_read_wc_flags(me.cq);
	uint32_t entry = (uint32_t)me.cq->wr_id;

	if (me.cq->status == IBV_WC_TM_RNDV_INCOMPLETE) {
		check(me.state[entry] == MATCHED, "an entry was canceled that was not matched");
		me.state[entry] = ENDED;
		me.canceled++;
	} else if (opcode == IBV_WC_TM_DEL) {
		take_removed(entry);
	} else if (opcode == IBV_WC_TM_RECV && flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)) {
		if (flags & IBV_WC_TM_MATCH)
			take_match(entry);
		if (flags & IBV_WC_TM_DATA_VALID)
			take_data(entry, ibv_wc_read_byte_len(me.cq));
	} else if (opcode == IBV_WC_TM_RECV || opcode == IBV_WC_TM_NO_TAG) {
		me.unexpected += opcode == IBV_WC_TM_RECV;
		post_wqe(me.cq->wr_id);
	}
}

/* Handles one completion. Returns its opcode, or -1 if there is none. */
static int poll_one(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int opcode;

	if (ibv_start_poll(me.cq, &attr))
		return -1;
	opcode = ibv_wc_read_opcode(me.cq);
	take_one();
	ibv_end_poll(me.cq);
	return opcode;
}

static void poll_until(int opcode)
{
	time_t end = now_s() + PATIENCE_S;

	while (poll_one() != opcode)
		check(now_s() < end, "a completion does not come");
}

/* ---- a sender -------------------------------------------------------------------------------- */
static void post_fin_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)(me.buf + REGIONS * LONG), 64, me.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(me.qp, &wr, &bad), "cannot post a receive");
}

static void open_sender(int fd)
{
	open_side(REGIONS * LONG + 4096);
	for (int j = 0; j < REGIONS; j++)
		memset(me.buf + j * LONG, j, LONG);
	make_qp();
	connect_qp(fd);
	for (int i = 0; i < 4 * WRS; i++)
		post_fin_receive();
}

/* Sends region `tag`: LEN bytes of it with the header, or a request for all of it. */
static void send_region(uint64_t tag, bool rndv, uint32_t len)
{
	uint8_t *head = me.buf + REGIONS * LONG + 64 + tag * 64;
	struct ibv_tmh tmh = { .opcode = rndv ? IBV_TMH_RNDV : IBV_TMH_EAGER, .tag = htobe64(tag) };
	struct ibv_rvh rvh = { .va = htobe64((uintptr_t)(me.buf + tag * LONG)),
			       .rkey = htobe32(me.mr->rkey),
			       .len = htobe32(LONG) };
	struct ibv_sge sge[2] = { { (uintptr_t)head, rndv ? 32 : 16, me.mr->lkey },
				  { (uintptr_t)(me.buf + tag * LONG), len, me.mr->lkey } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = sge,
				  .num_sge = rndv ? 1 : 2 };
	struct ibv_send_wr *bad;

	memcpy(head, &tmh, sizeof(tmh));
	memcpy(head + sizeof(tmh), &rvh, sizeof(rvh));
	check(!ibv_post_send(me.qp, &wr, &bad), "cannot send");
}

/* Waits for a completion of that kind; those of the other are counted in *others. */
static void sender_wait(enum ibv_wc_opcode opcode, int *others)
{
	time_t end = now_s() + PATIENCE_S;
	struct ibv_wc wc;

	for (;;) {
		if (!ibv_poll_cq(ibv_cq_ex_to_cq(me.cq), 1, &wc)) {
			check(now_s() < end, "a completion of the sender does not come");
			continue;
		}
		check(wc.status == IBV_WC_SUCCESS, "an error at the sender");
		if (wc.opcode == opcode)
			return;
		++*others;
	}
}

static void send_for_ever(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_sender(fd);
	for (uint64_t k = 0;; k++) {
		int ends = 0;

		send_region(k % REGIONS, k % 3 == 0, 1 + (uint32_t)(k * 377 % 3000));
		sender_wait(IBV_WC_SEND, &ends);
		for (; ends > 0; ends--)
			post_fin_receive();
	}
}

/* ---- senders are killed ---------------------------------------------------------------------- */
static pid_t start_sender(const char *program, int *fd)
{
	char number[16];
	int pair[2];
	pid_t pid;

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no sockets");
	snprintf(number, sizeof(number), "%d", pair[1]);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		execl(program, program, number, NULL);
		_exit(127);
	}
	check(pid > 0, "cannot fork");
	close(pair[1]);
	*fd = pair[0];
	return pid;
}

static void serve(long ns)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		poll_one();
		for (uint32_t i = 0; i < ENTRIES; i++)
			if (me.state[i] == ENDED)
				add(i);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < ns);
}

/* Ends all entries after their sender has died. */
static void settle(void)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };

	check(!ibv_modify_qp(me.qp, &err, IBV_QP_STATE), "cannot end the queue pair");
	while (poll_one() >= 0)
		;
	for (uint32_t i = 0; i < ENTRIES; i++) {
		check(me.state[i] != MATCHED, "the data of a match never end");
		if (me.state[i] == POSTED)
			list_op(IBV_WR_TAG_DEL, i);
	}
	list_op(IBV_WR_TAG_SYNC, ENTRIES);
	poll_until(IBV_WC_TM_SYNC);
	for (uint32_t i = 0; i < ENTRIES; i++)
		check(me.state[i] == ENDED, "an entry is lost");
	check(!ibv_destroy_qp(me.qp), "cannot destroy the queue pair");
}

static void kill_one(const char *program, uint64_t *dice)
{
	long ns = (long)(*dice % 8000000);
	pid_t pid;
	int fd;

	*dice = *dice * 6364136223846793005u + 1442695040888963407u;
	pid = start_sender(program, &fd);
	make_qp();
	connect_qp(fd);
	for (uint32_t i = 0; i < ENTRIES; i++)
		add(i);
	serve(2000000 + ns);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	settle();
	close(fd);
}

static void senders_are_killed(const char *program)
{
	uint64_t dice = 88172645463325252u;

	open_side(WQES * WQE_BYTES + ENTRIES * LONG);
	make_srq();
	for (int i = 0; i < KILLS; i++)
		kill_one(program, &dice);
	printf("%d senders killed: %u matches, %u canceled, %u unexpected\n", KILLS, me.matches,
	       me.canceled, me.unexpected);
	check(me.matches > 0, "nothing was matched");
}

/* ---- a receiver is stopped ------------------------------------------------------------------- */
static void receive_stopped(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_side(WQES * WQE_BYTES + ENTRIES * LONG);
	make_srq();
	make_qp();
	connect_qp(fd);
	add(0);
	poll_until(IBV_WC_TM_ADD);
	check(write(fd, "r", 1) == 1, "the sender is gone");
	raise(SIGSTOP);
	while (me.state[0] != ENDED)
		poll_until(IBV_WC_TM_RECV);
	check(me.matches == 1 && me.tag[0] == 5, "the wrong message");
	_exit(0);
}

static void a_receiver_is_stopped(void)
{
	int pair[2], status, others = 0;
	char ready;
	pid_t pid;

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no sockets");
	pid = fork();
	if (!pid) {
		close(pair[0]);
		receive_stopped(pair[1]);
	}
	close(pair[1]);
	memset(&me, 0, sizeof(me));
	open_sender(pair[0]);
	check(read(pair[0], &ready, 1) == 1, "the receiver is gone");
	check(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "not stopped");
	send_region(5, true, 0);
	sender_wait(IBV_WC_RECV, &others);
	check(me.buf[REGIONS * LONG] == IBV_TMH_FIN, "not the end of a rendezvous");
	check(waitpid(pid, &status, WNOHANG) == 0, "the receiver did not stay stopped");
	kill(pid, SIGCONT);
	check(waitpid(pid, &status, 0) == pid && status == 0, "the receiver failed");
}

/* The program starts itself as a sender, with the descriptor that leads to the receiver. */
int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc > 1)
		send_for_ever(atoi(argv[1]));
	pid = fork();
	if (!pid) {
		a_receiver_is_stopped();
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, "a stopped receiver");
	senders_are_killed(argv[0]);
	printf("verbs_tm: ok\n");
	return 0;
}
