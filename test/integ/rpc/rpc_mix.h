/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State that the files of rpc_mix share: options, memory of all processes, objects of one process,
 * and contents of requests and responses.
 */
#ifndef INTEG_RPC_MIX_H
#define INTEG_RPC_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_ext_copyrpc.h>

#include "integ/fab.h"
#include "support/rng.h"

#define PROCS_MAX  8
#define WINDOW_MAX 512

/** Begins each request that is long enough. */
struct head {
	uint64_t seed;
	uint32_t want; /* bytes of the response */
	uint32_t len;  /* of the request */
};

/** State of one process, written by it; `dead` by the parent. */
struct slot {
	struct sockaddr_in addr;
	bool open, done, dead;
	uint64_t tagged_out[PROCS_MAX], tagged_in;
	uint64_t calls, errors, cancelled, again;
};

struct shared {
	struct slot slots[PROCS_MAX];
};

/* Options; `self` is the number of this process. */
extern uint32_t procs, self, window, kills, len_max;
extern uint64_t call_goal;
extern unsigned seconds;

extern struct shared *shared;
extern struct rng rng; /* of this process */

/* Objects of this process. */
extern struct fab fab;
extern struct fi_copyrpc_ops *rpc;
extern fi_addr_t names[PROCS_MAX];
extern uint8_t *out; /* bytes to send: a request or a response of any length */

/* Calls of this process, counted by rpc_mix_caller.c. */
extern uint64_t started, ended;
extern uint32_t open_cnt;

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

/** Writes the contents that `seed` determines. */
static inline void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		buf[i] = (uint8_t)(seed >> (8 * (i % 8)));
	}
}

/** Returns whether the contents are those that `seed` determines. */
static inline bool is_filled(const uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		if (buf[i] != (uint8_t)(seed >> (8 * (i % 8))))
			return false;
	}
	return true;
}

/** Returns whether the parent has announced that process `peer` is no more. */
static inline bool is_dead(uint32_t peer)
{
	return LOAD(shared->slots[peer].dead);
}

/** Runs process `self`: calls the others and serves them, until all are done. */
void process_run(void);

/** Takes requests, and responds to some of those that are held. Returns false if none came. */
bool callee_serve(void);
/** Returns the number of requests that wait for their response. */
uint32_t callee_held(void);

/** Makes the calls, unused. */
void caller_open(void);
/** Starts a few calls. Returns false if there is none to start or no room. */
bool caller_start_some(void);
/** Takes the completion of a call, with 0 or an error (positive). */
void caller_end(const struct fi_cq_tagged_entry *entry, int err);
/** Cancels a call if a random one is open. */
void caller_cancel_one(void);
/** Ends the program if calls to a dead process stay open for too long. */
void caller_watch_dead(void);
/** Releases all retained responses: they take room from messages of the peers that still come. */
void caller_release(void);
/** Checks, when none is open, that all calls ended and that cancelled ones wrote nothing. */
void caller_check(void);
/** Frees the calls, once the endpoint is closed. */
void caller_free(void);

#endif
