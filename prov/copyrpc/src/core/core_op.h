/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations to a peer, and their order. Used by msg, rma, coll and rpc.
 *
 * An operation is anything that cannot end at once: a send without room, a pipelined message, a
 * remote memory access, a call. The owner embeds a core_op and implements core_op_ops:
 *
 *   core_op_submit --start--> ended, or core_op_stream, or a call is in flight
 *        \--no room, not connected, others before it--> queued --first of the queue--> start
 *
 * Operations start in the order of submission. Progress continues queue and streams of a peer when
 * there is room (core_op_resume). A peer that fails ends all of its operations.
 */
#ifndef CORE_CORE_OP_H
#define CORE_CORE_OP_H

#include <copyrpc/stats.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "util/list.h"

struct core_op;
struct core_peer;
struct core_work;

/** Operations of an endpoint that may be queued at a time, where their users can wait. */
#define CORE_OP_QUEUE_MAX 65536u

struct core_op_ops {
	/*
	 * Starts the first operation of the queue; the peer is up. Returns 0 if it started (and may
	 * be freed), -FI_EAGAIN if there is no room, or an error of the channel. On error the
	 * operation stays first, and `fail` follows for an error of the channel. The response to a
	 * call may come, and end the operation, before the call returns.
	 */
	int (*start)(struct core_op *op);
	/*
	 * Sends more. Returns 0 if all was sent (and the operation may be freed), or an error as
	 * start does. NULL: never streams.
	 */
	int (*stream)(struct core_op *op);
	/*
	 * Takes the response to a call that has this operation as its context. NULL: makes no
	 * calls.
	 */
	void (*on_reply)(struct core_op *op, int status, const uint8_t *data, uint32_t len);
	/*
	 * Ends the operation with an error (-FI_E*): reports it to the user and frees the
	 * operation.
	 */
	void (*fail)(struct core_op *op, int err);
	enum copyrpc_stats_cause awaits; /* cause of the wait once all was sent; 0: a response */
};

struct core_op {
	const struct core_op_ops *ops;
	struct core_peer *peer;
	bool queued;  /* not started */
	bool watched; /* was the oldest of its peer at a look (core/watch/core_watch.h) */
	bool fence;   /* set by the submitter: starts after all earlier operations have ended */
	bool tried;   /* queued: its start found no room, and may have done a part */
	bool reads;   /* set by the submitter: may start while direct reads are in progress */
	struct util_list peer_link; /* core_peer.tx */
	struct util_list wait_link; /* core_peer.tx_queue or .tx_stream */
};

/**
 * Submits an operation: starts it if no other is before it, else queues it, also until the peer is
 * connected. Returns 0 (the operation may have been freed), -FI_EAGAIN if the queue is full, or the
 * error of the connect. On error nothing was submitted.
 */
int core_op_submit(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer);

/** core_op_submit with no limit of the queue, for operations that no user can submit again. */
int core_op_submit_always(struct core_op *op, const struct core_op_ops *ops,
			  struct core_peer *peer);

/**
 * Submits an operation to a connected peer. Progress starts it. Used while a connection comes up,
 * with no limit of the queue.
 */
void core_op_submit_later(struct core_op *op, const struct core_op_ops *ops,
			  struct core_peer *peer);

/** Adds an operation that has started and waits in no queue: it ends when the peer fails. */
void core_op_adopt(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer);

/** Unlinks an operation that has ended from all lists. The owner frees it. */
void core_op_end(struct core_op *op);

/** Unlinks a queued operation, which will not start. */
void core_op_unqueue(struct core_op *op);

/** Adds a started operation to the streams: it sends more when there is room. */
void core_op_stream(struct core_op *op);

/** Removes an operation from the streams: it waits for a response, and sends no more. */
void core_op_unstream(struct core_op *op);

/**
 * Makes a started operation the first of the streams: one that core_op_unstream removed and whose
 * call found no room, or one that the others may wait for. The caller schedules the peer, unless it
 * is called by `stream`.
 */
void core_op_restream(struct core_op *op);

/** core_peer.work.run: continues operations that wait for room. */
void core_op_resume(struct core_work *work);
/** core_peer.work.retry, where the channel has CORE_CHAN_WAKES. */
bool core_op_retry(struct core_work *work);

/** Queues the peer for progress, if it is up. */
void core_op_schedule(struct core_peer *peer);

/** Returns true if all earlier operations to the peer have ended (FI_FENCE). */
bool core_op_is_oldest(const struct core_op *op);

/** Returns true if no other operation to the peer is open. */
static inline bool core_op_is_only(const struct core_op *op)
{
	return op->peer_link.next == op->peer_link.prev;
}

/** Fails all open operations to a peer. */
void core_op_fail_peer(struct core_peer *peer, int err);

/** core_upcalls.on_reply: `context` is a struct core_op. */
void core_op_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		      uint32_t len);

#endif
