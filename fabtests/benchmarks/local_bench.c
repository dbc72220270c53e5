/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compares the channels of libcopyrpc-local with rings of Concurrency Kit and with Unix sockets:
 * requests of a closed loop, each replied to with its own bytes by one server.
 *
 * All channels of a case run in turns, several rounds of them, and the median of each is printed.
 * A thread or process that finds nothing to do yields the processor after a time (-s), which is the
 * same for every channel: a number of looks would be a shorter time for the channel whose looks are
 * quicker, and a yield takes longer than a round trip. The last column is the number of yields per
 * request. In the mode "turns" one thread is client and server by turns: that measures the work of
 * both, without transfers between processors and without the scheduler. Every response is checked.
 *
 * usage: local_bench [-m turns|threads|processes] [-c CLIENTS,...] [-d DEPTH,...] [-b BYTES,...]
 *                    [-s NANOSECONDS before a yield] [-t SECONDS of a run] [-r ROUNDS]
 *                    [-k REQUESTS that a server of the library takes before it replies to them (8)]
 *                    [-j: JSON lines]
 *        local_bench -i CHANNEL:PART ...  raises SIGUSR2 before and after a part of each turn, for
 *                    insn_count: calls, serve, polls or nothing. Prints the number of requests.
 */
#include "local_bench.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LB_LOOKS    16 /* looks between two readings of the clock */
#define LB_SPIN_NS  2000
#define LB_ROUNDS   32
#define LB_TAKE     8 /* clients go on while a server replies; rings of ck reply to each at once */
#define LB_CHANNELS (sizeof(channels) / sizeof(channels[0]))

static const struct lb_channel *const channels[] = { &lb_delegation, &lb_ipc,     &lb_flux,
#ifdef LB_CK
						     &lb_ck_spsc,    &lb_ck_mpmc, &lb_ck_mpsc,
						     &lb_ck_value,
#endif
						     &lb_socket };

enum mode { TURNS, THREADS, PROCESSES };
static const char *const mode_names[] = { "turns", "threads", "processes" };

/* Memory that all threads and processes share. */
struct board {
	_Atomic unsigned int ready; /* clients that are open */
	atomic_bool serving, go, stop, end;
	_Atomic uint64_t server_yields;
	struct {
		_Alignas(64) _Atomic uint64_t ended; /* calls, written by the client only */
		_Atomic uint64_t yields;
	} clients[LB_CLIENTS];
};

static struct board *board;
static const struct lb_channel *channel;
static struct lb_case conf;
static double seconds = 0.2;
static unsigned int spin_ns = LB_SPIN_NS;
static unsigned int rounds = 3;
static unsigned int take = LB_TAKE;
static bool json;

int lb_must(int ret, const char *what)
{
	if (ret >= 0)
		return ret;
	fprintf(stderr, "local_bench: %s: %s\n", what, strerror(ret == -1 ? errno : -ret));
	exit(1);
}

void *lb_share(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	lb_must(mem == MAP_FAILED ? -ENOMEM : 0, "mmap");
	return mem;
}

/* The bytes of a client: its number plus one, everywhere. */
void lb_check(unsigned int client, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	if (len == conf.bytes && bytes[0] == client + 1 && bytes[len - 1] == client + 1)
		return;
	fprintf(stderr, "local_bench: %s: wrong response to client %u\n", channel->name, client);
	exit(1);
}

double lb_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void nap(double time)
{
	struct timespec ts = { (time_t)time, (long)((time - (double)(time_t)time) * 1e9) };

	nanosleep(&ts, NULL);
}

/* Idle side: how long it has found nothing. */
struct idle {
	unsigned int looks;
	double since;
	_Atomic uint64_t *yields;
};

/* Adds to a counter that no other thread writes. */
static void add(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value,
			      memory_order_relaxed);
}

/* Yields at every LB_LOOKSth look once nothing was found for spin_ns. */
static void relax(struct idle *idle, bool busy)
{
	double time;

	if (busy) {
		idle->looks = 0;
		return;
	}
	if (++idle->looks % LB_LOOKS)
		return;
	time = lb_now(CLOCK_MONOTONIC);
	if (idle->looks == LB_LOOKS)
		idle->since = time;
	else if (time - idle->since >= (double)spin_ns * 1e-9) {
		sched_yield();
		add(idle->yields, 1);
	}
}

unsigned int lb_fill(const struct lb_channel *to, const struct lb_case *c, unsigned int client,
		     const unsigned char *bytes, unsigned int in_flight)
{
	while (in_flight < c->depth && to->call(client, bytes, in_flight + 1 < c->depth))
		in_flight++;
	return in_flight;
}

/* ---- threads and processes ---- */

static void *run_server(void *arg)
{
	struct idle idle = { .yields = &board->server_yields };

	(void)arg;
	channel->open_server();
	board->serving = true;
	while (!board->end)
		relax(&idle, channel->serve() > 0);
	channel->close_server();
	return NULL;
}

static void *run_client(void *arg)
{
	unsigned int client = (unsigned int)(uintptr_t)arg, in_flight = 0;
	struct idle idle = { .yields = &board->clients[client].yields };
	unsigned char bytes[LB_BYTES];

	memset(bytes, (int)client + 1, sizeof(bytes));
	channel->open_client(client);
	board->ready++;
	while (!board->go)
		sched_yield();
	while (!board->stop || in_flight) {
		unsigned int got;

		if (!board->stop)
			in_flight = lb_fill(channel, &conf, client, bytes, in_flight);
		got = (unsigned int)channel->poll(client);
		in_flight -= got;
		add(&board->clients[client].ended, got);
		relax(&idle, got > 0);
	}
	channel->close_client(client);
	return NULL;
}

/* One side as a thread or a process. */
struct side {
	pthread_t thread;
	pid_t pid;
};

static void start(struct side *side, enum mode mode, void *(*run)(void *), unsigned int client)
{
	void *arg = (void *)(uintptr_t)client;

	if (mode == THREADS) {
		lb_must(-pthread_create(&side->thread, NULL, run, arg), "pthread_create");
		return;
	}
	side->pid = lb_must(fork(), "fork");
	if (side->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(arg);
	_exit(0);
}

static void join(struct side *side, enum mode mode)
{
	int status = 0;

	if (mode == THREADS)
		pthread_join(side->thread, NULL);
	else
		waitpid(side->pid, &status, 0);
	if (status)
		exit(1);
}

static struct lb_result sum_all(void)
{
	struct lb_result sum = { .yields = (double)board->server_yields };

	for (unsigned int i = 0; i < conf.clients; i++) {
		sum.rate += (double)board->clients[i].ended;
		sum.yields += (double)board->clients[i].yields;
	}
	return sum;
}

static struct lb_result measure_sides(enum mode mode)
{
	struct side server, clients[LB_CLIENTS];
	struct lb_result before, after;
	double begin, requests;

	memset(board, 0, sizeof(*board));
	start(&server, mode, run_server, 0);
	while (!board->serving)
		nap(0.0005);
	for (unsigned int i = 0; i < conf.clients; i++)
		start(&clients[i], mode, run_client, i);
	while (board->ready < conf.clients)
		nap(0.0005);
	board->go = true;
	nap(seconds / 10);
	begin = lb_now(CLOCK_MONOTONIC);
	before = sum_all();
	nap(seconds);
	after = sum_all();
	requests = after.rate - before.rate;
	after.rate = requests / (lb_now(CLOCK_MONOTONIC) - begin);
	after.yields = requests > 0 ? (after.yields - before.yields) / requests : 0;
	board->stop = true;
	for (unsigned int i = 0; i < conf.clients; i++)
		join(&clients[i], mode);
	board->end = true;
	join(&server, mode);
	return after;
}

/* ---- cases ---- */

static int compare(const void *a, const void *b)
{
	const struct lb_result *x = a, *y = b;

	return (x->rate > y->rate) - (x->rate < y->rate);
}

static struct lb_result measure(const struct lb_channel *which, enum mode mode)
{
	struct lb_result result;

	channel = which;
	channel->prepare(&conf);
	result = mode == TURNS ? lb_turns_measure(channel, &conf, seconds) : measure_sides(mode);
	channel->release();
	return result;
}

static void print_row(enum mode mode, const struct lb_channel *which, struct lb_result result)
{
	double ns = result.rate > 0 ? 1e9 / result.rate : 0; /* 0: not one request */

	if (json)
		printf("{\"mode\":\"%s\",\"bytes\":%u,\"clients\":%u,\"depth\":%u,"
		       "\"channel\":\"%s\",\"rate\":%.0f,\"ns\":%.1f,\"yields\":%.3f}\n",
		       mode_names[mode], conf.bytes, conf.clients, conf.depth, which->name,
		       result.rate, ns, result.yields);
	else
		printf("%-10s %5u %7u %5u  %-11s %9.3f M/s %9.1f ns %7.3f\n", mode_names[mode],
		       conf.bytes, conf.clients, conf.depth, which->name, result.rate / 1e6, ns,
		       result.yields);
	fflush(stdout);
}

/* Runs a part of the turns of one channel under insn_count. */
static int count(const char *which, const char *section)
{
	for (size_t i = 0; i < LB_CHANNELS; i++)
		if (!strcmp(channels[i]->name, which)) {
			channel = channels[i];
			channel->prepare(&conf);
			printf("%u\n", lb_turns_count(channel, &conf, section));
			channel->release();
			return 0;
		}
	return 2;
}

static void run_case(enum mode mode)
{
	struct lb_result results[LB_CHANNELS][LB_ROUNDS];

	for (unsigned int r = 0; r < rounds; r++)
		for (size_t i = 0; i < LB_CHANNELS; i++)
			if (mode != PROCESSES || !channels[i]->threads_only)
				results[i][r] = measure(channels[i], mode);
	for (size_t i = 0; i < LB_CHANNELS; i++) {
		if (mode == PROCESSES && channels[i]->threads_only)
			continue;
		qsort(results[i], rounds, sizeof(struct lb_result), compare);
		print_row(mode, channels[i], results[i][rounds / 2]);
	}
}

/* ---- options ---- */

struct list {
	unsigned int values[8], cnt;
};

static struct list parse(const char *text, unsigned int most)
{
	struct list list = { .cnt = 0 };
	char *end;

	do {
		unsigned long value = strtoul(text, &end, 10);

		if (end == text || !value || value > most || list.cnt == 8)
			lb_must(-EINVAL, text);
		list.values[list.cnt++] = (unsigned int)value;
		text = end + 1;
	} while (*end == ',');
	return list;
}

static enum mode parse_mode(const char *text)
{
	for (enum mode mode = TURNS; mode <= PROCESSES; mode++)
		if (!strcmp(text, mode_names[mode]))
			return mode;
	lb_must(-EINVAL, text);
	return TURNS;
}

int main(int argc, char **argv)
{
	struct list clients = { { 1, 2, 4, 8, 16 }, 5 }, depths = { { 1, 4, 32 }, 3 };
	struct list sizes = { { 32, 256 }, 2 };
	enum mode mode = THREADS;
	char *counted = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "m:c:d:b:s:t:r:k:i:j")) != -1) {
		if (opt == 'm')
			mode = parse_mode(optarg);
		else if (opt == 'c')
			clients = parse(optarg, LB_CLIENTS);
		else if (opt == 'd')
			depths = parse(optarg, LB_BATCH);
		else if (opt == 'b')
			sizes = parse(optarg, LB_BYTES);
		else if (opt == 's')
			spin_ns = parse(optarg, 1000000000).values[0];
		else if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'r')
			rounds = parse(optarg, LB_ROUNDS).values[0];
		else if (opt == 'k')
			take = parse(optarg, LB_BATCH).values[0];
		else if (opt == 'i')
			counted = optarg;
		else if (opt == 'j')
			json = true;
		else
			return 2;
	}
	board = lb_share(sizeof(*board));
	conf = (struct lb_case){ clients.values[0], depths.values[0], sizes.values[0], take };
	if (counted && strchr(counted, ':')) {
		char *which = strsep(&counted, ":");

		return count(which, counted);
	}
	if (!json)
		puts("mode       bytes clients depth  channel          rate   time a request"
		     "  yields");
	for (unsigned int s = 0; s < sizes.cnt; s++)
		for (unsigned int d = 0; d < depths.cnt; d++)
			for (unsigned int c = 0; c < clients.cnt; c++) {
				conf = (struct lb_case){ clients.values[c], depths.values[d],
							 sizes.values[s], take };
				run_case(mode);
			}
	return 0;
}
