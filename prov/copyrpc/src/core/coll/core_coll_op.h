/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Execution of collective operations. Called by core_coll and core_coll_msg.
 *
 * A phase starts when all moves of the phase before have ended. A move that receives takes the
 * unexpected message of its member, if there is one. An operation ends with its last move, or with
 * the error of its group.
 */
#ifndef CORE_COLL_CORE_COLL_OP_H
#define CORE_COLL_CORE_COLL_OP_H

#include "core/coll/core_coll.h"

/** Starts an operation, which may have ended and been freed at return. Returns 0 or -FI_ENOMEM. */
int core_coll_op_post(struct core_coll_group *group, const struct core_coll_args *args,
		      bool is_join);
/** Ends an operation with FI_ECANCELED; that of a join reports nothing. */
void core_coll_op_cancel(struct core_coll_op *op);
/** Ends all operations of the group. An operation that is starting moves ends after that. */
void core_coll_op_fail_all(struct core_coll_group *group, int err);
/** Returns true if a move with that member is still to be sent or received. */
bool core_coll_op_needs(struct core_coll_op *op, uint32_t member);

/** Ends a move. An error aborts the group. */
void core_coll_move_end(struct core_coll_op *op, struct core_coll_move *move, int err);
/**
 * Returns the started move with a member, a SEND or one that receives, and its operation; or NULL.
 */
struct core_coll_move *core_coll_open_move(struct core_coll_group *group, uint32_t seq,
					   uint32_t member, bool send, struct core_coll_op **op);
/** Returns true if the other member's length equals that of the move; else logs the mismatch. */
bool core_coll_len_matches(const struct core_coll_move *move, size_t len);
/** Copies or reduces the bytes received for a move. */
void core_coll_deliver(struct core_coll_op *op, struct core_coll_move *move, const uint8_t *data);

/** Frees an unexpected message. */
void core_coll_unexp_free(struct core_ep *ep, struct core_coll_unexp *unexp);

#endif
