/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Map from QP number to attached link. Called by the polls.
 *
 * An array of arrays over the 24 bits of a QP number: two loads, no hash, no collision. Leaves are
 * made on first use and kept until fini. An unknown number is NULL: a completion of a detached
 * link. As many numbers from IB_QPNS_OWN on are for links without a queue pair of their own.
 *
 * Not locked: belongs to the polling thread.
 */
#ifndef DEV_IB_IB_QPNS_H
#define DEV_IB_IB_QPNS_H

#include <stddef.h>
#include <stdint.h>

#define IB_QPNS_LEAF   4096u
#define IB_QPNS_LEAVES 8192u
#define IB_QPNS_OWN    (IB_QPNS_LEAF * IB_QPNS_LEAF) /* first number that no queue pair has */

struct ib_qpns {
	void **leaf[IB_QPNS_LEAVES];
};

/** Starts an empty map. Zero-filled is empty, too. */
void ib_qpns_init(struct ib_qpns *map);
void ib_qpns_fini(struct ib_qpns *map);

/** Enters a link. qpn < 2^25. Returns 0 or -FI_ENOMEM. */
int ib_qpns_set(struct ib_qpns *map, uint32_t qpn, void *link);
void ib_qpns_clear(struct ib_qpns *map, uint32_t qpn);

/** Returns the first entry at or after *qpn and sets *qpn to its number, or NULL. Slow. */
void *ib_qpns_next(const struct ib_qpns *map, uint32_t *qpn);

static inline void *ib_qpns_get(const struct ib_qpns *map, uint32_t qpn)
{
	void **leaf = map->leaf[(qpn / IB_QPNS_LEAF) % IB_QPNS_LEAVES];

	return leaf ? leaf[qpn % IB_QPNS_LEAF] : NULL;
}

#endif
