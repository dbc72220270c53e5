/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the launcher does beside launching. Each returns an exit status. */
#ifndef HCA_TOOL_H
#define HCA_TOOL_H

#include <stdbool.h>

/* Prints the counters of the fabric: its processes, the sum, and on request each QP. */
int hca_stat(bool qps);
/* Removes the fabric's files; without force only if no process uses it. */
int hca_reset(bool force);

#endif /* HCA_TOOL_H */
