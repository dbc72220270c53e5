/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device contexts: what an open /dev/infiniband/uverbs0 is.
 *
 * Its descriptor is a memfd whose file offsets are those that libmlx5 maps (command << 8 | index, in
 * pages), so that mmap() of the UAR pages works even for those who reach the system call without us.
 * The context maps the same file for itself, writable: there the stores of trap mode are carried out,
 * and there poll mode looks for them.
 */
#ifndef KRN_CTX_H
#define KRN_CTX_H

#include "model/mdl_objects.h"
#include "model/mdl_segment.h"

#define KRN_BFREGS        16 /* doorbell registers of a context, two a page */
#define KRN_BFREG_LOW_LAT 4  /* the last of them serve one QP each, without a lock */

struct krn_ctx {
	int fd;              /* of the program; -1: not in use */
	uint32_t async_chan; /* its number, 0 before GET_CONTEXT */
	int async_fd;
	char *pages;                   /* our mapping of the memfd */
	uint32_t mapped;               /* UAR pages that the program was seen to have mapped */
	uint32_t place[MDL_UAR_PAGES]; /* and where in the file: each way to map has its own */
	uint32_t bfreg_users[KRN_BFREGS];
	pthread_mutex_t lock; /* commands of one context follow each other */
};

/* Makes this process one of the fabric, once. 0 or -errno. */
int krn_ctx_attach(void);
/* A descriptor of a new context, or -1 and errno. */
int krn_ctx_open(int flags);
/* A fault was ordered: this user has no right to the device. */
bool krn_ctx_is_denied(void);
/* The program closed it: whatever it left is destroyed. */
void krn_ctx_close(uint32_t index);
/* Of this process; null: there is no such context. */
struct krn_ctx *krn_ctx_get(uint32_t index);

/* Where the program mapped a UAR page, in bytes from `pages`. */
static inline size_t krn_ctx_place(const struct krn_ctx *ctx, uint32_t page)
{
	return (size_t)__atomic_load_n(&ctx->place[page], __ATOMIC_RELAXED) * MDL_PAGE;
}

/* A doorbell register for a QP: gives page and offset, and the number that CREATE_QP reports. */
uint32_t krn_ctx_bfreg_take(struct krn_ctx *ctx, uint32_t *page, uint32_t *off);
void krn_ctx_bfreg_put(struct krn_ctx *ctx, uint32_t page, uint32_t off);

#endif /* KRN_CTX_H */
