/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which link does this QP number mean?
 *
 * An array of arrays over the 24 bits of a QP number: two loads, no hash, no collision. Leaves are
 * made on first use and kept until fini. A number that is not in it, or is no longer, is NULL: a
 * completion of a link that has left.
 *
 * Not locked: who polls owns it, and holds attached links in it only.
 * Shown by test/unit/dev/ib/test_ib_qpns.c.
 */
#ifndef IB_IB_QPNS_H
#define IB_IB_QPNS_H

#include <stddef.h>
#include <stdint.h>

#define IB_QPNS_LEAF 4096u

struct ib_qpns {
	void **leaf[IB_QPNS_LEAF];
};

/** Zero-filled is empty too. */
void ib_qpns_init(struct ib_qpns *map);
void ib_qpns_fini(struct ib_qpns *map);

/** 0 or -FI_ENOMEM. qpn < 2^24 */
int ib_qpns_set(struct ib_qpns *map, uint32_t qpn, void *link);
void ib_qpns_clear(struct ib_qpns *map, uint32_t qpn);

/** The first entry at or behind *qpn, which becomes its number; NULL: there is none. Slow. */
void *ib_qpns_next(const struct ib_qpns *map, uint32_t *qpn);

static inline void *ib_qpns_get(const struct ib_qpns *map, uint32_t qpn)
{
	void **leaf = map->leaf[(qpn / IB_QPNS_LEAF) % IB_QPNS_LEAF];

	return leaf ? leaf[qpn % IB_QPNS_LEAF] : NULL;
}

#endif
