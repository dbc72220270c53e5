/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which memory has this process registered with its device, and for what?
 *
 * reg_seen.c stands between the program, or a module that it loads, and libibverbs: whatever is registered is
 * noted and passed on. What an adapter does otherwise for it cannot be seen here: no model and no kernel
 * of ours reorders writes. Any thread.
 */
#ifndef INTEG_REG_SEEN_H
#define INTEG_REG_SEEN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

struct reg_seen {
	struct ibv_mr *mr; /* NULL: it has been given back */
	struct ibv_pd *pd;
	const char *addr;
	size_t len;
	unsigned access; /* enum ibv_access_flags, as asked for */
};

/**
 * The registrations so far, oldest first. REG_SEEN_MAX are noted; then those that have been given back are
 * forgotten, and if there are none the program ends.
 */
#define REG_SEEN_MAX 8192u
size_t reg_seen_cnt(void);
struct reg_seen reg_seen_at(size_t idx);

/** What the memory at `addr` is registered for at present; 0: it is not. */
unsigned reg_seen_access(const void *addr);

#endif
