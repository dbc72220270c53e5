/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files that programs read of the device, as a real directory. */
#ifndef KRN_SYSFS_H
#define KRN_SYSFS_H

#include <stddef.h>

#define KRN_SYSFS_PCI "0000:00:1d.0"
#define KRN_SYSFS_DEV "mlx5_0"

/*
 * Makes the tree of this process's node unless it exists, and writes its root. Returns 0 or -errno.
 */
int krn_sysfs_make(char *root, size_t size);

#endif /* KRN_SYSFS_H */
