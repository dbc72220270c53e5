/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands of the launcher besides run. Each returns an exit status. */
#ifndef HCA_TOOL_H
#define HCA_TOOL_H

#include <stdbool.h>

/* Prints the counters of the fabric: each process, the sum, and each QP if qps. */
int hca_stat(bool qps);
/* Removes the fabric's files. Without force only if no process uses the fabric. */
int hca_reset(bool force);

#endif /* HCA_TOOL_H */
