/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that is killed at a random moment leaves no survivor hanging, and no resource behind.
 *
 * A few processes exchange tagged messages of all sizes, each with each. One is killed with
 * SIGKILL; each survivor's operations towards it must end, well or badly, within LIMIT seconds, and
 * TIMEOUT more if not all had reached it before: a process that was never seen may start late. The
 * survivors continue with each other. Then a new process takes the dead one's address and all
 * talk to it again. Received bytes must be the sent ones, in order; counts published by the dead
 * process are valid. After each death the survivors hold no more descriptors and mappings of shared
 * memory than after others, and no socket of the dead one is left.
 *
 * The parent calls no libfabric: it forks, kills, and announces phases through shared memory.
 *
 * usage: kill_survivors [kills [processes [seed]]]
 */
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"
#include "support/rng.h"
#include "survivor.h"

#define TIMEOUT   15   /* seconds: FI_COPYRPC_PEER_TIMEOUT */
#define LIMIT     14.0 /* seconds for each operation to end: less than the peer timeout */
#define LONG_WAIT 0.5  /* seconds until all nap meanwhile */
#define CHATTER   50   /* messages between survivors after a death */
#define FDS       64   /* descriptors of a process that are looked at */

struct shared *shared;
uint32_t procs = 4;

static struct rng rng;
static struct {
	unsigned long inode;
} sockets[PROCS_MAX][FDS + 1];

static void fail(const char *what, uint32_t who)
{
	const struct slot *slot = &shared->slots[who];

	fprintf(stderr, "kill_survivors: round %u: process %u: %s\n", shared->round, who, what);
	for (uint32_t i = 0; i < procs; i++)
		fprintf(stderr, "    towards %u (%s, life %u): %u sends and %u receives open\n", i,
			shared->slots[i].alive ? "alive" : "dead", shared->slots[i].life,
			slot->sends[i], slot->recvs[i]);
	if (getenv("KILL_SURVIVORS_WAIT"))
		sleep(30); /* for a debugger */
	for (uint32_t i = 0; i < procs; i++)
		if (shared->slots[i].pid > 0)
			kill(shared->slots[i].pid, SIGKILL);
	exit(1);
}

static void start(uint32_t i, uint64_t seed)
{
	struct slot *slot = &shared->slots[i];
	pid_t parent = getpid(), pid;

	slot->life++;
	STORE(slot->alive, true);
	pid = fork();
	FAB_TRUE(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		survivor_run(i, seed);
		exit(0);
	}
	slot->pid = pid;
}

/** Fails if a process ended that was not killed. */
static void check_children(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid <= 0)
		return;
	for (uint32_t i = 0; i < procs; i++)
		if (shared->slots[i].pid == pid) {
			shared->slots[i].pid = 0;
			fail(WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it gave up", i);
		}
}

/** Waits until `done(i)` for every living process. Returns the seconds. */
static double wait_all_within(double limit, bool (*done)(uint32_t i), const char *what)
{
	double begin = fab_seconds();

	for (uint32_t i = 0; i < procs; i++) {
		while (shared->slots[i].alive && !done(i)) {
			check_children();
			if (fab_seconds() - begin > limit)
				fail(what, i);
			STORE(shared->napping, fab_seconds() - begin > LONG_WAIT);
			usleep(500);
		}
	}
	STORE(shared->napping, false);
	return fab_seconds() - begin;
}

static double wait_all(bool (*done)(uint32_t i), const char *what)
{
	return wait_all_within(LIMIT, done, what);
}

static uint32_t victim;
static bool all_talk; /* each process has received from each other one of this life */
static uint64_t marks[PROCS_MAX][PROCS_MAX];

static bool is_open(uint32_t i)
{
	return LOAD(shared->slots[i].open_life) == shared->slots[i].life;
}

static bool has_ended(uint32_t i)
{
	return LOAD(shared->slots[i].ended[victim]) == shared->slots[victim].life;
}

static bool has_parked(uint32_t i)
{
	return LOAD(shared->slots[i].parked) == shared->round;
}

static void mark_received(void)
{
	for (uint32_t i = 0; i < procs; i++)
		for (uint32_t j = 0; j < procs; j++)
			marks[i][j] = LOAD(shared->slots[i].received[j]);
}

static bool has_received_all(uint32_t i)
{
	for (uint32_t j = 0; j < procs; j++)
		if (j != i && shared->slots[j].alive &&
		    LOAD(shared->slots[i].received[j]) < marks[i][j] + CHATTER)
			return false;
	return true;
}

/** Returns the inode of a descriptor of a process that is a socket, else 0. */
static unsigned long socket_at(uint32_t i, int fd)
{
	char path[64], link[64];
	unsigned long inode;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)shared->slots[i].pid, fd);
	len = readlink(path, link, sizeof(link) - 1);
	if (len <= 0)
		return 0;
	link[len] = 0;
	return sscanf(link, "socket:[%lu]", &inode) == 1 ? inode : 0;
}

static bool has_socket(uint32_t i, unsigned long inode)
{
	for (int fd = 0; fd < FDS; fd++)
		if (socket_at(i, fd) == inode)
			return true;
	return false;
}

/** Returns true if another process has the socket, too: a bell, which is shared. */
static bool is_shared(uint32_t i, unsigned long inode)
{
	for (uint32_t k = 0; k < procs; k++)
		if (k != i && shared->slots[k].alive && has_socket(k, inode))
			return true;
	return false;
}

/**
 * Records the inodes of the sockets that a process has alone. Bells that a survivor keeps are
 * counted among its descriptors.
 */
static void note_sockets(uint32_t i)
{
	uint32_t cnt = 0;

	memset(sockets[i], 0, sizeof(sockets[i]));
	for (int fd = 0; fd < FDS; fd++) {
		unsigned long inode = socket_at(i, fd);

		if (inode && !is_shared(i, inode))
			sockets[i][cnt++].inode = inode;
	}
}

/** Returns whether a socket of a dead process exists that no other process has. */
static bool socket_is_left(uint32_t i)
{
	FILE *file = fopen("/proc/net/unix", "re");
	unsigned long inode;
	char line[512];
	bool found = false;

	FAB_TRUE(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) != 1)
			continue;
		for (uint32_t k = 0; sockets[i][k].inode; k++)
			found |= sockets[i][k].inode == inode && !is_shared(i, inode);
	}
	fclose(file);
	return found;
}

/** Checks that a survivor holds no more after a death than any of them after an earlier one. */
static void check_holdings(void)
{
	static uint32_t fds = UINT32_MAX, maps = UINT32_MAX;

	for (uint32_t i = 0; i < procs; i++) {
		struct slot *slot = &shared->slots[i];
		double begin = fab_seconds();

		if (!slot->alive)
			continue;
		while (LOAD(slot->fds) > fds || LOAD(slot->maps) > maps) {
			check_children();
			if (fab_seconds() - begin > LIMIT) {
				fprintf(stderr, "%u descriptors, %u mappings; before: %u, %u\n",
					slot->fds, slot->maps, fds, maps);
				fail("it holds something of the dead", i);
			}
			usleep(1000);
		}
		fds = LOAD(slot->fds);
		maps = LOAD(slot->maps);
	}
}

/** Waits: a survivor may yet receive or drop what the victim sent it after note_sockets. */
static void await_sockets_gone(void)
{
	double begin = fab_seconds();

	while (socket_is_left(victim)) {
		check_children();
		if (fab_seconds() - begin > LIMIT)
			fail("a socket of it is left", victim);
		usleep(1000);
	}
}

static double longest;

static void kill_one(void)
{
	struct slot *slot = &shared->slots[victim];
	double took;

	note_sockets(victim);
	STORE(slot->alive, false);
	kill(slot->pid, SIGKILL);
	waitpid(slot->pid, NULL, 0);
	slot->pid = 0;
	took = wait_all_within(all_talk ? LIMIT : TIMEOUT + LIMIT, has_ended,
			       "operations towards the dead did not end");
	longest = took > longest ? took : longest;
	await_sockets_gone();
}

static void run_round(void)
{
	shared->round++;
	usleep((useconds_t)(rng_next(&rng) % (rng_next(&rng) % 4 ? 30000 : 3000)));
	victim = (uint32_t)(rng_next(&rng) >> 32) % procs;
	kill_one();
	mark_received();
	wait_all(has_received_all, "survivors do not talk to each other");
	STORE(shared->phase, PHASE_PARK);
	wait_all(has_parked, "sends between survivors did not end");
	check_holdings();
	start(victim, rng_next(&rng));
	wait_all(is_open, "no endpoint at the address of the dead");
	STORE(shared->phase, PHASE_TALK);
	all_talk = rng_next(&rng) % 2;
	if (!all_talk)
		return; /* the next victim may be killed while one connects */
	mark_received();
	wait_all(has_received_all, "not all talk to the new process");
}

static void stop_all(void)
{
	int status;

	shared->round++;
	STORE(shared->phase, PHASE_PARK);
	wait_all(has_parked, "sends did not end");
	STORE(shared->phase, PHASE_STOP);
	for (uint32_t i = 0; i < procs; i++) {
		waitpid(shared->slots[i].pid, &status, 0);
		shared->slots[i].pid = 0;
		if (status)
			fail("it did not end well", i);
	}
}

static void report(uint32_t kills)
{
	uint64_t received = 0, errors = 0;
	int errs[256] = { 0 };

	for (uint32_t i = 0; i < procs; i++) {
		for (uint32_t j = 0; j < procs; j++)
			received += shared->slots[i].received[j];
		errors += shared->slots[i].errors;
		for (int e = 0; e < 256; e++)
			errs[e] += shared->slots[i].errs[e];
	}
	printf("kill_survivors: ok: %u kills among %u processes, %llu messages checked, "
	       "%llu operations ended with an error, the last of a death within %.3f s\n",
	       kills, procs, (unsigned long long)received, (unsigned long long)errors, longest);
	for (int e = 0; e < 256; e++)
		if (errs[e])
			printf("    %7d %s\n", errs[e], fi_strerror(e));
}

int main(int argc, char **argv)
{
	uint32_t kills = argc > 1 ? (uint32_t)atoi(argv[1]) : 20;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);
	char timeout_ms[16];

	procs = argc > 2 ? (uint32_t)atoi(argv[2]) : procs;
	FAB_TRUE(procs >= 3 && procs <= PROCS_MAX);
	snprintf(timeout_ms, sizeof(timeout_ms), "%d", TIMEOUT * 1000);
	setenv("FI_COPYRPC_PEER_TIMEOUT", timeout_ms, 1);
	printf("kill_survivors: seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	rng.state = seed;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FAB_TRUE(shared != MAP_FAILED);
	for (uint32_t i = 0; i < procs; i++)
		start(i, rng_next(&rng));
	wait_all(is_open, "no endpoint");
	for (uint32_t i = 0; i < kills; i++)
		run_round();
	stop_all();
	report(kills);
	return 0;
}
