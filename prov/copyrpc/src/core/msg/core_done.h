/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notice to the sender that a message has ended which was kept without a receive. Called by
 * core_unexp.c.
 *
 * The call of an announced (RNDV) or match-complete (SYNC) message that no receive matches stays
 * open, up to core_chan.held_max of them: the reply at the end has its room. Beyond that the reply
 * is WIRE_STATUS_KEPT, at once, because open calls hold credit, and the user may receive other
 * messages first, which need it. The end follows as a one-way message, WIRE_OP_DONE. The notice is
 * allocated before that reply.
 */
#ifndef CORE_MSG_CORE_DONE_H
#define CORE_MSG_CORE_DONE_H

#include "core/core_op.h"
#include "wire/wire_op.h"

struct core_ep;
struct core_peer;

struct core_done {
	struct core_op op; /* in progress only if the channel had no room */
	struct wire_done wire;
};

/** Returns a notice for the message that the peer calls `send_id`, or NULL. */
struct core_done *core_done_new(struct core_ep *ep, uint32_t send_id);

/** Frees a notice that was not sent. */
void core_done_free(struct core_ep *ep, struct core_done *done);

/** Sends a notice to the peer, which is up, and frees it: now, or when there is room. */
void core_done_send(struct core_done *done, struct core_peer *peer, uint32_t status,
		    uint32_t recv_id);

#endif
