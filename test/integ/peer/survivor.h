/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One of the processes of kill_survivors: exchanges tagged messages of all sizes with each other
 * one that lives, checks what it receives, and tells its parent by shared memory what is open.
 */
#ifndef INTEG_SURVIVOR_H
#define INTEG_SURVIVOR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCS_MAX 8

enum phase {
	PHASE_TALK, /* all living processes exchange messages */
	PHASE_PARK, /* open operations are finished, no new ones begin */
	PHASE_STOP, /* all close and exit */
};

/** State shared by parent and children. One writer for each field. */
struct slot {
	/* written by the parent */
	pid_t pid;
	uint32_t life;
	bool alive;
	/* written by the child */
	struct sockaddr_in addr;
	uint32_t open_life;        /* life (generation) whose endpoint is open */
	uint32_t ended[PROCS_MAX]; /* life of each peer towards which no operation is open */
	uint32_t parked;           /* round in which no operation is open */
	uint32_t fds, maps;        /* held; true while parked */
	uint32_t sends[PROCS_MAX], recvs[PROCS_MAX]; /* open operations, for debugging */
	uint64_t received[PROCS_MAX], errors;
	int errs[256];
};

struct shared {
	enum phase phase;
	uint32_t round;
	bool napping; /* a wait is long: all processes nap between their looks */
	struct slot slots[PROCS_MAX];
};

/* Of this process, set by the parent before it starts another. */
extern struct shared *shared;
extern uint32_t procs;

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

/** Runs process `self` until the parent announces the end. A fault ends it with status 1. */
void survivor_run(uint32_t self, uint64_t seed);

#endif
