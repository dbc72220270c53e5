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

void kv_report_begin(const struct kv_conf *conf, uint32_t ranks, bool counts_insns)
{
	struct kv_adapter adapter;

	if (conf->output == KV_JSON)
		return;
	printf("# %s: %u nodes, %u daemons and %u clients (%s) each, depth %u\n",
	       kv_backend_name(conf->backend), ranks, conf->daemons, conf->clients,
	       conf->processes ? "processes" : "threads", conf->depth);
	printf("# %llu keys a node, values of %zu bytes, %.0f %% gets, %s%s\n",
	       (unsigned long long)conf->keys, conf->value_len, conf->read_ratio * 100,
	       conf->zipf > 0 ? "Zipf" : "uniform", conf->remote_only ? ", remote only" : "");
	if (!counts_insns)
		printf("# instructions: not counted, this machine or its settings do not permit "
		       "perf_event_open(2)\n");
	printf("%4s %12s %10s %12s %12s %8s %9s", "run", "requests/s", "remote %", "calls/batch",
	       "instructions", "hops", "switches");
	printf(kv_adapter_read(&adapter) ? " %9s %9s %9s %5s\n" : "\n", "doorbells", "CQEs",
	       "packets", "QPs");
	fflush(stdout);
}

static void kv_report_run_table(uint32_t index, const struct kv_result *r)
{
	const struct kv_sums *s = &r->sums;
	const struct kv_adapter *a = &r->adapter;

	printf("%4u %12.0f %10.1f %12.2f", index + 1, kv_rate(r), 100 * kv_per(s->remote, s->done),
	       kv_per(s->calls, s->batches));
	if (r->counts_insns)
		printf(" %12.0f", kv_per(s->insns, s->remote));
	else
		printf(" %12s", "-");
	printf(" %8.2f %9.3f", kv_per(s->forwarded, s->remote), kv_per(s->switches, s->remote));
	if (r->on_adapter)
		printf(" %9.4f %9.4f %9.4f %5llu", kv_per(a->doorbells, s->remote),
		       kv_per(a->cqes, s->remote), kv_per(a->packets, s->remote),
		       (unsigned long long)a->qps);
	putchar('\n');
}

/* Prints a member of a JSON object, null if it is not known. */
static void kv_report_json_number(const char *name, bool known, uint64_t value)
{
	if (known)
		printf(",\"%s\":%llu", name, (unsigned long long)value);
	else
		printf(",\"%s\":null", name);
}

static void kv_report_json_sums(const struct kv_sums *s)
{
	kv_report_json_number("requests", true, s->done);
	kv_report_json_number("remote", true, s->remote);
	kv_report_json_number("unreachable", true, s->unreachable);
	kv_report_json_number("calls", true, s->calls);
	kv_report_json_number("batches", true, s->batches);
	kv_report_json_number("forwarded", true, s->forwarded);
	kv_report_json_number("waited", true, s->waited);
	kv_report_json_number("daemon_loops", true, s->loops);
	kv_report_json_number("daemon_sleeps", true, s->sleeps);
	kv_report_json_number("context_switches", true, s->switches);
	kv_report_json_number("cpu_us", true, s->cpu);
}

static void kv_report_run_json(const struct kv_conf *conf, uint32_t ranks, uint32_t index,
			       const struct kv_result *r)
{
	printf("{\"type\":\"run\",\"backend\":\"%s\",\"nodes\":%u,\"daemons\":%u,\"clients\":%u,"
	       "\"processes\":%s,\"depth\":%u,\"value\":%zu,\"run\":%u,\"seconds\":%.6f,"
	       "\"rate\":%.1f",
	       kv_backend_name(conf->backend), ranks, conf->daemons, conf->clients,
	       conf->processes ? "true" : "false", conf->depth, conf->value_len, index + 1,
	       r->seconds, kv_rate(r));
	kv_report_json_sums(&r->sums);
	kv_report_json_number("daemon_instructions", r->counts_insns, r->sums.insns);
	kv_report_json_number("doorbells", r->on_adapter, r->adapter.doorbells);
	kv_report_json_number("cqes", r->on_adapter, r->adapter.cqes);
	kv_report_json_number("packets", r->on_adapter, r->adapter.packets);
	kv_report_json_number("qps", r->on_adapter, r->adapter.qps);
	kv_report_json_number("memory_kib", true, r->memory);
	printf("}\n");
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

void kv_report_fate(const struct kv_conf *conf, uint32_t ranks, const struct kv_result *results,
		    uint64_t wait_ns)
{
	uint32_t fatal = kv_conf_fatal_run(conf);
	double rate[3];

	for (uint32_t i = 0; i < 3; i++) {
		const struct kv_result *r = &results[fatal - 1 + i];

		rate[i] = (double)r->others / r->seconds;
	}
	if (conf->output == KV_JSON)
		printf("{\"type\":\"fate\",\"fate\":\"%s\",\"node\":%u,\"others_before\":%.1f,"
		       "\"others_during\":%.1f,\"others_after\":%.1f,\"error_wait\":%.6f}\n",
		       conf->fate == KV_DIES ? "kill" : "stop", ranks - 1, rate[0], rate[1],
		       rate[2], (double)wait_ns * 1e-9);
	else
		printf("node %u %s: the others had %.0f requests/s from each other before, %.0f in "
		       "that run (%.2f x), %.0f after (%.2f x)\n"
		       "longest wait for an error: %.3f s\n",
		       ranks - 1, conf->fate == KV_DIES ? "was killed" : "stopped", rate[0],
		       rate[1], rate[1] / rate[0], rate[2], rate[2] / rate[0],
		       (double)wait_ns * 1e-9);
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
	median = (rates[conf->runs / 2] + rates[(conf->runs - 1) / 2]) / 2;
	free(rates);
	return median;
}

static const double kv_fractions[] = { 0.5, 0.9, 0.99, 0.999, 0.9999 };
static const char *const kv_fraction_names[] = { "p50", "p90", "p99", "p99.9", "p99.99" };
#define KV_FRACTIONS (sizeof(kv_fractions) / sizeof(kv_fractions[0]))

static void kv_report_end_table(double median, const struct kv_sums *total,
				const struct bench_hist *latency)
{
	printf("median: %.0f requests/s\nlatency, us:", median);
	for (unsigned i = 0; i < KV_FRACTIONS; i++)
		printf("  %s %.1f", kv_fraction_names[i],
		       (double)bench_hist_quantile(latency, kv_fractions[i]) / 1000);
	printf("\nverified: %llu requests, %llu wrong, %llu lost, %llu to nodes that did not "
	       "respond\n",
	       (unsigned long long)total->done, (unsigned long long)total->faults,
	       (unsigned long long)total->lost, (unsigned long long)total->unreachable);
}

static void kv_report_end_json(const struct kv_conf *conf, uint32_t ranks, double median,
			       const struct kv_sums *total, const struct bench_hist *latency)
{
	printf("{\"type\":\"summary\",\"backend\":\"%s\",\"nodes\":%u,\"daemons\":%u,"
	       "\"clients\":%u,\"depth\":%u,\"median_rate\":%.1f,\"requests\":%llu,"
	       "\"wrong\":%llu,\"lost\":%llu,\"unreachable\":%llu,\"latency_us\":{",
	       kv_backend_name(conf->backend), ranks, conf->daemons, conf->clients, conf->depth,
	       median, (unsigned long long)total->done, (unsigned long long)total->faults,
	       (unsigned long long)total->lost, (unsigned long long)total->unreachable);
	for (unsigned i = 0; i < KV_FRACTIONS; i++)
		printf("%s\"%s\":%.3f", i ? "," : "", kv_fraction_names[i],
		       (double)bench_hist_quantile(latency, kv_fractions[i]) / 1000);
	printf("}}\n");
}

void kv_report_end(const struct kv_conf *conf, uint32_t ranks, const struct kv_result *results,
		   const struct kv_sums *total, const struct bench_hist *latency)
{
	double median = kv_median_rate(conf, results);

	if (conf->output == KV_JSON)
		kv_report_end_json(conf, ranks, median, total, latency);
	else
		kv_report_end_table(median, total, latency);
	fflush(stdout);
}
