/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which RDMA device, port and GID does this process use, and what can they do?
 *
 * What every device behind libibverbs embeds. The choice: FI_COPYRPC_DEVICE (name or name:port), or
 * the fastest active port; FI_COPYRPC_GID_INDEX, or the most routable GID (ib_gid.h). It is logged
 * at INFO, and so is what a device lacks. libibverbs is linked, not loaded by hand: libfabric
 * itself needs it, so it is there even where no RDMA hardware is.
 *
 * Owner: who embeds it. All of it is constant between init and fini.
 * Shown by test/unit/dev/ib/test_ib_dev.c, and on a kernel device by test/rxe.
 */
#ifndef IB_IB_DEV_H
#define IB_IB_DEV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

#define IB_SRQ_DEPTH       1024u
#define IB_CQ_DEPTH        4096u /* to begin with */
#define IB_SQ_DEPTH        256u
#define IB_SIGNAL_INTERVAL 64u /* WQEs from one signalled to the next, at most */

struct ib_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port_attr;
	union ibv_gid gid;
	char name[IBV_SYSFS_NAME_MAX + 4];
	uint8_t port;
	uint8_t gid_index;
	bool is_eth;       /* RoCE: every packet has a GRH */
	uint8_t rd_atomic; /* READs in flight that we ask and answer, per QP */
	int relaxed;       /* IBV_ACCESS_RELAXED_ORDERING, to be or-ed in for what is only data */
};

/** A device that a user of ib_dev can drive. */
typedef bool ib_dev_fits_fn(struct ibv_device *device);

/** Is there any RDMA device? Quick and silent. */
bool ib_dev_exists(void);

/**
 * Chooses and opens. `fits` leaves out devices (NULL: takes all). -FI_ENODEV: there is none that
 * fits; silent unless the user named one. Any other error is logged with its remedy.
 */
int ib_dev_init(struct ib_dev *dev, ib_dev_fits_fn *fits);

/** All objects on it are gone. */
void ib_dev_fini(struct ib_dev *dev);

/**
 * The same choice, told only: 0 and *about, or -FI_ENODEV. Silent. What was found once is kept; that
 * there is nothing is found again each time, at the cost of a few system calls.
 */
int ib_dev_probe(ib_dev_fits_fn *fits, struct dev_about *about);

/** "mlx5_0:1", as the user writes it. */
static inline const char *ib_dev_name(const struct ib_dev *dev)
{
	return dev->name;
}

#endif
