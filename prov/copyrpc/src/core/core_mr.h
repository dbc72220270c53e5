/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which memory of ours may a peer reach, and under which name?
 *
 * A region is a run of buffers that peers see as one: bytes [base, base + len) under a key. base is
 * the virtual address of the first buffer, or 0 where peers count from the region's beginning.
 * Regions that grant something to peers are in the domain's table, one per key; core_mr_reach
 * is the only way from what a peer asked to memory, and checks key, rights and bounds.
 *
 * What it gives is good until the caller returns to progress: a region may be closed then. A
 * transfer that goes on (a device moves the bytes) counts itself in `users` and is waited for
 * by who closes the region.
 *
 * Owner: the registrar embeds core_mr and frees it after core_mr_remove. Where core domains share a
 * table, who changes it or waits for users holds the locks of all of them, who reaches for memory
 * that of his own; users and exposures have a lock of their own besides. Shown by
 * test/unit/core/test_core_mr.c.
 */
#ifndef CORE_MR_H
#define CORE_MR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/list.h"

struct core_cntr;
struct core_dom;

#define CORE_MR_IOV_MAX 4

struct core_mr {
	uint64_t key;
	uint64_t
		access; /* FI_REMOTE_READ, FI_REMOTE_WRITE: what peers may do; others mean nothing */
	uint64_t base;  /* peers' name of the first byte */
	uint64_t len;   /* sum of iov */
	struct core_cntr *remote_read;  /* counts accesses of peers that have ended, or NULL */
	struct core_cntr *remote_write; /* the same */
	uint32_t users;                 /* transfers under way that device or kernel carry out */
	struct util_list exposures;     /* core_rma_deferred.mr_link */
	bool listed;                    /* in the table */
	struct core_mr *next;           /* in the table's slot */
	size_t iov_cnt;
	struct iovec iov[CORE_MR_IOV_MAX];
};

/** Regions by key: chains in a power-of-two number of slots, as many as there are regions. */
struct core_mr_table {
	struct core_mr **slots;
	uint64_t slot_cnt;
	uint64_t cnt;
	uint64_t next_key;
	pthread_mutex_t
		use_lock; /* guards users and exposures of all regions; the innermost lock */
};

void core_mr_table_init(struct core_mr_table *table);
/** No region is left in it. */
void core_mr_table_fini(struct core_mr_table *table);

/**
 * Enters a region (all but next, listed, users are set) if peers may do anything with it. With prov_key
 * the key is chosen here. 0, -FI_ENOKEY (another region has it), -FI_ENOMEM.
 */
int core_mr_add(struct core_dom *dom, struct core_mr *mr, bool prov_key);
/** No peer finds it any more. Its `users` may still be under way. */
void core_mr_remove(struct core_dom *dom, struct core_mr *mr);
/** A transfer begins, or ends: counted in `users`, and in `exposures` with this link (NULL: not). */
void core_mr_use(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *exposure);
void core_mr_unuse(struct core_dom *dom, struct core_mr *mr, bool counts,
		   struct util_list *exposure);

/**
 * [addr, addr + len) of the region `key`, as a peer asked, if it grants all of `access`
 * (FI_REMOTE_READ, FI_REMOTE_WRITE) and *ptr, one stretch of memory, if the buffers allow.
 * 0, -FI_EKEYREJECTED (no such key), -FI_EACCES (rights), -FI_EINVAL (bounds, or it is not one
 * stretch); nothing is written then. *mr stays the registrar's.
 */
int core_mr_reach(struct core_dom *dom, uint64_t key, uint64_t addr, size_t len, uint64_t access,
		  void **ptr, struct core_mr **mr);

/** The same, as up to CORE_MR_IOV_MAX stretches. */
int core_mr_reach_iov(struct core_dom *dom, uint64_t key, uint64_t addr, size_t len,
		      uint64_t access, struct iovec iov[CORE_MR_IOV_MAX], size_t *iov_cnt,
		      struct core_mr **mr);

#endif
