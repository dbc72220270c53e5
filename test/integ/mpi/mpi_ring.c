/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A token that passes all ranks.
 *
 * Each rank adds its own number to a counter, so that after L laps its value is known: L * n * (n -
 * 1) / 2. Then every rank sends a block to its right neighbour and receives one from its left at
 * the same time, which closes a cycle of sends: no send may wait for a receive that is not posted
 * yet.
 *
 * usage: mpi_ring [laps]
 */
#include "integ.h"

#define BLOCK_LEN 100000

static void run_token(int rank, int size, long laps)
{
	int right = (rank + 1) % size;
	int left = (rank + size - 1) % size;
	long token = 0;

	for (long lap = 0; lap < laps; lap++) {
		if (rank != 0 || lap != 0)
			MPI_Recv(&token, 1, MPI_LONG, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token += rank;
		MPI_Send(&token, 1, MPI_LONG, right, 1, MPI_COMM_WORLD);
	}
	if (rank != 0)
		return;
	MPI_Recv(&token, 1, MPI_LONG, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	INTEG_CHECK(token == laps * size * (size - 1) / 2, "the token says %ld", token);
}

static void shift_blocks(int rank, int size)
{
	static unsigned char out[BLOCK_LEN], in[BLOCK_LEN];
	int right = (rank + 1) % size;
	int left = (rank + size - 1) % size;

	integ_fill(out, sizeof(out), rank);
	MPI_Sendrecv(out, BLOCK_LEN, MPI_BYTE, right, 2, in, BLOCK_LEN, MPI_BYTE, left, 2,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	INTEG_CHECK(integ_mismatch(in, sizeof(in), left) == sizeof(in), "block from %d", left);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	run_token(integ_rank(), integ_size(), argc > 1 ? atol(argv[1]) : 100);
	shift_blocks(integ_rank(), integ_size());
	integ_done("mpi_ring");
	MPI_Finalize();
	return 0;
}
