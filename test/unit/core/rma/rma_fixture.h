/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two nodes over the fake engine, each with a region between two guards, and accesses of one node
 * to the region of the other.
 */
#ifndef UNIT_CORE_RMA_FIXTURE_H
#define UNIT_CORE_RMA_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_mr.h"
#include "core/rma/core_rma.h"
#include "core/rma/core_rma_lease.h"
#include "support/core_pair.h"
#include "support/fake_direct.h"

#define RMA_BOTH     (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define RMA_MEM_LEN  (64u << 10)
#define RMA_KEY      77
#define RMA_GUARD    64
#define RMA_NOT_SENT 0xA5
#define RMA_BULK     (CORE_CHAN_GET | CORE_CHAN_REVOKE)
#define RMA_DIRECT   0x80000000u /* of rma_start: direct accesses work */

extern struct node rma_nodes[2];
/* Memory of each node; the region is between the guards. */
extern uint8_t rma_memory[2][RMA_GUARD + RMA_MEM_LEN + RMA_GUARD];
extern struct core_mr rma_regions[2];
extern uint8_t rma_local[RMA_MEM_LEN];

/** Opens both nodes with these limits and capabilities, and both regions for all access. */
void rma_start(size_t eager_max, unsigned room, unsigned credit, uint32_t caps);
void rma_stop(void);
/** Opens the removed region of node i again, at address `base`. */
void rma_region_open(unsigned i, uint64_t access, uint64_t base);
/** Closes the region of node i as fi_close does: revokes its leases and deregisters it. */
void rma_region_close(unsigned i);

int rma_access(unsigned from, unsigned to, bool write, void *buf, size_t len, uint64_t addr,
	       uint64_t key, uint64_t flags, void *context);
/** Access node 1's region from node 0. */
int rma_put(void *buf, size_t len, uint64_t addr, uint64_t flags, void *context);
int rma_get(void *buf, size_t len, uint64_t addr, void *context);

/** Takes the next completion of a node. Returns 0, -FI_E*, or 1 if there is none. */
int rma_ended(unsigned node, struct core_cqe *e);
/** Makes progress long enough for accesses of many calls. */
void rma_settle(void);
/** Makes progress, then expects exactly one completion at a node. */
void rma_expect_end(unsigned node, int err, void *context, uint64_t flags);
/** Returns true if none of these bytes of rma_memory[i] was written. */
bool rma_untouched(unsigned i, size_t from, size_t to);

#endif
