/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simple direct accesses, the hot path of RMA (docs/rma.md). Called by ofi/; ends through
 * core_upcalls.
 *
 * An access is simple if it has one local and one remote buffer, nothing of it is for the target's
 * processor or must be placed, a lease permits it, no operation to the peer waits, and its bytes
 * need no slot and no registration: they are a short write, or lie in the region of the
 * descriptor. It has no core_op: its record is an entry of core_peer.simple. All other accesses are
 * core_rma_post's.
 *
 * A write with FI_INJECT_COMPLETE whose bytes the device takes at once completes at its start,
 * unless a counter counts it: counters tell of the end.
 *
 * Orders (core_ep.rma_ordered): writes only, while no call of an access is outstanding and no
 * message waits in a batch. The queue pair keeps the rest.
 *
 * Owner: the thread that holds the domain. Tests: test/unit/core/rma/test_core_rma_simple.c.
 */
#ifndef CORE_RMA_CORE_RMA_SIMPLE_H
#define CORE_RMA_CORE_RMA_SIMPLE_H

#include <rdma/fi_rma.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/core_reg.h"
#include "core/rma/core_rma.h"
#include "core/rma/core_rma_lease.h"

#define CORE_RMA_SIMPLE_MAX        (1u << 30)
#define CORE_RMA_SIMPLE_COLD_FLAGS (FI_FENCE | FI_REMOTE_CQ_DATA | FI_TRIGGER)

/** Arguments of an access of one local and one remote buffer. */
struct core_rma_simple {
	struct core_access_args args; /* buf and len; the rest is set here */
	void *desc;
	uint64_t addr;
	uint64_t key;
	void *context;
	uint64_t flags; /* equal core_rma.flags */
};

/** Makes room for the entries of later accesses, if there is none. Returns false. */
bool core_rma_simple_grow(struct core_peer *peer);

/** Ends the use of the entry of an access that could not start. Returns false. */
bool core_rma_simple_undo(struct core_peer *peer);

/** Implements core_upcalls.on_accessed. */
void core_rma_simple_ended(struct core_chan *chan, uint32_t cnt);
/** Ends all with `err` after the channel has failed, and empties the FIFO for the next channel. */
void core_rma_simple_fail(struct core_peer *peer, int err);

/** Returns the registration of a region that covers the buffer, or NULL. */
static inline struct core_reg *core_rma_simple_reg(const struct core_peer *peer,
						   const struct core_rma_simple *a)
{
	const struct core_mr *mr = core_mr_of_desc(peer->ep->dom->mrs, a->desc);
	struct core_reg *reg;
	uint64_t off;

	if (!mr || !mr->fixed)
		return NULL;
	off = (uintptr_t)a->args.buf - (uintptr_t)mr->iov[0].iov_base;
	if (off > mr->len || a->args.len > mr->len - off)
		return NULL;
	for (reg = mr->regs; reg && (reg->dev != peer->chan->reg_dev || reg->access);
	     reg = reg->next)
		;
	return reg;
}

/** Returns true if the peer can take simple accesses now. */
static inline bool core_rma_simple_may(const struct core_peer *peer, bool write)
{
	if (UTIL_UNLIKELY(!peer))
		return false;
	return UTIL_LIKELY(peer->simple.may) ||
	       (peer->eager_end && peer->chan->reg_dev && write && !peer->access_calls);
}

static inline unsigned core_rma_simple_flags(const struct core_peer *peer, uint64_t flags,
					     bool write, bool silent, bool at_once)
{
	bool now = silent || (flags & FI_INJECT);
	bool quiet = at_once || (silent && !peer->ep->rma_cntr[CORE_CNTR_WRITE]);

	return (write ? CORE_DIRECT_WRITE : 0) | (now ? CORE_DIRECT_NOW : 0) |
	       (quiet ? CORE_DIRECT_SILENT : 0) | (flags & FI_MORE ? CORE_DIRECT_MORE : 0) |
	       (peer->ep->rma_ordered ? CORE_DIRECT_ORDERED : 0);
}

/** Prepares the entry of an access, which core_rma_simple_add adds. */
static inline void core_rma_simple_record(struct core_peer *peer, const struct core_rma_simple *a,
					  bool write, bool at_once, bool comp)
{
	struct core_simple_slot *slot = core_simple_at(&peer->simple, peer->simple.tail);
	uint32_t kind = (uint32_t)FI_RMA | (write ? (uint32_t)FI_WRITE : (uint32_t)FI_READ);

	slot->context = a->context;
	slot->reg = a->args.reg;
	slot->len = (uint32_t)a->args.len;
	if (slot->reg)
		slot->reg->users++;
	slot->kind = kind | (at_once ? CORE_SIMPLE_ENDED : comp ? CORE_SIMPLE_COMP : 0);
}

/** Adds an access that has started, or completes it. */
static inline void core_rma_simple_add(struct core_peer *peer, const struct core_rma_simple *a,
				       bool at_once, bool comp)
{
	struct core_simple *simple = &peer->simple;

	simple->tail++;
	simple->room--;
	if (!at_once)
		simple->awaited = simple->tail;
	else if (comp)
		core_cq_write(peer->ep->tx.cq, a->context, FI_RMA | FI_WRITE, 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

/** Returns a lease that permits the access, or NULL. */
static inline const struct core_rma_lease *core_rma_simple_lease(const struct core_peer *peer,
								 const struct core_rma_simple *a,
								 bool write)
{
	const struct core_rma_lease *lease = core_rma_lease_get(peer, a->key);

	if (!lease || !core_rma_lease_permits(lease, a->addr, a->args.len,
					      write ? FI_REMOTE_WRITE : FI_REMOTE_READ))
		return NULL;
	return lease;
}

/**
 * Starts an access if it is simple. Returns false if nothing was done: core_rma_post makes the
 * access. `silent`: fi_inject_write.
 */
UTIL_INLINE bool core_rma_simple_post(struct core_ep *ep, fi_addr_t dest, struct core_rma_simple *a,
				      bool write, bool silent)
{
	struct core_peer *peer = core_peer_lookup(ep, dest);
	const struct core_rma_lease *lease;
	struct core_reg *reg = NULL;
	bool takes, at_once, comp;

	if (UTIL_UNLIKELY((a->flags & CORE_RMA_SIMPLE_COLD_FLAGS) ||
			  (write && (a->flags & CORE_RMA_PLACED_FLAGS)) ||
			  !core_rma_simple_may(peer, write) || !peer->simple.room ||
			  a->args.len - 1 >= CORE_RMA_SIMPLE_MAX))
		return peer && core_rma_simple_grow(peer);
	lease = core_rma_simple_lease(peer, a, write);
	takes = write && a->args.len <= peer->chan->access_inline;
	if (!takes && !silent && !(a->flags & FI_INJECT))
		reg = core_rma_simple_reg(peer, a);
	if (UTIL_UNLIKELY(!lease || (!takes && !reg)))
		return false;
	at_once = takes && !silent && (a->flags & FI_INJECT_COMPLETE) &&
		  !ep->rma_cntr[CORE_CNTR_WRITE];
	comp = core_ep_has_tx_comp(ep, a->flags, silent);
	a->args.remote_addr = a->addr + lease->shift;
	a->args.remote_key = lease->rkey;
	a->args.reg = reg;
	a->args.flags = core_rma_simple_flags(peer, a->flags, write, silent, at_once);
	core_rma_simple_record(peer, a, write, at_once, comp);
	if (UTIL_UNLIKELY(peer->chan->ops->access(peer->chan, &a->args)))
		return core_rma_simple_undo(peer);
	core_rma_simple_add(peer, a, at_once, comp);
	return true;
}

#endif
