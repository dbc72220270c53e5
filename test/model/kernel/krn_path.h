/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mapping of a program's paths into the model's tree.
 *
 * The tree is a directory of ordinary files in /dev/shm with the parts of /sys that rdma-core, UCX
 * and hwloc read of mlx5 devices. The first process that uses one of its paths creates it.
 */
#ifndef KRN_PATH_H
#define KRN_PATH_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define KRN_DEV_CM    "/dev/infiniband/rdma_cm"
#define KRN_DEV_MAJOR 231
#define KRN_DEV_MINOR 192 /* of the first device; the next ones follow */

enum krn_dev { KRN_DEV_NONE, KRN_DEV_IS_UVERBS, KRN_DEV_IS_CM };

/*
 * Returns the device node that a path names, if any, and for KRN_DEV_IS_UVERBS the number of the
 * device in *device.
 */
enum krn_dev krn_path_device(const char *path, uint32_t *device);
/*
 * Returns the path to use instead: `path` itself, or a path written into buf. Null paths are passed
 * on.
 */
const char *krn_path_map(const char *path, char buf[PATH_MAX]);
/* Replaces, in place, a path inside the tree by the path that the program uses. */
void krn_path_unmap(char *path);

#endif /* KRN_PATH_H */
