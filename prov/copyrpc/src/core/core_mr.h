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
 * A region whose memory stays mapped (`fixed`) may be registered with devices, once for each device
 * and set of rights, when it is first needed. Peers with a lease (rma/core_rma_lease.h) then access
 * it without a request. core_mr_dereg ends that; the registrar revokes the leases before.
 *
 * The registrar embeds core_mr and frees it after core_mr_remove. Where core domains share a table,
 * a change and a wait for users take the locks of all of them, a lookup takes one. `users` and
 * `deferred` have a lock of their own.
 */
#ifndef CORE_CORE_MR_H
#define CORE_CORE_MR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_reg.h"
#include "util/idmap.h"
#include "util/list.h"

struct core_chan;
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
	uint32_t renewals;              /* in progress: peers get no lease meanwhile */
	uint32_t users;                 /* transfers in progress by device or kernel */
	struct util_list deferred;      /* core_rma_deferred.mr_link: gets and exposures */
	struct util_list lessees;       /* core_rma_lessee.mr_link: peers with a lease */
	struct core_reg *regs;          /* registrations with devices; grows at its front */
	struct core_mr_table *table;    /* set by core_mr_add */
	bool fixed;                     /* the memory stays mapped: devices may access it */
	bool unfit;                     /* a device refused to register it */
	void *desc;                     /* descriptor for local buffers, set by core_mr_add */
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
	struct util_idmap descs;     /* descriptors, less one -> core_mr */
	uint64_t keys[CORE_MR_KEYS]; /* random numbers for the next keys chosen here */
	uint32_t key_cnt;
	/* guards users, deferred, lessees, and growth of regs; innermost lock */
	pthread_mutex_t use_lock;
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
/** Begins or ends a transfer: links it in `deferred`, and may count it in `users`. */
void core_mr_use(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *link);
/** Links a peer that has a lease in `lessees`. core_mr_unuse unlinks it. */
void core_mr_add_lessee(struct core_dom *dom, struct core_mr *mr, struct util_list *lessee);
void core_mr_unuse(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *link);

/** Returns the region of a key, or NULL. Valid until the caller returns to progress. */
struct core_mr *core_mr_find(const struct core_mr_table *table, uint64_t key);

/** Returns the region of a descriptor, or NULL: a user may pass anything. */
static inline struct core_mr *core_mr_of_desc(const struct core_mr_table *table, void *desc)
{
	uintptr_t id = (uintptr_t)desc - 1;

	return id <= UINT32_MAX ? util_idmap_lookup(&table->descs, (uint32_t)id) : NULL;
}

/**
 * Returns the registration of a region with the device of a channel for `access` (core_reg.access),
 * made if need be. NULL: the device cannot access this region.
 */
struct core_reg *core_mr_reg(struct core_mr *mr, struct core_chan *chan, unsigned access);
/** Returns true while transfers or exposures use the region, or peers have a lease. */
bool core_mr_is_busy(const struct core_mr *mr);
/** Ends all registrations of a region. Called with the locks of all domains. */
void core_mr_dereg(struct core_mr *mr);

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
