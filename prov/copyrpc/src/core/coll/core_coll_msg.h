/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do the messages of collective operations travel? (wire/wire_coll.h)
 *
 * Short ones with the call that says that there are any; long ones are read by their receiver, in pieces,
 * once it has called the operation too: so nobody needs memory for what it does not expect yet. No answer
 * ever waits for anybody, and no order of calls can block.
 *
 * Shown by test/unit/core/coll/test_core_coll_msg.c.
 */
#ifndef CORE_COLL_MSG_H
#define CORE_COLL_MSG_H

#include "core/core_chan.h"
#include "core/coll/core_coll.h"
#include "core/msg/core_unexp.h"
#include "core/core_op.h"
#include "wire/wire_coll.h"

/** Up to here the bytes go with the announcement. */
#define CORE_COLL_SHORT 2048u
/** Bytes of a piece, at most. */
#define CORE_COLL_PIECE 4096u

/** One of ours, until it was answered. */
struct core_coll_msg {
	struct core_op op;
	struct util_list coll_link;  /* core_coll_op.msgs */
	struct core_coll_op *coll;   /* NULL: nobody waits for it any more */
	struct core_coll_move *move; /* with coll */
	struct wire_coll head;
	uint8_t *scratch; /* READ for a reduction: where the bytes meet */
	bool posting;     /* calls are being made: answers that come meanwhile do not end it */
	uint32_t calls;   /* that wait for their answer */
	size_t asked;     /* READ: bytes */
	size_t got;
	int err;
};

/** The move's bytes for its member / from it. 0 or -FI_E*: nothing was started. */
int core_coll_msg_put(struct core_coll_op *op, struct core_coll_move *move);
int core_coll_msg_read(struct core_coll_op *op, struct core_coll_move *move);
/** Tells a member that the group is given up, if there is a way. */
void core_coll_msg_abort(struct core_coll_group *group, uint32_t member);
/** The operation is over: its messages have nobody to turn to. */
void core_coll_msg_forget(struct core_coll_op *op);

/** The up-call. */
enum core_rx_verdict core_coll_on_call(struct core_chan *chan, struct core_call_ref ref,
				       const struct core_head *head);

#endif
