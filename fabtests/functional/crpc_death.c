/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process dies, stops, comes back, never existed, or is unauthorised. Every operation towards it
 * ends, once, in bounded time; operations with other peers continue.
 *
 * Pages: fi_cq(3) (errors are reported whatever was requested), fi_endpoint(3), and fi_copyrpc(7)
 * ("Dead peers", FI_COPYRPC_PEER_TIMEOUT, FI_COPYRPC_JOB_KEY).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAG  0xDE
#define MANY 32

static void begin(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("crpc_cm has the deaths of connected peers");
	want.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
	ft_fab_open(fab, ft, &want);
}

/* Exchanges a message with `rank`: both are connected afterwards. */
static void greet(struct ft_fab *fab, int rank)
{
	struct ft_op *op = ft_recv_post(fab, true, TAG, NULL, 0);

	ft_send_wait(fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = TAG, .rank = rank });
	ft_wait_good(fab, op);
}

static struct ft_op *start(struct ft_fab *fab, bool send, int rank, void *buf, size_t len,
			   uint64_t flags)
{
	struct ft_msg msg = { .tagged = true,
			      .tag = TAG + 1,
			      .buf = buf,
			      .len = len,
			      .rank = rank,
			      .flags = flags,
			      .op = ft_op_new(fab, FT_ONE) };
	enum ft_way way = flags ? FT_BY_MSG : FT_PLAIN;

	FT_POST(fab, send ? ft_send(fab, way, &msg) : ft_recv(fab, way, &msg));
	return msg.op;
}

/* ---- killed ---- */

/* Rank 1 dies. Rank 0 has operations of all kinds in flight to it and to rank 2. */
static void killed_survivor(struct ft_fab *fab)
{
	static uint8_t out[200000], in[200000];
	struct ft_op *bad[3 * MANY], *anybody, *other;
	uint64_t level = fab->want.tx_flags ? fab->want.tx_flags : FI_DELIVERY_COMPLETE;
	int cnt = 0;

	for (int i = 0; i < MANY; i++) {
		bad[cnt++] = start(fab, true, 1, out, sizeof(out), 0);
		bad[cnt++] = start(fab, true, 1, out, 64, level | FI_COMPLETION);
		bad[cnt++] = start(fab, false, 1, in, 64, 0);
	}
	anybody = start(fab, false, -1, in, 64, 0);
	ft_sync(fab->ft);
	ft_signal(fab->ft, 1, SIGKILL);
	for (int i = 0; i < cnt; i++) {
		ft_wait(fab, bad[i]);
		/* A short one may have been delivered, and has no receive. */
		FT_CHECK(bad[i]->err || (i % 3 == 1 && level == FI_DELIVERY_COMPLETE),
			 "operation %d with a dead peer ended well", i);
	}
	FT_CHECK(!anybody->seen, "a receive from anybody ended with %s", ft_err_name(anybody->err));
	other = start(fab, true, 2, out, 64, 0);
	ft_wait_good(fab, other);
	ft_wait_good(fab, anybody); /* sent by rank 2 */
	for (int i = 0; i < cnt; i++)
		ft_op_put(fab, bad[i]);
}

static void run_killed(struct ft *ft)
{
	static uint8_t buf[64];
	struct ft_fab fab;
	struct ft_op *op;

	begin(&fab, ft,
	      (struct ft_want){ .two_cqs = true,
				.tx_flags = ft->test->arg ? FI_MATCH_COMPLETE : 0 });
	if (ft->rank == 0) {
		greet(&fab, 1);
		greet(&fab, 2);
		ft_sync(ft);
		killed_survivor(&fab);
	} else {
		op = ft_recv_post(&fab, true, TAG, NULL, 0);
		ft_wait_good(&fab, op);
		ft_send_wait(&fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = TAG });
		ft_sync(ft);
		ft_sync(ft);
		if (ft->rank == 1)
			pause();
		ft_await_death(ft, 1);
		op = start(&fab, false, 0, buf, sizeof(buf), 0);
		ft_wait_good(&fab, op);
		op = start(&fab, true, 0, buf, sizeof(buf), 0);
		ft_wait_good(&fab, op);
	}
	ft_quiet(&fab, 0.05);
	FT_CHECK(!ft_open_ops(&fab), "%u operations never ended", ft_open_ops(&fab));
	ft_sync(ft);
	ft_fab_close(&fab);
}

/* An operation without a completion request reports its failure all the same. */
static void run_killed_silent(struct ft *ft)
{
	static uint8_t out[200000];
	struct ft_msg msg = {
		.tagged = true, .tag = TAG + 1, .buf = out, .len = sizeof(out), .rank = 1
	};
	struct ft_op *ops[MANY];
	struct ft_fab fab;
	struct ft_op *op;

	begin(&fab, ft, (struct ft_want){ .selective_tx = true, .counters = true });
	if (ft->rank == 1) {
		op = ft_recv_post(&fab, true, TAG, NULL, 0);
		ft_wait_good(&fab, op);
		ft_send_wait(&fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = TAG });
		ft_sync(ft);
		pause();
	}
	greet(&fab, 1);
	ft_sync(ft);
	for (int i = 0; i < MANY; i++) {
		ops[i] = msg.op = ft_op_new(&fab, FT_NONE);
		FT_POST(&fab, ft_send(&fab, FT_PLAIN, &msg));
	}
	ft_signal(ft, 1, SIGKILL);
	for (int i = 0; i < MANY; i++)
		ft_wait(&fab, ops[i]);
	FT_RET(fi_cntr_readerr(fab.tx_cntr), MANY);
	ft_quiet(&fab, 0.05);
	ft_fab_close(&fab);
}

/* ---- stopped ---- */

static void run_stopped(struct ft *ft)
{
	static uint8_t out[300000], in[300000];
	struct ft_op *ops[MANY];
	struct ft_fab fab;

	begin(&fab, ft, (struct ft_want){ 0 });
	if (ft->rank == 0) {
		greet(&fab, 1);
		ft_sync(ft);
		ft_signal(ft, 1, SIGSTOP);
		for (int i = 0; i < MANY; i++)
			ops[i] = start(&fab, true, 1, out, i & 1 ? sizeof(out) : 500,
				       FI_DELIVERY_COMPLETE | FI_COMPLETION);
		ft_pause(ft, 1);
		for (int i = 0; i < MANY; i++)
			FT_CHECK(!ops[i]->seen, "delivered to a process that stands still");
		ft_signal(ft, 1, SIGCONT);
		for (int i = 0; i < MANY; i++)
			ft_wait_good(&fab, ops[i]);
	} else {
		ft_wait_good(&fab, ft_recv_post(&fab, true, TAG, NULL, 0));
		ft_send_wait(&fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = TAG });
		ft_sync(ft);
		for (int i = 0; i < MANY; i++)
			ft_wait_good(&fab, start(&fab, false, 0, in, sizeof(in), 0));
	}
	ft_quiet(&fab, 0.02);
	ft_sync(ft);
	ft_fab_close(&fab);
}

/* ---- back at the same address ---- */

static void port_of(const struct ft_fab *fab, int rank, char *port)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)fab->name[rank];

	sprintf(port, "%u", ntohs(sin->sin_port));
}

/* Rank 1 closes everything, or dies; rank 2 takes over its address. Rank 0 keeps the fi_addr_t. */
static void run_back(struct ft *ft)
{
	bool dies = ft->test->arg;
	double deadline;
	char port[16] = "";
	struct ft_fab fab;
	struct ft_op *op;

	if (ft->rank == 2) { /* not there yet: receives the port only */
		if (ft->opts->type == FI_EP_MSG)
			ft_notrun("crpc_cm has this");
		ft_hear(ft, 0, port, sizeof(port));
		ft_await_death(ft, 1);
		ft_fab_find(&fab, ft,
			    &(struct ft_want){ .caps = FI_TAGGED | FI_MSG, .port = port });
		ft_fab_domain(&fab);
		ft_fab_queues(&fab);
		ft_fab_endpoint(&fab);
		ft_fab_enable(&fab);
		ft->fab = &fab;
		op = ft_recv_post(&fab, true, TAG, NULL, 0);
		ft_tell(ft, 0, port, 1);
		ft_wait_good(&fab, op);
		ft_pause(ft, 0.1);
		ft_fab_close(&fab);
		return;
	}
	ft->procs = 2; /* rank 2 has no peers yet */
	begin(&fab, ft, (struct ft_want){ 0 });
	ft->procs = 3;
	if (ft->rank == 1) {
		ft_wait_good(&fab, ft_recv_post(&fab, true, TAG, NULL, 0));
		ft_send_wait(&fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = TAG });
		ft_hear(ft, 0, port, 1);
		if (!dies)
			ft_fab_close(&fab);
		ft_leave(ft);
	}
	greet(&fab, 1);
	port_of(&fab, 1, port);
	ft_tell(ft, 1, port, 1);
	ft_tell(ft, 2, port, sizeof(port));
	ft_hear(ft, 2, port, 1);
	deadline = ft_deadline(&fab);
	do { /* the first operations may still fail */
		struct ft_msg msg = { .tagged = true,
				      .tag = TAG,
				      .rank = 1,
				      .flags = FI_DELIVERY_COMPLETE | FI_COMPLETION };
		ssize_t ret;

		op = msg.op = ft_op_new(&fab, FT_ONE);
		while ((ret = ft_send(&fab, FT_BY_MSG, &msg)) == -FI_EAGAIN)
			ft_turn(ft, ft_poll(&fab));
		if (!ret)
			ft_wait(&fab, op);
		FT_CHECK(ft_now() < deadline, "the new process is never reached: %s",
			 ft_err_name(ret ? ret : op->err));
		if (!ret && !op->err)
			break;
		ft_op_put(&fab, op);
	} while (true);
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

/* ---- no listener ---- */

static fi_addr_t insert_port(struct ft_fab *fab, uint16_t port)
{
	struct sockaddr_in sin = *(struct sockaddr_in *)fab->name[fab->ft->rank];
	fi_addr_t addr;

	sin.sin_port = htons(port);
	FT_RET(fi_av_insert(fab->av, &sin, 1, &addr, 0, NULL), 1);
	return addr;
}

static void all_end_badly(struct ft_fab *fab, fi_addr_t addr, int want)
{
	static uint8_t buf[100000];
	struct ft_op *ops[MANY];
	ssize_t ret;

	fab->addr[1] = addr;
	for (int i = 0; i < MANY; i++) {
		struct ft_msg msg = { .tagged = i & 1,
				      .tag = TAG,
				      .buf = buf,
				      .rank = 1,
				      .len = i % 3 ? 8 : sizeof(buf) };

		ops[i] = msg.op = ft_op_new(fab, FT_ONE);
		FT_POST(fab, ft_send(fab, FT_PLAIN, &msg));
	}
	for (int i = 0; i < MANY; i++) {
		ft_wait(fab, ops[i]);
		FT_CHECK(ops[i]->err, "a send to nobody ended well");
		FT_CHECK(!want || ops[i]->err == want, "a send to nobody ended with %s",
			 ft_err_name(ops[i]->err));
		ft_op_put(fab, ops[i]);
	}
	do { /* an injected message fails at a later call */
		ret = fi_tinject(fab->ep, buf, 8, addr, TAG);
		if (!ret || ret == -FI_EAGAIN)
			ft_turn(fab->ft, ft_poll(fab));
	} while (ret == -FI_EAGAIN);
	ft_pause(fab->ft, 0.02);
}

/*
 * The sends and the injected message fail by two attempts to connect. Other providers have limits
 * of their own.
 */
static void run_nobody(struct ft *ft)
{
	double start = ft_now();
	struct ft_fab fab;
	struct ft_op *op;

	setenv("FI_COPYRPC_PEER_TIMEOUT", "3000", 1);
	begin(&fab, ft, (struct ft_want){ 0 });
	all_end_badly(&fab, insert_port(&fab, 9), 0);
	FT_CHECK(ft_now() - start < 90, "it took %.1f s", ft_now() - start);
	op = ft_recv_post(&fab, true, TAG + 5, NULL, 0);
	ft_send_wait(&fab, FT_INJECT, (struct ft_msg){ .tagged = true, .tag = TAG + 5 });
	ft_wait_good(&fab, op);
	ft_fab_close(&fab);
}

/* A process has the port, and never replies. */
static void run_silent(struct ft *ft)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int sock = socket(AF_INET, SOCK_DGRAM, 0);
	struct ft_fab fab;

	setenv("FI_COPYRPC_PEER_TIMEOUT", "1500", 1);
	inet_pton(AF_INET, ft->opts->address ? ft->opts->address : "127.0.0.1", &sin.sin_addr);
	FT_OK(bind(sock, (struct sockaddr *)&sin, sizeof(sin)));
	FT_OK(getsockname(sock, (struct sockaddr *)&sin, &len));
	begin(&fab, ft, (struct ft_want){ 0 });
	all_end_badly(&fab, insert_port(&fab, ntohs(sin.sin_port)), 0);
	ft_fab_close(&fab);
}

static void run_wrong_key(struct ft *ft)
{
	struct ft_fab fab;

	if (strcmp(ft->opts->provider, "copyrpc"))
		ft_notrun("a parameter of copyrpc");
	setenv("FI_COPYRPC_JOB_KEY", ft->rank ? "one secret" : "another secret", 1);
	setenv("FI_COPYRPC_PEER_TIMEOUT", "2000", 1);
	begin(&fab, ft, (struct ft_want){ 0 });
	if (ft->rank == 0) {
		all_end_badly(&fab, fab.addr[1], 0);
	} else {
		ft_recv_post(&fab, true, TAG, NULL, 0);
		ft_recv_post(&fab, false, 0, NULL, 0);
	}
	ft_sync(ft);
	ft_quiet(&fab, 0.02); /* no message has arrived */
	ft_fab_close(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("killed", run_killed,
		"All that is open with a dead peer ends in error, once; the rest goes on.",
		.procs = 3, .victims = 2, .local = true),
	FT_CASE("killed-match", run_killed,
		"So do sends with FI_MATCH_COMPLETE, which had arrived and had not matched.",
		.procs = 3, .victims = 2, .local = true, .arg = 1),
	FT_CASE("killed-silent", run_killed_silent,
		"Operations without a completion report their failure, and count it.", .victims = 2,
		.local = true),
	FT_CASE("stopped", run_stopped, "A peer that stands still for a while loses nothing.",
		.local = true),
	FT_CASE("back-closed", run_back, "Who opens a closed endpoint's address is a new peer.",
		.procs = 3, .victims = 2, .local = true),
	FT_CASE("back-died", run_back, "Who starts again at a dead one's address is a new peer.",
		.procs = 3, .victims = 2, .local = true, .arg = 1),
	FT_CASE("nobody", run_nobody, "Sends to nobody end in error, in bounded time.", .procs = 1,
		.fresh = true),
	FT_CASE("silent", run_silent, "Sends to a peer that never replies end in error, in time.",
		.procs = 1, .fresh = true),
	FT_CASE("wrong-key", run_wrong_key, "Without the job's key there is no connection.",
		.fresh = true),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Who dies, stops or was never there takes nobody along.", cases,
		       FT_CNT(cases));
}
