/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RDMA device, port and GID of this process, and their limits. Embedded by the mlx5 and the verbs
 * device.
 *
 * The choice is the first active port of FI_COPYRPC_DEVICE (name or name:port, or several with
 * commas), or the fastest active port; FI_COPYRPC_GID_INDEX, or the most routable GID (ib_gid.h).
 * The choice is logged at INFO, like features that a device lacks. libibverbs is linked: libfabric
 * itself needs it, so it is present even without RDMA hardware.
 *
 * Constant between init and fini; ib_dev_gid has a GID that has changed since. Tests:
 * test/unit/dev/ib/test_ib_dev.c, on a kernel device test/rxe.
 */
#ifndef DEV_IB_IB_DEV_H
#define DEV_IB_IB_DEV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

#define IB_SRQ_DEPTH       1024u
#define IB_CQ_DEPTH        4096u /* initial depth */
#define IB_SQ_DEPTH        256u
#define IB_SIGNAL_INTERVAL 64u /* largest distance between signalled WQEs */

struct ib_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port_attr;
	union ibv_gid gid;
	char name[IBV_SYSFS_NAME_MAX + 4];
	uint8_t port;
	uint8_t gid_index;
	enum ibv_gid_type gid_type;
	bool is_gid_fixed; /* the user requested the index */
	bool is_eth;       /* RoCE: every packet has a GRH */
	uint8_t rd_atomic; /* READs in flight per queue pair, in either direction */
	int relaxed;       /* IBV_ACCESS_RELAXED_ORDERING, for memory that holds only data */
};

/** Returns true if the caller can drive this device. */
typedef bool ib_dev_fits_fn(struct ibv_device *device);

/** Returns true if there is any RDMA device. Fast and silent. */
bool ib_dev_exists(void);

/**
 * Chooses and opens a device. `fits` excludes devices (NULL: accepts all); `beside` (or NULL) is in
 * use: another port, with its link layer, is chosen. Returns 0, -FI_ENODEV if none fits (silent
 * unless the user named one, and `beside` is NULL), or another error, logged with its remedy.
 */
int ib_dev_init(struct ib_dev *dev, ib_dev_fits_fn *fits, const struct ib_dev *beside);

/** Closes the device. No object may be left on it. */
void ib_dev_fini(struct ib_dev *dev);

/** GID of the port and its index in the port's table. */
struct ib_dev_gid {
	union ibv_gid gid;
	uint8_t index;
};

/**
 * Returns the GID of the port at this moment, for a new connection. On Ethernet that of init may
 * have moved to another index, or given place to another of its kind. That of init where nothing
 * better is known. Takes a system call or several. Any thread.
 */
struct ib_dev_gid ib_dev_gid(const struct ib_dev *dev);

/**
 * Returns true if the port has another LID than at init, so that peers with the old one do not
 * reach it. False on Ethernet, and while the port has none.
 */
bool ib_dev_has_moved(const struct ib_dev *dev);

/**
 * Fills *about for the device that init would choose. Returns 0 or -FI_ENODEV, silently. Keeps a
 * result; repeats a failed search each time, at the cost of a few system calls.
 */
int ib_dev_probe(ib_dev_fits_fn *fits, struct dev_about *about);

/**
 * Logs that `what` cannot be had, with errno and a remedy. Returns -FI_ENOMEM, -FI_EMFILE or
 * -FI_EIO, by errno.
 */
int ib_dev_refuse(const struct ib_dev *dev, const char *what);

/** Makes a completion channel with a non-blocking descriptor. Returns 0 or an error, logged. */
int ib_dev_make_chan(struct ib_dev *dev, struct ibv_comp_channel **chan);

/** Returns the name as the user writes it: "mlx5_0:1". */
static inline const char *ib_dev_name(const struct ib_dev *dev)
{
	return dev->name;
}

#endif
