/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All threads of a rank communicate at once (MPI_THREAD_MULTIPLE).
 *
 * Ranks come in pairs. Thread t of one plays ping-pong with thread t of the other, on a tag of its
 * own, with random sizes and known contents; one more thread per rank receives, from any source,
 * messages that the peer's threads send to it meanwhile. All share the one endpoint that Open MPI
 * opens. With "session" a session asks for the threads, and there is no MPI_Init_thread().
 *
 * usage: mpi_threads [messages [session]]
 */
#include <pthread.h>
#include <string.h>

#include "integ.h"

#define THREADS  4
#define LEN_MAX  100000
#define TAG_DROP 1000

static long messages = 300;
static MPI_Comm comm = MPI_COMM_WORLD;
static int rank, size;

static int len_of(uint64_t seed)
{
	return (int)(integ_random(&seed) % (integ_random(&seed) % 4 ? 512 : LEN_MAX));
}

static void send_one(unsigned char *buf, int peer, int tag, uint64_t seed)
{
	int len = len_of(seed);

	integ_fill(buf, len, seed);
	MPI_Send(buf, len, MPI_BYTE, peer, tag, comm);
}

static void recv_one(unsigned char *buf, int peer, int tag, uint64_t seed)
{
	MPI_Status st;
	int len;

	MPI_Recv(buf, LEN_MAX, MPI_BYTE, peer, tag, comm, &st);
	MPI_Get_count(&st, MPI_BYTE, &len);
	INTEG_CHECK(len == len_of(seed), "tag %d: %d bytes", tag, len);
	INTEG_CHECK(integ_mismatch(buf, len, seed) == (size_t)len, "tag %d", tag);
}

static void *run_pingpong(void *arg)
{
	int tag = (int)(intptr_t)arg, peer = rank ^ 1;
	unsigned char *buf = malloc(LEN_MAX);

	for (long i = 0; i < messages; i++) {
		uint64_t seed = ((uint64_t)tag << 32) + i;

		if (rank % 2 == 0) {
			send_one(buf, peer, tag, seed);
			recv_one(buf, peer, tag, ~seed);
		} else {
			recv_one(buf, peer, tag, seed);
			send_one(buf, peer, tag, ~seed);
		}
		MPI_Send(&i, 1, MPI_LONG, peer, TAG_DROP + tag, comm);
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

		MPI_Recv(&value, 1, MPI_LONG, MPI_ANY_SOURCE, tag, comm, MPI_STATUS_IGNORE);
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

static void run_ranks(void)
{
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	if ((rank ^ 1) < size)
		run_threads();
	MPI_Barrier(comm);
	if (rank == 0)
		printf("mpi_threads: ok on %d ranks\n", size);
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5

/* Runs with a communicator of all processes that a session makes. */
static void run_session(void)
{
	MPI_Session session;
	MPI_Group group;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
	MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
	MPI_Info_free(&info);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
	MPI_Comm_create_from_group(group, "mpi_threads", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
				   &comm);
	MPI_Group_free(&group);
	run_ranks();
	MPI_Comm_free(&comm);
	MPI_Session_finalize(&session);
}

#else

static void run_session(void)
{
	fputs("mpi_threads: this MPI has no sessions\n", stderr);
	exit(2);
}

#endif

static void run_world(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	INTEG_CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
	run_ranks();
	MPI_Finalize();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		messages = atol(argv[1]);
	if (argc > 2 && !strcmp(argv[2], "session"))
		run_session();
	else
		run_world(argc, argv);
	return 0;
}
