/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of collective operations: PUT, READ and ABORT, all sent as calls (wire/wire_coll.h).
 *
 * A PUT announces a move's bytes and carries them if they are few. The receiver reads long ones in
 * pieces once it has posted the operation, so unexpected bytes need little memory. A response never
 * depends on a later call, so no order of calls can block.
 */
#ifndef CORE_COLL_CORE_COLL_MSG_H
#define CORE_COLL_CORE_COLL_MSG_H

#include "core/coll/core_coll.h"
#include "core/core_chan.h"
#include "core/core_head.h"
#include "core/core_op.h"
#include "wire/wire_coll.h"

/** Most bytes that a PUT carries. */
#define CORE_COLL_SHORT 2048u
/** Most bytes of one READ. */
#define CORE_COLL_PIECE 4096u

/** Message that was sent, until all its responses have come. */
struct core_coll_msg {
	struct core_op op;
	struct util_list coll_link;  /* core_coll_op.msgs */
	struct core_coll_op *coll;   /* NULL: the operation has ended */
	struct core_coll_move *move; /* valid with coll */
	struct wire_coll head;
	uint8_t *scratch; /* READ for a reduction: bytes before they are combined */
	bool posting;     /* calls are being sent: responses meanwhile do not end it */
	uint32_t calls;   /* calls without their response */
	size_t requested; /* READ: bytes requested */
	size_t received;
	int err;
};

/** Sends, or reads, the bytes of a move. Returns 0, or -FI_E* if nothing was started. */
int core_coll_msg_put(struct core_coll_op *op, struct core_coll_move *move);
int core_coll_msg_read(struct core_coll_op *op, struct core_coll_move *move);
/** Notifies a member of the abort, if it can be reached. */
void core_coll_msg_abort(struct core_coll_group *group, uint32_t member);
/** Notifies a peer that has just come up of the abort, in progress. */
void core_coll_msg_abort_later(struct core_coll_group *group, struct core_peer *peer);
/** Detaches the messages of an operation that has ended. */
void core_coll_msg_forget(struct core_coll_op *op);

/** Implements core_handler.on_call of WIRE_OP_COLL. */
enum core_rx_verdict core_coll_on_call(struct core_chan *chan, struct core_call_ref ref,
				       struct core_head *head, core_retain_t retain);

#endif
