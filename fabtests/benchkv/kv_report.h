/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results of a run, for people and for programs. Called by rank 0. */
#ifndef KV_REPORT_H
#define KV_REPORT_H

#include <stdint.h>

#include "kv_conf.h"
#include "benchmarks/bench_hist.h"
#include "kv_node.h"
#include "kv_proc.h"

/** One run, all nodes together. */
struct kv_result {
	double seconds;
	struct kv_sums sums;       /* counted during the run */
	bool counts_insns;         /* false: sums.insns means nothing */
	bool on_adapter;           /* false: `adapter` means nothing */
	struct kv_adapter adapter; /* work during the run; queue pairs at its end */
	uint64_t others;           /* responses of all nodes but the last to each other */
	uint64_t memory;           /* KiB at its end */
};

/** Prints what is measured, and why a column has no figures. */
void kv_report_begin(const struct kv_conf *conf, uint32_t ranks, bool counts_insns);

/** Prints run `index`. */
void kv_report_run(const struct kv_conf *conf, uint32_t ranks, uint32_t index,
		   const struct kv_result *result);

/**
 * Prints the consequences of the last node's fate for the others. `wait_ns` is the longest time
 * that a request took to end with an error.
 */
void kv_report_fate(const struct kv_conf *conf, uint32_t ranks, const struct kv_result *results,
		    uint64_t wait_ns);

/** Prints the median of the rates, the latencies of all runs, and what was wrong. */
void kv_report_end(const struct kv_conf *conf, uint32_t ranks, const struct kv_result *results,
		   const struct kv_sums *total, const struct bench_hist *latency);

#endif
