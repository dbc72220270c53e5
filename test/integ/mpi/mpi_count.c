/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rank 0 sends rank 1 a number of messages, which then sends it half as many: for checks of
 * counters. The receives are posted in time or not, as it happens.
 *
 * usage: mpi_count messages
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void transfer(int rank, int from, long cnt)
{
	long value;

	for (long i = 0; i < cnt; i++) {
		value = i;
		if (rank == from)
			MPI_Send(&value, 1, MPI_LONG, !from, 1, MPI_COMM_WORLD);
		else
			MPI_Recv(&value, 1, MPI_LONG, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (value != i) {
			fprintf(stderr, "mpi_count: message %ld is %ld\n", i, value);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

int main(int argc, char **argv)
{
	long cnt = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size == 2) {
		transfer(rank, 0, cnt);
		transfer(rank, 1, cnt / 2);
	}
	MPI_Finalize();
	return size != 2;
}
