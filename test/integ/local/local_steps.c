/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client, or the server, that is killed or stopped after each instruction of the protocol.
 *
 * The victim is traced and single-stepped: the first one dies after no instruction, the next one
 * STRIDE instructions later, until one reaches the end of its work. Every second client is stopped
 * for a while before it is killed.
 *
 * client: the victim calls, polls, arms and polls again. A witness must have further
 * responses, all right, and the places of the victims come back.
 * server: the victim takes and replies while two clients with open calls wait. Each call must end
 * exactly once, with its response or with -EPIPE.
 *
 * usage: local_steps delegation|ipc client|server [stride]     (exits with 77 where ptrace fails)
 */
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "integ_local.h"

#define DEPTH   4
#define CLIENTS 2 /* beside a server that is the victim */

/* Memory that the processes share. */
struct board {
	_Atomic uint64_t ended;  /* calls of the witness */
	_Atomic uint32_t called; /* clients that have made their calls */
	atomic_bool stop, stop_server;
	struct crl_counters counters;
};

static struct board *board;
static char name[64];

static void fill(uint32_t *words, uint32_t seed)
{
	for (uint32_t i = 0; i < 8; i++)
		words[i] = seed + i;
}

static void check_response(const struct crl_response *response)
{
	uint32_t words[8];

	fill(words, (uint32_t)(uintptr_t)response->context);
	CHECK(response->len == sizeof(words) && !memcmp(response->data, words, sizeof(words)));
}

static int call(struct crl_client *client, uint32_t seed)
{
	uint32_t words[8];

	fill(words, seed);
	return crl_client_call(client, words, sizeof(words), (void *)(uintptr_t)seed, 0);
}

static int take_and_reply(struct crl_server *server)
{
	struct crl_request requests[8];
	int n = crl_server_take(server, requests, 8);

	for (int i = 0; i < n; i++)
		crl_server_reply(server, requests[i].handle, requests[i].data, requests[i].len);
	return n;
}

static struct crl_server *open_server(enum crl_kind kind)
{
	struct crl_options options = {
		.max_clients = CLIENTS + 1, .depth = DEPTH, .request_max = 32, .response_max = 32
	};
	struct crl_server *server;

	CHECK(!crl_server_open(&server, kind, name, &options));
	return server;
}

/* ---- tracing ---- */

/* Stops for the parent, which steps through what follows. */
static void be_traced(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
}

/* Waits until the victim is traced. */
static void await_victim(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(77);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

/* Runs so many instructions of the victim. Returns false if it has ended by itself. */
static bool step(pid_t pid, uint32_t steps)
{
	int status;

	for (; steps; steps--) {
		CHECK(!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
		CHECK(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status)) {
			CHECK(!WEXITSTATUS(status));
			return false;
		}
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
	return true;
}

static void kill_victim(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	do {
		CHECK(waitpid(pid, &status, 0) == pid);
	} while (WIFSTOPPED(status));
	CHECK(WIFSIGNALED(status));
}

static void await_end(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- the client dies ---- */

static void serve(enum crl_kind kind)
{
	struct crl_server *server = open_server(kind);

	while (!board->stop_server) {
		if (!take_and_reply(server))
			crl_server_wait(server, 1);
		crl_server_counters(server, &board->counters);
	}
	crl_server_close(server);
	_exit(0);
}

static void witness(void)
{
	struct crl_client *client = local_open(name);
	struct crl_response responses[DEPTH];
	uint32_t seed = 0;

	while (!board->stop) {
		int n;

		while (!call(client, seed))
			seed++;
		n = crl_client_poll(client, responses, DEPTH);
		CHECK(n >= 0);
		for (int i = 0; i < n; i++) {
			CHECK(!responses[i].status);
			check_response(&responses[i]);
		}
		board->ended += (uint64_t)n;
		if (!n)
			crl_client_wait(client, 1);
	}
	_exit(0);
}

static void be_client(void)
{
	struct crl_client *client = local_open(name);
	struct crl_response response;

	be_traced();
	CHECK(!call(client, 1 << 20));
	crl_client_poll(client, &response, 1);
	crl_client_arm(client);
	crl_client_poll(client, &response, 1);
	_exit(0);
}

/* Returns the time until the witness has had so many more responses. */
static uint64_t await_witness(uint64_t more)
{
	uint64_t begin = local_now_ns(), until = board->ended + more;

	while (board->ended < until) {
		CHECK(local_now_ns() < begin + LOCAL_LIMIT_NS);
		local_nap_us(20);
	}
	return local_now_ns() - begin;
}

static void await_places(void)
{
	uint64_t limit = local_now_ns() + LOCAL_LIMIT_NS;

	while (board->counters.clients != 1) {
		CHECK(local_now_ns() < limit);
		local_nap_us(100);
	}
}

static void check_client(enum crl_kind kind, uint32_t stride)
{
	pid_t server = local_fork(), seer;
	uint64_t longest = 0;
	uint32_t victims = 0;
	bool alive = true;

	if (!server)
		serve(kind);
	seer = local_fork();
	if (!seer)
		witness();
	await_witness(1);
	while (alive) {
		uint64_t took = 0;
		pid_t pid = local_fork();

		if (!pid)
			be_client();
		await_victim(pid);
		alive = step(pid, victims * stride);
		if (alive && victims % 2)
			took = await_witness(4 * DEPTH);
		if (alive)
			kill_victim(pid);
		took += await_witness(4 * DEPTH);
		longest = took > longest ? took : longest;
		victims++;
	}
	await_places();
	CHECK(board->counters.accepted >= victims && !board->counters.expelled);
	board->stop = true;
	await_end(seer);
	board->stop_server = true;
	await_end(server);
	printf("%s: %u clients killed or stopped within %u instructions; longest wait %.1f ms\n",
	       kind == CRL_IPC ? "ipc" : "delegation", victims - 1, (victims - 1) * stride,
	       (double)longest / 1e6);
}

/* ---- the server dies ---- */

static void be_server(enum crl_kind kind)
{
	struct crl_server *server = open_server(kind);

	while (board->called < CLIENTS) {
		crl_server_take(server, NULL, 0);
		crl_server_wait(server, 1);
	}
	be_traced();
	for (int got = 0; got < CLIENTS * DEPTH;)
		got += take_and_reply(server);
	_exit(0);
}

/* Every call ends once. */
static void end_calls(uint32_t first)
{
	struct crl_client *client = local_open(name);
	struct crl_response response;
	uint32_t seen = 0;
	int ret;

	for (uint32_t i = 0; i < DEPTH; i++)
		CHECK(!call(client, first + i));
	board->called++;
	while ((ret = crl_client_poll(client, &response, 1)) >= 0) {
		uint32_t bit = 1u << ((uint32_t)(uintptr_t)response.context - first);

		if (!ret) {
			crl_client_wait(client, -1);
			continue;
		}
		CHECK(bit < 1u << DEPTH && !(seen & bit));
		seen |= bit;
		CHECK(!response.status || response.status == -EPIPE);
		if (!response.status)
			check_response(&response);
	}
	CHECK(ret == -EPIPE && seen == (1u << DEPTH) - 1);
	CHECK(call(client, first) == -EPIPE);
	crl_client_close(client);
	_exit(0);
}

static void check_server(enum crl_kind kind, uint32_t stride)
{
	uint32_t victims = 0;
	bool alive = true;

	while (alive) {
		pid_t server, clients[CLIENTS];

		board->called = 0;
		server = local_fork();
		if (!server)
			be_server(kind);
		for (uint32_t i = 0; i < CLIENTS; i++) {
			clients[i] = local_fork();
			if (!clients[i])
				end_calls(i << 16);
		}
		await_victim(server);
		alive = step(server, victims * stride);
		if (alive)
			kill_victim(server);
		for (uint32_t i = 0; i < CLIENTS; i++)
			await_end(clients[i]);
		victims++;
	}
	printf("%s: %u servers killed within %u instructions\n",
	       kind == CRL_IPC ? "ipc" : "delegation", victims - 1, (victims - 1) * stride);
}

int main(int argc, char **argv)
{
	enum crl_kind kind = argc > 1 && !strcmp(argv[1], "delegation") ? CRL_DELEGATION : CRL_IPC;
	bool server = argc > 2 && !strcmp(argv[2], "server");
	int stride = argc > 3 ? atoi(argv[3]) : 1;

	CHECK(stride > 0);
	board = local_board(sizeof(*board));
	snprintf(name, sizeof(name), "local-steps.%d", (int)getpid());
	if (server)
		check_server(kind, (uint32_t)stride);
	else
		check_client(kind, (uint32_t)stride);
	return 0;
}
