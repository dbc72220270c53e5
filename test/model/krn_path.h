/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which paths of a program lead into the model's own tree, and where to.
 *
 * The tree is a directory of ordinary files in /dev/shm with the parts of /sys that rdma-core, UCX
 * and hwloc read of an mlx5 device. It is made by the first process that asks for one of its paths.
 */
#ifndef KRN_PATH_H
#define KRN_PATH_H

#include <limits.h>
#include <stddef.h>

#define KRN_DEV_UVERBS "/dev/infiniband/uverbs0"
#define KRN_DEV_CM     "/dev/infiniband/rdma_cm"
#define KRN_DEV_MAJOR  231
#define KRN_DEV_MINOR  192

enum krn_dev { KRN_DEV_NONE, KRN_DEV_IS_UVERBS, KRN_DEV_IS_CM };

/* Whether the path names one of the device nodes. */
enum krn_dev krn_path_device(const char *path);
/*
 * The path to use instead: `path` itself, or what was written into buf. Null paths are passed on.
 */
const char *krn_path_map(const char *path, char buf[PATH_MAX]);
/* The way back, in place: a path inside the tree becomes what the program takes it for. */
void krn_path_unmap(char *path);

#endif /* KRN_PATH_H */
