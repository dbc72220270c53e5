/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Record of the memory that this process has registered with its device, and the access flags.
 *
 * reg_seen.c stands between the program, or a module that it loads, and libibverbs: each
 * registration is recorded and passed on. Effects in an adapter cannot be seen here: neither the
 * model nor our kernels reorder writes. Any thread.
 */
#ifndef INTEG_REG_SEEN_H
#define INTEG_REG_SEEN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

struct reg_seen {
	struct ibv_mr *mr; /* NULL: deregistered */
	struct ibv_pd *pd;
	const char *addr;
	size_t len;
	unsigned access; /* enum ibv_access_flags, as requested */
};

/**
 * Registrations so far, oldest first. REG_SEEN_MAX are recorded; then deregistered ones are
 * removed, and if there are none the program ends.
 */
#define REG_SEEN_MAX 8192u
size_t reg_seen_cnt(void);
struct reg_seen reg_seen_at(size_t idx);

/** Returns the access flags of the memory at `addr`, or 0 if it is not registered. */
unsigned reg_seen_access(const void *addr);

#endif
