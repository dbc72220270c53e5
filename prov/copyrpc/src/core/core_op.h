/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What waits for a peer, and in which order does it go?
 *
 * An operation: anything of ours towards a peer that cannot end on the spot. A send that found no room, a
 * message in parts, a remote memory access, a call. Its owner embeds a core_op and says what it does:
 *
 *   core_op_submit --start--> out: it has ended, or core_op_stream, or a call is on its way
 *        \--no room, no connection, others before it--> queued --its turn--> start
 *
 * Operations start in the order they were submitted. Queue and streams of a peer go on when
 * progress finds room (core_op_resume); a peer that fails ends all of them.
 *
 * Shown by test/unit/core/test_core_op.c.
 */
#ifndef CORE_OP_H
#define CORE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "util/list.h"

struct core_op;
struct core_peer;
struct core_work;

/** Operations of an endpoint that may be queued at a time. */
#define CORE_OP_QUEUE_MAX 65536u

struct core_op_ops {
	/*
	 * Its turn, on a peer that is up: 0: it is out (and may be gone); -FI_EAGAIN: no room, it
	 * stays first. Any other error is the channel's: it stays too, and fail will follow.
	 * The answer to a call may come, and end it, before the call returns.
	 */
	int (*start)(struct core_op *op);
	/* More of it: 0: the last one left (and it may be gone), or as start. NULL: never streams. */
	int (*stream)(struct core_op *op);
	/* The answer to the call that it made with itself as the context. NULL: it makes none. */
	void (*on_reply)(struct core_op *op, int status, const uint8_t *data, uint32_t len);
	/* It ends here, with this error (-FI_E*): told to the user, and freed. */
	void (*fail)(struct core_op *op, int err);
};

struct core_op {
	const struct core_op_ops *ops;
	struct core_peer *peer;
	bool queued; /* it has not started */
	bool fence;  /* the submitter's: starts when everything before it has ended */
	struct util_list peer_link; /* core_peer.tx */
	struct util_list wait_link; /* core_peer.tx_queue or .tx_stream */
};

/**
 * Takes an operation on: starts it if nothing is before it, else it waits in order, for the
 * connection too. 0 (and it may be gone), or -FI_E* and nothing was taken: -FI_EAGAIN (too many
 * wait), or why the peer cannot be reached.
 */
int core_op_submit(struct core_op *op, const struct core_op_ops *ops, struct core_peer *peer);

/** It has ended: it is in no list any more. Its owner frees it. */
void core_op_end(struct core_op *op);

/** It waits no more, and will not start: of one that is queued. */
void core_op_unqueue(struct core_op *op);

/** It is out, and has more to send when there is room. */
void core_op_stream(struct core_op *op);

/** It streams no more (it waits for an answer), and back again because that call found no room. */
void core_op_unstream(struct core_op *op);
void core_op_restream(struct core_op *op);

/** Continues what waits for room: core_peer.work. */
void core_op_resume(struct core_work *work);
/** Its retry (core_dom.h), where the channel wakes who waits for room. */
bool core_op_retry(struct core_work *work);

/** Has progress visit the peer, if it is up. */
void core_op_wait(struct core_peer *peer);

/** Has everything before it towards its peer ended (FI_FENCE)? */
bool core_op_is_oldest(const struct core_op *op);

/** Ends all that is open towards a peer. */
void core_op_fail_peer(struct core_peer *peer, int err);

/** The up-call (core_chan.h): `context` is a struct core_op. */
void core_op_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		      uint32_t len);

#endif
