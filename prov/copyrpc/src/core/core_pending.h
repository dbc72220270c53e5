/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pending completions: sends that the channel has accepted and the peer has not acknowledged.
 * Called by core_tx.c, core_post.h and core_peer.c.
 *
 * FI_TRANSMIT_COMPLETE, the default of reliable endpoints, means that the message has arrived at
 * the peer. Where a device moves the bytes (CORE_CHAN_ASYNC) a send that returns is still in
 * flight. A FIFO per peer records the ring position and the kind of completion of each such send.
 * The completion is written when the engine reports the acknowledgement (on_acked), or as an error
 * when the channel fails first. Sends without a completion are recorded too, since their failure
 * has one (fi_cq(3)). Sends with FI_INJECT_COMPLETE are not: they complete on acceptance.
 *
 * An entry takes 16 bytes; the length of the ring bounds the FIFO.
 */
#ifndef CORE_CORE_PENDING_H
#define CORE_CORE_PENDING_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "util/bits.h"

struct core_peer;

/**
 * Bits of a pending completion, all below WIRE_ALIGN. Without NO_COMP and COUNT it is common: a
 * completion, and no counter. With NO_COMP and without COUNT it is quiet: only its failure is
 * reported.
 */
enum core_pending_kind {
	CORE_PENDING_NO_COMP = 1 << 0,        /* no completion is written */
	CORE_PENDING_COUNT = 1 << 2,          /* the endpoint has a counter */
	CORE_PENDING_FLAGS = 1 << 1 | 1 << 3, /* FI_MSG or FI_TAGGED, at libfabric's bit */
};

struct core_pending_slot {
	uint64_t pos;  /* end of the message on the ring, a multiple of WIRE_ALIGN, plus its kind */
	void *context; /* NULL: fi_inject and friends */
};

struct core_pending {
	struct core_pending_slot *slots; /* ring of mask + 1, NULL until first used */
	uint64_t mask;
	struct core_pending_slot *next; /* first free slot */
	struct core_pending_slot *stop; /* end of the free slots after `next`, up to the wrap */
	uint64_t lap;                   /* number of the entry in slots[0] in this lap */
	uint64_t head;                  /* number of the oldest entry, at slots[head & mask] */
	uint64_t quiet_cnt;             /* quiet entries */
	uint64_t odd_cnt;               /* entries that are neither common nor quiet */
	bool counts; /* the endpoint has a counter: all entries by core_pending_add, stop == next */
};

/**
 * Records a send without FI_INJECT_COMPLETE that a CORE_CHAN_ASYNC channel has just accepted.
 * Without memory the send completes at once.
 */
void core_pending_add(struct core_peer *peer, void *context, uint64_t flags, bool tagged,
		      bool silent);

/**
 * Records a common send, on an endpoint with tx.plain set. `pending` is that of the channel's peer.
 * Returns false, and does nothing, if there is no free slot before the wrap.
 */
static inline bool core_pending_push(struct core_pending *pending, struct core_chan *chan,
				     void *context, bool tagged)
{
	struct core_pending_slot *slot = pending->next;
	uint64_t pos = *chan->posted;

	if (UTIL_UNLIKELY(slot == pending->stop))
		return false;
	slot->pos = pos | (tagged ? FI_TAGGED : FI_MSG);
	slot->context = context;
	pending->next = slot + 1;
	chan->awaited = pos;
	return true;
}

/**
 * Records an injected send without completion. Returns false, and does nothing, if there is no free
 * slot before the wrap, or the endpoint has a counter.
 */
static inline bool core_pending_push_quiet(struct core_pending *pending,
					   const struct core_chan *chan, void *context, bool tagged)
{
	struct core_pending_slot *slot = pending->next;

	if (UTIL_UNLIKELY(slot == pending->stop))
		return false;
	slot->pos = *chan->posted | (tagged ? FI_TAGGED : FI_MSG) | CORE_PENDING_NO_COMP;
	slot->context = context;
	pending->next = slot + 1;
	pending->quiet_cnt++;
	return true;
}

/** Returns the number of the next entry. */
static inline uint64_t core_pending_tail(const struct core_pending *pending)
{
	return pending->lap + (uint64_t)(pending->next - pending->slots);
}

/** Returns true while a send is pending. */
static inline bool core_pending_is_open(const struct core_pending *pending)
{
	return pending->slots && pending->head != core_pending_tail(pending);
}

/** Returns true while a send is pending that is not quiet: the engine obtains its end. */
static inline bool core_pending_is_awaited(const struct core_pending *pending)
{
	return core_pending_is_open(pending) &&
	       core_pending_tail(pending) - pending->head != pending->quiet_cnt;
}

/** Returns the position on the ring, and the kind, of the oldest send of those pending. */
static inline uint64_t core_pending_pos(const struct core_pending *pending)
{
	return pending->slots[pending->head & pending->mask].pos;
}

/** Implements core_upcalls.on_acked: completes the sends that end at or before `pos`. */
void core_pending_on_acked(struct core_chan *chan, uint64_t pos);

/**
 * Ends all entries with `err` (-FI_E*) after the channel has failed. If the peer has closed in good
 * order (-FI_ESHUTDOWN), entries without completion and counter end silently.
 */
void core_pending_fail_peer(struct core_peer *peer, int err);

void core_pending_fini(struct core_pending *pending);

#endif
