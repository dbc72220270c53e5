/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory for the device: allocation and registration. Called by the links, ib_ud and
 * dev_ops.mem_reg.
 *
 * ib_mem holds rings and tables: mapped zeroed, in huge pages where the system has free ones, and
 * kept out of child processes (a child that writes would move the parent's page away from the
 * device). User buffers are registered by ib_mr_reg for one transfer. Registrations are not cached,
 * so no memory hooks are needed.
 *
 * Tests: test/unit/dev/ib/test_ib_mem.c, on a kernel device test/rxe.
 */
#ifndef DEV_IB_IB_MEM_H
#define DEV_IB_IB_MEM_H

#include <stddef.h>

#include "dev/dev.h"
#include "dev/ib/ib_dev.h"

struct ib_mem {
	void *addr;        /* page aligned */
	size_t len;        /* requested length */
	size_t map_len;    /* 0: the memory is mapped by another one */
	struct ibv_mr *mr; /* covers [0, len); NULL until registered */
};

/** Maps `len` zero bytes, unregistered. Returns 0 or -FI_ENOMEM. */
int ib_mem_map(struct ib_mem *mem, size_t len);

/** Maps and registers `len` bytes for `access` (enum ibv_access_flags). Returns 0 or an error. */
int ib_mem_init(struct ib_mem *mem, struct ib_dev *dev, size_t len, int access);

/**
 * Registers the memory of `of`, which unmaps it: after this one is finished, or never, if it passes
 * it on. Returns 0 or an error.
 */
int ib_mem_share(struct ib_mem *mem, struct ib_dev *dev, const struct ib_mem *of, int access);

/** Lets `mem`, which shares the memory of `of`, unmap it. */
void ib_mem_pass(struct ib_mem *mem, struct ib_mem *of);

/** Deregisters and unmaps. Does nothing on a zeroed struct. */
void ib_mem_fini(struct ib_mem *mem);

/** Registers memory. Returns 0 or an error, logged with its remedy. */
int ib_mr_reg(struct ib_dev *dev, void *addr, size_t len, int access, struct ibv_mr **mr);

/** Deregisters memory, or does nothing for NULL. */
void ib_mr_dereg(struct ibv_mr *mr);

/** Registered memory of the user. */
struct ib_user {
	struct dev_mem base;
	uint32_t lkey;
	struct ibv_mr *mr;
};

/** Returns the lkey for the local device. */
static inline uint32_t ib_user_lkey(const struct dev_mem *mem)
{
	return ((const struct ib_user *)mem)->lkey;
}

/** Implement dev_ops.mem_reg and mem_dereg. access is a set of enum dev_mem_access. */
int ib_user_reg(struct ib_dev *dev, const void *addr, size_t len, unsigned access,
		struct dev_mem **mem);
void ib_user_dereg(struct dev_mem *mem);

#endif
