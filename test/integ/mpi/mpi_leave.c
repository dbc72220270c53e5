/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ends of ranks that mpirun may mistake for one another.
 *
 * usage: mpi_leave early|late
 *
 * early: rank 1 leaves with status 0 and without MPI_Finalize. late: all ranks call MPI_Finalize,
 * while mpirun is stopped for longer than PMIx_Finalize waits for its reply. Where that function
 * cannot be replaced, a line says so.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "integ.h"

#define STOPPED_S 4

int PMIx_Finalize(const void *info, size_t cnt);

static pid_t mpirun;
static int waker; /* a byte lets the waker continue mpirun later */
static bool is_due, is_stopped;

/* Begins before MPI does, and has no descriptor that mpirun would wait for. */
static void start_waker(void)
{
	int fds[2];
	char c;

	mpirun = getppid();
	if (pipe(fds) || (waker = fds[1]) < 0 || fork())
		return;
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	close(waker);
	if (read(fds[0], &c, 1) == 1) {
		sleep(STOPPED_S);
		kill(mpirun, SIGCONT);
	}
	_exit(0);
}

/* Called by MPI_Finalize after the last barrier, and by MPI_Init. */
__attribute__((visibility("default"))) int PMIx_Finalize(const void *info, size_t cnt)
{
	int (*real)(const void *, size_t);

	*(void **)&real = dlsym(RTLD_NEXT, "PMIx_Finalize");
	if (is_due)
		is_stopped = write(waker, "x", 1) == 1 && !kill(mpirun, SIGSTOP);
	return real(info, cnt);
}

static void to_the_next(int size)
{
	int rank = integ_rank(), sent = rank, got = -1, last = (rank + size - 1) % size;

	MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, last, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	INTEG_CHECK(got == last, "got %d", got);
}

int main(int argc, char **argv)
{
	int size;

	start_waker();
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	INTEG_CHECK(argc == 2, "usage: mpi_leave early|late");
	to_the_next(size);
	if (!strcmp(argv[1], "early") && integ_rank() == 1)
		return 0;
	is_due = !strcmp(argv[1], "late") && !integ_rank();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	if (is_due && !is_stopped)
		printf("mpirun was not stopped: PMIx_Finalize cannot be replaced\n");
	return 0;
}
