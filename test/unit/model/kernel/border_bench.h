/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bench for the kernel border: a fabric of the test, uverbs commands as libibverbs writes them, and
 * a NIC that only records its calls.
 */
#ifndef BORDER_BENCH_H
#define BORDER_BENCH_H

#include "model/kernel/krn_ctx.h"
#include "model/fabric/mdl_nic.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stddef.h>
#include <sys/types.h>

/* Calls that the NIC received. */
struct border_notes {
	uint32_t writes;         /* calls of nic_uar_write() */
	uint32_t off, len, page; /* arguments of the last call */
	unsigned char bytes[256];
	uint32_t created, destroyed, modified, resized;
	uint32_t reset_stream; /* stream of the last nic_stream_reset(), which returned reset_rc */
	int reset_rc;
};
extern struct border_notes notes;

/* For .init and .fini of a suite. */
void border_setup(void);
void border_teardown(void);

/* Opens a device context up to GET_CONTEXT. Returns its index. */
uint32_t border_open(void);
/* Maps a UAR page of the context as libmlx5 does. */
char *border_map_uar(uint32_t ctx, uint32_t page);

/*
 * Writes a legacy command: the core struct (its response address is filled in), the driver's data,
 * space for both responses. Returns the result of write().
 */
ssize_t border_command(uint32_t ctx, uint32_t number, void *core, size_t core_len, const void *drv,
		       size_t drv_len, void *resp, size_t resp_len);

/* Create objects as libmlx5 does, on zeroed pages of the test. */
uint32_t border_pd(uint32_t ctx);
uint32_t border_cq(uint32_t ctx, uint32_t cqe);
/* Creates a QP with 4 receive WQEs of 64 bytes and 8 send blocks. Returns 0 if refused. */
uint32_t border_qp(uint32_t ctx, uint32_t pd, uint32_t cq, uint32_t type);
/* Creates an SRQ of 16 WQEs. */
uint32_t border_srq(uint32_t ctx, uint32_t pd);
/* Allocates pages that no other object uses. */
char *border_pages(size_t pages);

#endif /* BORDER_BENCH_H */
