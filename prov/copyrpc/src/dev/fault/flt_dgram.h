/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint of the fault device.
 *
 * poll of the device below -> dropped? corrupt? -> delayed (a queue: equal time for all)
 *                          -> deferred, by probability `reorder` -> poll of the engine
 *
 * Faults happen on the receiving side; sends go through. Datagrams are copied into cells of this
 * device, so that delays and duplicates keep no buffer of the device below. A datagram without a
 * free cell is lost and counted.
 *
 * A deferred datagram follows 1 to FLT_PASS_MAX others, or leaves after FLT_DEFER_NS.
 *
 * Runs in the polling thread. Tests: test/unit/dev/fault/test_flt_dgram.c, test_flt_rx.c.
 */
#ifndef DEV_FAULT_FLT_DGRAM_H
#define DEV_FAULT_FLT_DGRAM_H

#include "dev/fault/flt.h"
#include "dev/fault/flt_config.h"
#include "util/list.h"

#define FLT_CELLS     4096u /* in addition to one per buffer of the device below */
#define FLT_DEFER_MAX 64u   /* deferred at a time */
#define FLT_PASS_MAX  8u
#define FLT_DEFER_NS  1000000ull
#define FLT_BURST     16u

/** Copy of a datagram, pending or returned. Its slot is its index. */
struct flt_cell {
	struct util_list link; /* in delayed, deferred, ready or free */
	struct dev_dgram_in in;
	uint64_t due_ns;
	uint64_t due_cnt; /* value of flt_dgram.passed at which it is due */
};

struct flt_dgram {
	struct dev_dgram base;
	struct dev_dgram *below;
	struct flt_config cfg;
	struct flt_cnt cnt;
	uint64_t rng;
	uint64_t (*now_ns)(void);
	uint64_t passed; /* datagrams that became ready */
	struct flt_cell *cells;
	uint32_t cell_cnt;
	uint8_t *bytes; /* cell_len for each cell */
	size_t cell_len;
	struct util_list free;
	struct util_list delayed;  /* delayed ones, by due_ns */
	struct util_list deferred; /* deferred ones, in no order */
	struct util_list ready;    /* to be returned, in order */
	uint32_t deferred_cnt;
	int timer_fd;
	int wait_fd; /* epoll over the device below and the timer */
};

extern const struct dev_dgram_ops flt_dgram_ops;

int flt_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
void flt_release(struct dev_dgram *dg, uint32_t slot);

/** Returns the time at which the next datagram is due, or UINT64_MAX. */
uint64_t flt_next_ns(const struct flt_dgram *flt);

/** Wraps `below` and takes ownership of it. After an error the caller still owns it. */
int flt_wrap(const struct flt_config *cfg, struct dev_dgram *below, struct dev_dgram **dg);

#endif
