/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a message for a rank of an MPI job, counted instead of timed.
 *
 * Rank 0 sends windows of MPI_Isend, rank 1 receives them with MPI_Irecv and acknowledges. One of
 * the two marks the begin and end of the second half of its windows for insn_count. The stepped
 * rank is so slow that the other one is always waiting for it. fabtests/scripts/mpi-cost runs the
 * program.
 *
 * usage: mpirun -n 2 mpi_cost_bench [-m RANK] [-s BYTES] [-w WINDOW] [-n WINDOWS] [-y]
 *
 * -y: by MPI_Issend
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COST_WARM  512 /* windows before the counted ones, so that adaptive choices have settled */
#define WINDOW_MAX 1024
#define TAG_DATA   1
#define TAG_ACK    2

struct conf {
	int mark; /* counted rank; -1: none */
	int size, window;
	bool synchronous;
	long rounds;
};

static void window_send(const struct conf *conf, char *buf, MPI_Request *reqs)
{
	int ack;

	for (int i = 0; i < conf->window; i++)
		(conf->synchronous ? MPI_Issend : MPI_Isend)(buf, conf->size, MPI_CHAR, 1, TAG_DATA,
							     MPI_COMM_WORLD, &reqs[i]);
	MPI_Waitall(conf->window, reqs, MPI_STATUSES_IGNORE);
	MPI_Recv(&ack, 1, MPI_INT, 1, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void window_recv(const struct conf *conf, char *buf, MPI_Request *reqs)
{
	int ack = 0;

	for (int i = 0; i < conf->window; i++)
		MPI_Irecv(buf + (size_t)i * (size_t)conf->size, conf->size, MPI_CHAR, 0, TAG_DATA,
			  MPI_COMM_WORLD, &reqs[i]);
	MPI_Waitall(conf->window, reqs, MPI_STATUSES_IGNORE);
	MPI_Send(&ack, 1, MPI_INT, 0, TAG_ACK, MPI_COMM_WORLD);
}

static void run(const struct conf *conf, int rank, char *buf, MPI_Request *reqs, long rounds)
{
	for (long round = 0; round < rounds; round++)
		(rank ? window_recv : window_send)(conf, buf, reqs);
}

/* Marks a begin or an end for insn_count, in fewer instructions than raise, as they are counted. */
static void mark(void)
{
	pid_t pid = getpid();

	syscall(SYS_tgkill, pid, pid, SIGUSR2);
}

static void fail(const char *why)
{
	fprintf(stderr, "mpi_cost_bench: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static int number(const char *text, int least, int most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end || value < least || value > most)
		fail("usage: mpirun -n 2 mpi_cost_bench [-m RANK] [-s BYTES] [-w WINDOW]"
		     " [-n WINDOWS] [-y]");
	return (int)value;
}

static void conf_parse(struct conf *conf, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "m:s:w:n:y")) != -1) {
		switch (opt) {
		case 'm': conf->mark = number(optarg, 0, 1); break;
		case 's': conf->size = number(optarg, 1, 1 << 20); break;
		case 'w': conf->window = number(optarg, 1, WINDOW_MAX); break;
		case 'n': conf->rounds = number(optarg, 1, 1 << 30); break;
		case 'y': conf->synchronous = true; break;
		default: number("", 1, 0);
		}
	}
}

/*
 * Checks that all bytes of a window are the same, and differ from the initial contents of the
 * buffer.
 */
static void check(const struct conf *conf, const char *buf)
{
	for (size_t i = 0; i < (size_t)conf->window * (size_t)conf->size; i++) {
		if (buf[i] != 'x')
			fail("the bytes that came are not those that were sent");
	}
}

int main(int argc, char **argv)
{
	struct conf conf = { .mark = -1, .size = 8, .window = 64, .rounds = 100 };
	static MPI_Request reqs[WINDOW_MAX];
	int rank, ranks;
	char *buf;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		fail("needs 2 ranks");
	conf_parse(&conf, argc, argv);
	buf = calloc((size_t)conf.window, (size_t)conf.size);
	if (!buf)
		fail("out of memory");
	for (size_t i = 0; !rank && i < (size_t)conf.window * (size_t)conf.size; i++)
		buf[i] = 'x';
	run(&conf, rank, buf, reqs, COST_WARM + conf.rounds / 2);
	if (rank == conf.mark)
		mark();
	run(&conf, rank, buf, reqs, conf.rounds - conf.rounds / 2);
	if (rank == conf.mark)
		mark();
	check(&conf, buf);
	free(buf);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
