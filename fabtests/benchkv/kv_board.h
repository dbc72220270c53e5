/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a node shares with its clients, which are threads or forked processes: what phase
 * the run is in, the addresses of all nodes, the counters of each client.
 *
 * Written by the node's main thread, except struct kv_tally, which its client writes. Counters
 * are read while they are written, so they are atomic and relaxed.
 */
#ifndef KV_BOARD_H
#define KV_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "benchmarks/bench_hist.h"
#include "kv_net.h"
#include "kv_value.h"

enum kv_phase {
	KV_SETUP,   /* servers do not exist yet */
	KV_CONNECT, /* clients connect to them */
	KV_WARM,    /* requests are sent, and not measured: connections come up */
	KV_RUN,     /* requests are sent */
	KV_DRAIN,   /* no new requests; clients end with the last response */
	KV_END,     /* daemons end */
};

/** Counters of one client. */
struct kv_tally {
	_Alignas(128) atomic_ullong done; /* responses from nodes, local ones included */
	atomic_ullong remote;             /* of these, from other nodes */
	atomic_ullong last;               /* of these, from the last node */
	atomic_ullong unreachable;        /* requests that ended because a node does not respond */
	atomic_ullong error_wait;         /* longest time of such a request, ns */
	atomic_ullong faults;             /* wrong responses */
	atomic_uint first_fault;          /* enum kv_fault of the first one */
	atomic_ullong lost;               /* requests without a response at the end */
	atomic_bool ready;                /* connected */
	atomic_bool failed;               /* ended by an error, which was printed */
	struct bench_hist latency;        /* read after the client has ended */
};

struct kv_board {
	_Alignas(128) atomic_uint phase; /* enum kv_phase */
	uint32_t rank, ranks;
	int node_pid;
	bool crowded;             /* the threads of this host outnumber the processors */
	uint32_t first_core;      /* threads of the nodes before this one on its host */
	uint32_t name_cnt;        /* addresses in `names`: `daemons` for each node, or 1 */
	struct kv_tally *tallies; /* one for each client */
	struct kv_name *names;
};

static inline enum kv_phase kv_board_phase(struct kv_board *board)
{
	return (enum kv_phase)atomic_load_explicit(&board->phase, memory_order_acquire);
}

static inline void kv_board_enter(struct kv_board *board, enum kv_phase phase)
{
	atomic_store_explicit(&board->phase, phase, memory_order_release);
}

/** Adds to a counter that only the calling thread writes. */
static inline void kv_count(atomic_ullong *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/** Allocates a board for `clients` clients and `names` addresses, or returns NULL. */
struct kv_board *kv_board_alloc(uint32_t clients, uint32_t names);

#endif
