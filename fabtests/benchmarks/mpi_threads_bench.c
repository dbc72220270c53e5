/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rate of small messages between two ranks of several threads, with MPI_THREAD_MULTIPLE.
 *
 * Thread n of rank 0 sends windows of messages to thread n of rank 1, which acknowledges each; a
 * tag of its own keeps the pairs apart. All pairs together count, over a fixed time; the median of
 * several rounds is reported for each number of threads, as test "threads" with that number as its
 * size. One thread under MPI_THREAD_MULTIPLE is the first row: what the locks alone cost.
 *
 * usage: mpirun -n 2 mpi_threads_bench [-s THREADS,...] [-r BYTES] [-w WINDOW] [-n ROUNDS] [-B MS]
 *                                      [-l LABEL] [-j FILE]
 */
#include "bench.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 64
#define WINDOW_MAX  1024
#define ROUNDS_MAX  101

struct pair {
	pthread_t thread;
	int number;
	uint64_t msgs; /* of this round */
};

static struct bench_conf conf;
static int rank;
static bool stop; /* atomic: the time of the round has passed */

static void fail(const char *why)
{
	fprintf(stderr, "mpi_threads_bench: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void window_send(const struct pair *pair, const char *buf, MPI_Request *reqs, int *last)
{
	for (int i = 0; i < conf.window; i++)
		MPI_Isend(buf, (int)conf.rate_size, MPI_CHAR, 1, pair->number, MPI_COMM_WORLD,
			  &reqs[i]);
	MPI_Waitall(conf.window, reqs, MPI_STATUSES_IGNORE);
	*last = __atomic_load_n(&stop, __ATOMIC_RELAXED);
	MPI_Send(last, 1, MPI_INT, 1, pair->number, MPI_COMM_WORLD);
	MPI_Recv(NULL, 0, MPI_INT, 1, pair->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void window_recv(const struct pair *pair, char *buf, MPI_Request *reqs, int *last)
{
	for (int i = 0; i < conf.window; i++)
		MPI_Irecv(buf, (int)conf.rate_size, MPI_CHAR, 0, pair->number, MPI_COMM_WORLD,
			  &reqs[i]);
	MPI_Waitall(conf.window, reqs, MPI_STATUSES_IGNORE);
	MPI_Recv(last, 1, MPI_INT, 0, pair->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Send(NULL, 0, MPI_INT, 0, pair->number, MPI_COMM_WORLD);
}

static void *pair_run(void *arg)
{
	struct pair *pair = arg;
	MPI_Request reqs[WINDOW_MAX];
	char *buf = calloc(1, conf.rate_size + 1);
	int last = 0;

	if (!buf)
		fail("no memory");
	while (!last) {
		if (rank)
			window_recv(pair, buf, reqs, &last);
		else
			window_send(pair, buf, reqs, &last);
		pair->msgs += (uint64_t)conf.window;
	}
	free(buf);
	return NULL;
}

/* Returns the messages of all pairs per microsecond. */
static double round_run(struct pair *pairs, int cnt)
{
	uint64_t start, msgs = 0;

	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	MPI_Barrier(MPI_COMM_WORLD);
	start = bench_now_ns();
	for (int i = 0; i < cnt; i++) {
		pairs[i] = (struct pair){ .number = i };
		if (pthread_create(&pairs[i].thread, NULL, pair_run, &pairs[i]))
			fail("a thread cannot be started");
	}
	usleep((useconds_t)conf.budget_ms * 1000);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < cnt; i++) {
		pthread_join(pairs[i].thread, NULL);
		msgs += pairs[i].msgs;
	}
	return (double)msgs * 1e3 / (double)(bench_now_ns() - start);
}

static void point_run(int threads)
{
	static struct pair pairs[THREADS_MAX];
	double rates[ROUNDS_MAX];

	for (int i = 0; i < conf.samples; i++)
		rates[i] = round_run(pairs, threads);
	bench_report_value(&conf, &(struct bench_wire){ .name = "MPI", .rank = rank }, "threads",
			   (size_t)threads, "M/s", bench_median(rates, (size_t)conf.samples));
}

static int conf_parse(int argc, char **argv)
{
	int opt;

	bench_conf_init(&conf);
	bench_conf_option(&conf, 's', "1,2,4");
	bench_conf_option(&conf, 'w', "32");
	bench_conf_option(&conf, 'n', "7");
	bench_conf_option(&conf, 'B', "200");
	while ((opt = getopt(argc, argv, "s:r:w:n:B:l:j:h")) != -1)
		if (opt == 'h' || bench_conf_option(&conf, opt, optarg))
			return -1;
	for (int i = 0; i < conf.size_cnt; i++)
		if (!conf.sizes[i] || conf.sizes[i] > THREADS_MAX)
			return -1;
	return conf.window > WINDOW_MAX || conf.samples > ROUNDS_MAX ? -1 : 0;
}

int main(int argc, char **argv)
{
	int level, ranks;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (conf_parse(argc, argv))
		fail("usage: mpi_threads_bench [-s THREADS,... (1 to 64)] [-r BYTES] "
		     "[-w WINDOW (1 to 1024)] [-n ROUNDS (1 to 101)] [-B MS] [-l LABEL] [-j FILE]");
	if (level != MPI_THREAD_MULTIPLE)
		fail("this MPI has no MPI_THREAD_MULTIPLE here");
	if (ranks != 2)
		fail("needs 2 ranks");
	for (int i = 0; i < conf.size_cnt; i++)
		point_run((int)conf.sizes[i]);
	bench_conf_free(&conf);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
