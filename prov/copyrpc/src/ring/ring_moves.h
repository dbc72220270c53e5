/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Policy of moves: which connections get a queue pair of their own, and which lose theirs
 * (docs/mlx5.md, section 6). Called by ring_balance.c, at most every FI_COPYRPC_RC_INTERVAL.
 *
 *   ring_moves_begin -> ring_moves_see for each connection -> ring_moves_decide
 *
 * A look sees the traffic of each connection since the last one, averaged over a few. While queue
 * pairs are free, connections with traffic get them. Otherwise the busiest connection without one
 * takes that of the idlest one with, if it has more than twice its traffic: a difference that small
 * changes do not reverse. The queue pair is given up at one look and taken at a later one.
 *
 * A connection that has moved, or was asked to, rests for some looks; twice as many each time the
 * peer refused. A look moves RING_MOVES_MAX connections at most, whatever their number, and keeps
 * no more than as many candidates of each kind.
 *
 * Pure. Tests: test/unit/ring/test_ring_moves.c.
 */
#ifndef RING_RING_MOVES_H
#define RING_RING_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#define RING_MOVES_MAX      4u
#define RING_MOVES_LEAST    4096u /* bytes a look below which a connection is idle */
#define RING_MOVES_REST     4u    /* looks */
#define RING_MOVES_REST_MAX 64u
#define RING_MOVES_FREEING  2u /* looks in which a queue pair that is given up gets free */

/** Traffic and moves of a connection. Zero-filled: a new one. */
struct ring_moves_conn {
	uint64_t accesses; /* simple ones, at the last look: links count modulo 2^32 */
	uint64_t total;    /* bytes so far, at the last look */
	uint64_t traffic;  /* bytes a look, averaged */
	uint32_t age;      /* looks since the last move, or request for one */
	uint32_t rest;     /* looks that it rests after that; 0: as RING_MOVES_REST */
	bool is_own;       /* with a queue pair of its own, at the last look */
	bool is_asked;     /* a move was requested, and has not been seen */
};

struct ring_moves_candidate {
	uint64_t traffic;
	struct ring_moves_conn *conn;
};

/** One look. */
struct ring_moves {
	uint32_t busy_cnt;
	uint32_t idle_cnt;
	uint32_t freeing;                                 /* queue pairs that are given up */
	struct ring_moves_candidate busy[RING_MOVES_MAX]; /* without a queue pair; busiest first */
	struct ring_moves_candidate idle[RING_MOVES_MAX]; /* with one; idlest first */
};

struct ring_move {
	struct ring_moves_conn *conn;
	bool own;
};

static inline void ring_moves_begin(struct ring_moves *look)
{
	look->busy_cnt = 0;
	look->idle_cnt = 0;
	look->freeing = 0;
}

/**
 * Sees a connection with `total` bytes so far. Returns true if it has moved since the last look.
 */
bool ring_moves_see(struct ring_moves *look, struct ring_moves_conn *conn, uint64_t total,
		    bool is_own);

/**
 * Chooses moves, with `free_cnt` free queue pairs. Returns their number, RING_MOVES_MAX at most.
 * ring_moves_asked follows for each that was begun.
 */
uint32_t ring_moves_decide(const struct ring_moves *look, uint32_t free_cnt,
			   struct ring_move *moves);

/** Records that a move was begun. */
void ring_moves_asked(struct ring_moves_conn *conn);

#endif
