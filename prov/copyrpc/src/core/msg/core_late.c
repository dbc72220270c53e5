/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends on their way: see core_late.h. */
#include "core/msg/core_late.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/core_peer.h"
#include "util/log.h"
#include "wire/wire_ring.h"

#define CORE_LATE_FIRST 32u

_Static_assert(CORE_LATE_FLAGS == (FI_MSG | FI_TAGGED) && CORE_LATE_SILENT < WIRE_ALIGN,
	       "a kind fits below a position");

static inline uint64_t core_late_comp_flags(uint64_t pos)
{
	return FI_SEND | (pos & CORE_LATE_FLAGS);
}

/** Is it one of those that are told, not counted, and have a context? */
static inline bool core_late_is_common(uint64_t pos)
{
	return !(pos & (CORE_LATE_QUIET | CORE_LATE_COUNT | CORE_LATE_SILENT));
}

/** The number of the next one. */
static inline uint64_t core_late_tail(const struct core_late *late)
{
	return late->lap + (uint64_t)(late->next - late->slots);
}

/** Nothing is in it: the next ones lie together, from the start. */
static inline void core_late_restart(struct core_late *late)
{
	late->head = late->lap;
	late->next = late->slots;
	late->stop = late->slots + late->mask + 1;
}

/** `tail` numbers so far: says where the next one goes, and how many may at once. */
static inline void core_late_open(struct core_late *late, uint64_t tail)
{
	uint64_t size = late->mask + 1, at = tail & late->mask;
	uint64_t room = size - (tail - late->head);

	late->lap = tail - at;
	late->next = late->slots + at;
	late->stop = late->next + (room < size - at ? room : size - at);
}

/** Room for one more, if there is memory. */
static bool core_late_grow(struct core_late *late, uint64_t tail)
{
	uint64_t cnt = late->slots ? 2 * (late->mask + 1) : CORE_LATE_FIRST;
	struct core_late_slot *slots = calloc(cnt, sizeof(*slots));
	uint64_t at;

	if (!slots)
		return false;
	for (at = late->head; at != tail; at++)
		slots[at & (cnt - 1)] = late->slots[at & late->mask];
	free(late->slots);
	late->slots = slots;
	late->mask = cnt - 1;
	return true;
}

/** The end of a send that has arrived. */
static void core_late_end(struct core_comp *tx, const struct core_late_slot *slot)
{
	if (slot->pos & CORE_LATE_COUNT)
		core_cntr_add(tx->cntr, 1);
	if (!(slot->pos & CORE_LATE_QUIET))
		core_cq_write(tx->cq, slot->context, core_late_comp_flags(slot->pos), 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

static unsigned core_late_kind(const struct core_ep *ep, uint64_t flags, bool tagged, bool silent)
{
	return (unsigned)(tagged ? FI_TAGGED : FI_MSG) | (silent ? CORE_LATE_SILENT : 0) |
	       (ep->tx.cntr ? CORE_LATE_COUNT : 0) |
	       (core_tx_is_told(ep, flags, silent) ? 0 : CORE_LATE_QUIET);
}

void core_late_sent(struct core_peer *peer, void *context, uint64_t flags, bool tagged, bool silent)
{
	unsigned kind = core_late_kind(peer->ep, flags, tagged, silent);
	struct core_late_slot slot = { .pos = *peer->chan->taken | kind, .context = context };
	struct core_late *late = &peer->late;
	uint64_t tail = core_late_tail(late);

	if ((!late->slots || tail - late->head > late->mask) && !core_late_grow(late, tail)) {
		/* Without memory to remember it by, it ends as if less had been promised. */
		core_late_end(&peer->ep->tx, &slot);
		return;
	}
	core_late_open(late, tail);
	late->odd_cnt += !core_late_is_common(kind);
	*late->next++ = slot;
	if ((kind & CORE_LATE_QUIET) && !(kind & CORE_LATE_COUNT))
		return;
	peer->chan->awaited = *peer->chan->taken;
	if (silent || (flags & FI_INJECT)) /* it had CORE_SEND_NOW */
		peer->chan->ops->await(peer->chan);
}

static inline struct core_late_slot *core_late_at(const struct core_late *late, uint64_t number)
{
	return &late->slots[number & late->mask];
}

static inline bool core_late_has_arrived(const struct core_late_slot *slot, uint64_t arrived)
{
	return (int64_t)(slot->pos - arrived) < (int64_t)WIRE_ALIGN;
}

/** From head on: where the common ones end that have arrived. There is one at head. */
static inline uint64_t core_late_common_end(const struct core_late *late, uint64_t arrived)
{
	uint64_t at = late->head, tail = core_late_tail(late);

	if (UTIL_LIKELY(!late->odd_cnt && core_late_has_arrived(late->next - 1, arrived)))
		return tail;
	while (at != tail && core_late_has_arrived(core_late_at(late, at), arrived) &&
	       core_late_is_common(core_late_at(late, at)->pos))
		at++;
	return at;
}

/** How many of those before `end` lie together, in the FIFO and in the queue: 0, it has no room at once. */
static inline uint64_t core_late_stretch(const struct core_late *late, struct core_cq *cq,
					 uint64_t end)
{
	uint64_t cnt = end - late->head, slots = late->mask + 1 - (late->head & late->mask);
	uint64_t room = core_cq_room(cq), places = cq->mask + 1 - (cq->tail & cq->mask);

	cnt = cnt < slots ? cnt : slots;
	room = room < places ? room : places;
	return cnt < room ? cnt : room;
}

/** Those before `end`, which are common, as long as there is room in the queue at once. */
static inline void core_late_tell(struct core_late *late, struct core_cq *cq, uint64_t end)
{
	while (late->head != end) {
		uint64_t cnt = core_late_stretch(late, cq, end);
		const struct core_late_slot *slot = core_late_at(late, late->head);
		const struct core_late_slot *slot_end = slot + cnt;
		struct core_cqe *cqe = &cq->ring[cq->tail & cq->mask];

		if (UTIL_UNLIKELY(!cnt))
			return;
		late->head += cnt;
		cq->tail += cnt;
		do {
			core_cqe_fill(cqe++, slot->context, core_late_comp_flags(slot->pos), 0,
				      NULL, 0, 0, FI_ADDR_NOTAVAIL);
		} while (++slot != slot_end);
	}
}

void core_late_on_arrived(struct core_chan *chan, uint64_t pos)
{
	struct core_late *late = &chan->peer->late;
	struct core_comp *tx = &chan->peer->ep->tx;
	uint64_t tail = core_late_tail(late);

	for (; late->head != tail; late->head++) {
		const struct core_late_slot *slot;

		if (UTIL_LIKELY(tx->cq != NULL))
			core_late_tell(late, tx->cq, core_late_common_end(late, pos));
		slot = core_late_at(late, late->head);
		if (late->head == tail || !core_late_has_arrived(slot, pos))
			break;
		late->odd_cnt -= !core_late_is_common(slot->pos);
		core_late_end(tx, slot);
	}
	if (UTIL_LIKELY(late->head == tail && late->slots))
		core_late_restart(late);
	else if (late->slots)
		core_late_open(late, tail);
}

/** Nobody misses what a peer that left in good order did not take. */
static bool core_late_is_missed(const struct core_late_slot *slot, int err)
{
	return err != -FI_ESHUTDOWN || !(slot->pos & CORE_LATE_QUIET) ||
	       (slot->pos & CORE_LATE_COUNT);
}

static void core_late_fail(struct core_ep *ep, const struct core_late_slot *slot, int err)
{
	struct fi_cq_err_entry entry = {
		.op_context = slot->pos & CORE_LATE_SILENT ? NULL : slot->context,
		.flags = core_late_comp_flags(slot->pos),
		.err = -err,
		.prov_errno = -err,
	};

	if (ep->tx.cntr)
		core_cntr_add_err(ep->tx.cntr, 1);
	if (ep->tx.cq)
		core_cq_write_err(ep->tx.cq, &entry, FI_ADDR_NOTAVAIL);
}

/* Open MPI 4.1's mtl/ofi takes the context of every error for a request of its own. */
static void core_late_log(unsigned cnt, unsigned silent_cnt, int err)
{
	UTIL_WARN(EP_DATA,
		  "%u messages sent to a peer are not known to have arrived (%s): each ends "
		  "with an error completion\n",
		  cnt, fi_strerror(-err));
	if (silent_cnt)
		UTIL_WARN(EP_DATA,
			  "%u of them were injected, and their errors have no context: an MPI job "
			  "ends here, with Open MPI 4.1 by SIGSEGV in mtl_ofi\n",
			  silent_cnt);
}

void core_late_fail_peer(struct core_peer *peer, int err)
{
	struct core_late *late = &peer->late;
	uint64_t tail = core_late_tail(late);
	unsigned cnt = 0, silent_cnt = 0;

	for (; late->head != tail; late->head++) {
		const struct core_late_slot *slot = core_late_at(late, late->head);

		if (!core_late_is_missed(slot, err))
			continue;
		core_late_fail(peer->ep, slot, err);
		cnt++;
		silent_cnt += (slot->pos & CORE_LATE_SILENT) != 0;
	}
	late->odd_cnt = 0;
	if (cnt && peer->ep->tx.cq)
		core_late_log(cnt, silent_cnt, err);
}

void core_late_fini(struct core_late *late)
{
	free(late->slots);
	*late = (struct core_late){ 0 };
}
