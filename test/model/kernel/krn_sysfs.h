/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files that programs read of the device, as a real directory. */
#ifndef KRN_SYSFS_H
#define KRN_SYSFS_H

#include "model/fabric/mdl_objects.h"

#include <stddef.h>

/* Addresses of the devices mlx5_0, mlx5_1 on PCI. */
extern const char *const krn_sysfs_pci[MDL_DEV_MAX];

/*
 * Makes the tree of this process's node unless it exists, and writes its root. Returns 0 or -errno.
 */
int krn_sysfs_make(char *root, size_t size);

#endif /* KRN_SYSFS_H */
