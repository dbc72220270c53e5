/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Idle costs no CPU: a server without requests and a client with an open call sleep, by the
 * ..._wait functions and by their descriptors, and a call after that wakes each of them once.
 *
 * Counts hold on a busy machine too: CPU time and voluntary context switches of each
 * process while nothing happens, and wakeups per call.
 *
 * usage: local_idle delegation|ipc
 */
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "integ_local.h"

#define IDLE_MS    1000
#define CPU_MAX_US 20000 /* 2 % of the time; a spinning process takes all of it */
#define SWITCH_MAX 10
#define TRIPS      100
#define CLIENTS    4 /* idle all the time */

/* Memory that the processes share. */
struct board {
	_Atomic uint32_t asleep;                 /* processes that begin to wait */
	_Atomic uint64_t cpu_us[2], switches[2]; /* of the server and the client while idle */
	atomic_bool finish, stop;
	struct crl_counters counters;
};

static struct board *board;
static char name[64];
static bool by_descriptor;

static uint64_t cpu_us(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static void note_use(const struct rusage *begin, int who)
{
	struct rusage end;

	CHECK(!getrusage(RUSAGE_SELF, &end));
	board->cpu_us[who] = cpu_us(&end) - cpu_us(begin);
	board->switches[who] = (uint64_t)(end.ru_nvcsw - begin->ru_nvcsw);
}

static void sleep_on(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	CHECK(poll(&pfd, 1, -1) == 1);
}

static void wait_server(struct crl_server *server)
{
	if (!by_descriptor)
		crl_server_wait(server, -1);
	else if (!crl_server_arm(server))
		sleep_on(crl_server_fd(server));
}

static void wait_client(struct crl_client *client)
{
	if (!by_descriptor)
		CHECK(!crl_client_wait(client, -1));
	else if (!crl_client_arm(client))
		sleep_on(crl_client_fd(client));
}

/* Takes the next request, asleep meanwhile. */
static struct crl_request take(struct crl_server *server)
{
	struct crl_request request;

	while (!crl_server_take(server, &request, 1))
		wait_server(server);
	return request;
}

/* Lets all clients connect, so that none costs anything later. */
static void accept_all(struct crl_server *server)
{
	struct crl_counters counters;

	do {
		crl_server_take(server, NULL, 0);
		crl_server_wait(server, 1);
		crl_server_counters(server, &counters);
	} while (counters.clients != CLIENTS + 2);
}

/* The first request stays open while both sides are idle; the second ends that. */
static void serve(enum crl_kind kind)
{
	struct crl_server *server;
	struct crl_request first, request;
	struct rusage begin;

	CHECK(!crl_server_open(&server, kind, name, NULL));
	accept_all(server);
	first = take(server);
	CHECK(!getrusage(RUSAGE_SELF, &begin));
	board->asleep++;
	request = take(server);
	note_use(&begin, 0);
	crl_server_reply(server, request.handle, "", 0);
	crl_server_reply(server, first.handle, "", 0);
	for (int i = 0; i < TRIPS; i++) {
		request = take(server);
		local_nap_us(1000); /* so that the client sleeps */
		crl_server_reply(server, request.handle, "", 0);
	}
	crl_server_counters(server, &board->counters);
	board->stop = true;
	local_nap_us(1000);
	_exit(0);
}

static void call(struct crl_client *client)
{
	struct crl_response response;

	CHECK(!crl_client_call(client, "", 0, NULL, 0));
	while (!crl_client_poll(client, &response, 1))
		wait_client(client);
	CHECK(!response.status);
}

static void call_idle(struct crl_client *client)
{
	struct crl_response response;
	struct rusage begin;

	CHECK(!crl_client_call(client, "", 0, NULL, 0));
	CHECK(!getrusage(RUSAGE_SELF, &begin));
	board->asleep++;
	while (!crl_client_poll(client, &response, 1))
		wait_client(client);
	note_use(&begin, 1);
}

static void run_client(void)
{
	struct crl_client *client = local_open(name);

	call_idle(client);
	for (int i = 0; i < TRIPS; i++)
		call(client);
	_exit(0);
}

static void run_waker(void)
{
	struct crl_client *client = local_open(name);

	while (!board->finish)
		local_nap_us(1000);
	call(client);
	while (!board->stop)
		local_nap_us(1000);
	_exit(0);
}

static void run_idle(void)
{
	local_open(name);
	for (;;)
		pause();
}

static void check_use(int who, const char *process)
{
	printf("  %s: %lu us of CPU and %lu context switches in %d ms\n", process,
	       (uint64_t)board->cpu_us[who], (uint64_t)board->switches[who], IDLE_MS);
	CHECK(board->cpu_us[who] < CPU_MAX_US);
	CHECK(board->switches[who] < SWITCH_MAX);
}

static void check(enum crl_kind kind)
{
	pid_t pids[3], idle[CLIENTS];
	int status;

	memset(board, 0, sizeof(*board));
	pids[0] = local_fork();
	if (!pids[0])
		serve(kind);
	for (int i = 0; i < CLIENTS; i++) {
		idle[i] = local_fork();
		if (!idle[i])
			run_idle();
	}
	pids[2] = local_fork();
	if (!pids[2])
		run_waker();
	pids[1] = local_fork();
	if (!pids[1])
		run_client();
	while (board->asleep < 2)
		local_nap_us(1000);
	local_nap_us(IDLE_MS * 1000);
	board->finish = true;
	for (int i = 0; i < 3; i++)
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	for (int i = 0; i < CLIENTS; i++) {
		kill(idle[i], SIGKILL);
		CHECK(waitpid(idle[i], NULL, 0) == idle[i]);
	}
	check_use(0, "server");
	check_use(1, "client");
	printf("  %lu wakeups for %d calls\n", board->counters.wakeups, TRIPS + 2);
	CHECK(board->counters.wakeups && board->counters.wakeups <= TRIPS + 2);
}

int main(int argc, char **argv)
{
	bool ring = argc > 1 && !strcmp(argv[1], "delegation");

	board = local_board(sizeof(*board));
	snprintf(name, sizeof(name), "local-idle.%d", (int)getpid());
	for (int i = 0; i < 2; i++) {
		by_descriptor = i == 1;
		printf("%s, %s\n", ring ? "delegation" : "ipc",
		       by_descriptor ? "descriptors" : "waits");
		check(ring ? CRL_DELEGATION : CRL_IPC);
	}
	return 0;
}
