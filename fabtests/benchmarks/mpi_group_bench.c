/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Speed of MPI collectives among any number of ranks: barrier, bcast, allreduce, alltoall.
 *
 * Uses MPI-1 calls only, so that any library and transport can be compared. A sample is a row of
 * calls of one collective; their number is doubled until a sample takes -T microseconds, and
 * WARM_MS pass before the first sample, in which transports learn what suits them. The time
 * of a call is the longest of all ranks, and the median of the samples is reported by rank 0, with
 * the results checked at the end of each point. The root of bcast moves from call to call, so that
 * no rank runs ahead of the others by more than a few calls.
 *
 * usage: mpirun -n N mpi_group_bench [-t TEST,...] [-s BYTES,...] [-n SAMPLES] [-T US] [-B MS]
 *                                    [-l LABEL] [-j FILE]
 */
#include "bench.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_MAX (1L << 20)
#define WARM_MS   100

struct group {
	int rank, rank_cnt;
	char *tx, *rx; /* rank_cnt times the largest size */
};

struct collective {
	const char *name;
	bool sized; /* false: runs at size 0 only */
	void (*call)(struct group *group, int size, long number);
	/* Returns what byte `at` of rx must be after a call, given fill_byte. */
	char (*expected)(const struct group *group, int size, int at);
};

static char fill_byte(int rank, int at)
{
	return (char)(rank * 31 + at * 7);
}

static void call_barrier(struct group *group, int size, long number)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void call_bcast(struct group *group, int size, long number)
{
	int root = (int)(number % group->rank_cnt);

	MPI_Bcast(root == group->rank ? group->tx : group->rx, size, MPI_CHAR, root,
		  MPI_COMM_WORLD);
}

/* The last call before a check has the last rank as its root: calls come in multiples of ranks. */
static char expected_bcast(const struct group *group, int size, int at)
{
	int root = group->rank_cnt - 1;

	if (group->rank == root)
		root = group->rank_cnt - 2;
	return fill_byte(root, at);
}

static void call_allreduce(struct group *group, int size, long number)
{
	MPI_Allreduce(group->tx, group->rx, size, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
}

static char expected_allreduce(const struct group *group, int size, int at)
{
	char all = 0;

	for (int rank = 0; rank < group->rank_cnt; rank++)
		all ^= fill_byte(rank, at);
	return all;
}

static void call_alltoall(struct group *group, int size, long number)
{
	MPI_Alltoall(group->tx, size, MPI_CHAR, group->rx, size, MPI_CHAR, MPI_COMM_WORLD);
}

static char expected_alltoall(const struct group *group, int size, int at)
{
	return fill_byte(at / size, group->rank * size + at % size);
}

static const struct collective collectives[] = {
	{ "barrier", false, call_barrier, NULL },
	{ "bcast", true, call_bcast, expected_bcast },
	{ "allreduce", true, call_allreduce, expected_allreduce },
	{ "alltoall", true, call_alltoall, expected_alltoall },
};

static long agree(long value)
{
	MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return value;
}

/* Returns the time of `calls` calls on the slowest rank, in ns; on every rank. */
static uint64_t timed_calls(struct group *group, const struct collective *what, int size,
			    long calls)
{
	uint64_t start, took, longest = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	start = bench_now_ns();
	for (long i = 0; i < calls; i++)
		what->call(group, size, i);
	took = bench_now_ns() - start;
	MPI_Allreduce(&took, &longest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
	return longest;
}

/* Warms up. Returns the calls of a sample. */
static long calibrate(struct group *group, const struct collective *what, int size, long sample_us)
{
	uint64_t target_ns = (uint64_t)sample_us * 1000, all_ns = 0, ns;
	long calls = group->rank_cnt;

	do {
		ns = timed_calls(group, what, size, calls);
		all_ns += ns;
		if (ns < target_ns && calls < CALLS_MAX)
			calls *= 2;
	} while ((ns < target_ns && calls < CALLS_MAX) || all_ns < WARM_MS * UINT64_C(1000000));
	return calls;
}

static void fill(struct group *group, int len)
{
	for (int i = 0; i < len; i++)
		group->tx[i] = fill_byte(group->rank, i);
	memset(group->rx, 0, (size_t)len);
}

static void check(const struct group *group, const struct collective *what, int size)
{
	int len = what->call == call_alltoall ? size * group->rank_cnt : size;

	for (int i = 0; what->expected && i < len; i++) {
		if (group->rx[i] == what->expected(group, size, i))
			continue;
		fprintf(stderr, "mpi_group_bench: %s of %d bytes, rank %d: byte %d is wrong\n",
			what->name, size, group->rank, i);
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	}
}

static void point_run(const struct bench_conf *conf, struct group *group,
		      const struct collective *what, int size)
{
	static double us[BENCH_SAMPLE_MAX];
	uint64_t start = bench_now_ns();
	uint64_t budget_ns = (uint64_t)conf->budget_ms * 1000000;
	long calls;
	int cnt = 0;

	fill(group, what->call == call_alltoall ? size * group->rank_cnt : size);
	calls = calibrate(group, what, size, conf->sample_us);
	do {
		us[cnt++] = (double)timed_calls(group, what, size, calls) / 1e3 / (double)calls;
	} while (agree(cnt < conf->samples && (cnt < 5 || bench_now_ns() - start < budget_ns)));
	check(group, what, size);
	bench_report_value(conf, &(struct bench_wire){ .name = "MPI", .rank = group->rank },
			   what->name, (size_t)size, "us", bench_median(us, (size_t)cnt));
}

static bool wanted(const char *tests, const char *name)
{
	size_t len = strlen(name);
	const char *at = tests;

	while ((at = strstr(at, name))) {
		if ((at == tests || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
		at += len;
	}
	return false;
}

static void run(const struct bench_conf *conf, struct group *group, const char *tests)
{
	for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++) {
		const struct collective *what = &collectives[i];

		if (!wanted(tests, what->name))
			continue;
		for (int k = 0; k < (what->sized ? conf->size_cnt : 1); k++)
			point_run(conf, group, what, what->sized ? (int)conf->sizes[k] : 0);
	}
}

static const char *conf_parse(struct bench_conf *conf, int argc, char **argv)
{
	const char *tests = "barrier,bcast,allreduce,alltoall";
	int opt;

	bench_conf_init(conf);
	bench_conf_option(conf, 's', "8,1024,65536,1048576");
	while ((opt = getopt(argc, argv, "t:s:n:T:B:l:j:h")) != -1) {
		if (opt == 't') {
			tests = optarg;
		} else if (opt == 'h' || bench_conf_option(conf, opt, optarg)) {
			fprintf(stderr,
				"usage: mpirun -n N mpi_group_bench [-t "
				"barrier,bcast,allreduce,alltoall] [-s BYTES,...] [-n SAMPLES] "
				"[-T US] [-B MS] [-l LABEL] [-j FILE]\n");
			MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
		}
	}
	return tests;
}

static void *buffer_alloc(size_t len)
{
	void *buffer = malloc(len);

	if (!buffer) {
		fprintf(stderr, "mpi_group_bench: no memory for %zu bytes\n", len);
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	}
	return buffer;
}

int main(int argc, char **argv)
{
	struct bench_conf conf;
	struct group group;
	const char *tests;
	size_t len;

	MPI_Init(&argc, &argv);
	tests = conf_parse(&conf, argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &group.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &group.rank_cnt);
	if (group.rank_cnt < 2) {
		fprintf(stderr, "mpi_group_bench: needs at least 2 ranks\n");
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	}
	len = bench_conf_max_size(&conf) * (size_t)group.rank_cnt;
	group.tx = buffer_alloc(len);
	group.rx = buffer_alloc(len);
	run(&conf, &group, tests);
	free(group.tx);
	free(group.rx);
	bench_conf_free(&conf);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
