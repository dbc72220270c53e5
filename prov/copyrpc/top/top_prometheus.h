/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Metrics of processes in the text format of Prometheus, for copyrpc_top --prometheus. */
#ifndef TOP_TOP_PROMETHEUS_H
#define TOP_TOP_PROMETHEUS_H

#include "top/top_pages.h"

/** Writes all metrics of all processes to stdout. */
void top_prometheus_print(const struct top_pages *pages);

#endif
