/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All threads of a rank communicate at once (MPI_THREAD_MULTIPLE).
 *
 * Ranks come in pairs. Thread t of one plays ping-pong with thread t of the other, on a tag of its
 * own, with random sizes and known contents; one more thread per rank receives, from any source,
 * messages that the peer's threads send to it meanwhile. All share the one endpoint that Open MPI
 * opens.
 *
 * usage: mpi_threads [messages]
 */
#include <pthread.h>

#include "integ.h"

#define THREADS  4
#define LEN_MAX  100000
#define TAG_DROP 1000

static long messages = 300;

static int len_of(uint64_t seed)
{
	return (int)(integ_random(&seed) % (integ_random(&seed) % 4 ? 512 : LEN_MAX));
}

static void send_one(unsigned char *buf, int peer, int tag, uint64_t seed)
{
	int len = len_of(seed);

	integ_fill(buf, len, seed);
	MPI_Send(buf, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
}

static void recv_one(unsigned char *buf, int peer, int tag, uint64_t seed)
{
	MPI_Status st;
	int len;

	MPI_Recv(buf, LEN_MAX, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, MPI_BYTE, &len);
	INTEG_CHECK(len == len_of(seed), "tag %d: %d bytes", tag, len);
	INTEG_CHECK(integ_mismatch(buf, len, seed) == (size_t)len, "tag %d", tag);
}

static void *run_pingpong(void *arg)
{
	int tag = (int)(intptr_t)arg, peer = integ_rank() ^ 1;
	unsigned char *buf = malloc(LEN_MAX);

	for (long i = 0; i < messages; i++) {
		uint64_t seed = ((uint64_t)tag << 32) + i;

		if (integ_rank() % 2 == 0) {
			send_one(buf, peer, tag, seed);
			recv_one(buf, peer, tag, ~seed);
		} else {
			recv_one(buf, peer, tag, seed);
			send_one(buf, peer, tag, ~seed);
		}
		MPI_Send(&i, 1, MPI_LONG, peer, TAG_DROP + tag, MPI_COMM_WORLD);
	}
	free(buf);
	return NULL;
}

/* Receives the messages of the peer's ping-pong threads, tag by tag. */
static void *run_collector(void *arg)
{
	long next[THREADS] = { 0 };

	for (long i = 0; i < messages * THREADS; i++) {
		int tag = TAG_DROP + (int)(i % THREADS);
		long value;

		MPI_Recv(&value, 1, MPI_LONG, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		INTEG_CHECK(value == next[tag - TAG_DROP]++, "tag %d: %ld", tag, value);
	}
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS + 1];

	pthread_create(&threads[THREADS], NULL, run_collector, NULL);
	for (intptr_t t = 0; t < THREADS; t++)
		pthread_create(&threads[t], NULL, run_pingpong, (void *)t);
	for (int t = 0; t < THREADS + 1; t++)
		pthread_join(threads[t], NULL);
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	INTEG_CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
	if (argc > 1)
		messages = atol(argv[1]);
	if ((integ_rank() ^ 1) < integ_size())
		run_threads();
	integ_done("mpi_threads");
	MPI_Finalize();
	return 0;
}
