/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where does a datagram that came wait for what shall happen to it?
 *
 *	poll of the device below -> lost? corrupt? -> delay (a queue: the same time for all)
 *	                         -> held back, 1 in `reorder`: others pass -> poll of the engine
 *
 * Everything happens where it arrives, so what is sent, and its numbers, are the device's below. What
 * goes on is copied into a cell of ours: neither a long delay nor a second copy takes the device's
 * buffers. A datagram that finds no cell is lost and counted.
 *
 * What is held back goes behind 1 to FLT_PASS_MAX others, or after FLT_BACK_NS if nobody comes.
 *
 * Owner: who polls. Shown by test/unit/dev/fault/test_flt_dgram.c, test_flt_rx.c.
 */
#ifndef FLT_FLT_DGRAM_H
#define FLT_FLT_DGRAM_H

#include "dev/fault/flt.h"
#include "dev/fault/flt_config.h"
#include "util/list.h"

#define FLT_CELLS    4096u /* beside one for each buffer of the device below */
#define FLT_BACK_MAX 64u   /* held back at a time */
#define FLT_PASS_MAX 8u
#define FLT_BACK_NS  1000000ull
#define FLT_BURST    16u

/** A datagram that waits, or was handed out. Its slot is its number. */
struct flt_cell {
	struct util_list link; /* in late, back, ready or free */
	struct dev_dgram_in in;
	uint64_t due_ns;
	uint64_t due_cnt; /* of flt_dgram.passed */
};

struct flt_dgram {
	struct dev_dgram base; /* first */
	struct dev_dgram *below;
	struct flt_config cfg;
	struct flt_cnt cnt;
	uint64_t rng;
	uint64_t (*now_ns)(void);
	uint64_t passed; /* datagrams that went on */
	struct flt_cell *cells;
	uint32_t cell_cnt;
	uint8_t *bytes; /* cell_len for each */
	size_t cell_len;
	struct util_list free;
	struct util_list late;  /* by due_ns */
	struct util_list back;  /* no order */
	struct util_list ready; /* to be handed out, first */
	uint32_t back_cnt;
	int timer_fd;
	int wait_fd; /* epoll over the device's and the timer's */
};

extern const struct dev_dgram_ops flt_dgram_ops;

int flt_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
void flt_release(struct dev_dgram *dg, uint32_t slot);

/** When something that waits will be due; UINT64_MAX: nothing waits. */
uint64_t flt_next_ns(const struct flt_dgram *flt);

/** Puts `below` behind faults, and owns it then. -FI_ENOMEM and the like: it is still the caller's. */
int flt_wrap(const struct flt_config *cfg, struct dev_dgram *below, struct dev_dgram **dg);

#endif
