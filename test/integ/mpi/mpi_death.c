/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Death of a rank under MPI_ERRORS_RETURN: a receive from it that is posted, and a send to it, end
 * with an error within LIMIT_S. With "probe" a blocking probe does that is called before the death,
 * and a matched one after it, and a message that had arrived is found. The survivor says so and
 * exits without MPI_Finalize(), which would wait for the dead.
 *
 * usage: mpirun --enable-recovery -n 2 mpi_death [probe]
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "integ.h"

#define LIMIT_S 60.0

enum { TAG_DATA = 1, TAG_EARLY = 2 };

static void survive_receive(void)
{
	int value = 0;

	INTEG_CHECK(MPI_Recv(&value, 1, MPI_INT, 1, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
		    "a receive from a dead rank succeeded");
	INTEG_CHECK(MPI_Ssend(&value, 1, MPI_INT, 1, TAG_DATA, MPI_COMM_WORLD),
		    "a send to a dead rank succeeded");
}

static void survive_probe(void)
{
	MPI_Message message;
	int err, class, value = 0;

	err = MPI_Probe(1, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Error_class(err, &class);
	INTEG_CHECK(class == MPI_ERR_OTHER, "class %d of a probe", class);
	err = MPI_Mprobe(1, TAG_DATA, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	MPI_Error_class(err, &class);
	INTEG_CHECK(class == MPI_ERR_OTHER, "class %d of a matched probe", class);
	err = MPI_Mprobe(1, TAG_EARLY, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	INTEG_CHECK(err == MPI_SUCCESS, "a message that had arrived was not found");
	MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
	INTEG_CHECK(value == 7, "value %d", value);
}

static void survive(int probe)
{
	double begin = MPI_Wtime();

	if (probe)
		survive_probe();
	else
		survive_receive();
	INTEG_CHECK(MPI_Wtime() - begin < LIMIT_S, "it took %.1f s", MPI_Wtime() - begin);
	printf("mpi_death: ok\n");
	fflush(stdout);
	_exit(0);
}

static void die(void)
{
	int value = 7;

	MPI_Send(&value, 1, MPI_INT, 0, TAG_EARLY, MPI_COMM_WORLD);
	usleep(200000); /* until the receive or probe is posted */
	kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	INTEG_CHECK(integ_size() == 2, "%d ranks", integ_size());
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	if (integ_rank() == 0)
		survive(argc > 1 && !strcmp(argv[1], "probe"));
	die();
	return 1;
}
