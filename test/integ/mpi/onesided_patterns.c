/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patterns of libraries above one-sided MPI: strided blocks of a distributed matrix, shared
 * counters of tasks, a queue lock.
 */
#include "integ.h"
#include "onesided.h"

/* A block of a distributed matrix: rows of it on both sides, as Global Arrays and ARMCI have it. */
void feature_strided(int mine)
{
	enum { N = 64, ROWS = 20, COLS = 13 };
	double local[ROWS][N], back[ROWS][COLS];
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;
	MPI_Datatype block, rows;
	struct window w;
	double(*base)[N] = window_open(&w, sizeof(double) * N * N, sizeof(double), mine);

	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < N; c++)
			local[r][c] = rank * 10000 + r * 100 + c;
	MPI_Type_vector(ROWS, COLS, N, MPI_DOUBLE, &block);
	MPI_Type_commit(&block);
	MPI_Type_contiguous(ROWS * COLS, MPI_DOUBLE, &rows);
	MPI_Type_commit(&rows);
	MPI_Win_lock_all(0, w.win);
	/* Puts a block into the next one's matrix, from row 3 and column 7, and adds it there. */
	MPI_Put(&local[0][1], 1, block, next, 3 * N + 7, 1, block, w.win);
	MPI_Win_flush(next, w.win);
	MPI_Accumulate(&local[0][1], 1, block, next, 3 * N + 7, 1, block, MPI_SUM, w.win);
	MPI_Win_flush(next, w.win);
	MPI_Get(back, 1, rows, next, 3 * N + 7, 1, block, w.win);
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w.win);
	for (int r = 0; r < N; r++) {
		for (int c = 0; c < N; c++) {
			int in = r >= 3 && r < 3 + ROWS && c >= 7 && c < 7 + COLS;
			double want = in ? 2 * (prev * 10000 + (r - 3) * 100 + c - 6) : 0;

			INTEG_CHECK(base[r][c] == want, "[%d][%d] is %g, not %g", r, c, base[r][c],
				    want);
			if (in)
				INTEG_CHECK(back[r - 3][c - 7] == 2 * local[r - 3][c - 6],
					    "[%d][%d] came back as %g", r, c, back[r - 3][c - 7]);
		}
	}
	MPI_Win_unlock(rank, w.win);
	MPI_Type_free(&block);
	MPI_Type_free(&rows);
	window_close(&w);
}

/* Dynamic load balancing: an idle rank takes the next task and adds its result to the owner's. */
void feature_tasks(int mine)
{
	enum { TASKS = 300 };
	long one = 1, task, result, sum = 0;
	struct window w;
	long *base = window_open(&w, 2 * sizeof(long), sizeof(long), mine);

	MPI_Win_lock_all(0, w.win);
	for (;;) {
		MPI_Fetch_and_op(&one, &task, MPI_LONG, 0, 0, MPI_SUM, w.win);
		MPI_Win_flush(0, w.win);
		if (task >= TASKS)
			break;
		result = task * task;
		MPI_Accumulate(&result, 1, MPI_LONG, (int)(task % size), 1, 1, MPI_LONG, MPI_SUM,
			       w.win);
		MPI_Win_flush_local((int)(task % size), w.win);
	}
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w.win);
	MPI_Reduce(&base[1], &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Win_unlock(rank, w.win);
	INTEG_CHECK(rank || sum == (long)(TASKS - 1) * TASKS * (2 * TASKS - 1) / 6, "%ld", sum);
	window_close(&w);
}

/* A queue lock (MCS) of swaps and compare-and-swaps guards a counter that nothing else protects. */
enum { MCS_NEXT, MCS_LOCKED, MCS_TAIL, MCS_COUNTER, MCS_WORDS };

static long mcs_swap(MPI_Win win, int owner, int word, long value)
{
	long old;

	MPI_Fetch_and_op(&value, &old, MPI_LONG, owner, word, MPI_REPLACE, win);
	MPI_Win_flush(owner, win);
	return old;
}

static long mcs_read(MPI_Win win, int owner, int word)
{
	long value;

	MPI_Fetch_and_op(NULL, &value, MPI_LONG, owner, word, MPI_NO_OP, win);
	MPI_Win_flush(owner, win);
	return value;
}

/* Ranks count from 1 in the words; 0: none. */
static void mcs_lock(MPI_Win win)
{
	long before;

	mcs_swap(win, rank, MCS_NEXT, 0);
	mcs_swap(win, rank, MCS_LOCKED, 1);
	before = mcs_swap(win, 0, MCS_TAIL, rank + 1);
	if (!before)
		return;
	mcs_swap(win, (int)before - 1, MCS_NEXT, rank + 1);
	while (mcs_read(win, rank, MCS_LOCKED))
		;
}

static void mcs_unlock(MPI_Win win)
{
	long me = rank + 1, nobody = 0, old, next;

	MPI_Compare_and_swap(&nobody, &me, &old, MPI_LONG, 0, MCS_TAIL, win);
	MPI_Win_flush(0, win);
	if (old == me)
		return;
	do
		next = mcs_read(win, rank, MCS_NEXT);
	while (!next);
	mcs_swap(win, (int)next - 1, MCS_LOCKED, 0);
}

void feature_queue_lock(int mine)
{
	struct window w;
	long value, rounds = ROUNDS / 4;

	if (!mine && is_osc_rdma())
		return;
	window_open(&w, MCS_WORDS * sizeof(long), sizeof(long), mine);
	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < rounds && is_swapper(); i++) {
		mcs_lock(w.win);
		MPI_Get(&value, 1, MPI_LONG, 0, MCS_COUNTER, 1, MPI_LONG, w.win);
		MPI_Win_flush(0, w.win);
		value++;
		MPI_Put(&value, 1, MPI_LONG, 0, MCS_COUNTER, 1, MPI_LONG, w.win);
		MPI_Win_flush(0, w.win);
		mcs_unlock(w.win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	value = mcs_read(w.win, 0, MCS_COUNTER);
	INTEG_CHECK(value == rounds * swappers(), "%ld", value);
	MPI_Win_unlock_all(w.win);
	window_close(&w);
}
