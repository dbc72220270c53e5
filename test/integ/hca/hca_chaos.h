/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* State and objects of a player of hca_chaos, and what its files share. */
#ifndef INTEG_HCA_CHAOS_H
#define INTEG_HCA_CHAOS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
	PROCS = 4,
	DEPTH = 64, /* of the shared receive queue */
	SLOT = 128,
	WINDOW = 4,
	UD_DEPTH = 16,
	GRH = 40,
	MORE = 20, /* messages from every survivor after the death */
	QKEY = 0x11111111,
};

enum kind { SENT_RC = 1, SENT_UD, GOT_RC, GOT_UD };

/** Shared state of the processes of a round. */
struct board {
	struct {
		volatile uint32_t ready, done;
		uint32_t lid, ud_qpn, qpn[PROCS], psn, rkey;
		uint64_t words; /* address of its array of words, one for each sender */
		volatile uint64_t got[PROCS];
	} proc[PROCS];
	volatile uint32_t go;
	volatile int killed; /* -1: none */
};

struct message {
	uint32_t from, to;
	uint64_t seq;
	uint8_t fill[40];
};

/** One player: objects, memory, and what is under way to each other one. */
struct me {
	uint32_t rank;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[PROCS], *ud;
	struct ibv_ah *ah[PROCS];
	struct ibv_mr *mr;
	struct memory {
		uint8_t recv[DEPTH][SLOT];
		uint8_t ud_recv[UD_DEPTH][SLOT];
		struct message out[PROCS][WINDOW];
		volatile uint64_t words[PROCS];
	} * memory;
	uint32_t flying[PROCS], ud_flying;
	uint64_t seq[PROCS];
	bool lost[PROCS];
};

extern struct board *board;
extern struct me me; /* of this process */

/** Ends the process with a line that says what is wrong. */
void die(const char *what);

#define PATIENCE 200.0 /* seconds */

/** Ends the process unless `condition` holds. */
#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			die(#condition);                                                           \
	} while (0)

/** Returns the time in seconds, of a clock that is never set. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/** Returns the descriptor of bytes of the player's memory. */
static inline struct ibv_sge sge_of(const volatile void *addr, uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)addr, .length = len, .lkey = me.mr->lkey };
}

/** Opens the first device, and a protection domain. */
void open_device(void);
/** Makes all objects, and states on the board what others need of them. */
void make_all(void);
/** Posts all receives, and connects to all others once they have made their objects. */
void connect_all(void);
/** Posts a receive to the shared receive queue. */
void post_recv(uint32_t slot);
/** Posts a receive to the UD queue pair. */
void post_ud_recv(uint32_t slot);

/** Sends to each other one where there is room, and takes completions. */
void play(void);
/** Takes completions and checks what arrived. */
void poll_all(void);
/** Returns the number of operations under way. */
uint32_t in_flight(void);

/** Runs player `rank` of a round; exits with 0 if all went well. */
void player(uint32_t rank);

#endif
