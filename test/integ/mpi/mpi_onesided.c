/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided communication of MPI-3, over any transport.
 *
 * One function a feature, run twice: with a window in memory that MPI allocates (which it shares
 * within a host), and, `mine`, in memory of the program. It checks every byte written by any rank.
 * Patterns of libraries above MPI are in onesided_patterns.c.
 *
 * usage: mpi_onesided [feature]...      all of them by default
 */
#include <string.h>

#include "integ.h"
#include "onesided.h"

#define BLOCK 3001 /* bytes, odd on purpose */
#define LARGE ((1 << 20) + 8)

int rank, size;

/*
 * Open MPI also passes unknown operations to btl ofi, which ends the program, unless configured
 * otherwise.
 */
static int is_limited_to_sums(void)
{
	const char *use = getenv("OMPI_MCA_osc_rdma_acc_use_amo");

	return is_osc_rdma() && !(use && !strcmp(use, "0"));
}

static uint64_t seed_of(int from, int to, int what)
{
	return (uint64_t)(from * 1000 + to * 10 + what);
}

/* Each rank puts a block to each, and gets it back. */
static void put_get(size_t block, int mine)
{
	unsigned char *out = malloc(block), *in = malloc(block);
	struct window w;
	unsigned char *base = window_open(&w, block * (size_t)size, 1, mine);

	MPI_Win_fence(0, w.win);
	for (int to = 0; to < size; to++) {
		integ_fill(out, block, seed_of(rank, to, 1));
		MPI_Put(out, (int)block, MPI_BYTE, to, (MPI_Aint)block * rank, (int)block, MPI_BYTE,
			w.win);
		MPI_Win_fence(0, w.win); /* `out` may be written again */
	}
	for (int from = 0; from < size; from++)
		INTEG_CHECK(integ_mismatch(base + block * (size_t)from, block,
					   seed_of(from, rank, 1)) == block,
			    "block of %zu bytes put by %d", block, from);
	MPI_Win_fence(0, w.win);
	for (int to = 0; to < size; to++) {
		memset(in, 0, block);
		MPI_Get(in, (int)block, MPI_BYTE, to, (MPI_Aint)block * rank, (int)block, MPI_BYTE,
			w.win);
		MPI_Win_fence(0, w.win);
		INTEG_CHECK(integ_mismatch(in, block, seed_of(rank, to, 1)) == block,
			    "block of %zu bytes got from %d", block, to);
	}
	window_close(&w);
	free(out);
	free(in);
}

static void feature_fence(int mine)
{
	put_get(1, mine);
	put_get(BLOCK, mine);
	put_get(LARGE, mine);
}

/* Post, start, complete, wait: with the two neighbours of a ring. */
static void feature_pscw(int mine)
{
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;
	unsigned char out[BLOCK];
	MPI_Group world, origins, targets;
	struct window w;
	unsigned char *base = window_open(&w, BLOCK, 1, mine);

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &prev, &origins);
	MPI_Group_incl(world, 1, &next, &targets);
	for (int i = 0; i < ROUNDS; i++) {
		integ_fill(out, BLOCK, seed_of(rank, next, i));
		MPI_Win_post(origins, 0, w.win);
		MPI_Win_start(targets, 0, w.win);
		MPI_Put(out, BLOCK, MPI_BYTE, next, 0, BLOCK, MPI_BYTE, w.win);
		MPI_Win_complete(w.win);
		MPI_Win_wait(w.win);
		INTEG_CHECK(integ_mismatch(base, BLOCK, seed_of(prev, rank, i)) == BLOCK,
			    "round %d", i);
	}
	MPI_Group_free(&origins);
	MPI_Group_free(&targets);
	MPI_Group_free(&world);
	window_close(&w);
}

/* Exclusive locks make a read and a write one step. */
static void feature_lock(int mine)
{
	long value, rounds = ROUNDS;
	struct window w;
	long *base = window_open(&w, sizeof(long), sizeof(long), mine);

	for (int i = 0; i < rounds; i++) {
		int to = (rank + i) % size;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w.win);
		MPI_Get(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, w.win);
		MPI_Win_flush(to, w.win);
		value++;
		MPI_Put(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, w.win);
		MPI_Win_unlock(to, w.win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w.win);
	value = *base;
	MPI_Win_unlock(rank, w.win);
	MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	INTEG_CHECK(value == rounds * size, "%ld increments, not %ld", value, rounds * size);
	window_close(&w);
}

/* Draws tickets of a counter of each rank: all are different, none is missing. */
static void fetch_and_op_of(MPI_Datatype type, int bytes, int mine)
{
	unsigned tickets = ROUNDS * (unsigned)size;
	unsigned char *seen = calloc(tickets, 1);
	struct window w;

	window_open(&w, 8, bytes, mine);
	MPI_Win_lock_all(0, w.win);
	for (int owner = 0; owner < size; owner++) {
		for (int i = 0; i < ROUNDS; i++) {
			int64_t one = 1, ticket = 0; /* little endian, and narrower types fit */

			MPI_Fetch_and_op(&one, &ticket, type, owner, 0, MPI_SUM, w.win);
			MPI_Win_flush(owner, w.win);
			INTEG_CHECK(ticket >= 0 && ticket < tickets, "ticket %ld", (long)ticket);
			seen[ticket]++;
		}
		MPI_Allreduce(MPI_IN_PLACE, seen, (int)tickets, MPI_UNSIGNED_CHAR, MPI_SUM,
			      MPI_COMM_WORLD);
		for (unsigned i = 0; i < tickets; i++)
			INTEG_CHECK(seen[i] == 1, "ticket %u was given %d times", i, seen[i]);
		memset(seen, 0, tickets);
	}
	MPI_Win_unlock_all(w.win);
	window_close(&w);
	free(seen);
}

static void feature_fetch_and_op(int mine)
{
	fetch_and_op_of(MPI_INT64_T, 8, mine);
	fetch_and_op_of(MPI_INT32_T, 4, mine);
}

/* Repeats compare-and-swap until it succeeds. */
static void compare_and_swap_of(MPI_Datatype type, int bytes, int mine)
{
	int64_t expected = 0, wanted, old;
	struct window w;
	int64_t *base = window_open(&w, 8, bytes, mine);

	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < ROUNDS / 2 && is_swapper(); i++) {
		for (;;) {
			wanted = expected + 1;
			old = 0;
			MPI_Compare_and_swap(&wanted, &expected, &old, type, 0, 0, w.win);
			MPI_Win_flush(0, w.win);
			if (old == expected)
				break;
			expected = old;
		}
	}
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w.win);
	INTEG_CHECK(rank || *base == ROUNDS / 2 * swappers(), "%ld", (long)*base);
	MPI_Win_unlock(rank, w.win);
	window_close(&w);
}

static void feature_compare_and_swap(int mine)
{
	if (mine || !is_osc_rdma())
		compare_and_swap_of(MPI_INT64_T, 8, mine);
	compare_and_swap_of(MPI_INT32_T, 4, mine);
}

/* All ranks add to, and take the maximum with, the same vectors. */
static void feature_accumulate(int mine)
{
	enum { CNT = 5000 };
	double *add = malloc(CNT * sizeof(double));
	struct window w;
	double *base = window_open(&w, 2 * CNT * sizeof(double), sizeof(double), mine);

	MPI_Win_fence(0, w.win);
	for (int i = 0; i < CNT; i++)
		add[i] = i + rank;
	for (int to = 0; to < size; to++) {
		MPI_Accumulate(add, CNT, MPI_DOUBLE, to, 0, CNT, MPI_DOUBLE, MPI_SUM, w.win);
		MPI_Accumulate(add, CNT, MPI_DOUBLE, to, CNT, CNT, MPI_DOUBLE, MPI_MAX, w.win);
	}
	MPI_Win_fence(0, w.win);
	for (int i = 0; i < CNT; i++) {
		double sum = (double)i * size + size * (size - 1) / 2.0;

		INTEG_CHECK(base[i] == sum, "element %d is %g, not %g", i, base[i], sum);
		INTEG_CHECK(base[CNT + i] == i + size - 1, "largest of %d is %g", i, base[CNT + i]);
	}
	window_close(&w);
	free(add);
}

/* Bits, 16 and 32 bit integers, floats: one operation each. */
static void feature_accumulate_types(int mine)
{
	struct {
		int bits;
		int small;
		float sum;
		short least;
	} * base, add = { 1 << rank, 0, 0.5f, (short)(100 - rank) };
	struct window w;

	base = window_open(&w, sizeof(*base), 1, mine);
	MPI_Win_lock_all(0, w.win);
	for (int to = 0; to < size; to++) {
		MPI_Accumulate(&add.bits, 1, MPI_INT, to, 0, 1, MPI_INT,
			       is_limited_to_sums() ? MPI_SUM : MPI_BOR, w.win);
		MPI_Accumulate(&add.sum, 1, MPI_FLOAT, to, 8, 1, MPI_FLOAT, MPI_SUM, w.win);
		MPI_Accumulate(&add.least, 1, MPI_SHORT, to, 12, 1, MPI_SHORT, MPI_MIN, w.win);
	}
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w.win);
	INTEG_CHECK(base->bits == (1 << size) - 1, "0x%x", base->bits);
	INTEG_CHECK(base->sum == 0.5f * (float)size, "%g", (double)base->sum);
	INTEG_CHECK(base->least == 0 && base->small == 0, "%d %d", base->least, base->small);
	MPI_Win_unlock(rank, w.win);
	window_close(&w);
}

/* Returns old values: replaced, added to, only read; long and short. */
static void get_accumulate_of(int cnt, int mine)
{
	long *add = malloc((size_t)cnt * sizeof(long)), *old = malloc((size_t)cnt * sizeof(long));
	int next = (rank + 1) % size;
	struct window w;

	window_open(&w, (size_t)cnt * sizeof(long), sizeof(long), mine);
	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < cnt; i++)
		add[i] = i + rank;
	MPI_Get_accumulate(add, cnt, MPI_LONG, old, cnt, MPI_LONG, next, 0, cnt, MPI_LONG,
			   MPI_REPLACE, w.win);
	MPI_Win_flush(next, w.win);
	for (int i = 0; i < cnt; i++)
		INTEG_CHECK(old[i] == 0, "element %d was %ld", i, old[i]);
	MPI_Get_accumulate(add, cnt, MPI_LONG, old, cnt, MPI_LONG, next, 0, cnt, MPI_LONG, MPI_SUM,
			   w.win);
	MPI_Win_flush(next, w.win);
	for (int i = 0; i < cnt; i++)
		INTEG_CHECK(old[i] == i + rank, "element %d was %ld", i, old[i]);
	MPI_Get_accumulate(NULL, 0, MPI_LONG, old, cnt, MPI_LONG, next, 0, cnt, MPI_LONG, MPI_NO_OP,
			   w.win);
	MPI_Win_unlock_all(w.win);
	for (int i = 0; i < cnt; i++)
		INTEG_CHECK(old[i] == 2l * (i + rank), "element %d is %ld", i, old[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	window_close(&w);
	free(add);
	free(old);
}

static void feature_get_accumulate(int mine)
{
	get_accumulate_of(1, mine);
	get_accumulate_of(is_osc_rdma() ? 3000 : 20000, mine);
}

/* Operations with requests of their own. */
static void feature_requests(int mine)
{
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;
	unsigned char out[BLOCK], in[BLOCK];
	long one = 1;
	MPI_Request req[2];
	struct window w;
	unsigned char *base = window_open(&w, 8 + BLOCK, 1, mine);

	integ_fill(out, BLOCK, seed_of(rank, next, 3));
	MPI_Win_lock_all(0, w.win);
	MPI_Rput(out, BLOCK, MPI_BYTE, next, 8, BLOCK, MPI_BYTE, w.win, &req[0]);
	MPI_Raccumulate(&one, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_SUM, w.win, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	MPI_Win_flush_all(w.win);
	MPI_Rget(in, BLOCK, MPI_BYTE, next, 8, BLOCK, MPI_BYTE, w.win, &req[0]);
	MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	INTEG_CHECK(integ_mismatch(in, BLOCK, seed_of(rank, next, 3)) == BLOCK, "own block");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(w.win);
	INTEG_CHECK(integ_mismatch(base + 8, BLOCK, seed_of(prev, rank, 3)) == BLOCK, "block");
	INTEG_CHECK(base[0] == 1, "count %d", base[0]);
	MPI_Win_unlock_all(w.win);
	window_close(&w);
}

/* Memory attached after the window was made; its address goes around by message. */
static void feature_dynamic(int mine)
{
	long *memory, value = rank + 1, got = 0;
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;
	MPI_Aint here, there;
	MPI_Win win;

	if (mine)
		memory = malloc(100 * sizeof(long));
	else
		MPI_Alloc_mem(100 * sizeof(long), MPI_INFO_NULL, &memory);
	memset(memory, 0, 100 * sizeof(long));
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, memory, 100 * sizeof(long));
	MPI_Get_address(&memory[50], &here);
	MPI_Sendrecv(&here, 1, MPI_AINT, prev, 0, &there, 1, MPI_AINT, next, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, win);
	MPI_Put(&value, 1, MPI_LONG, next, there, 1, MPI_LONG, win);
	MPI_Win_flush(next, win);
	MPI_Get(&got, 1, MPI_LONG, next, there, 1, MPI_LONG, win);
	MPI_Win_unlock_all(win);
	INTEG_CHECK(got == rank + 1, "%ld", got);
	MPI_Barrier(MPI_COMM_WORLD);
	INTEG_CHECK(memory[50] == prev + 1 && memory[49] == 0 && memory[51] == 0, "%ld",
		    memory[50]);
	MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	if (mine)
		free(memory);
	else
		MPI_Free_mem(memory);
}

struct feature {
	const char *name;
	void (*run)(int mine);
};

static const struct feature features[] = {
	{ "fence", feature_fence },
	{ "pscw", feature_pscw },
	{ "lock", feature_lock },
	{ "fetch_and_op", feature_fetch_and_op },
	{ "compare_and_swap", feature_compare_and_swap },
	{ "accumulate", feature_accumulate },
	{ "accumulate_types", feature_accumulate_types },
	{ "get_accumulate", feature_get_accumulate },
	{ "requests", feature_requests },
	{ "dynamic", feature_dynamic },
	{ "strided", feature_strided },
	{ "tasks", feature_tasks },
	{ "queue_lock", feature_queue_lock },
};
#define FEATURES ((int)(sizeof(features) / sizeof(features[0])))

static int is_wanted(const char *name, int argc, char **argv)
{
	if (argc == 1)
		return 1;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	double start;

	MPI_Init(&argc, &argv);
	rank = integ_rank();
	size = integ_size();
	for (int i = 0; i < FEATURES; i++) {
		if (!is_wanted(features[i].name, argc, argv))
			continue;
		start = MPI_Wtime();
		for (int mine = 0; mine < 2; mine++)
			features[i].run(mine);
		MPI_Barrier(MPI_COMM_WORLD);
		if (!rank && getenv("INTEG_TIMES"))
			printf("%8.3f s  %s\n", MPI_Wtime() - start, features[i].name);
	}
	integ_done("mpi_onesided");
	MPI_Finalize();
	return 0;
}
