/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Death of a rank under MPI_ERRORS_RETURN: a receive from it that is posted, and a send to it, end
 * with an error within LIMIT_S. The survivor says so and exits without MPI_Finalize(), which would
 * wait for the dead.
 *
 * usage: mpirun --enable-recovery -n 2 mpi_death
 */
#include <signal.h>
#include <unistd.h>

#include "integ.h"

#define LIMIT_S 60.0

enum { TAG_DATA = 1 };

static void survive(void)
{
	double begin = MPI_Wtime();
	int value = 0;

	INTEG_CHECK(MPI_Recv(&value, 1, MPI_INT, 1, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
		    "a receive from a dead rank succeeded");
	INTEG_CHECK(MPI_Ssend(&value, 1, MPI_INT, 1, TAG_DATA, MPI_COMM_WORLD),
		    "a send to a dead rank succeeded");
	INTEG_CHECK(MPI_Wtime() - begin < LIMIT_S, "it took %.1f s", MPI_Wtime() - begin);
	printf("mpi_death: ok\n");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	INTEG_CHECK(integ_size() == 2, "%d ranks", integ_size());
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	if (integ_rank() == 0)
		survive();
	usleep(200000); /* until the receive is posted */
	kill(getpid(), SIGKILL);
	return 1;
}
