/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A node: the process of one MPI rank with its daemons and clients. Used by its main thread only,
 * in this order: alloc (before MPI_Init, since processes are forked), open, connect, start, then
 * snapshots while it runs, stop, close.
 */
#ifndef KV_NODE_H
#define KV_NODE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "kv_board.h"
#include "kv_conf.h"
#include "kv_daemon.h"

struct kv_node {
	const struct kv_conf *conf;
	struct kv_board *board;
	struct crl_server **ipc;
	struct crl_server *ring;
	struct crl_flux *flux;
	struct kv_daemon *daemons;
	struct kv_daemon_tally *tallies;
	pthread_t *daemon_threads, *client_threads;
	pid_t *client_pids;
	uint32_t daemons_started, clients_started;
};

/** Sums over the daemons or clients of a node, for reports. */
struct kv_sums {
	uint64_t done, remote, last, unreachable, faults, lost;
	uint64_t loops, sleeps, executed, forwarded, calls, batches, waited, insns;
	uint64_t cpu;      /* processor time in us, of the same processes */
	uint64_t switches; /* context switches of the node's process and of its client processes */
};

/** Allocates the board and forks the clients if they are processes. Returns 0 or -errno. */
int kv_node_alloc(struct kv_node *node, const struct kv_conf *conf, uint32_t ranks_max);

/** Opens channels and endpoints as node `rank` of `ranks`. Returns 0 or -errno, with a message. */
int kv_node_open(struct kv_node *node, uint32_t rank, uint32_t ranks);

/** Returns the number of addresses of a node; stores them in `names`. */
uint32_t kv_node_names(const struct kv_node *node, struct kv_name *names);

/** Connects to all nodes, whose addresses are on the board. Returns 0 or -errno. */
int kv_node_connect(struct kv_node *node);

/** Starts daemons and clients, and waits until the clients are connected. Returns 0 or -errno. */
int kv_node_start(struct kv_node *node);

/** Lets clients send until connections are up, at most a minute. */
void kv_node_warm(struct kv_node *node);

/** Returns the present counters. */
struct kv_sums kv_node_sums(const struct kv_node *node);

/** Returns true if the instructions of all daemons are counted. */
bool kv_node_counts_insns(const struct kv_node *node);

/** Returns the memory of the node's process and its client processes in KiB. */
uint64_t kv_node_memory(const struct kv_node *node);

/** Ends the clients: no new requests, and a response for each one in flight. */
void kv_node_drain(struct kv_node *node);

/** Ends the daemons. No other node may need them any more. */
void kv_node_stop(struct kv_node *node);

/** Closes and frees everything. */
void kv_node_close(struct kv_node *node);

/** Returns true if a client ended early or had wrong responses. */
bool kv_node_failed(const struct kv_node *node);

/** Returns the longest time in ns that a request took to end with an error. */
uint64_t kv_node_error_wait(const struct kv_node *node);

/** Adds up the latencies of the clients, which have ended. */
void kv_node_latency(const struct kv_node *node, struct bench_hist *hist);

#endif
