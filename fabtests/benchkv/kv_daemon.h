/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A daemon: the thread that owns one shard of a node's keys, and perhaps connections to other
 * nodes. Executes requests for its shard, forwards others to the daemon or node that can, and
 * sends the responses back the way the requests came.
 *
 * One loop does everything, in this order: ends of calls and requests from other nodes, since ends
 * give back room that calls need; the delegation ring; the clients' own rings; the other daemons;
 * requests that waited for room. What is sent in a loop leaves as one batch for each node.
 */
#ifndef KV_DAEMON_H
#define KV_DAEMON_H

#include <copyrpc/flux.h>
#include <copyrpc/local.h>
#include <stdatomic.h>
#include <stdint.h>

#include "kv_board.h"
#include "kv_conf.h"
#include "kv_idle.h"
#include "kv_net.h"
#include "kv_pending.h"
#include "kv_store.h"

/** Counters of one daemon. Written by its thread, read by the main thread. */
struct kv_daemon_tally {
	_Alignas(128) atomic_ullong loops; /* loops with work */
	atomic_ullong sleeps;
	atomic_ullong executed;  /* requests for the own shard */
	atomic_ullong forwarded; /* requests handed to another daemon of this node */
	atomic_ullong calls;     /* requests sent to other nodes */
	atomic_ullong batches;   /* loops that sent requests to other nodes */
	atomic_ullong waited;    /* requests that waited for room towards their destination */
	atomic_int insn_fd;      /* counts the thread's instructions; -1: not available */
};

struct kv_daemon {
	const struct kv_conf *conf;
	struct kv_board *board;
	uint32_t id;
	struct crl_server *ipc;
	struct crl_server *ring;   /* NULL: this daemon does not serve the delegation ring */
	struct crl_member *member; /* this daemon in the flux of the node */
	struct kv_net *net;        /* NULL: no connections */
	struct kv_daemon_tally *tally;

	/* Private to the thread from here on. */
	struct kv_store store;
	struct kv_pending_pool pool;
	struct kv_pending_queue *to_member; /* for each daemon of the node */
	struct kv_pending_queue *to_node;   /* for each node */
	uint32_t waiting;                   /* requests in these queues */
	uint64_t sent;                      /* requests sent to other nodes in this loop */
	struct kv_idle idle;
};

/** Allocates the private part. Returns 0 or -ENOMEM. */
int kv_daemon_init(struct kv_daemon *daemon);
void kv_daemon_fini(struct kv_daemon *daemon);

/** Runs one loop, without waiting. Returns true if there was work. */
bool kv_daemon_loop(struct kv_daemon *daemon);

/** Runs until the phase of the board is KV_END. */
void kv_daemon_run(struct kv_daemon *daemon);

/** Returns the daemon of a node that calls node `rank`. */
uint32_t kv_daemon_caller(const struct kv_conf *conf, uint32_t rank);

#endif
