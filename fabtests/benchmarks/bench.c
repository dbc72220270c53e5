/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Driver of the benchmarks: options, points, samples, reports. bench.h describes the method.
 *
 * A point is one test at one size. Rank 0 holds the clock and decides before each sample whether
 * another one follows. The ranks agree on it outside the timed part, which also keeps them
 * together. Instructions are counted around the same part on both ranks, waiting included.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_MIN 5
#define ROUNDS_MAX (1L << 22)

struct bench_point {
	const struct bench_conf *conf;
	struct bench_wire *wire;
	enum bench_test test;
	size_t size;
	long rounds; /* in one sample */
	int sample_cnt;
	double values[BENCH_SAMPLE_MAX];
	double insn_per_msg; /* Instructions of both ranks for each message; 0: not counted */
	double tail[BENCH_TAIL_CNT]; /* us; of conf->singles rounds */
};

static const struct {
	const char *name, *title, *unit;
	int digits;
} bench_tests[BENCH_TEST_CNT] = {
	[BENCH_LATENCY] = { "latency", "Latency (us)", "us", 3 },
	[BENCH_EXCHANGE] = { "exchange", "Exchange (us)", "us", 3 },
	[BENCH_BW] = { "bw", "Bandwidth (MB/s)", "MB/s", 2 },
	[BENCH_BIBW] = { "bibw", "Bandwidth both ways (MB/s)", "MB/s", 2 },
	[BENCH_RATE] = { "rate", "Messages (million/s)", "M/s", 3 },
};

/* ---- options ---- */

static void sizes_range(struct bench_conf *conf, size_t min, size_t max)
{
	conf->size_cnt = 0;
	for (size_t size = min; size <= max && conf->size_cnt < BENCH_SIZE_MAX;
	     size = size ? size * 2 : 1)
		conf->sizes[conf->size_cnt++] = size;
}

static int sizes_parse(struct bench_conf *conf, const char *arg)
{
	char *end;
	size_t first = strtoull(arg, &end, 0);

	if (*end == ':') {
		sizes_range(conf, first, strtoull(end + 1, &end, 0));
		return *end || !conf->size_cnt ? -1 : 0;
	}
	conf->sizes[0] = first;
	conf->size_cnt = 1;
	while (*end == ',' && conf->size_cnt < BENCH_SIZE_MAX)
		conf->sizes[conf->size_cnt++] = strtoull(end + 1, &end, 0);
	return *end ? -1 : 0;
}

static int tests_parse(struct bench_conf *conf, const char *arg)
{
	conf->tests = 0;
	while (*arg) {
		size_t len = strcspn(arg, ",");
		int test = 0;

		while (test < BENCH_TEST_CNT && (strlen(bench_tests[test].name) != len ||
						 memcmp(bench_tests[test].name, arg, len)))
			test++;
		if (test == BENCH_TEST_CNT)
			return -1;
		conf->tests |= 1u << test;
		arg += len + (arg[len] == ',');
	}
	return conf->tests ? 0 : -1;
}

static int number_parse(const char *arg, long min, long max, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(arg, &end, 0);
	return errno || *end || end == arg || *value < min || *value > max ? -1 : 0;
}

static int json_open(struct bench_conf *conf, const char *path)
{
	if (!strcmp(path, "-")) {
		conf->json = stdout;
		conf->table = false;
		return 0;
	}
	conf->json = fopen(path, "a");
	return conf->json ? 0 : -1;
}

void bench_conf_init(struct bench_conf *conf)
{
	*conf = (struct bench_conf){
		.tests = 1u << BENCH_LATENCY | 1u << BENCH_BW | 1u << BENCH_RATE,
		.rate_size = 8,
		.window = 64,
		.samples = 41,
		.sample_us = 1000,
		.budget_ms = 400,
		.cores = { -1, -1 },
		.table = true,
		.label = "",
	};
	sizes_range(conf, 0, 4u << 20);
}

int bench_conf_option(struct bench_conf *conf, int opt, const char *arg)
{
	long value = 0;
	int err;

	switch (opt) {
	case 't': return tests_parse(conf, arg);
	case 's': return sizes_parse(conf, arg);
	case 'j': return json_open(conf, arg);
	case 'l': conf->label = arg; return 0;
	case 'c': return sscanf(arg, "%d,%d", &conf->cores[0], &conf->cores[1]) == 2 ? 0 : -1;
	case 'T': return number_parse(arg, 1, 10000000, &conf->sample_us);
	case 'P': return number_parse(arg, 0, 1000000000, &conf->singles);
	case 'B': return number_parse(arg, 1, 10000000, &conf->budget_ms);
	case 'r':
		err = number_parse(arg, 0, 1L << 30, &value);
		conf->rate_size = (size_t)value;
		return err;
	case 'w':
		err = number_parse(arg, 1, 65536, &value);
		conf->window = (int)value;
		return err;
	case 'n':
		err = number_parse(arg, 1, BENCH_SAMPLE_MAX, &value);
		conf->samples = (int)value;
		return err;
	case 'R':
		err = number_parse(arg, 0, 99, &value);
		conf->rt_prio = (int)value;
		return err;
	}
	return -1;
}

size_t bench_conf_max_size(const struct bench_conf *conf)
{
	/* Largest number of bytes in the first message: 8 */
	size_t max = conf->rate_size > 8 ? conf->rate_size : 8;

	for (int i = 0; i < conf->size_cnt; i++)
		max = conf->sizes[i] > max ? conf->sizes[i] : max;
	return max;
}

void bench_conf_free(struct bench_conf *conf)
{
	FILE *json = conf->json == stdout ? NULL : conf->json;
	bool lost = fflush(stdout) || ferror(stdout) || (json && ferror(json));

	conf->json = NULL;
	if (json && fclose(json))
		lost = true;
	if (!lost)
		return;
	fprintf(stderr, "bench: the results could not be written\n");
	exit(EXIT_FAILURE);
}

/* ---- samples ---- */

/* Returns the messages of one direction that are in flight at once. */
static int point_window(const struct bench_point *point)
{
	bool single = point->test == BENCH_LATENCY || point->test == BENCH_EXCHANGE;

	return single ? 1 : point->conf->window;
}

static void point_rounds(struct bench_point *point, long rounds)
{
	struct bench_wire *wire = point->wire;
	int window = point_window(point);

	switch (point->test) {
	case BENCH_LATENCY: wire->pingpong(wire, point->size, rounds); break;
	case BENCH_EXCHANGE:
	case BENCH_BIBW: wire->exchange(wire, point->size, window, rounds); break;
	default: wire->stream(wire, point->size, window, rounds); break;
	}
}

static uint64_t point_timed(struct bench_point *point)
{
	uint64_t start = bench_now_ns();

	point_rounds(point, point->rounds);
	return bench_now_ns() - start;
}

/* Returns the messages that one sample counts as moved. */
static double point_messages(const struct bench_point *point)
{
	double windows = (double)point->rounds * point->conf->window;

	switch (point->test) {
	case BENCH_LATENCY:
	case BENCH_EXCHANGE: return 2.0 * (double)point->rounds;
	case BENCH_BIBW: return 2.0 * windows;
	default: return windows;
	}
}

static double point_value(const struct bench_point *point, uint64_t ns)
{
	double messages = point_messages(point);
	double us = (double)(ns ? ns : 1) / 1000.0;

	switch (point->test) {
	case BENCH_LATENCY: return us / messages;
	case BENCH_EXCHANGE: return us / (double)point->rounds;
	case BENCH_RATE: return messages / us;
	default: return messages * (double)point->size / us;
	}
}

/*
 * Times the rounds twice and returns the shorter time. The first may include a wait for the other
 * rank or a disturbance by another process.
 */
static uint64_t point_timed_twice(struct bench_point *point)
{
	uint64_t first, second;

	first = point_timed(point);
	point->wire->agree(point->wire, 0);
	second = point_timed(point);
	return first < second ? first : second;
}

/* Doubles the rounds until a sample is long enough. This time is the warm-up. */
static void point_calibrate(struct bench_point *point)
{
	uint64_t target_ns = (uint64_t)point->conf->sample_us * 1000;
	long next = 1;

	do {
		point->rounds = next;
		uint64_t ns = point_timed_twice(point);

		next = ns >= target_ns || next >= ROUNDS_MAX ? 0 : next * 2;
		next = point->wire->agree(point->wire, next);
	} while (next);
}

static bool point_goes_on(const struct bench_point *point, uint64_t start)
{
	uint64_t budget_ns = (uint64_t)point->conf->budget_ms * 1000000;
	bool time_left = bench_now_ns() - start < budget_ns;
	bool more = point->sample_cnt < point->conf->samples &&
		    (point->sample_cnt < SAMPLE_MIN || time_left);

	return point->wire->agree(point->wire, more);
}

static void point_samples(struct bench_point *point, int insn_fd)
{
	uint64_t start = bench_now_ns(), insn = 0;

	while (point_goes_on(point, start)) {
		uint64_t before = bench_insn_read(insn_fd);
		uint64_t ns = point_timed(point);

		insn += bench_insn_read(insn_fd) - before;
		point->values[point->sample_cnt++] = point_value(point, ns);
	}
	insn = point->wire->sum(point->wire, insn);
	point->insn_per_msg = (double)insn / (point_messages(point) * point->sample_cnt);
}

/* Returns whether single rounds of a point are timed. */
static bool point_has_tail(const struct bench_point *point)
{
	return point->conf->singles && point_window(point) == 1;
}

static void point_single(void *arg)
{
	point_rounds(arg, 1);
}

static void point_tail(struct bench_point *point)
{
	double messages = point->test == BENCH_LATENCY ? 2 : 1;

	point->wire->agree(point->wire, 0);
	bench_tail(point_single, point, point->conf->singles, point->tail);
	for (int i = 0; i < BENCH_TAIL_CNT; i++)
		point->tail[i] /= messages;
}

/* ---- reports ---- */

static int value_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double bench_median(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), value_compare);
	return values[cnt / 2];
}

static double point_quantile(const struct bench_point *point, double part)
{
	return point->values[(int)(part * (point->sample_cnt - 1) + 0.5)];
}

static void report_head(const struct bench_conf *conf, const struct bench_wire *wire,
			enum bench_test test)
{
	if (!conf->table || wire->rank)
		return;
	printf("\n# %s%s%s over %s, median of %d samples\n", conf->label, *conf->label ? ": " : "",
	       bench_tests[test].name, wire->name, conf->samples);
	printf("%-10s %20s %12s %12s", "# Size", bench_tests[test].title, "10 %", "90 %");
	if (conf->singles && (test == BENCH_LATENCY || test == BENCH_EXCHANGE))
		for (int i = 0; i < BENCH_TAIL_CNT; i++)
			printf(" %12s", bench_tail_names[i]);
	printf(" %12s\n", "insn/msg");
}

static void report_table(const struct bench_point *point)
{
	int digits = bench_tests[point->test].digits;

	printf("%-10zu %20.*f %12.*f %12.*f", point->size, digits, point_quantile(point, 0.5),
	       digits, point_quantile(point, 0.1), digits, point_quantile(point, 0.9));
	for (int i = 0; i < BENCH_TAIL_CNT && point_has_tail(point); i++)
		printf(" %12.*f", digits, point->tail[i]);
	if (point->insn_per_msg > 0)
		printf(" %12.0f", point->insn_per_msg);
	printf("\n");
	fflush(stdout);
}

static void report_json(const struct bench_point *point)
{
	FILE *out = point->conf->json;

	fprintf(out,
		"{\"wire\": \"%s\", \"label\": \"%s\", \"test\": \"%s\", \"size\": %zu, "
		"\"window\": %d, \"unit\": \"%s\", \"median\": %.6g, \"p10\": %.6g, "
		"\"p90\": %.6g, \"samples\": %d, \"rounds\": %ld, ",
		point->wire->name, point->conf->label, bench_tests[point->test].name, point->size,
		point_window(point), bench_tests[point->test].unit, point_quantile(point, 0.5),
		point_quantile(point, 0.1), point_quantile(point, 0.9), point->sample_cnt,
		point->rounds);
	for (int i = 0; i < BENCH_TAIL_CNT && point_has_tail(point); i++)
		fprintf(out, "\"%s\": %.6g, ", bench_tail_names[i], point->tail[i]);
	if (point->insn_per_msg > 0)
		fprintf(out, "\"insn_per_msg\": %.1f}\n", point->insn_per_msg);
	else
		fprintf(out, "\"insn_per_msg\": null}\n");
	fflush(out);
}

static void point_report(struct bench_point *point)
{
	if (point->wire->rank)
		return;
	bench_progress_clear();
	bench_median(point->values, (size_t)point->sample_cnt);
	if (point->conf->table)
		report_table(point);
	if (point->conf->json)
		report_json(point);
}

void bench_report_value(const struct bench_conf *conf, const struct bench_wire *wire,
			const char *test, size_t size, const char *unit, double value)
{
	if (wire->rank)
		return;
	if (conf->table) {
		printf("# %s%s%s", conf->label, *conf->label ? ": " : "", test);
		if (size)
			printf(" %zu", size);
		printf(": %.3f %s\n", value, unit);
		fflush(stdout);
	}
	if (!conf->json)
		return;
	fprintf(conf->json,
		"{\"wire\": \"%s\", \"label\": \"%s\", \"test\": \"%s\", \"size\": %zu, "
		"\"unit\": \"%s\", \"median\": %.6g}\n",
		wire->name, conf->label, test, size, unit, value);
	fflush(conf->json);
}

/* ---- a run ---- */

static char pattern_byte(int rank, size_t pos)
{
	return (char)(pos * 31 + pos / 251 + (size_t)rank * 97 + 1);
}

static void pattern_fill(struct bench_wire *wire, size_t size)
{
	memset(wire->rx, 0, size);
	for (size_t i = 0; i < size; i++)
		wire->tx[i] = pattern_byte(wire->rank, i);
}

static void pattern_check(const struct bench_point *point)
{
	const struct bench_wire *wire = point->wire;
	bool one_way = point->test == BENCH_BW || point->test == BENCH_RATE;
	bool receives = wire->rank == 1 || !one_way;

	for (size_t i = 0; receives && i < point->size; i++) {
		if (wire->rx[i] == pattern_byte(!wire->rank, i))
			continue;
		fprintf(stderr, "bench: %s, size %zu, rank %d: byte %zu is wrong\n",
			bench_tests[point->test].name, point->size, wire->rank, i);
		exit(EXIT_FAILURE);
	}
}

static void point_run(const struct bench_conf *conf, struct bench_wire *wire, enum bench_test test,
		      size_t size, int insn_fd)
{
	static struct bench_point point;

	point = (struct bench_point){ .conf = conf, .wire = wire, .test = test, .size = size };
	pattern_fill(wire, size);
	if (conf->rt_prio)
		bench_realtime(conf->rt_prio);
	point_calibrate(&point);
	point_samples(&point, insn_fd);
	if (point_has_tail(&point))
		point_tail(&point);
	if (conf->rt_prio)
		bench_realtime(0);
	pattern_check(&point);
	point_report(&point);
}

/* Returns the sizes of a test; `cnt`: how many. */
static const size_t *test_sizes(const struct bench_conf *conf, enum bench_test test, int *cnt)
{
	*cnt = test == BENCH_RATE ? 1 : conf->size_cnt;
	return test == BENCH_RATE ? &conf->rate_size : conf->sizes;
}

static int points_in_all(const struct bench_conf *conf)
{
	int total = 0, cnt;

	for (enum bench_test test = 0; test < BENCH_TEST_CNT; test++) {
		test_sizes(conf, test, &cnt);
		total += conf->tests & 1u << test ? cnt : 0;
	}
	return total;
}

void bench_run(const struct bench_conf *conf, struct bench_wire *wire)
{
	int insn_fd = bench_insn_open(), done = 0, total = points_in_all(conf);

	bench_pin(conf->cores[wire->rank]);
	for (enum bench_test test = 0; test < BENCH_TEST_CNT; test++) {
		int cnt;
		const size_t *sizes = test_sizes(conf, test, &cnt);

		if (!(conf->tests & 1u << test))
			continue;
		report_head(conf, wire, test);
		for (int i = 0; i < cnt; i++) {
			if (!wire->rank)
				bench_progress(bench_tests[test].name, sizes[i], done++, total);
			point_run(conf, wire, test, sizes[i], insn_fd);
		}
	}
}
