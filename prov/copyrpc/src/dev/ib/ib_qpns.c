/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rare operations of the QP number map (ib_qpns.h). */
#include "dev/ib/ib_qpns.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

void ib_qpns_init(struct ib_qpns *map)
{
	memset(map, 0, sizeof(*map));
}

void ib_qpns_fini(struct ib_qpns *map)
{
	for (uint32_t i = 0; i < IB_QPNS_LEAVES; i++)
		free(map->leaf[i]);
	ib_qpns_init(map);
}

int ib_qpns_set(struct ib_qpns *map, uint32_t qpn, void *link)
{
	void ***leaf = &map->leaf[qpn / IB_QPNS_LEAF];

	assert(qpn / IB_QPNS_LEAF < IB_QPNS_LEAVES);
	if (!*leaf)
		*leaf = calloc(IB_QPNS_LEAF, sizeof(**leaf));
	if (!*leaf)
		return -FI_ENOMEM;
	(*leaf)[qpn % IB_QPNS_LEAF] = link;
	return 0;
}

void ib_qpns_clear(struct ib_qpns *map, uint32_t qpn)
{
	if (ib_qpns_get(map, qpn))
		map->leaf[qpn / IB_QPNS_LEAF][qpn % IB_QPNS_LEAF] = NULL;
}

void *ib_qpns_next(const struct ib_qpns *map, uint32_t *qpn)
{
	uint32_t at = *qpn;

	while (at < IB_QPNS_LEAVES * IB_QPNS_LEAF) {
		void *link = ib_qpns_get(map, at);

		if (link) {
			*qpn = at;
			return link;
		}
		at = map->leaf[at / IB_QPNS_LEAF] ? at + 1 : (at / IB_QPNS_LEAF + 1) * IB_QPNS_LEAF;
	}
	return NULL;
}
