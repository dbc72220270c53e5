/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages to all other ranks in turn: each goes to another peer than the one before. For counts of
 * what a change of the target costs (docs/cost.md).
 *
 * usage: mpi_turns ROUNDS [WINDOW [FAVOURITE]]
 *
 * Rank 0 sends ROUNDS messages of 32 bytes to each of the others, and waits after each WINDOW of
 * messages until they have been sent; contents are checked. With FAVOURITE, a rank, each other
 * message goes there.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LEN     32
#define WINDOWS 64

static void fill(char *msg, int round, int peer)
{
	for (int i = 0; i < LEN; i++)
		msg[i] = (char)(round * 7 + peer * 3 + i);
}

/* Messages that are under way. */
struct window {
	MPI_Request reqs[WINDOWS];
	char msgs[WINDOWS][LEN];
	int open, size;
};

static void send_one(struct window *w, int round, int peer)
{
	fill(w->msgs[w->open], round, peer);
	MPI_Isend(w->msgs[w->open], LEN, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &w->reqs[w->open]);
	if (++w->open < w->size)
		return;
	MPI_Waitall(w->open, w->reqs, MPI_STATUSES_IGNORE);
	w->open = 0;
}

static void send_all(int rounds, int window, int size, int favourite)
{
	struct window w = { .size = window };
	int sent = 0;

	for (int round = 0; round < rounds; round++)
		for (int peer = 1; peer < size; peer++) {
			if (peer == favourite)
				continue;
			send_one(&w, round, peer);
			if (favourite)
				send_one(&w, sent++, favourite);
		}
	MPI_Waitall(w.open, w.reqs, MPI_STATUSES_IGNORE);
}

static void receive_all(int rounds, int rank)
{
	char msg[LEN], want[LEN];

	for (int round = 0; round < rounds; round++) {
		MPI_Recv(msg, LEN, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		fill(want, round, rank);
		for (int i = 0; i < LEN; i++)
			if (msg[i] != want[i]) {
				fprintf(stderr, "rank %d: round %d: wrong contents\n", rank, round);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
	}
}

int main(int argc, char **argv)
{
	int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 100;
	int window = argc > 2 ? atoi(argv[2]) : 1;
	int favourite = argc > 3 ? atoi(argv[3]) : 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (window < 1 || window > WINDOWS || rounds < 1 || favourite < 0 || favourite >= size)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		send_all(rounds, window, size, favourite);
	else
		receive_all(rank == favourite ? rounds * (size - 2) : rounds, rank);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
