/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does an operation of a group go on, and when is it over?
 *
 * Phases start one after the other, each when all moves of the one before have ended; a move that receives
 * takes what came before the operation was called, if it did. It ends with the last move, or with
 * its group's error. Groups: core_coll.h.
 *
 * Shown by test/unit/core/coll/test_core_coll_op.c.
 */
#ifndef CORE_COLL_OP_H
#define CORE_COLL_OP_H

#include "core/coll/core_coll.h"

/** Begins an operation: it may be over, and gone, at return. 0 or -FI_ENOMEM. */
int core_coll_op_post(struct core_coll_group *group, const struct core_coll_args *args,
		      bool is_join);
/** Ends it with FI_ECANCELED; who joins hears nothing. */
void core_coll_op_cancel(struct core_coll_op *op);
/** Every operation of the group ends; one that is being started ends when that is over. */
void core_coll_op_fail_all(struct core_coll_group *group, int err);
/** Is there anything left to send to that member, or to hear from it? */
bool core_coll_op_needs(struct core_coll_op *op, uint32_t member);

/** A move has ended, well or badly; `err` ends the group. */
void core_coll_move_end(struct core_coll_op *op, struct core_coll_move *move, int err);
/** The operation's move of this kind (SEND, or anything that receives) with a member that has started. */
struct core_coll_move *core_coll_open_move(struct core_coll_group *group, uint32_t seq,
					   uint32_t member, bool send, struct core_coll_op **op);
/** Is that what the move's other member should have? If not it is said what to do. */
bool core_coll_len_matches(const struct core_coll_move *move, size_t len);
/** Bytes that came for a move: taken in. */
void core_coll_take(struct core_coll_op *op, struct core_coll_move *move, const uint8_t *data);

/** A message that waited for its operation is not needed any more. */
void core_coll_unexp_free(struct core_ep *ep, struct core_coll_unexp *unexp);

#endif
