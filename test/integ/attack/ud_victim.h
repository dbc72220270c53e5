/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes under attack, for ud_attacked. Two of them exchange messages over datagrams and check
 * that each arrives once, whole and in order; others send one message and note its end. All are in
 * shared memory, in which the attacker, their parent, sees what they have received.
 */
#ifndef INTEG_UD_VICTIM_H
#define INTEG_UD_VICTIM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

#define VICTIMS_MAX 5u

/** A process under attack. */
struct victim {
	pid_t pid;
	struct sockaddr_in addr;
	uint64_t received;
	int err; /* for a process whose send must fail: its error, positive */
	bool is_open, stop;
	bool is_bare; /* the sockets of the process have no filter */
};

extern struct victim *victims; /* shared: the two that exchange messages first */

/** Maps the victims. */
void victim_init(void);
/**
 * Starts victim i: 0 and 1 exchange messages with `other`, any other sends one message to it. A
 * peer expires after timeout_ms.
 */
void victim_start(unsigned i, unsigned other, const char *timeout_ms);
/** Ends the two that exchange messages, without an error. */
void victim_stop(void);

/** Waits for an event. Fails if that takes too long, or a process has ended that should not. */
void victim_await(const char *what, bool (*done)(void));
/** Waits until the two have exchanged more messages. */
void victim_await_talk(const char *what);

#endif
