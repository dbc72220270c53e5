/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Survivors continue when a process dies in the middle of an operation of the device model.
 *
 * Rounds of four processes, each with an RC queue pair to every other one, a shared receive queue,
 * and a UD queue pair. All write into each other's memory, send and send datagrams, as fast as they
 * can; one of them is killed at a random moment, often while it holds locks of its peers. Then
 *
 * 	- operations in flight to the dead one end with an error, and only those,
 * 	- the survivors continue among each other: every message arrives, once, in order and whole,
 * 	- all in a few seconds.
 *
 * A process outside of the round keeps the fabric alive over all rounds. Here is the killing
 * process; a player is in hca_chaos_player.c, its objects are in hca_chaos_objects.c, and its
 * traffic is in hca_chaos_traffic.c.
 *
 * usage: hca_chaos [rounds] [seed]
 */
#include "hca_chaos.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct board *board;

void die(const char *what)
{
	fprintf(stderr, "hca_chaos %u: %s\n", me.rank, what);
	_exit(1);
}

static void await_ready(uint32_t stage)
{
	double start = now();

	for (uint32_t rank = 0; rank < PROCS; rank++)
		while (board->proc[rank].ready < stage) {
			usleep(500);
			if (now() - start > PATIENCE)
				die("the players do not come up");
		}
}

static uint64_t sum_got(void)
{
	uint64_t sum = 0;

	for (uint32_t rank = 0; rank < PROCS; rank++)
		for (uint32_t from = 0; from < PROCS; from++)
			sum += board->proc[rank].got[from];
	return sum;
}

static int round_of(unsigned *seed)
{
	pid_t pid[PROCS];
	int victim = rand_r(seed) % PROCS, bad = 0;

	memset((void *)board, 0, sizeof(*board));
	board->killed = -1;
	for (uint32_t rank = 0; rank < PROCS; rank++) {
		pid[rank] = fork();
		if (!pid[rank])
			player(rank);
	}
	await_ready(1);
	board->go = 1;
	await_ready(2);
	board->go = 2;
	usleep(5000 + rand_r(seed) % 60000);
	board->killed = victim;
	kill(pid[victim], SIGKILL);
	waitpid(pid[victim], NULL, 0);
	for (int rank = 0; rank < PROCS; rank++) {
		int status;

		if (rank == victim)
			continue;
		waitpid(pid[rank], &status, 0);
		bad += status != 0;
	}
	return bad;
}

/* Process that keeps the fabric alive; killed at the end. */
static pid_t keeper(void)
{
	int pipes[2];
	char byte;
	pid_t pid;

	NEED(!pipe(pipes));
	pid = fork();
	if (!pid) {
		open_device();
		NEED(write(pipes[1], "", 1) == 1);
		for (;;)
			pause();
	}
	NEED(read(pipes[0], &byte, 1) == 1);
	return pid;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10, bad = 0;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)getpid(), first = seed;
	uint64_t messages = 0;
	pid_t holder;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	NEED(board != MAP_FAILED);
	holder = keeper();
	for (int i = 0; i < rounds; i++) {
		bad += round_of(&seed);
		messages += sum_got();
	}
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	printf("%d rounds from seed %u, %lu messages, %d survivors failed\n", rounds, first,
	       (unsigned long)messages, bad);
	return bad != 0;
}
