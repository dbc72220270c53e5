/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A job that stands still until a file exists: for checks of what tells why.
 *
 * circle: each rank sends the next one a message, and no rank receives one.
 * chain: each rank but the last sends the next one a message, and the last one is stopped.
 * receive: each rank but the last receives a message of the next one, and the last one is stopped.
 *
 * The messages are long, so that they wait for their receive. Once the file exists, and the last
 * rank was continued, they are sent and received, and the job ends well.
 *
 * usage: mpi_stuck circle|chain|receive file
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEN (1 << 20)

static char sent[LEN], received[LEN];

static void progress_until(const char *file, MPI_Request *request)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int done;

	while (access(file, F_OK)) {
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
		nanosleep(&pause, NULL);
	}
}

/** Receives the message of the rank before, or sends that rank the one it waits for. */
static void finish(int rank, int size, int receives)
{
	int from = (rank + size - 1) % size;

	if (receives) {
		MPI_Send(sent, LEN, MPI_CHAR, from, 1, MPI_COMM_WORLD);
		return;
	}
	MPI_Recv(received, LEN, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (received[0] != from + 1 || received[LEN - 1] != from + 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	int rank, size, is_receive = argc == 3 && !strcmp(argv[1], "receive");
	int is_chain = is_receive || (argc == 3 && !strcmp(argv[1], "chain"));
	MPI_Request request = MPI_REQUEST_NULL;

	if (argc != 3) {
		fprintf(stderr, "usage: mpi_stuck circle|chain|receive file\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* Each is connected to both neighbours. */
	MPI_Sendrecv(sent, 1, MPI_CHAR, (rank + 1) % size, 1, received, 1, MPI_CHAR,
		     (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	memset(sent, rank + 1, LEN);
	if (is_chain && rank == size - 1)
		raise(SIGSTOP);
	else if (is_receive)
		MPI_Irecv(received, LEN, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD, &request);
	else
		MPI_Isend(sent, LEN, MPI_CHAR, (rank + 1) % size, 1, MPI_COMM_WORLD, &request);
	progress_until(argv[2], &request);
	if (rank || !is_chain)
		finish(rank, size, is_receive);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
