/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Speed of two ranks, in three numbers and a few seconds.
 *
 * Half the round trip of 8 bytes, the rate of 8-byte messages with 64 in flight, and the bandwidth
 * of 1 MiB messages with 8 in flight. Each is the median of several short runs, since a shared
 * machine has bad moments. Prints one line: `<us> <million/s> <MB/s>`. This shows a user that it
 * works; the project's measurements are those of fabtests/benchmarks.
 *
 * Ranks beyond the first two only wait.
 */
#include "integ.h"

#define RUNS        9
#define WINDOW      64
#define LARGE_LEN   (1 << 20)
#define LARGE_DEPTH 8

static unsigned char bufs[LARGE_DEPTH][LARGE_LEN];

/** Returns the seconds of `count` round trips of 8 bytes. */
static double time_pingpong(int rank, int count)
{
	double start = MPI_Wtime();
	int peer = rank ^ 1;

	for (int i = 0; i < count; i++) {
		if (rank == 0)
			MPI_Send(bufs[0], 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(bufs[0], 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(bufs[0], 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
	}
	return MPI_Wtime() - start;
}

/**
 * Returns the seconds of `count` windows of `depth` messages of `len` bytes, each window
 * acknowledged.
 */
static double time_stream(int rank, int count, int depth, int len)
{
	MPI_Request reqs[WINDOW];
	double start = MPI_Wtime();
	char ack = 0;

	for (int i = 0; i < count; i++) {
		for (int w = 0; w < depth; w++) {
			void *buf = bufs[w % LARGE_DEPTH];

			if (rank == 0)
				MPI_Isend(buf, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &reqs[w]);
			else
				MPI_Irecv(buf, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &reqs[w]);
		}
		MPI_Waitall(depth, reqs, MPI_STATUSES_IGNORE);
		if (rank == 0)
			MPI_Recv(&ack, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(&ack, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
	}
	return MPI_Wtime() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *runs)
{
	qsort(runs, RUNS, sizeof(*runs), by_value);
	return runs[RUNS / 2];
}

static void measure(int rank)
{
	double pingpong[RUNS], rate[RUNS], large[RUNS];

	time_pingpong(rank, 1000);
	time_stream(rank, 10, LARGE_DEPTH, LARGE_LEN);
	for (int i = 0; i < RUNS; i++) {
		pingpong[i] = time_pingpong(rank, 5000);
		rate[i] = time_stream(rank, 500, WINDOW, 8);
		large[i] = time_stream(rank, 20, LARGE_DEPTH, LARGE_LEN);
	}
	if (rank == 0)
		printf("%.2f %.2f %.0f\n", median(pingpong) / 5000 / 2 * 1e6,
		       500 * WINDOW / median(rate) / 1e6,
		       20.0 * LARGE_DEPTH * LARGE_LEN / median(large) / 1e6);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	if (integ_size() < 2) {
		fprintf(stderr, "mpi_speed: needs two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (integ_rank() < 2)
		measure(integ_rank());
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
