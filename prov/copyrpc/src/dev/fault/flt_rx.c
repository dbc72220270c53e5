/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive side of the fault device (flt_dgram.h). */
#include <string.h>

#include "dev/fault/flt_dgram.h"

/** Returns the next random number (splitmix64): reproducible for a seed. */
static uint64_t flt_random(struct flt_dgram *flt)
{
	uint64_t z = flt->rng += 0x9E3779B97F4A7C15ull;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}

static bool flt_happens(struct flt_dgram *flt, uint32_t chance)
{
	return chance && flt_random(flt) % FLT_MILLION < chance;
}

static struct flt_cell *flt_first(struct util_list *list)
{
	return util_list_is_empty(list) ? NULL
					: UTIL_CONTAINER_OF(list->next, struct flt_cell, link);
}

/** Copies `in` into a cell. Returns NULL if none is free. */
static struct flt_cell *flt_copy(struct flt_dgram *flt, const struct dev_dgram_in *in)
{
	struct util_list *first = util_list_pop(&flt->free);
	struct flt_cell *cell;
	uint32_t i;

	if (!first || in->len > flt->cell_len) {
		if (first)
			util_list_push_front(&flt->free, first);
		flt->cnt.no_room++;
		return NULL;
	}
	cell = UTIL_CONTAINER_OF(first, struct flt_cell, link);
	i = (uint32_t)(cell - flt->cells);
	cell->in = *in;
	cell->in.data = flt->bytes + i * flt->cell_len;
	cell->in.slot = i;
	memcpy(flt->bytes + i * flt->cell_len, in->data, in->len);
	return cell;
}

/** Defers the datagram by probability. Returns true if it is in `deferred`. */
static bool flt_defer(struct flt_dgram *flt, struct flt_cell *cell, uint64_t now_ns)
{
	if (flt->deferred_cnt == FLT_DEFER_MAX || !flt_happens(flt, flt->cfg.reorder))
		return false;
	cell->due_ns = now_ns + FLT_DEFER_NS;
	cell->due_cnt = flt->passed + 1 + flt_random(flt) % FLT_PASS_MAX;
	util_list_push_back(&flt->deferred, &cell->link);
	flt->deferred_cnt++;
	flt->cnt.deferred++;
	return true;
}

static void flt_pass(struct flt_dgram *flt, struct flt_cell *cell)
{
	util_list_push_back(&flt->ready, &cell->link);
	flt->passed++;
}

/** Delays, defers or passes a datagram. */
static void flt_keep(struct flt_dgram *flt, const struct dev_dgram_in *in, uint64_t now_ns)
{
	struct flt_cell *cell = flt_copy(flt, in);

	if (!cell)
		return;
	if (flt->cfg.delay_ns) {
		cell->due_ns = now_ns + flt->cfg.delay_ns;
		util_list_push_back(&flt->delayed, &cell->link);
		flt->cnt.delayed++;
	} else if (!flt_defer(flt, cell, now_ns)) {
		flt_pass(flt, cell);
	}
}

/** Decides on the faults of one datagram, then releases it. */
static void flt_take(struct flt_dgram *flt, const struct dev_dgram_in *in, uint64_t now_ns)
{
	flt->cnt.received++;
	if (flt_happens(flt, flt->cfg.drop)) {
		flt->cnt.dropped++;
	} else if (flt_happens(flt, flt->cfg.corrupt)) {
		flt->cnt.corrupt++;
	} else {
		flt_keep(flt, in, now_ns);
		if (flt_happens(flt, flt->cfg.dup)) {
			flt->cnt.duplicated++;
			flt_keep(flt, in, now_ns);
		}
	}
	flt->below->ops->release(flt->below, in->slot);
}

/** Passes on datagrams when their delay is over. */
static void flt_pass_delayed(struct flt_dgram *flt, uint64_t now_ns)
{
	struct flt_cell *cell;

	while ((cell = flt_first(&flt->delayed)) && cell->due_ns <= now_ns) {
		util_list_remove(&cell->link);
		if (!flt_defer(flt, cell, now_ns))
			flt_pass(flt, cell);
	}
}

/** Passes on deferred datagrams that enough others have passed, or that waited long enough. */
static void flt_pass_deferred(struct flt_dgram *flt, uint64_t now_ns)
{
	struct util_list *at, *next;
	struct flt_cell *cell;

	for (at = flt->deferred.next; at != &flt->deferred; at = next) {
		next = at->next;
		cell = UTIL_CONTAINER_OF(at, struct flt_cell, link);
		if (cell->due_ns > now_ns && cell->due_cnt > flt->passed)
			continue;
		util_list_remove(at);
		flt->deferred_cnt--;
		flt_pass(flt, cell);
	}
}

static unsigned flt_return(struct flt_dgram *flt, struct dev_dgram_in *in, unsigned cnt)
{
	struct flt_cell *cell;
	unsigned n;

	for (n = 0; n < cnt && (cell = flt_first(&flt->ready)); n++) {
		util_list_remove(&cell->link);
		in[n] = cell->in;
	}
	return n;
}

uint64_t flt_next_ns(const struct flt_dgram *flt)
{
	const struct util_list *at;
	const struct flt_cell *cell;
	uint64_t next = UINT64_MAX;

	if (!util_list_is_empty(&flt->ready))
		return 0;
	if (!util_list_is_empty(&flt->delayed)) {
		cell = UTIL_CONTAINER_OF(flt->delayed.next, struct flt_cell, link);
		next = cell->due_ns;
	}
	for (at = flt->deferred.next; at != &flt->deferred; at = at->next) {
		cell = UTIL_CONTAINER_OF(at, struct flt_cell, link);
		if (cell->due_ns < next)
			next = cell->due_ns;
	}
	return next;
}

int flt_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt)
{
	struct flt_dgram *flt = (struct flt_dgram *)dg;
	struct dev_dgram_in got[FLT_BURST];
	uint64_t now_ns = flt->now_ns();
	unsigned n;
	int ret, i;

	if (util_list_is_empty(&flt->ready)) {
		ret = flt->below->ops->poll(flt->below, got, FLT_BURST);
		dg->tx_done = flt->below->tx_done;
		if (ret < 0)
			return ret;
		for (i = 0; i < ret; i++) {
			flt_take(flt, &got[i], now_ns);
			flt_pass_deferred(flt, now_ns);
		}
	}
	flt_pass_delayed(flt, now_ns);
	flt_pass_deferred(flt, now_ns);
	n = flt_return(flt, in, cnt);
	dg->rx_retained += n;
	return (int)n;
}

void flt_release(struct dev_dgram *dg, uint32_t slot)
{
	struct flt_dgram *flt = (struct flt_dgram *)dg;

	util_list_push_front(&flt->free, &flt->cells[slot].link);
	dg->rx_retained--;
}
