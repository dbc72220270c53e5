/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clients of a local channel that are killed or stopped at any instruction, and a server that is
 * killed: the others go on, each response belongs to its call, and what the dead had comes back.
 *
 * One server process; a witness client that must get all its responses; other clients that are
 * killed, or stopped for a while, at random times and replaced. At the end the server reports its
 * counters and is killed, and the witness must learn of it.
 *
 * usage: local_killed delegation|ipc [seconds [seed]]
 */
#include <copyrpc/local.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VICTIMS 6
#define DEPTH   8
#define BYTES   100
#define OPEN_MS 60000
#define LIMIT_S 60 /* for what takes milliseconds on a quiet machine */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "local_killed: not true: %s (line %d)\n", #cond,           \
				__LINE__);                                                         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Memory that all processes share. */
struct board {
	_Atomic uint64_t witnessed; /* responses of the witness */
	_Atomic uint64_t gap_ns;    /* longest time between two of them */
	_Atomic uint64_t calls;     /* responses of all clients */
	atomic_bool stop;           /* the server reports and waits to be killed */
	atomic_bool reported;
	atomic_bool noticed; /* the witness has learnt that the server is gone */
	struct crl_counters counters;
};

static struct board *board;
static char name[64];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void nap_us(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

/* ---- the server ---- */

/* Replies with the request, each byte increased by one. */
static void reply_to(struct crl_server *server, const struct crl_request *request)
{
	uint8_t out[BYTES];

	for (size_t i = 0; i < request->len; i++)
		out[i] = (uint8_t)(((const uint8_t *)request->data)[i] + 1);
	crl_server_reply(server, request->handle, out, request->len);
}

static void serve(enum crl_kind kind)
{
	struct crl_options options = { .max_clients = VICTIMS + 2, .depth = DEPTH };
	struct crl_server *server;
	struct crl_request requests[16];

	CHECK(!crl_server_open(&server, kind, name, &options));
	for (;;) {
		int n = crl_server_take(server, requests, 16);

		for (int i = n - 1; i >= 0; i--) /* not in their order */
			reply_to(server, &requests[i]);
		if (!n)
			crl_server_wait(server, 1);
		if (board->stop && !board->reported) {
			crl_server_counters(server, &board->counters);
			board->reported = board->counters.clients == 1;
		}
	}
}

/* ---- clients ---- */

/* Bytes of call `seq` of a client: they follow from both, so that each response is recognised. */
static size_t fill(uint8_t *buf, uint64_t client, uint64_t seq)
{
	size_t len = 16 + (client + seq) % (BYTES - 16);

	memcpy(buf, &client, 8);
	memcpy(buf + 8, &seq, 8);
	for (size_t i = 16; i < len; i++)
		buf[i] = (uint8_t)(client * 7 + seq + i);
	return len;
}

static void check_response(const struct crl_response *response, uint64_t client)
{
	uint8_t expected[BYTES];
	size_t len = fill(expected, client, (uintptr_t)response->context);

	CHECK(response->len == len);
	for (size_t i = 0; i < len; i++)
		CHECK(((const uint8_t *)response->data)[i] == (uint8_t)(expected[i] + 1));
}

/* Notes that the witness had responses now. */
static void note(uint64_t *last, int n)
{
	uint64_t now = now_ns();

	if (*last && now - *last > board->gap_ns)
		board->gap_ns = now - *last;
	*last = now;
	board->witnessed += (uint64_t)n;
}

/* Connects, perhaps before the server has opened its name. */
static struct crl_client *open_client(void)
{
	uint64_t limit = now_ns() + LIMIT_S * 1000000000ull;
	struct crl_client *client;
	int ret;

	while ((ret = crl_client_open(&client, name, OPEN_MS)) == -ECONNREFUSED || ret == -ENOENT ||
	       ret == -EUSERS) {
		CHECK(now_ns() < limit);
		nap_us(1000);
	}
	CHECK(!ret);
	return client;
}

/* Calls until the server is gone. Each sequence number must come back exactly once. */
static void call_for_ever(uint64_t id, bool witness)
{
	struct crl_response responses[DEPTH];
	struct crl_client *client;
	uint64_t seq = 1, got = 0, last = 0;
	uint8_t buf[BYTES];
	int n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	client = open_client();
	for (;;) {
		while (crl_client_pending(client) < DEPTH && !board->stop &&
		       !crl_client_call(client, buf, fill(buf, id, seq), (void *)(uintptr_t)seq, 0))
			seq++;
		n = crl_client_poll(client, responses, DEPTH);
		if (n == -EPIPE)
			break;
		for (int i = 0; i < n; i++)
			if (!responses[i].status)
				check_response(&responses[i], id);
		got += (uint64_t)n;
		CHECK(got < seq);
		board->calls += (uint64_t)n;
		if (n && witness)
			note(&last, n);
		if (!n)
			crl_client_wait(client, 1);
	}
	CHECK(got == seq - 1); /* each call has ended, once */
	if (witness)
		board->noticed = true;
	_exit(0);
}

static pid_t start_client(uint64_t id, bool witness)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		call_for_ever(id, witness);
	return pid;
}

/* ---- the parent ---- */

static void await(atomic_bool *flag, const char *what)
{
	uint64_t limit = now_ns() + LIMIT_S * 1000000000ull;

	while (!*flag) {
		if (now_ns() > limit) {
			fprintf(stderr, "local_killed: %s: not within %d s\n", what, LIMIT_S);
			exit(1);
		}
		nap_us(1000);
	}
}

static void kill_client(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Kills and stops clients for a while. Returns the number of kills. */
static uint64_t torment(double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), kills = 0;
	pid_t victims[VICTIMS];

	for (unsigned i = 0; i < VICTIMS; i++)
		victims[i] = start_client(i + 2, false);
	while (now_ns() < end) {
		unsigned i = (unsigned)rand() % VICTIMS;

		nap_us(rand() % 3000);
		if (rand() % 4 == 0) {
			kill(victims[i], SIGSTOP);
			nap_us(rand() % 20000);
		}
		kill_client(victims[i]);
		victims[i] = start_client(++kills + VICTIMS + 2, false);
	}
	for (unsigned i = 0; i < VICTIMS; i++)
		kill_client(victims[i]);
	return kills + VICTIMS;
}

int main(int argc, char **argv)
{
	bool ring = argc > 1 && !strcmp(argv[1], "delegation");
	double seconds = argc > 2 ? atof(argv[2]) : 3;
	uint64_t kills, witnessed;
	int status;
	pid_t server, witness;

	srand(argc > 3 ? (unsigned)atoi(argv[3]) : 1);
	snprintf(name, sizeof(name), "local_killed.%d", (int)getpid());
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(board != MAP_FAILED);
	server = fork();
	CHECK(server >= 0);
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(ring ? CRL_DELEGATION : CRL_IPC);
	}
	witness = start_client(1, true);
	kills = torment(seconds);
	witnessed = board->witnessed;
	board->stop = true;
	await(&board->reported, "places of killed clients come back");
	kill(server, SIGKILL);
	CHECK(waitpid(server, &status, 0) == server);
	await(&board->noticed, "the client of a killed server learns of it");
	CHECK(waitpid(witness, &status, 0) == witness && status == 0);
	CHECK(witnessed > 0 && board->counters.expelled == 0);
	printf("%s: %lu kills, %lu responses, %lu of the witness, longest gap %.1f ms, "
	       "%lu clients\n",
	       ring ? "delegation" : "ipc", kills, (uint64_t)board->calls, witnessed,
	       (double)board->gap_ns / 1e6, board->counters.accepted);
	return 0;
}
