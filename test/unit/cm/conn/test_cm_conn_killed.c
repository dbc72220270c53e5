/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers that are killed, and their successors: cm/conn/cm_conn.c. */
#include "cm/conn/cm_conn.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "support/rng.h"
#include "unit/cm/cm_fixture.h"

/* Peer in a process of its own, forked before threads exist. */
struct forked {
	pid_t pid;
	int go[2];   /* port to bind; 0: any */
	int tell[2]; /* port bound */
};

static void forked_main(struct forked *f)
{
	struct cm_end end;
	uint16_t port;

	if (read(f->go[0], &port, sizeof(port)) != sizeof(port))
		_exit(1);
	cm_end_open(&end, cm_test_node(NULL, 0), "127.0.0.1", port);
	port = cm_test_port(&end);
	if (write(f->tell[1], &port, sizeof(port)) != sizeof(port))
		_exit(1);
	for (;;)
		pause();
}

static void forked_start(struct forked *f)
{
	cr_assert(!pipe(f->go) && !pipe(f->tell));
	f->pid = fork();
	if (!f->pid)
		forked_main(f);
}

static uint16_t forked_go(struct forked *f, uint16_t port)
{
	cr_assert(write(f->go[1], &port, sizeof(port)) == sizeof(port));
	cr_assert(read(f->tell[0], &port, sizeof(port)) == sizeof(port));
	return port;
}

static void kill_and_wait(pid_t pid)
{
	cr_assert(!kill(pid, SIGKILL));
	cr_assert(waitpid(pid, NULL, 0) == pid);
}

static void connect_to_port(struct cm_end *end, uint16_t port)
{
	union cm_addr addr;

	cm_test_addr("127.0.0.1", port, &addr);
	cr_assert(!cm_connect(end->cep, &addr.sa, false));
}

static uint64_t peer_incarnation(struct cm_end *end)
{
	return cm_conn_incarnation(
		UTIL_CONTAINER_OF(end->conns.next, struct cm_end_conn, link)->cm);
}

/* Checks that establish got the process of the only peer with its description (SO_PEERCRED). */
static void check_described_pid(struct cm_end *end, pid_t pid)
{
	cr_expect_eq(UTIL_CONTAINER_OF(end->conns.next, struct cm_end_conn, link)->pid, pid);
}

/* Waits for the result of a request. Returns whether it came up. */
static bool ask_port(struct cm_end *end, uint16_t port, struct forked *starts)
{
	unsigned asked = cm_end_get(end, &end->requested), failed = cm_end_get(end, &end->failed);

	connect_to_port(end, port);
	if (starts) {
		cm_test_sleep_ms(200);
		cr_assert_eq(forked_go(starts, port), port);
	}
	for (int i = 0; i < CM_TEST_WAIT_MS; i++) {
		if (cm_end_get(end, &end->requested) > asked)
			return true;
		if (cm_end_get(end, &end->failed) > failed)
			return false;
		cm_test_sleep_ms(1);
	}
	cr_assert_fail("no reply");
	return false;
}

/*
 * A request made while no process listens reaches a successor that starts within the grace time. If
 * the machine stalls longer than that, the successor is killed and the round repeated.
 */
Test(cm_conn_killed, a_killed_peer_is_a_reset_and_its_successor_a_new_conn)
{
	enum { LIVES = 6 };
	struct forked lives[LIVES];
	struct cm_node *node;
	struct cm_end a;
	uint16_t port;
	uint64_t inc;
	bool is_met = false;

	for (int i = 0; i < LIVES; i++)
		forked_start(&lives[i]);
	port = forked_go(&lives[0], 0);
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cr_assert(ask_port(&a, port, NULL));
	check_described_pid(&a, lives[0].pid);
	for (int i = 0; i < LIVES - 1 && !is_met; i++) {
		unsigned downs = cm_end_get(&a, &a.down);

		inc = peer_incarnation(&a);
		kill_and_wait(lives[i].pid);
		cr_assert(cm_end_wait(&a, &a.down, downs + 1, CM_TEST_WAIT_MS));
		cr_assert_eq(a.down_err, -FI_ECONNRESET);
		cm_end_reap(&a);
		is_met = ask_port(&a, port, &lives[i + 1]);
		cr_assert(is_met || ask_port(&a, port, NULL));
		cr_assert_neq(inc, peer_incarnation(&a));
	}
	cr_assert(is_met);
	cm_end_close(&a);
	cm_node_close(node);
	for (int i = 0; i < LIVES; i++)
		kill(lives[i].pid, SIGKILL);
}

Test(cm_conn_killed, a_killed_active_peer_is_a_reset)
{
	struct cm_node *node;
	struct cm_end a;
	int go[2];
	pid_t pid;

	cr_assert(!pipe(go));
	pid = fork();
	if (!pid) {
		struct sockaddr_storage to;
		struct cm_end end;

		if (read(go[0], &to, sizeof(to)) != sizeof(to))
			_exit(1);
		cm_end_open(&end, cm_test_node(NULL, 0), "127.0.0.1", 0);
		cm_connect(end.cep, (struct sockaddr *)&to, false);
		for (;;)
			pause();
	}
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cr_assert(write(go[1], &a.addr, sizeof(a.addr)) == sizeof(a.addr));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	check_described_pid(&a, pid);
	kill_and_wait(pid);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.down_err, -FI_ECONNRESET);
	cm_end_close(&a);
	cm_node_close(node);
}

/* Forks a peer for each pair of addresses read; the peer connects and stays alive. */
static pid_t start_zygote(int addrs[2], int pids[2])
{
	struct sockaddr_storage ss[2]; /* the peer's own address, and the one to connect to */
	pid_t pid;

	cr_assert(!pipe(addrs) && !pipe(pids));
	pid = fork();
	if (pid)
		return pid;
	signal(SIGCHLD, SIG_IGN); /* children are not waited for */
	while (read(addrs[0], ss, sizeof(ss)) == sizeof(ss)) {
		struct cm_end end;

		pid = fork();
		if (pid)
			continue;
		cm_end_open_at(&end, cm_test_node(NULL, 0), (union cm_addr *)&ss[0]);
		cm_ep_addr(end.cep, &ss[0]);
		pid = getpid();
		if (write(pids[1], &pid, sizeof(pid)) != sizeof(pid) ||
		    write(pids[1], ss, sizeof(ss[0])) != sizeof(ss[0]))
			_exit(1);
		cm_connect(end.cep, (struct sockaddr *)&ss[1], false);
		for (;;)
			pause();
	}
	_exit(0);
}

Test(cm_conn_killed, peers_killed_at_any_moment_complete_their_requests_and_leak_nothing)
{
	enum { KILLS = 200 };
	struct rng rng = { 5 };
	struct cm_node *node;
	int addrs[2], pids[2];
	unsigned fds;
	pid_t zygote = start_zygote(addrs, pids), pid;
	struct cm_end a;

	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	fds = cm_test_fd_count_at_rest(node);
	for (unsigned i = 0; i < KILLS; i++) {
		struct sockaddr_storage ss[2] = { 0 };
		unsigned before;
		char ip[16];

		/* Each peer has its own address, so each request has its own result. */
		snprintf(ip, sizeof(ip), "127.0.2.%u", i + 1);
		cm_test_addr(ip, 0, (union cm_addr *)&ss[0]);
		ss[1] = a.addr;
		cr_assert(write(addrs[1], ss, sizeof(ss)) == sizeof(ss));
		cr_assert(read(pids[0], &pid, sizeof(pid)) == sizeof(pid));
		cr_assert(read(pids[0], ss, sizeof(ss[0])) == sizeof(ss[0]));
		before = cm_end_get(&a, &a.requested);
		cr_assert(!cm_connect(a.cep, (struct sockaddr *)&ss[0], false));
		/* On a slow machine none accepts in that time: some may take theirs. */
		if (i % 20)
			usleep((useconds_t)rng_below(&rng, 1500));
		else
			cr_assert(cm_end_wait(&a, &a.requested, before + 1, CM_TEST_WAIT_MS));
		cr_assert(!kill(pid, SIGKILL));
		cm_end_reap(&a);
	}
	for (int ms = 0; ms < CM_TEST_WAIT_MS; ms++) {
		if (cm_end_get(&a, &a.requested) + cm_end_get(&a, &a.failed) == KILLS &&
		    !cm_end_live(&a))
			break;
		cm_test_sleep_ms(1);
	}
	cr_assert_eq(a.requested + a.failed, KILLS, "%u + %u", a.requested, a.failed);
	cr_assert_eq(cm_end_live(&a), 0);
	cr_assert(a.requested && (!a.failed || a.failed_err == -FI_ECONNREFUSED), "%s", a.why);
	cr_assert(!a.down || a.down_err == -FI_ECONNRESET);
	cm_end_reap(&a);
	cr_assert_eq(cm_test_fd_count_at_rest(node), fds);
	close(addrs[1]);
	cr_assert(!kill(zygote, SIGKILL));
	cr_assert(waitpid(zygote, NULL, 0) == zygote);
	cm_end_close(&a);
	cm_node_close(node);
}
