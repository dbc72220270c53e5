/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ten thousand clients over a server's life, as many at a time as there may be: each gets a place
 * and its responses, one more is refused, and the server's memory and descriptors are flat.
 *
 * Processes with CLIENTS clients each fill the server, call with each of them, and end by
 * crl_client_close, _exit with calls open, or SIGKILL, in turns.
 *
 * usage: local_many delegation|ipc
 */
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "integ_local.h"
#include "support/proc.h"

#define PROCESSES 8u
#define CLIENTS   (CRL_CLIENTS_MAX / PROCESSES)
#define ROUNDS    10
#define FILES     8192

/* Memory that the processes share. */
struct board {
	_Atomic uint32_t open; /* processes whose clients have all called */
	atomic_bool finish;
	atomic_bool stop;
	struct crl_counters counters;
	_Atomic uint32_t fds;      /* of the server */
	_Atomic uint64_t rss_kb;   /* of the server */
	_Atomic uint32_t reported; /* rounds of which the server has reported */
	_Atomic uint32_t asked;
};

static struct board *board;
static char name[64];

/* ---- the server ---- */

static void report(struct crl_server *server)
{
	crl_server_counters(server, &board->counters);
	if (board->reported == board->asked || board->counters.clients)
		return;
	board->fds = proc_fd_cnt(getpid());
	board->rss_kb = proc_resident_kib(getpid());
	board->reported = board->asked;
}

static void serve(enum crl_kind kind)
{
	struct crl_options options = {
		.max_clients = CRL_CLIENTS_MAX, .depth = 2, .request_max = 64, .response_max = 64
	};
	struct crl_server *server;
	struct crl_request requests[64];

	CHECK(!crl_server_open(&server, kind, name, &options));
	while (!board->stop) {
		int n = crl_server_take(server, requests, 64);

		for (int i = 0; i < n; i++)
			crl_server_reply(server, requests[i].handle, requests[i].data,
					 requests[i].len);
		if (!n)
			crl_server_wait(server, 1);
		report(server);
	}
	crl_server_close(server);
	_exit(0);
}

/* ---- clients ---- */

static void call(struct crl_client *client, uint32_t word)
{
	struct crl_response response;

	CHECK(!crl_client_call(client, &word, sizeof(word), client, 0));
	while (!crl_client_poll(client, &response, 1))
		crl_client_wait(client, -1);
	CHECK(!response.status && response.context == client);
	CHECK(!memcmp(response.data, &word, sizeof(word)));
}

static void live(uint32_t seed, int how)
{
	struct crl_client *clients[CLIENTS];

	for (uint32_t i = 0; i < CLIENTS; i++)
		clients[i] = local_open(name);
	for (uint32_t i = 0; i < CLIENTS; i++)
		call(clients[i], seed * CLIENTS + i);
	board->open++;
	while (!board->finish)
		local_nap_us(1000);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		CHECK(!crl_client_call(clients[i], "1234", 4, NULL, 0));
		if (how == 0)
			crl_client_close(clients[i]);
	}
	if (how == 2)
		kill(getpid(), SIGKILL);
	_exit(0);
}

/* ---- the parent ---- */

static void await(_Atomic uint32_t *word, uint32_t value)
{
	uint64_t limit = local_now_ns() + 2 * LOCAL_LIMIT_NS;

	while (*word != value) {
		CHECK(local_now_ns() < limit);
		local_nap_us(1000);
	}
}

static void run_round(uint32_t round)
{
	struct crl_client *one_more;
	pid_t pids[PROCESSES];
	int status;

	board->open = 0;
	board->finish = false;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		pids[i] = local_fork();
		if (!pids[i])
			live(round * PROCESSES + i, (int)((round + i) % 3));
	}
	await(&board->open, PROCESSES);
	CHECK(crl_client_open(&one_more, name, LOCAL_LIMIT_MS) == -EUSERS);
	board->finish = true;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : status == 0);
	}
	board->asked++;
	await(&board->reported, board->asked);
}

int main(int argc, char **argv)
{
	bool ring = argc > 1 && !strcmp(argv[1], "delegation");
	struct rlimit files = { FILES, FILES };
	uint32_t fds = 0;
	uint64_t rss_kb = 0;
	pid_t server;
	int status;

	if (setrlimit(RLIMIT_NOFILE, &files)) {
		puts("needs 8192 descriptors");
		return 77;
	}
	board = local_board(sizeof(*board));
	snprintf(name, sizeof(name), "local-many.%d", (int)getpid());
	server = local_fork();
	if (!server)
		serve(ring ? CRL_DELEGATION : CRL_IPC);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		run_round(round);
		if (round == 0) {
			fds = board->fds;
			rss_kb = board->rss_kb;
		}
		CHECK(board->fds == fds);
	}
	CHECK(board->counters.accepted >= (uint64_t)ROUNDS * CRL_CLIENTS_MAX);
	CHECK(!board->counters.expelled && !board->counters.repaired);
	/* A client costs the server more than 1 KiB: a leak of 9,216 would be seen. */
	CHECK(board->rss_kb < rss_kb + 1024);
	board->stop = true;
	CHECK(waitpid(server, &status, 0) == server && status == 0);
	printf("%s: %lu clients, %lu refused; server: %u descriptors, %lu KiB after the first %u, "
	       "%lu KiB at the end\n",
	       ring ? "delegation" : "ipc", board->counters.accepted, board->counters.refused, fds,
	       rss_kb, CRL_CLIENTS_MAX, (uint64_t)board->rss_kb);
	return 0;
}
