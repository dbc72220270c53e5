/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which memory was registered?
 *
 * Book-keeping: nothing needs registration here, and nothing is pinned. A region has an access
 * mask, buffers and a key; keys of regions that a peer may access are unique in the domain (a tree, under
 * its own mutex). The user chooses the key unless the domain was opened with FI_MR_BASIC.
 *
 * Shown by test/unit/ofi/test_cpr_mr.c.
 */
#ifndef CPR_MR_H
#define CPR_MR_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdint.h>

struct cpr_mr_table {
	pthread_mutex_t lock;
	void *root; /* tsearch(3) tree of struct cpr_mr by key */
	uint64_t next_key;
};

extern struct fi_ops_mr cpr_mr_ops;

void cpr_mr_table_init(struct cpr_mr_table *table);
void cpr_mr_table_fini(struct cpr_mr_table *table);

/** fi_mr_map_raw, fi_mr_unmap_key: a raw key is the key's eight bytes. */
int cpr_mr_map_raw(const struct fi_mr_map_raw *map);

#endif
