/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes for the cases of crpc_rma. One function makes an access by any of the calls of
 * fi_rma(3), of its whole buffer or of two pieces. Others open and close the endpoint of a case.
 */
#ifndef FT_RMA_POST_H
#define FT_RMA_POST_H

#include "common/ft_mr.h"
#include "common/ft_op.h"

#define RMA_ALL  (FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE | FI_SEND | FI_RECV)
#define RMA_DATA 0x1122334455667788ull

enum rma { WRITE, WRITEV, WRITEMSG, WRITEDATA, INJECT, INJECTDATA, READ, READV, READMSG, RMAS };

extern const char *const rma_names[RMAS];

/* Returns whether a call reads. */
bool rma_reads(enum rma how);

struct rma_op {
	enum rma how;
	uint8_t *buf;
	size_t len;
	int rank;
	uint64_t addr, key, flags;
	struct ft_op *op;
};

/* Posts an access. Returns what the call returns. */
ssize_t rma_post(struct ft_fab *fab, const struct rma_op *o);

/* Opens an endpoint at each rank, for remote memory and messages. */
void rma_begin(struct ft_fab *fab, struct ft *ft, struct ft_want want);
/* Checks that every operation has ended, and closes the endpoint, and a region that is not NULL. */
void rma_end(struct ft_fab *fab, struct ft_region *region);

#endif
