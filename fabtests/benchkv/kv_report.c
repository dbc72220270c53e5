/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results of a run: see kv_report.h. */
#include "kv_report.h"

#include <stdio.h>
#include <stdlib.h>

static double kv_per(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : 0;
}

static double kv_rate(const struct kv_result *result)
{
	return (double)result->sums.done / result->seconds;
}

void kv_report_begin(const struct kv_conf *conf, uint32_t ranks)
{
	if (conf->output == KV_JSON)
		return;
	printf("# %s: %u nodes, %u daemons and %u clients (%s) each, depth %u\n",
	       kv_backend_name(conf->backend), ranks, conf->daemons, conf->clients,
	       conf->processes ? "processes" : "threads", conf->depth);
	printf("# %llu keys a node, values of %zu bytes, %.0f %% gets, %s%s\n",
	       (unsigned long long)conf->keys, conf->value_len, conf->read_ratio * 100,
	       conf->zipf > 0 ? "Zipf" : "uniform", conf->remote_only ? ", remote only" : "");
	printf("%4s %12s %10s %12s %12s %10s %10s\n", "run", "requests/s", "remote %",
	       "calls/batch", "instr/remote", "hops", "switches");
	fflush(stdout);
}

static void kv_report_run_table(uint32_t index, const struct kv_result *r)
{
	const struct kv_sums *s = &r->sums;

	printf("%4u %12.0f %10.1f %12.2f %12.0f %10.2f %10.3f\n", index + 1, kv_rate(r),
	       100 * kv_per(s->remote, s->done), kv_per(s->calls, s->batches),
	       kv_per(s->insns, s->remote), kv_per(s->forwarded, s->remote),
	       kv_per(s->switches, s->done));
}

static void kv_report_run_json(const struct kv_conf *conf, uint32_t ranks, uint32_t index,
			       const struct kv_result *r)
{
	const struct kv_sums *s = &r->sums;

	printf("{\"type\":\"run\",\"backend\":\"%s\",\"nodes\":%u,\"daemons\":%u,\"clients\":%u,"
	       "\"processes\":%s,\"depth\":%u,\"value\":%zu,\"run\":%u,\"seconds\":%.6f,"
	       "\"requests\":%llu,\"rate\":%.1f,\"remote\":%llu,\"calls\":%llu,\"batches\":%llu,"
	       "\"forwarded\":%llu,\"waited\":%llu,\"daemon_loops\":%llu,\"daemon_sleeps\":%llu,"
	       "\"daemon_instructions\":%llu,\"context_switches\":%llu,\"unreachable\":%llu}\n",
	       kv_backend_name(conf->backend), ranks, conf->daemons, conf->clients,
	       conf->processes ? "true" : "false", conf->depth, conf->value_len, index + 1,
	       r->seconds, (unsigned long long)s->done, kv_rate(r), (unsigned long long)s->remote,
	       (unsigned long long)s->calls, (unsigned long long)s->batches,
	       (unsigned long long)s->forwarded, (unsigned long long)s->waited,
	       (unsigned long long)s->loops, (unsigned long long)s->sleeps,
	       (unsigned long long)s->insns, (unsigned long long)s->switches,
	       (unsigned long long)s->unreachable);
}

void kv_report_run(const struct kv_conf *conf, uint32_t ranks, uint32_t index,
		   const struct kv_result *result)
{
	if (conf->output == KV_JSON)
		kv_report_run_json(conf, ranks, index, result);
	else
		kv_report_run_table(index, result);
	fflush(stdout);
}

static int kv_compare_rates(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double kv_median_rate(const struct kv_conf *conf, const struct kv_result *results)
{
	double *rates = calloc(conf->runs, sizeof(*rates)), median = 0;

	if (!rates)
		return 0;
	for (uint32_t i = 0; i < conf->runs; i++)
		rates[i] = kv_rate(&results[i]);
	qsort(rates, conf->runs, sizeof(*rates), kv_compare_rates);
	median = rates[conf->runs / 2];
	free(rates);
	return median;
}

static const double kv_fractions[] = { 0.5, 0.9, 0.99, 0.999, 0.9999 };
static const char *const kv_fraction_names[] = { "p50", "p90", "p99", "p99.9", "p99.99" };
#define KV_FRACTIONS (sizeof(kv_fractions) / sizeof(kv_fractions[0]))

static void kv_report_end_table(double median, const struct kv_sums *total,
				const struct kv_hist *latency)
{
	printf("median: %.0f requests/s\nlatency, us:", median);
	for (unsigned i = 0; i < KV_FRACTIONS; i++)
		printf("  %s %.1f", kv_fraction_names[i],
		       (double)kv_hist_quantile(latency, kv_fractions[i]) / 1000);
	printf("\nverified: %llu requests, %llu wrong, %llu lost, %llu to nodes that did not "
	       "respond\n",
	       (unsigned long long)total->done, (unsigned long long)total->faults,
	       (unsigned long long)total->lost, (unsigned long long)total->unreachable);
}

static void kv_report_end_json(const struct kv_conf *conf, uint32_t ranks, double median,
			       const struct kv_sums *total, const struct kv_hist *latency)
{
	printf("{\"type\":\"summary\",\"backend\":\"%s\",\"nodes\":%u,\"daemons\":%u,"
	       "\"clients\":%u,\"depth\":%u,\"median_rate\":%.1f,\"requests\":%llu,"
	       "\"wrong\":%llu,\"lost\":%llu,\"unreachable\":%llu,\"latency_us\":{",
	       kv_backend_name(conf->backend), ranks, conf->daemons, conf->clients, conf->depth,
	       median, (unsigned long long)total->done, (unsigned long long)total->faults,
	       (unsigned long long)total->lost, (unsigned long long)total->unreachable);
	for (unsigned i = 0; i < KV_FRACTIONS; i++)
		printf("%s\"%s\":%.3f", i ? "," : "", kv_fraction_names[i],
		       (double)kv_hist_quantile(latency, kv_fractions[i]) / 1000);
	printf("}}\n");
}

void kv_report_end(const struct kv_conf *conf, uint32_t ranks, const struct kv_result *results,
		   const struct kv_sums *total, const struct kv_hist *latency)
{
	double median = kv_median_rate(conf, results);

	if (conf->output == KV_JSON)
		kv_report_end_json(conf, ranks, median, total, latency);
	else
		kv_report_end_table(median, total, latency);
	fflush(stdout);
}
