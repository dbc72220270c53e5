/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runner of MPI test programs that consist of features: one function each, or two for pairs of
 * ranks, of which an odd number leaves the last rank idle. A barrier stands between features.
 */
#ifndef INTEG_FEATURE_H
#define INTEG_FEATURE_H

#include <string.h>

#include "integ.h"

struct integ_feature {
	const char *name;
	void (*sender)(int peer); /* both NULL if all ranks take part */
	void (*receiver)(int peer);
	void (*everybody)(int rank, int size);
};

static inline void integ_run_feature(const struct integ_feature *f)
{
	int rank = integ_rank(), size = integ_size(), peer = rank ^ 1;

	if (f->everybody)
		f->everybody(rank, size);
	else if (peer < size && rank % 2 == 0)
		f->sender(peer);
	else if (peer < size)
		f->receiver(peer);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("  %s\n", f->name);
		fflush(stdout);
	}
}

static inline int integ_is_chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return argc < 2;
}

/** Main function of a program: runs the features that its arguments name, or else all. */
static inline int integ_run(const char *program, const struct integ_feature *features, size_t cnt,
			    int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	for (size_t i = 0; i < cnt; i++)
		if (integ_is_chosen(features[i].name, argc, argv))
			integ_run_feature(&features[i]);
	integ_done(program);
	MPI_Finalize();
	return 0;
}

static inline void integ_send_int(int value, int to, int tag)
{
	MPI_Send(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

static inline int integ_recv_int(int from, int tag)
{
	int value = -1;

	MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return value;
}

/** Tests a request for `ms` milliseconds. Returns true if it has not ended then. */
static inline int integ_still_pending(MPI_Request *req, int ms)
{
	double end = MPI_Wtime() + ms / 1000.0;
	int done = 0;

	while (!done && MPI_Wtime() < end)
		MPI_Test(req, &done, MPI_STATUS_IGNORE);
	return !done;
}

#endif
