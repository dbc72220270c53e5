/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions that peers may access, and their table by key. Called by ofi/domain and rma.
 *
 * A region is a list of buffers that peers access as one: bytes [base, base + len) under a key.
 * base is the virtual address of the first buffer, or 0 where peers use offsets. Regions that grant
 * access to peers are in the domain's table, one per key. core_mr_reach_iov is the only way from a
 * peer's request to memory. It checks key, rights and bounds.
 *
 * Its result is valid until the caller returns to progress: a region may be closed then. A longer
 * transfer (a device moves the bytes) counts in `users`, and a close of the region waits for it.
 *
 * The registrar embeds core_mr and frees it after core_mr_remove. Where core domains share a table,
 * a change and a wait for users take the locks of all of them, a lookup takes one. `users` and
 * `exposures` have a lock of their own.
 */
#ifndef CORE_CORE_MR_H
#define CORE_CORE_MR_H

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
	/* access of peers: FI_REMOTE_READ, FI_REMOTE_WRITE; other bits are ignored */
	uint64_t access;
	uint64_t base;                  /* address of the first byte for peers */
	uint64_t len;                   /* sum of iov */
	struct core_cntr *remote_read;  /* counts ended accesses of peers, or NULL */
	struct core_cntr *remote_write; /* counts ended accesses of peers, or NULL */
	uint32_t users;                 /* transfers in progress by device or kernel */
	struct util_list exposures;     /* core_rma_deferred.mr_link */
	bool listed;                    /* in the table */
	struct core_mr *next;           /* in the table's slot */
	size_t iov_cnt;
	struct iovec iov[CORE_MR_IOV_MAX];
};

#define CORE_MR_KEYS 32u /* drawn with one system call */

/** Regions by key: chains in a power-of-two number of slots, as many as there are regions. */
struct core_mr_table {
	struct core_mr **slots;
	uint64_t slot_cnt;
	uint64_t cnt;
	uint64_t keys[CORE_MR_KEYS]; /* random numbers for the next keys chosen here */
	uint32_t key_cnt;
	pthread_mutex_t use_lock; /* guards users and exposures of all regions; innermost lock */
};

void core_mr_table_init(struct core_mr_table *table);
/** Frees the table, which is empty. */
void core_mr_table_fini(struct core_mr_table *table);

/**
 * Adds a region to the table if it grants access to peers. The caller set all but next, listed and
 * users. With prov_key the key is chosen here: 64 random bits, so that a peer cannot guess it.
 * Returns 0, -FI_ENOKEY if another region has the key, -FI_ENOMEM, or -FI_EIO if the system has no
 * random numbers.
 */
int core_mr_add(struct core_dom *dom, struct core_mr *mr, bool prov_key);
/** Removes a region from the table. Its `users` may still be in progress. */
void core_mr_remove(struct core_dom *dom, struct core_mr *mr);
/**
 * Begins or ends a transfer: counts it in `users`, and links `exposure` in `exposures` (NULL: does
 * not).
 */
void core_mr_use(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *exposure);
void core_mr_unuse(struct core_dom *dom, struct core_mr *mr, bool counts,
		   struct util_list *exposure);

/**
 * Returns in `iov` the memory of [addr, addr + len) of the region `key`, at most CORE_MR_IOV_MAX
 * buffers, if the region grants all of `access` (FI_REMOTE_READ, FI_REMOTE_WRITE). Returns 0,
 * -FI_EKEYREJECTED (no such key), -FI_EACCES (rights) or -FI_EINVAL (bounds). *mr stays the
 * registrar's.
 */
int core_mr_reach_iov(struct core_dom *dom, uint64_t key, uint64_t addr, size_t len,
		      uint64_t access, struct iovec iov[CORE_MR_IOV_MAX], size_t *iov_cnt,
		      struct core_mr **mr);

#endif
