/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every call gets its own response under mixed load.
 *
 * A few processes call each other and themselves: requests and maximum response sizes of all sizes,
 * replies out of order, retained responses, requests released before their reply, responses that
 * are too long at first, calls cancelled, tagged messages in between. Contents determine the
 * expected response. Each accepted call ends with exactly one completion; after a cancellation its
 * buffer is unchanged. With -k processes are killed meanwhile: calls to them end within LIMIT
 * seconds.
 *
 * The parent, here, calls no libfabric: it forks, kills, and announces phases through shared
 * memory. A process (rpc_mix_process.c) is a caller (rpc_mix_caller.c) and a callee
 * (rpc_mix_callee.c).
 *
 * usage: rpc_mix [-n PROCESSES] [-c CALLS] [-w WINDOW] [-l LEN] [-k KILLS] [-s SEED] [-t SECONDS]
 *   CALLS of each process; LEN: longest request and response
 */
#include "rpc_mix.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared *shared;
uint32_t procs = 2, self, window = 64, kills;
uint32_t len_max = 3000;
uint64_t call_goal = 50000;
struct rng rng = { .state = 1 };
unsigned seconds = 100;

static void kill_some(pid_t *pids)
{
	uint32_t victim;

	for (uint32_t i = 0; i < procs && kills; i++)
		while (!LOAD(shared->slots[i].open))
			usleep(1000);
	for (uint32_t i = 0; i < kills; i++) {
		usleep(200000 + rng_below(&rng, 200000));
		do {
			victim = rng_below(&rng, procs);
		} while (!pids[victim]);
		kill(pids[victim], SIGKILL);
		waitpid(pids[victim], NULL, 0);
		pids[victim] = 0;
		STORE(shared->slots[victim].dead, true);
	}
}

static int parent(pid_t *pids)
{
	uint64_t sum = 0, errors = 0, cancelled = 0, again = 0;
	int status, bad = 0;

	alarm(seconds + 10);
	kill_some(pids);
	for (uint32_t i = 0; i < procs; i++) {
		if (!pids[i])
			continue;
		waitpid(pids[i], &status, 0);
		if (status) {
			fprintf(stderr, "process %u: status 0x%x\n", i, status);
			bad = 1;
			STORE(shared->slots[i].dead, true);
			for (uint32_t k = 0; k < procs; k++)
				if (pids[k] && k != i)
					kill(pids[k], SIGALRM);
		}
		sum += shared->slots[i].calls;
		errors += shared->slots[i].errors;
		cancelled += shared->slots[i].cancelled;
		again += shared->slots[i].again;
	}
	printf("%s: %lu calls, %lu cancelled, %lu failed with their callee, %lu times no room\n",
	       bad ? "FAILED" : "ok", (unsigned long)sum, (unsigned long)cancelled,
	       (unsigned long)errors, (unsigned long)again);
	return bad;
}

static void options(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "n:c:w:l:k:s:t:")) != -1) {
		unsigned long long value = strtoull(optarg ? optarg : "0", NULL, 0);

		switch (opt) {
		case 'n': procs = (uint32_t)value; break;
		case 'c': call_goal = value; break;
		case 'w': window = (uint32_t)value; break;
		case 'l': len_max = (uint32_t)value; break;
		case 'k': kills = (uint32_t)value; break;
		case 's': rng.state = value; break;
		case 't': seconds = (unsigned)value; break;
		default: exit(2);
		}
	}
	if (!procs || procs > PROCS_MAX || !window || window > WINDOW_MAX || kills >= procs)
		exit(2);
}

int main(int argc, char **argv)
{
	pid_t pids[PROCS_MAX] = { 0 };

	options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FAB_TRUE(shared != MAP_FAILED);
	for (self = 0; self < procs; self++) {
		pids[self] = fork();
		FAB_TRUE(pids[self] >= 0);
		if (!pids[self]) {
			process_run();
			return 0;
		}
	}
	return parent(pids);
}
