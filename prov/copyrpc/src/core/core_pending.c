/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pending completions: see core_pending.h. */
#include "core/core_pending.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/core_peer.h"
#include "util/log.h"
#include "wire/wire_ring.h"

#define CORE_PENDING_FIRST 32u

static_assert(CORE_PENDING_FLAGS == (FI_MSG | FI_TAGGED) && CORE_PENDING_FLAGS < WIRE_ALIGN,
	      "a kind fits below a position");

static inline uint64_t core_pending_comp_flags(uint64_t pos)
{
	return FI_SEND | (pos & CORE_PENDING_FLAGS);
}

/** Returns true for an entry with a completion and no counter. */
static inline bool core_pending_is_common(uint64_t pos)
{
	return !(pos & (CORE_PENDING_NO_COMP | CORE_PENDING_COUNT));
}

/** Returns true for an entry that ends without a trace, unless it fails. */
static inline bool core_pending_is_quiet(uint64_t pos)
{
	return (pos & (CORE_PENDING_NO_COMP | CORE_PENDING_COUNT)) == CORE_PENDING_NO_COMP;
}

/** Counts an entry by its kind, and one that leaves with -1. */
static inline void core_pending_count(struct core_pending *pending, uint64_t pos, int cnt)
{
	if (core_pending_is_quiet(pos))
		pending->quiet_cnt += (uint64_t)cnt;
	else if (!core_pending_is_common(pos))
		pending->odd_cnt += (uint64_t)cnt;
}

/** Resets an empty FIFO to slots[0], so that all slots follow without a wrap. */
static inline void core_pending_restart(struct core_pending *pending)
{
	pending->head = pending->lap;
	pending->next = pending->slots;
	pending->stop = pending->counts ? pending->next : pending->slots + pending->mask + 1;
}

/** Sets `next` and `stop` for the entry with number `tail`. */
static inline void core_pending_set_window(struct core_pending *pending, uint64_t tail)
{
	uint64_t size = pending->mask + 1, at = tail & pending->mask;
	uint64_t room = size - (tail - pending->head);

	pending->lap = tail - at;
	pending->next = pending->slots + at;
	pending->stop = pending->next + (room < size - at ? room : size - at);
}

/** Doubles the slots. Returns false without memory. */
static bool core_pending_grow(struct core_pending *pending, uint64_t tail)
{
	uint64_t cnt = pending->slots ? 2 * (pending->mask + 1) : CORE_PENDING_FIRST;
	struct core_pending_slot *slots = calloc(cnt, sizeof(*slots));
	uint64_t at;

	if (!slots)
		return false;
	for (at = pending->head; at != tail; at++)
		slots[at & (cnt - 1)] = pending->slots[at & pending->mask];
	free(pending->slots);
	pending->slots = slots;
	pending->mask = cnt - 1;
	return true;
}

/** Writes the completion of a send that has arrived, and counts it. */
static void core_pending_end(struct core_comp *tx, const struct core_pending_slot *slot)
{
	if (slot->pos & CORE_PENDING_COUNT)
		core_cntr_add(tx->cntr, 1);
	if (!(slot->pos & CORE_PENDING_NO_COMP))
		core_cq_write(tx->cq, slot->context, core_pending_comp_flags(slot->pos), 0, NULL, 0,
			      0, FI_ADDR_NOTAVAIL);
}

static unsigned core_pending_kind(const struct core_ep *ep, uint64_t flags, bool tagged,
				  bool silent)
{
	return (unsigned)(tagged ? FI_TAGGED : FI_MSG) | (ep->tx.cntr ? CORE_PENDING_COUNT : 0) |
	       (core_ep_has_tx_comp(ep, flags, silent) ? 0 : CORE_PENDING_NO_COMP);
}

void core_pending_add(struct core_peer *peer, void *context, uint64_t flags, bool tagged,
		      bool silent)
{
	unsigned kind = core_pending_kind(peer->ep, flags, tagged, silent);
	struct core_pending_slot slot = { .pos = *peer->chan->posted | kind, .context = context };
	struct core_pending *pending = &peer->pending;
	uint64_t tail = core_pending_tail(pending);

	if ((!pending->slots || tail - pending->head > pending->mask) &&
	    !core_pending_grow(pending, tail)) {
		core_pending_end(&peer->ep->tx, &slot);
		return;
	}
	core_pending_set_window(pending, tail);
	core_pending_count(pending, kind, 1);
	*pending->next++ = slot;
	pending->counts = kind & CORE_PENDING_COUNT;
	if (pending->counts)
		pending->stop = pending->next;
	if (core_pending_is_quiet(kind))
		return;
	peer->chan->awaited = *peer->chan->posted;
	if (silent || (flags & FI_INJECT)) /* sent with CORE_SEND_NOW */
		peer->chan->ops->await(peer->chan);
}

static inline struct core_pending_slot *core_pending_at(const struct core_pending *pending,
							uint64_t number)
{
	return &pending->slots[number & pending->mask];
}

static inline bool core_pending_is_acked(const struct core_pending_slot *slot, uint64_t arrived)
{
	return (int64_t)(slot->pos - arrived) < (int64_t)WIRE_ALIGN;
}

/** Returns the number after the run of common, arrived entries from head on, before `tail`. */
static inline uint64_t core_pending_common_end(const struct core_pending *pending, uint64_t tail,
					       uint64_t arrived)
{
	uint64_t at = pending->head;

	/* The last entry: not next[-1], which lies outside the slots behind a wrap. */
	if (UTIL_LIKELY(!(pending->odd_cnt | pending->quiet_cnt) &&
			core_pending_is_acked(core_pending_at(pending, tail - 1), arrived)))
		return tail;
	while (at != tail && core_pending_is_acked(core_pending_at(pending, at), arrived) &&
	       core_pending_is_common(core_pending_at(pending, at)->pos))
		at++;
	return at;
}

/** Returns the entries before `end` that fit without a wrap in the FIFO and in the CQ ring. */
static inline uint64_t core_pending_run_len(const struct core_pending *pending, struct core_cq *cq,
					    uint64_t end)
{
	uint64_t cnt = end - pending->head,
		 slots = pending->mask + 1 - (pending->head & pending->mask);
	uint64_t room = core_cq_room(cq), places = cq->mask + 1 - (cq->tail & cq->mask);

	cnt = cnt < slots ? cnt : slots;
	room = room < places ? room : places;
	return cnt < room ? cnt : room;
}

/** Completes the entries before `end`, all common, while the CQ ring has room. */
static inline void core_pending_complete(struct core_pending *pending, struct core_cq *cq,
					 uint64_t end)
{
	while (pending->head != end) {
		uint64_t cnt = core_pending_run_len(pending, cq, end);
		const struct core_pending_slot *slot = core_pending_at(pending, pending->head);
		const struct core_pending_slot *slot_end = slot + cnt;
		struct core_cqe *cqe = &cq->ring[cq->tail & cq->mask];

		if (UTIL_UNLIKELY(!cnt))
			return;
		pending->head += cnt;
		cq->tail += cnt;
		do {
			core_cqe_fill(cqe++, slot->context, core_pending_comp_flags(slot->pos), 0,
				      NULL, 0, 0, FI_ADDR_NOTAVAIL);
		} while (++slot != slot_end);
	}
}

/** Drops the arrived entries before `tail`, all quiet. */
static inline void core_pending_drop(struct core_pending *pending, uint64_t tail, uint64_t arrived)
{
	uint64_t at = pending->head;

	if (UTIL_LIKELY(core_pending_is_acked(core_pending_at(pending, tail - 1), arrived)))
		at = tail;
	while (at != tail && core_pending_is_acked(core_pending_at(pending, at), arrived))
		at++;
	pending->quiet_cnt -= at - pending->head;
	pending->head = at;
}

/** Ends the arrived entries before `tail`, of any kinds. */
static inline void core_pending_end_each(struct core_pending *pending, struct core_comp *tx,
					 uint64_t tail, uint64_t pos)
{
	for (; pending->head != tail; pending->head++) {
		const struct core_pending_slot *slot;

		if (UTIL_LIKELY(tx->cq != NULL))
			core_pending_complete(pending, tx->cq,
					      core_pending_common_end(pending, tail, pos));
		slot = core_pending_at(pending, pending->head);
		if (pending->head == tail || !core_pending_is_acked(slot, pos))
			break;
		core_pending_count(pending, slot->pos, -1);
		core_pending_end(tx, slot);
	}
}

void core_pending_on_acked(struct core_chan *chan, uint64_t pos)
{
	struct core_pending *pending = &chan->peer->pending;
	uint64_t tail = core_pending_tail(pending);

	if (pending->quiet_cnt && pending->quiet_cnt == tail - pending->head)
		core_pending_drop(pending, tail, pos);
	else
		core_pending_end_each(pending, &chan->peer->ep->tx, tail, pos);
	if (UTIL_LIKELY(pending->head == tail && pending->slots))
		core_pending_restart(pending);
	else if (pending->slots && !pending->counts)
		core_pending_set_window(pending, tail);
}

/** Returns false for a silent entry towards a peer that has closed in good order. */
static bool core_pending_needs_error(const struct core_pending_slot *slot, int err)
{
	return err != -FI_ESHUTDOWN || !(slot->pos & CORE_PENDING_NO_COMP) ||
	       (slot->pos & CORE_PENDING_COUNT);
}

static void core_pending_fail(struct core_ep *ep, const struct core_pending_slot *slot, int err)
{
	struct fi_cq_err_entry entry = {
		.op_context = slot->context,
		.flags = core_pending_comp_flags(slot->pos),
		.err = -err,
		.prov_errno = -err,
	};

	if (ep->tx.cntr)
		core_cntr_add_err(ep->tx.cntr, 1);
	if (ep->tx.cq)
		core_cq_write_err(ep->tx.cq, &entry, FI_ADDR_NOTAVAIL);
}

/* Logs the failure. Open MPI 4.1's mtl/ofi dereferences the context of every error. */
static void core_pending_log(unsigned cnt, unsigned bare_cnt, int err)
{
	UTIL_WARN(EP_DATA,
		  "%u messages sent to a peer are not known to have arrived (%s): each ends "
		  "with an error completion\n",
		  cnt, fi_strerror(-err));
	if (bare_cnt)
		UTIL_WARN(EP_DATA,
			  "%u of these errors have no context, like those of injected messages: an "
			  "MPI job ends here, with Open MPI 4.1 by SIGSEGV in mtl_ofi\n",
			  bare_cnt);
}

void core_pending_fail_peer(struct core_peer *peer, int err)
{
	struct core_pending *pending = &peer->pending;
	uint64_t tail = core_pending_tail(pending);
	unsigned cnt = 0, bare_cnt = 0;

	for (; pending->head != tail; pending->head++) {
		const struct core_pending_slot *slot = core_pending_at(pending, pending->head);

		if (!core_pending_needs_error(slot, err))
			continue;
		core_pending_fail(peer->ep, slot, err);
		cnt++;
		bare_cnt += !slot->context;
	}
	pending->quiet_cnt = pending->odd_cnt = 0;
	if (cnt && peer->ep->tx.cq)
		core_pending_log(cnt, bare_cnt, err);
}

void core_pending_fini(struct core_pending *pending)
{
	free(pending->slots);
	*pending = (struct core_pending){ 0 };
}
