/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results of a run, for people and for programs. Called by rank 0. */
#ifndef KV_REPORT_H
#define KV_REPORT_H

#include <stdint.h>

#include "kv_conf.h"
#include "kv_hist.h"
#include "kv_node.h"

/** One run, all nodes together. */
struct kv_result {
	double seconds;
	struct kv_sums sums; /* counted during the run */
};

/** Prints what is measured. */
void kv_report_begin(const struct kv_conf *conf, uint32_t ranks);

/** Prints run `index`. */
void kv_report_run(const struct kv_conf *conf, uint32_t ranks, uint32_t index,
		   const struct kv_result *result);

/** Prints the median of the rates, the latencies of all runs, and what was wrong. */
void kv_report_end(const struct kv_conf *conf, uint32_t ranks, const struct kv_result *results,
		   const struct kv_sums *total, const struct kv_hist *latency);

#endif
