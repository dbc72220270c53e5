/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault device: a datagram device that drops, duplicates, delays and reorders what another one
 * receives.
 *
 * For tests with a bad network. FI_COPYRPC_FAULT configures it (flt_config.h). Without that setting
 * flt_open opens the other device directly. Called by dgram_engine; ofi/ checks the setting.
 *
 * Tests: test/unit/dev/fault/test_flt_dgram.c.
 */
#ifndef DEV_FAULT_FLT_H
#define DEV_FAULT_FLT_H

#include "dev/dgram.h"

/** Datagrams received, by fault. */
struct flt_cnt {
	uint64_t received;
	uint64_t dropped;
	uint64_t corrupt; /* dropped, as a checksum of the wire would */
	uint64_t duplicated;
	uint64_t deferred; /* deferred until others have passed */
	uint64_t delayed;
	uint64_t no_room; /* lost: no free cell */
};

/** Checks util_params.fault. Returns 0, or -FI_EINVAL with a log line. */
int flt_check(void);

/**
 * Calls ops->open, and wraps the endpoint if util_params.fault is set. Returns its error, or
 * -FI_EINVAL with a log line if the setting is malformed.
 */
int flt_open(const struct dev_dgram_ops *ops, struct dev *dev, const struct dev_dgram_attr *attr,
	     struct dev_dgram **dg);

/** Returns the counters, or NULL if `dg` is not wrapped. */
const struct flt_cnt *flt_counters(const struct dev_dgram *dg);

#endif
