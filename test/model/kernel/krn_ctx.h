/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device contexts: the model of an open /dev/infiniband/uverbs*.
 *
 * The descriptor is a memfd whose file offsets are those that libmlx5 maps (command << 8 | index,
 * in pages), so that mmap() of the UAR pages works without interposition. The context maps the same
 * file for itself, writable: trap mode executes the stores there, and poll mode scans it.
 */
#ifndef KRN_CTX_H
#define KRN_CTX_H

#include "model/fabric/mdl_objects.h"
#include "model/fabric/mdl_segment.h"

#define KRN_BFREGS        16 /* doorbell registers of a context, two a page */
#define KRN_BFREG_LOW_LAT 4  /* the last of them serve one QP each, without a lock */

struct krn_ctx {
	int fd;              /* descriptor of the program; -1: not in use */
	uint32_t device;     /* of the node, from 0 */
	uint32_t async_chan; /* number of the async channel, 0 before GET_CONTEXT */
	int async_fd;
	char *pages;                   /* writable mapping of the memfd */
	uint32_t mapped;               /* UAR pages found mapped by the program */
	uint32_t place[MDL_UAR_PAGES]; /* offset in the file: each map command has its own */
	uint32_t bfreg_users[KRN_BFREGS];
	uint64_t opened_ns;
	pthread_mutex_t lock; /* serialises the commands of one context */
};

/* Attaches this process to the fabric, once. Returns 0 or -errno. */
int krn_ctx_attach(void);
/* Opens a context of a device. Returns its descriptor, or -1 with errno. */
int krn_ctx_open(uint32_t device, int flags);
/* Returns true if a fault plan has the rights of the device's file forbid to open it. */
bool krn_ctx_is_forbidden(void);
/* Destroys all objects of a context that the program closed. */
void krn_ctx_close(uint32_t index);
/* Returns a context of this process, or null. */
struct krn_ctx *krn_ctx_get(uint32_t index);

/* Returns the offset at which the program mapped a UAR page, in bytes from `pages`. */
static inline size_t krn_ctx_place(const struct krn_ctx *ctx, uint32_t page)
{
	return (size_t)__atomic_load_n(&ctx->place[page], __ATOMIC_RELAXED) * MDL_PAGE;
}

/*
 * Allocates a doorbell register for a QP. Sets page and offset and returns the number that
 * CREATE_QP reports.
 */
uint32_t krn_ctx_bfreg_take(struct krn_ctx *ctx, uint32_t *page, uint32_t *off);
void krn_ctx_bfreg_put(struct krn_ctx *ctx, uint32_t page, uint32_t off);

#endif /* KRN_CTX_H */
