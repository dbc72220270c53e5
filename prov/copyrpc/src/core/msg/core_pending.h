/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What was sent and is not known to be with the peer?
 *
 * FI_TRANSMIT_COMPLETE, the default of reliable endpoints, is a promise about the peer: a completion says
 * that the message is with it. Where a device moves the bytes (CORE_CHAN_ASYNC) they are only on their way
 * when send returns. A FIFO per peer remembers each of these sends: where it ends on the ring,
 * and what its end is. It ends well when the engine says that the peer has it (on_acked), and
 * badly when the channel fails before that. Sends without a completion are in it too, since their
 * failure has one (fi_cq(3)). Sends that ask for FI_INJECT_COMPLETE are not: they have ended.
 *
 * 16 bytes a send; it grows with what is on the ring, and the ring bounds it.
 * Shown by test/unit/core/msg/test_core_pending.c.
 */
#ifndef CORE_PENDING_H
#define CORE_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "core/msg/core_tx.h"
#include "util/bits.h"

struct core_peer;

/**
 * What its end is: a set, below WIRE_ALIGN. Its completion's FI_MSG or FI_TAGGED stands in it as it
 * is; nothing else: a completion when it arrives.
 */
enum core_pending_kind {
	CORE_PENDING_NO_COMP = 1 << 0,        /* none is written */
	CORE_PENDING_COUNT = 1 << 2,          /* a counter counts it */
	CORE_PENDING_NO_CTX = 1 << 4,         /* fi_inject and friends: it has no context */
	CORE_PENDING_FLAGS = 1 << 1 | 1 << 3, /* of the completion */
};

struct core_pending_slot {
	uint64_t pos; /* where it ends on the ring, a multiple of WIRE_ALIGN, and its kind */
	void *context;
};

struct core_pending {
	struct core_pending_slot *slots; /* ring of mask + 1, NULL until first used */
	uint64_t mask;
	struct core_pending_slot *next; /* the next one goes there */
	struct core_pending_slot *stop; /* next, where there is no room at once */
	uint64_t lap;                   /* the number of the one in slots[0], of this lap */
	uint64_t head;                  /* of the oldest; numbers & mask are places */
	uint64_t odd_cnt; /* of those in it, how many are not as core_pending_push makes them */
};

/**
 * A send that does not ask for FI_INJECT_COMPLETE, and that its channel, which is late, has just
 * accepted.
 */
void core_pending_add(struct core_peer *peer, void *context, uint64_t flags, bool tagged,
		      bool silent);

/**
 * The same of a send on an endpoint whose tx.plain is set, if there is room at once: false, it was not
 * done. `late` is that of the channel's peer.
 */
static inline bool core_pending_push(struct core_pending *late, struct core_chan *chan,
				     void *context, bool tagged)
{
	struct core_pending_slot *slot = late->next;
	uint64_t pos = *chan->taken;

	if (UTIL_UNLIKELY(slot == late->stop))
		return false;
	slot->pos = pos | (tagged ? FI_TAGGED : FI_MSG);
	slot->context = context;
	late->next = slot + 1;
	chan->awaited = pos;
	return true;
}

/** core_upcalls.on_acked */
void core_pending_on_acked(struct core_chan *chan, uint64_t pos);

/**
 * The channel has failed: what has not arrived ends with `err` (-FI_E*). After the peer's goodbye
 * (-FI_ESHUTDOWN) only those are told who wait for a completion.
 */
void core_pending_fail_peer(struct core_peer *peer, int err);

void core_pending_fini(struct core_pending *late);

#endif
