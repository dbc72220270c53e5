/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A datagram device that loses, doubles, delays and reorders what another one brings.
 *
 * For tests of whatever must live with a bad network, on a good one: FI_COPYRPC_FAULT says how bad
 * (flt_config.h). Without it nobody meets this device: flt_open opens the other one, and that is all.
 * Shown by test/unit/dev/fault/test_flt_dgram.c.
 */
#ifndef FLT_FLT_H
#define FLT_FLT_H

#include "dev/dgram.h"

/** Datagrams that came, and what was done to them. */
struct flt_cnt {
	uint64_t came;
	uint64_t dropped;
	uint64_t corrupt; /* what a checksum of the wire throws away */
	uint64_t doubled;
	uint64_t reordered; /* held back for others to pass */
	uint64_t delayed;
	uint64_t no_room; /* lost: more was to be held than there is room for */
};

/** Can util_params.fault be read, if it is set? 0, or -FI_EINVAL with a line in the log. */
int flt_check(void);

/**
 * ops->open, behind faults if util_params.fault asks for them. -FI_EINVAL, with a line in the log
 * that says what to write, if it cannot be read.
 */
int flt_open(const struct dev_dgram_ops *ops, struct dev *dev, const struct dev_dgram_attr *attr,
	     struct dev_dgram **dg);

/** What was done so far; NULL if there are no faults before `dg`. */
const struct flt_cnt *flt_counters(const struct dev_dgram *dg);

#endif
