/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands of the launcher besides run, and what run does before it starts the command. */
#ifndef HCA_TOOL_H
#define HCA_TOOL_H

#include <stdbool.h>

/* Prints the counters of the fabric: each process, the sum, and each QP if qps. Returns an exit
 * status. */
int hca_stat(bool qps);
/* Removes the fabric's files. Without force only if no process uses the fabric. Returns an exit
 * status. */
int hca_reset(bool force);
/* Removes the files of the fabric whose segment has this path. */
void hca_remove(const char *segment_path);
/* Removes the fabrics of this user that no process uses and that are older than an hour. */
void hca_sweep(void);

#endif /* HCA_TOOL_H */
