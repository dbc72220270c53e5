/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Performance variables of copyrpc's component for Open MPI, read by MPI_T: each counts exactly
 * what this program does, and nothing of what others do.
 *
 * usage: mpi_pvars [refused]     "refused": the provider refuses operations, and that is counted
 */
#include <string.h>

#include "integ.h"

#define MSGS   10
#define BLOCKS 100
#define LEN    (BLOCKS * sizeof(long))

enum counter {
	PACKED,
	REFUSED_SENDS,
	REFUSED_RECVS,
	SYNC,
	FAILURES,
	COUNTERS,
};

static const char *const names[COUNTERS] = {
	[PACKED] = "pml_copyrpc_packed_bytes",
	[REFUSED_SENDS] = "pml_copyrpc_refused_sends",
	[REFUSED_RECVS] = "pml_copyrpc_refused_recvs",
	[SYNC] = "pml_copyrpc_sync_sends",
	[FAILURES] = "pml_copyrpc_failures",
};

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS]; /* each counts from when it was allocated */

static void open_counter(enum counter i)
{
	int idx, cnt, rc = MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &idx);

	INTEG_CHECK(rc == MPI_SUCCESS, "%s is not known", names[i]);
	rc = MPI_T_pvar_handle_alloc(session, idx, NULL, &handles[i], &cnt);
	INTEG_CHECK(rc == MPI_SUCCESS && cnt == 1, "%s: error %d, %d values", names[i], rc, cnt);
}

static void open_counters(void)
{
	int given;

	MPI_T_init_thread(MPI_THREAD_SINGLE, &given);
	MPI_T_pvar_session_create(&session);
	for (enum counter i = 0; i < COUNTERS; i++)
		open_counter(i);
}

static void close_counters(void)
{
	for (enum counter i = 0; i < COUNTERS; i++)
		MPI_T_pvar_handle_free(session, &handles[i]);
	MPI_T_pvar_session_free(&session);
	MPI_T_finalize();
}

static unsigned long long value_of(enum counter i)
{
	unsigned long long value = 0;

	INTEG_CHECK(!MPI_T_pvar_read(session, handles[i], &value), "%s cannot be read", names[i]);
	return value;
}

static void expect(enum counter i, unsigned long long value)
{
	INTEG_CHECK(value_of(i) == value, "%s is %llu, not %llu", names[i], value_of(i), value);
}

/* Each rank sends every second long of `from` and receives into every second of `to`. */
static void exchange(MPI_Datatype out, int outs, MPI_Datatype in, int ins)
{
	static long from[2 * BLOCKS], to[2 * BLOCKS];
	int size = integ_size(), rank = integ_rank();
	int next = (rank + 1) % size, before = (rank + size - 1) % size;

	for (int i = 0; i < MSGS; i++)
		MPI_Sendrecv(from, outs, out, next, 1, to, ins, in, before, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
}

static void count_packed(void)
{
	MPI_Datatype type;

	MPI_Type_vector(BLOCKS, 1, 2, MPI_LONG, &type);
	MPI_Type_commit(&type);
	exchange(MPI_LONG, BLOCKS, MPI_LONG, BLOCKS);
	expect(PACKED, 0);
	exchange(type, 1, MPI_LONG, BLOCKS);
	expect(PACKED, MSGS * LEN);
	exchange(MPI_LONG, BLOCKS, type, 1);
	expect(PACKED, 2 * MSGS * LEN);
	MPI_Type_free(&type);
}

static void count_sync(void)
{
	int size = integ_size(), next = (integ_rank() + 1) % size;
	MPI_Request reqs[2 * MSGS];

	for (int i = 0; i < MSGS; i++) {
		MPI_Irecv(NULL, 0, MPI_LONG, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &reqs[i]);
		MPI_Issend(NULL, 0, MPI_LONG, next, 2, MPI_COMM_WORLD, &reqs[MSGS + i]);
	}
	MPI_Waitall(2 * MSGS, reqs, MPI_STATUSES_IGNORE);
	expect(SYNC, MSGS);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	open_counters();
	count_packed();
	count_sync();
	expect(FAILURES, 0);
	if (argc > 1 && !strcmp(argv[1], "refused"))
		INTEG_CHECK(value_of(REFUSED_SENDS) + value_of(REFUSED_RECVS) > 0,
			    "no refused operation was counted");
	close_counters();
	if (integ_rank() == 0)
		printf("mpi_pvars: ok on %d ranks\n", integ_size());
	MPI_Finalize();
	return 0;
}
