/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows of mpi_onesided, and the features of its other files. */
#ifndef ONESIDED_H
#define ONESIDED_H

#include <string.h>

#include "integ.h"

#define ROUNDS 60

extern int rank, size; /* of MPI_COMM_WORLD: mpi_onesided.c */

/*
 * Open MPI 4.1.4's osc rdma, whatever the btl below it (vader, too), dies of a compare and swap of
 * 8 bytes of the own rank, or in memory that it allocated for ranks of the same host, and loses the
 * last bytes of an MPI_Get_accumulate beyond its buffer of 32 KiB. ONESIDED_OSC_RDMA leaves these
 * out.
 */
static inline int is_osc_rdma(void)
{
	return getenv("ONESIDED_OSC_RDMA") != NULL;
}

/** A window of `len` bytes: MPI's memory or, if `mine`, the program's. */
struct window {
	MPI_Win win;
	void *memory;
	int mine;
};

static inline void *window_open(struct window *w, size_t len, int unit, int mine)
{
	w->mine = mine;
	if (mine) {
		w->memory = malloc(len);
		MPI_Win_create(w->memory, (MPI_Aint)len, unit, MPI_INFO_NULL, MPI_COMM_WORLD,
			       &w->win);
	} else {
		MPI_Win_allocate((MPI_Aint)len, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &w->memory,
				 &w->win);
	}
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w->win);
	memset(w->memory, 0, len);
	MPI_Win_unlock(rank, w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	return w->memory;
}

static inline void window_close(struct window *w)
{
	MPI_Win_free(&w->win);
	if (w->mine)
		free(w->memory);
}

/* Ranks that compare and swap a word of rank 0. */
static inline int swappers(void)
{
	return is_osc_rdma() ? size - 1 : size;
}

static inline int is_swapper(void)
{
	return rank > 0 || swappers() == size;
}

/* onesided_patterns.c. `mine`: with windows in memory of the program. */
void feature_strided(int mine);
void feature_tasks(int mine);
void feature_queue_lock(int mine);

#endif
