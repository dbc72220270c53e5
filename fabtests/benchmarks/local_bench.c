/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compares the channels of libcopyrpc-local with rings of Concurrency Kit and with Unix sockets:
 * requests of a closed loop, each replied to with its own bytes by one server.
 *
 * All channels of a case run in turns, several rounds of them, and the median of each is printed.
 * A thread or process that finds nothing to do yields the processor after LB_LOOKS looks. In the
 * mode "turns" one thread is client and server by turns: that measures the work of both, without
 * transfers between processors and without the scheduler. Every response is checked.
 *
 * usage: local_bench [-m turns|threads|processes] [-c CLIENTS,...] [-d DEPTH,...] [-b BYTES,...]
 *                    [-t SECONDS of a run] [-r ROUNDS] [-j: JSON lines]
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

#define LB_LOOKS    64
#define LB_ROUNDS   32
#define LB_CHANNELS (sizeof(channels) / sizeof(channels[0]))

static const struct lb_channel *const channels[] = { &lb_delegation, &lb_ipc,     &lb_flux,
#ifdef LB_CK
						     &lb_ck_spsc,    &lb_ck_mpmc,
#endif
						     &lb_socket };

enum mode { TURNS, THREADS, PROCESSES };
static const char *const mode_names[] = { "turns", "threads", "processes" };

/* Memory that all threads and processes share. */
struct board {
	_Atomic unsigned int ready; /* clients that are open */
	atomic_bool serving, go, stop, end;
	struct {
		_Alignas(64) _Atomic uint64_t ended;
	} clients[LB_CLIENTS];
};

static struct board *board;
static const struct lb_channel *channel;
static struct lb_case conf;
static double seconds = 0.2;
static unsigned int rounds = 3;
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

static double now(clockid_t clock)
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

/* Yields after some looks that found nothing. */
static void relax(unsigned int *idle, bool busy)
{
	*idle = busy ? 0 : *idle + 1;
	if (*idle > LB_LOOKS)
		sched_yield();
}

/* Calls until `depth` calls are in flight. Returns how many they are. */
static unsigned int fill_up(unsigned int client, const unsigned char *bytes, unsigned int in_flight)
{
	while (in_flight < conf.depth && channel->call(client, bytes, in_flight + 1 < conf.depth))
		in_flight++;
	return in_flight;
}

/* ---- threads and processes ---- */

static void *run_server(void *arg)
{
	unsigned int idle = 0;

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
	unsigned int client = (unsigned int)(uintptr_t)arg, idle = 0, in_flight = 0;
	unsigned char bytes[LB_BYTES];

	memset(bytes, (int)client + 1, sizeof(bytes));
	channel->open_client(client);
	board->ready++;
	while (!board->go)
		sched_yield();
	while (!board->stop || in_flight) {
		unsigned int got;

		if (!board->stop)
			in_flight = fill_up(client, bytes, in_flight);
		got = (unsigned int)channel->poll(client);
		in_flight -= got;
		atomic_fetch_add_explicit(&board->clients[client].ended, got, memory_order_relaxed);
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

static uint64_t ended_all(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < conf.clients; i++)
		sum += board->clients[i].ended;
	return sum;
}

/* Returns requests per second. */
static double measure_sides(enum mode mode)
{
	struct side server, clients[LB_CLIENTS];
	double begin, rate;
	uint64_t before;

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
	begin = now(CLOCK_MONOTONIC);
	before = ended_all();
	nap(seconds);
	rate = (double)(ended_all() - before) / (now(CLOCK_MONOTONIC) - begin);
	board->stop = true;
	for (unsigned int i = 0; i < conf.clients; i++)
		join(&clients[i], mode);
	board->end = true;
	join(&server, mode);
	return rate;
}

/* ---- one thread ---- */

static void *open_clients(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < conf.clients; i++)
		channel->open_client(i);
	board->ready = 1;
	return NULL;
}

static void turn(void)
{
	unsigned char bytes[LB_BYTES];
	unsigned int open = 0;

	for (unsigned int i = 0; i < conf.clients; i++) {
		memset(bytes, (int)i + 1, conf.bytes);
		open += fill_up(i, bytes, 0);
	}
	for (unsigned int served = 0; served < open;)
		served += (unsigned int)channel->serve();
	for (unsigned int i = 0; i < conf.clients; i++)
		for (unsigned int got = 0; got < conf.depth;)
			got += (unsigned int)channel->poll(i);
}

/* Returns requests per second of processor time. */
static double measure_turns(void)
{
	double begin, used;
	pthread_t opener;
	uint64_t cnt = 0;

	board->ready = 0;
	channel->open_server();
	lb_must(-pthread_create(&opener, NULL, open_clients, NULL), "pthread_create");
	while (!board->ready)
		channel->serve();
	pthread_join(opener, NULL);
	for (int i = 0; i < 100; i++)
		turn();
	begin = now(CLOCK_THREAD_CPUTIME_ID);
	do {
		for (int i = 0; i < 50; i++)
			turn();
		cnt += 50u * conf.clients * conf.depth;
		used = now(CLOCK_THREAD_CPUTIME_ID) - begin;
	} while (used < seconds);
	for (unsigned int i = 0; i < conf.clients; i++)
		channel->close_client(i);
	channel->close_server();
	return (double)cnt / used;
}

/* ---- cases ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double measure(const struct lb_channel *which, enum mode mode)
{
	double rate;

	channel = which;
	channel->prepare(&conf);
	rate = mode == TURNS ? measure_turns() : measure_sides(mode);
	channel->release();
	return rate;
}

static void print_row(enum mode mode, const struct lb_channel *which, double rate)
{
	if (json)
		printf("{\"mode\":\"%s\",\"bytes\":%u,\"clients\":%u,\"depth\":%u,"
		       "\"channel\":\"%s\",\"rate\":%.0f,\"ns\":%.1f}\n",
		       mode_names[mode], conf.bytes, conf.clients, conf.depth, which->name, rate,
		       1e9 / rate);
	else
		printf("%-10s %5u %7u %5u  %-11s %9.3f M/s %9.1f ns\n", mode_names[mode],
		       conf.bytes, conf.clients, conf.depth, which->name, rate / 1e6, 1e9 / rate);
	fflush(stdout);
}

static void run_case(enum mode mode)
{
	double rates[LB_CHANNELS][LB_ROUNDS];

	for (unsigned int r = 0; r < rounds; r++)
		for (size_t i = 0; i < LB_CHANNELS; i++)
			if (mode != PROCESSES || !channels[i]->threads_only)
				rates[i][r] = measure(channels[i], mode);
	for (size_t i = 0; i < LB_CHANNELS; i++) {
		if (mode == PROCESSES && channels[i]->threads_only)
			continue;
		qsort(rates[i], rounds, sizeof(double), compare);
		print_row(mode, channels[i], rates[i][rounds / 2]);
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
	int opt;

	while ((opt = getopt(argc, argv, "m:c:d:b:t:r:j")) != -1) {
		if (opt == 'm')
			mode = parse_mode(optarg);
		else if (opt == 'c')
			clients = parse(optarg, LB_CLIENTS);
		else if (opt == 'd')
			depths = parse(optarg, LB_BATCH);
		else if (opt == 'b')
			sizes = parse(optarg, LB_BYTES);
		else if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 'r')
			rounds = parse(optarg, LB_ROUNDS).values[0];
		else if (opt == 'j')
			json = true;
		else
			return 2;
	}
	board = lb_share(sizeof(*board));
	if (!json)
		puts("mode       bytes clients depth  channel          rate   time a request");
	for (unsigned int s = 0; s < sizes.cnt; s++)
		for (unsigned int d = 0; d < depths.cnt; d++)
			for (unsigned int c = 0; c < clients.cnt; c++) {
				conf = (struct lb_case){ clients.values[c], depths.values[d],
							 sizes.values[s] };
				run_case(mode);
			}
	return 0;
}
