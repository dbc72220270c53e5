/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Survivors continue when a process dies in the middle of an operation of the device model.
 *
 * Rounds of four processes, each with an RC queue pair to every other one, a shared receive queue,
 * and a UD queue pair. All write into each other's memory, send and send datagrams, as fast as they
 * can; one of them is killed at a random moment, often while it holds locks of its peers. Then
 *
 * 	- operations in flight to the dead one end with an error, and only those,
 * 	- the survivors continue among each other: every message arrives, once, in order and whole,
 * 	- all in a few seconds.
 *
 * A process outside of the round keeps the fabric alive over all rounds.
 *
 * usage: hca_chaos [rounds] [seed]
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PROCS = 4,
	DEPTH = 64, /* of the shared receive queue */
	SLOT = 128,
	WINDOW = 4,
	UD_DEPTH = 16,
	GRH = 40,
	MORE = 20, /* messages from every survivor after the death */
	QKEY = 0x11111111,
};

enum kind { SENT_RC = 1, SENT_UD, GOT_RC, GOT_UD };

/* Shared state of the processes of a round. */
static struct board {
	struct {
		volatile uint32_t ready, done;
		uint32_t lid, ud_qpn, qpn[PROCS], psn, rkey;
		uint64_t words; /* address of its array of words, one for each sender */
		volatile uint64_t got[PROCS];
	} proc[PROCS];
	volatile uint32_t go;
	volatile int killed; /* -1: none */
} * board;

struct message {
	uint32_t from, to;
	uint64_t seq;
	uint8_t fill[40];
};

static struct me {
	uint32_t rank;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[PROCS], *ud;
	struct ibv_ah *ah[PROCS];
	struct ibv_mr *mr;
	struct memory {
		uint8_t recv[DEPTH][SLOT];
		uint8_t ud_recv[UD_DEPTH][SLOT];
		struct message out[PROCS][WINDOW];
		volatile uint64_t words[PROCS];
	} * memory;
	uint32_t flying[PROCS], ud_flying;
	uint64_t seq[PROCS];
	bool lost[PROCS];
} me;

static void die(const char *what)
{
	fprintf(stderr, "hca_chaos %u: %s\n", me.rank, what);
	_exit(1);
}

#define PATIENCE 200.0 /* seconds */

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			die(#condition);                                                           \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- set-up ---------------------------------------------------------------------------------- */
static struct ibv_sge sge_of(const volatile void *addr, uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)addr, .length = len, .lkey = me.mr->lkey };
}

static void post_recv(uint32_t slot)
{
	struct ibv_sge sge = sge_of(me.memory->recv[slot], SLOT);
	struct ibv_recv_wr *bad,
		wr = { .wr_id = (uint64_t)GOT_RC << 32 | slot, .sg_list = &sge, .num_sge = 1 };

	NEED(!ibv_post_srq_recv(me.srq, &wr, &bad));
}

static void post_ud_recv(uint32_t slot)
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

static void open_device(void)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	NEED(list && count);
	me.ctx = ibv_open_device(list[0]);
	NEED(me.ctx);
	me.pd = ibv_alloc_pd(me.ctx);
	NEED(me.pd);
}

static void make_all(void)
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

static void connect_all(void)
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

/* ---- traffic ---- */

/* Writes the number, then sends a message that announces it. */
static void send_rc(uint32_t peer)
{
	struct message *message = &me.memory->out[peer][++me.seq[peer] % WINDOW];
	struct ibv_sge word = sge_of(&message->seq, 8), whole = sge_of(message, sizeof(*message));
	struct ibv_send_wr *bad, send = { .wr_id = (uint64_t)SENT_RC << 32 | peer,
					  .sg_list = &whole,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND };
	struct ibv_send_wr write = { .wr_id = (uint64_t)SENT_RC << 32 | peer,
				     .sg_list = &word,
				     .num_sge = 1,
				     .next = &send,
				     .opcode = IBV_WR_RDMA_WRITE };

	*message = (struct message){ .from = me.rank, .to = peer, .seq = me.seq[peer] };
	memset(message->fill, (int)me.seq[peer], sizeof(message->fill));
	write.wr.rdma.remote_addr = board->proc[peer].words + me.rank * 8;
	write.wr.rdma.rkey = board->proc[peer].rkey;
	NEED(!ibv_post_send(me.qp[peer], &write, &bad));
	me.flying[peer] += 2;
}

static void send_ud(uint32_t peer)
{
	struct ibv_sge sge = sge_of(&me.memory->out[peer][0], 16);
	struct ibv_send_wr *bad, wr = { .wr_id = (uint64_t)SENT_UD << 32 | peer,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND };

	wr.wr.ud.ah = me.ah[peer];
	wr.wr.ud.remote_qpn = board->proc[peer].ud_qpn;
	wr.wr.ud.remote_qkey = QKEY;
	NEED(!ibv_post_send(me.ud, &wr, &bad));
	me.ud_flying++;
}

static void check_message(const struct message *message, uint32_t len)
{
	uint64_t seq = board->proc[me.rank].got[message->from] + 1;

	NEED(len == sizeof(*message));
	NEED(message->to == me.rank);
	NEED(message->from < PROCS);
	if (message->seq != seq) {
		fprintf(stderr,
			"hca_chaos %u: message %lu of %u where %lu was due; %d was killed\n",
			me.rank, (unsigned long)message->seq, message->from, (unsigned long)seq,
			board->killed);
		_exit(1);
	}
	NEED(me.memory->words[message->from] >= seq);
	for (uint32_t i = 0; i < sizeof(message->fill); i++)
		NEED(message->fill[i] == (uint8_t)seq);
	board->proc[me.rank].got[message->from] = seq;
}

static void take_completion(const struct ibv_wc *wc)
{
	enum kind kind = (enum kind)(wc->wr_id >> 32);
	uint32_t low = (uint32_t)wc->wr_id;

	switch (kind) {
	case SENT_RC:
		me.flying[low]--;
		if (wc->status == IBV_WC_SUCCESS)
			break;
		NEED(board->killed == (int)low);
		NEED(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR);
		me.lost[low] = true;
		break;
	case SENT_UD:
		NEED(wc->status == IBV_WC_SUCCESS);
		me.ud_flying--;
		break;
	case GOT_RC:
		NEED(wc->status == IBV_WC_SUCCESS);
		check_message((const struct message *)me.memory->recv[low], wc->byte_len);
		post_recv(low);
		break;
	case GOT_UD:
		NEED(wc->status == IBV_WC_SUCCESS);
		NEED(wc->byte_len == GRH + 16);
		post_ud_recv(low);
		break;
	}
}

static void poll_all(void)
{
	struct ibv_wc wc[16];
	int got = ibv_poll_cq(me.cq, 16, wc);

	NEED(got >= 0);
	for (int i = 0; i < got; i++)
		take_completion(&wc[i]);
	if (!got)
		sched_yield();
}

static void play(void)
{
	for (uint32_t peer = 0; peer < PROCS; peer++) {
		if (peer == me.rank || me.lost[peer])
			continue;
		if (me.flying[peer] + 2 <= WINDOW)
			send_rc(peer);
		if (!me.ud_flying)
			send_ud(peer);
	}
	poll_all();
}

static bool alive(uint32_t rank)
{
	return board->killed != (int)rank;
}

/* Returns true if each survivor has sent more since the death. */
static bool went_on(const uint64_t *before)
{
	for (uint32_t peer = 0; peer < PROCS; peer++)
		if (peer != me.rank && alive(peer) &&
		    board->proc[me.rank].got[peer] < before[peer] + MORE)
			return false;
	return true;
}

static uint32_t in_flight(void)
{
	uint32_t sum = me.ud_flying;

	for (uint32_t peer = 0; peer < PROCS; peer++)
		sum += me.flying[peer];
	return sum;
}

static bool all_done(uint32_t stage)
{
	for (uint32_t rank = 0; rank < PROCS; rank++)
		if (alive(rank) && board->proc[rank].done < stage)
			return false;
	return true;
}

/* Prints the state of a process that hangs. */
static void tell(const uint64_t *before)
{
	fprintf(stderr, "hca_chaos %u: killed %d, datagrams under way %u\n", me.rank, board->killed,
		me.ud_flying);
	for (uint32_t peer = 0; peer < PROCS; peer++)
		if (peer != me.rank)
			fprintf(stderr,
				"  peer %u: QP 0x%x, got %lu before, %lu now, under way %u%s\n",
				peer, me.qp[peer]->qp_num, (unsigned long)before[peer],
				(unsigned long)board->proc[me.rank].got[peer], me.flying[peer],
				me.lost[peer] ? ", lost" : "");
}

static void hang(double start, const uint64_t *before, const char *what)
{
	if (now() - start < PATIENCE)
		return;
	tell(before);
	die(what);
}

static void player(uint32_t rank)
{
	uint64_t before[PROCS];
	double start;

	me.rank = rank;
	make_all();
	board->proc[rank].ready = 1;
	while (!board->go)
		usleep(500);
	connect_all();
	board->proc[rank].ready = 2;
	while (board->go < 2)
		usleep(500);
	while (board->killed < 0 || !alive(rank)) /* the victim continues until it dies */
		play();
	for (uint32_t peer = 0; peer < PROCS; peer++)
		before[peer] = board->proc[rank].got[peer];
	/* Continues to send until all have received enough. */
	for (start = now(); !went_on(before) || !me.lost[board->killed]; play())
		hang(start, before,
		     went_on(before) ? "the dead one's queue pair never broke"
				     : "the survivors do not go on");
	for (board->proc[rank].done = 1; !all_done(1); play())
		hang(start, before, "others hang");
	for (start = now(); in_flight(); poll_all())
		hang(start, before, "work that does not end");
	for (board->proc[rank].done = 2; !all_done(2); poll_all())
		hang(start, before, "others hang");
	_exit(0);
}

/* ---- the killing process ---- */
static void await_ready(uint32_t stage)
{
	double start = now();

	for (uint32_t rank = 0; rank < PROCS; rank++)
		while (board->proc[rank].ready < stage) {
			usleep(500);
			if (now() - start > PATIENCE)
				die("the players do not come up");
		}
}

static uint64_t sum_got(void)
{
	uint64_t sum = 0;

	for (uint32_t rank = 0; rank < PROCS; rank++)
		for (uint32_t from = 0; from < PROCS; from++)
			sum += board->proc[rank].got[from];
	return sum;
}

static int round_of(unsigned *seed)
{
	pid_t pid[PROCS];
	int victim = rand_r(seed) % PROCS, bad = 0;

	memset((void *)board, 0, sizeof(*board));
	board->killed = -1;
	for (uint32_t rank = 0; rank < PROCS; rank++) {
		pid[rank] = fork();
		if (!pid[rank])
			player(rank);
	}
	await_ready(1);
	board->go = 1;
	await_ready(2);
	board->go = 2;
	usleep(5000 + rand_r(seed) % 60000);
	board->killed = victim;
	kill(pid[victim], SIGKILL);
	waitpid(pid[victim], NULL, 0);
	for (int rank = 0; rank < PROCS; rank++) {
		int status;

		if (rank == victim)
			continue;
		waitpid(pid[rank], &status, 0);
		bad += status != 0;
	}
	return bad;
}

/* Process that keeps the fabric alive; killed at the end. */
static pid_t keeper(void)
{
	int pipes[2];
	char byte;
	pid_t pid;

	NEED(!pipe(pipes));
	pid = fork();
	if (!pid) {
		open_device();
		NEED(write(pipes[1], "", 1) == 1);
		for (;;)
			pause();
	}
	NEED(read(pipes[0], &byte, 1) == 1);
	return pid;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, bad = 0;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)getpid(), first = seed;
	uint64_t messages = 0;
	pid_t holder;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	NEED(board != MAP_FAILED);
	holder = keeper();
	for (int i = 0; i < rounds; i++) {
		bad += round_of(&seed);
		messages += sum_got();
	}
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	printf("%d rounds from seed %u, %lu messages, %d survivors failed\n", rounds, first,
	       (unsigned long)messages, bad);
	return bad != 0;
}
