/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does memory become known to the device?
 *
 * Rings and tables: ib_mem, mapped by us, zeroed, in huge pages where the system has any to give,
 * and kept out of children (a child that writes would otherwise move our page away from the
 * device). User buffers: ib_mr_reg, for one transfer; nothing is cached, so that no memory hook is
 * needed to know when a cache is stale.
 *
 * Shown by test/unit/dev/ib/test_ib_mem.c, and on a kernel device by test/rxe.
 */
#ifndef IB_IB_MEM_H
#define IB_IB_MEM_H

#include <stddef.h>

#include "dev/dev.h"
#include "dev/ib/ib_dev.h"

struct ib_mem {
	void *addr; /* page aligned */
	size_t len; /* what was asked for */
	size_t map_len;
	struct ibv_mr *mr; /* of [0, len), NULL until registered */
};

/** Maps `len` zero bytes, unregistered: 0 or -FI_ENOMEM. */
int ib_mem_map(struct ib_mem *mem, size_t len);

/** The same, all of it registered for `access` (enum ibv_access_flags): 0, -FI_ENOMEM, -FI_E*. */
int ib_mem_init(struct ib_mem *mem, struct ib_dev *dev, size_t len, int access);

/** Deregisters and unmaps; nothing on a zeroed struct. */
void ib_mem_fini(struct ib_mem *mem);

/** Registers; a failure is logged with its remedy. */
int ib_mr_reg(struct ib_dev *dev, void *addr, size_t len, int access, struct ibv_mr **mr);

/** NULL is fine. */
void ib_mr_dereg(struct ibv_mr *mr);

/** The user's memory. */
struct ib_user {
	struct dev_mem base;
	uint32_t lkey;
	struct ibv_mr *mr;
};

/** What the device reads it by. */
static inline uint32_t ib_user_lkey(const struct dev_mem *mem)
{
	return ((const struct ib_user *)mem)->lkey;
}

/** dev_ops.mem_reg and mem_dereg of every device here; access is a set of enum dev_mem_access. */
int ib_user_reg(struct ib_dev *dev, const void *addr, size_t len, unsigned access,
		struct dev_mem **mem);
void ib_user_dereg(struct dev_mem *mem);

#endif
