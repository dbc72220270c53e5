/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulation of the daemons that own the connections of their nodes, to study when batches leave
 * (prov/copyrpc/docs/batch-hold.md). Used by kv_loop_main.c and by its test.
 *
 * Each node has a daemon and clients that keep a number of requests in flight to random other
 * nodes. The daemon runs one loop after the other. A loop takes the batches that have arrived, the
 * requests of its clients, and sends batches as the policy says; its work makes it longer:
 *
 *   loop = loop_ns + messages x msg_ns + batches received x recv_ns + batches sent x send_ns
 *
 * A batch arrives wire_ns after it left. Responses travel in the same batches as calls. All times
 * are integers in nanoseconds and random numbers come from a seed, so a run is the same everywhere.
 * Requests are never lost: kv_sim_in_flight counts them at every place where they can be.
 */
#ifndef KV_LOOP_SIM_H
#define KV_LOOP_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "benchmarks/bench_hist.h"

#define KV_SIM_NODES_MAX 64u
#define KV_SIM_LOAD_MAX  1024u /* requests of a node in flight */

/** When a batch leaves. A full one leaves at once with each policy. */
enum kv_sim_policy {
	KV_SIM_EACH, /* each message alone */
	KV_SIM_LOOP, /* at the end of each loop: FI_MORE and one flush */
	KV_SIM_RULE, /* flush-policy.md: at once if nothing is in flight, else with the next loop */
	KV_SIM_IDLE, /* only when nothing is in flight to that node */
	KV_SIM_HOLD, /* with `target` messages, after a time, or if no call is outstanding */
	KV_SIM_POLICIES,
};

struct kv_sim_conf {
	uint32_t nodes;
	uint32_t loop_ns;   /* a loop that finds nothing */
	uint32_t msg_ns;    /* each message taken or appended */
	uint32_t send_ns;   /* each batch sent: doorbell, completion */
	uint32_t recv_ns;   /* each batch received */
	uint32_t wire_ns;   /* one way */
	uint32_t client_ns; /* a client, from a response to its next request: half to 1.5 x */
	uint32_t full;      /* messages of a full batch */
	enum kv_sim_policy policy;
	uint32_t target;         /* KV_SIM_HOLD: messages for a node; 0: the number of nodes */
	uint32_t hold_responses; /* KV_SIM_HOLD: not 0: responses wait, too, not only calls */
	uint64_t seed;
};

/** Counters of all nodes together. */
struct kv_sim_counts {
	uint64_t done;     /* requests completed */
	uint64_t issued;   /* requests begun */
	uint64_t messages; /* calls and responses sent */
	uint64_t batches;  /* batches with these messages */
	uint64_t loops;    /* with work */
	uint64_t few;      /* loops with at most one response */
	struct bench_hist latency;
};

struct kv_sim;

/** Returns a simulation without load, or NULL. */
struct kv_sim *kv_sim_open(const struct kv_sim_conf *conf);
void kv_sim_close(struct kv_sim *sim);

/** Sets the requests that each node keeps in flight, at most KV_SIM_LOAD_MAX. */
void kv_sim_load(struct kv_sim *sim, uint32_t load);

/** Simulates `ns` more nanoseconds and returns what happened in them. */
struct kv_sim_counts kv_sim_run(struct kv_sim *sim, uint64_t ns);

/** Counts the requests in flight, at clients, daemons, and on the wire. */
uint64_t kv_sim_in_flight(const struct kv_sim *sim);

/** Returns the name of a policy. */
const char *kv_sim_policy_name(enum kv_sim_policy policy);

#endif
