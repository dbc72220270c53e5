/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of finding the receive for a message, against the length of the queue.
 *
 * core_match alone, without messages. A row keeps `n` receives posted, or `n` messages unexpected,
 * all with different tags; a step removes one and queues it again, so that n is constant. The
 * median time of a step is reported: one match and one insertion (of a row "none": one search
 * without a match).
 *
 * shapes  exact   ignore mask 0, one source
 * 		mpi     the same with a mask of protocol bits on each receive, as MPI libraries post
 * 		mix     of 16 receives, one takes anything, one any source, one any tag of a source
 * order   fifo    the oldest each time
 * 	random  any of them
 * 	none    no match
 *
 * The structs are as far apart as in real requests, so that the cache hit rate is realistic.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "core/msg/core_match.h"

#define SAMPLE_MAX  999
#define SAMPLE_NS   300000.0
#define LEN_MAX     10000u
#define PICK_CNT    50000u /* a multiple of every length */
#define RECV_STRIDE 256
#define MSG_STRIDE  512
#define SRC_CNT     16
#define MPI_BITS    0x3000000000000000ull

enum match_shapes { SHAPES_EXACT, SHAPES_MPI, SHAPES_MIX };
enum match_order { ORDER_FIFO, ORDER_RANDOM, ORDER_NONE };

struct match_recv {
	struct core_match_recv recv;
	char rest[RECV_STRIDE - sizeof(struct core_match_recv)];
};

struct match_msg {
	struct core_match_msg msg;
	char rest[MSG_STRIDE - sizeof(struct core_match_msg)];
};

struct match_row {
	bool unexpected;
	enum match_shapes shapes;
	enum match_order order;
};

struct match_run {
	struct core_match *m;
	struct match_row row;
	unsigned len;
	unsigned at;    /* next index of pick */
	uint32_t *pick; /* order in which receives are used, cyclic */
	struct match_recv *recvs;
	struct match_msg *msgs;
};

struct match_conf {
	int samples;
	int core;
	const char *label;
	FILE *json;
};

static const struct match_row rows[] = {
	{ false, SHAPES_EXACT, ORDER_FIFO }, { false, SHAPES_EXACT, ORDER_RANDOM },
	{ false, SHAPES_EXACT, ORDER_NONE }, { false, SHAPES_MPI, ORDER_FIFO },
	{ false, SHAPES_MPI, ORDER_RANDOM }, { false, SHAPES_MIX, ORDER_RANDOM },
	{ true, SHAPES_EXACT, ORDER_FIFO },  { true, SHAPES_EXACT, ORDER_RANDOM },
	{ true, SHAPES_EXACT, ORDER_NONE },  { true, SHAPES_MPI, ORDER_FIFO },
	{ true, SHAPES_MPI, ORDER_RANDOM },  { true, SHAPES_MIX, ORDER_RANDOM },
};

static const unsigned lens[] = { 1, 8, 16, 100, 1000, LEN_MAX };

#define ROW_CNT (sizeof(rows) / sizeof(rows[0]))
#define LEN_CNT (sizeof(lens) / sizeof(lens[0]))

static const char *const shape_names[] = { "exact", "mpi", "mix" };
static const char *const order_names[] = { "fifo", "random", "none" };

static uint64_t match_src(unsigned i)
{
	return i % SRC_CNT;
}

/*
 * Initialises receive number i of a row. It matches message i; receives with wildcards match others
 * too.
 */
static void match_recv_set(struct core_match_recv *r, enum match_shapes shapes, unsigned i)
{
	r->tag = i;
	r->src = match_src(i);
	r->ignore = shapes == SHAPES_EXACT ? 0 : MPI_BITS;
	if (shapes != SHAPES_MIX)
		return;
	if (i % 16 == 5 || i % 16 == 10)
		r->src = CORE_MATCH_ANY;
	if (i % 16 == 5 || i % 16 == 15)
		r->ignore = UINT64_MAX;
}

static void match_fill(struct match_run *run)
{
	for (unsigned i = 0; i < run->len; i++) {
		struct core_match_recv *r = &run->recvs[i].recv;
		struct core_match_msg *msg = &run->msgs[i].msg;

		match_recv_set(r, run->row.shapes, i);
		msg->tag = i;
		msg->src = match_src(i);
		if (run->row.unexpected)
			core_match_keep(run->m, msg);
		else
			core_match_post(run->m, r);
	}
}

static void match_pick(struct match_run *run)
{
	uint64_t x = 88172645463325252ull;

	run->at = 0;
	for (unsigned i = 0; i < PICK_CNT; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		run->pick[i] =
			(uint32_t)(run->row.order == ORDER_RANDOM ? x % run->len : i % run->len);
	}
}

static inline uint32_t match_next(struct match_run *run)
{
	uint32_t i = run->pick[run->at];

	run->at = run->at + 1 == PICK_CNT ? 0 : run->at + 1;
	return i;
}

static void match_fail(const char *what)
{
	fprintf(stderr, "match_bench: %s\n", what);
	exit(1);
}

static void match_posted_steps(struct match_run *run, long steps)
{
	while (steps--) {
		uint32_t i = match_next(run);
		struct core_match_recv *r = core_match_arrive(run->m, i, match_src(i));

		if (!r)
			match_fail("no receive");
		if (core_match_post(run->m, r))
			match_fail("an unexpected message");
	}
}

static void match_unexpected_steps(struct match_run *run, long steps)
{
	struct core_match_recv r;

	while (steps--) {
		struct core_match_msg *msg;

		match_recv_set(&r, run->row.shapes, match_next(run));
		msg = core_match_post(run->m, &r);
		if (!msg)
			match_fail("no message");
		if (core_match_arrive(run->m, msg->tag, msg->src))
			match_fail("a posted receive");
		core_match_keep(run->m, msg);
	}
}

static void match_none_steps(struct match_run *run, long steps)
{
	while (steps--) {
		uint32_t i = match_next(run);

		if (run->row.unexpected ? !!core_match_peek(run->m, LEN_MAX + i, 0, match_src(i))
					: !!core_match_arrive(run->m, LEN_MAX + i, match_src(i)))
			match_fail("a match of nobody's message");
	}
}

static double match_sample(struct match_run *run, long steps)
{
	uint64_t start = bench_now_ns();

	if (run->row.order == ORDER_NONE)
		match_none_steps(run, steps);
	else if (run->row.unexpected)
		match_unexpected_steps(run, steps);
	else
		match_posted_steps(run, steps);
	return (double)(bench_now_ns() - start) / (double)steps;
}

/*
 * Takes samples of about SAMPLE_NS each and sorts them. The first ones, which warm up, are not
 * counted.
 */
static void match_measure(struct match_run *run, double *ns, int samples)
{
	long steps = run->len > 1000 ? run->len : 1000;

	while (match_sample(run, steps) * (double)steps < SAMPLE_NS)
		steps *= 2;
	for (int i = 0; i < samples; i++)
		ns[i] = match_sample(run, steps);
	bench_median(ns, (size_t)samples);
}

static void match_drain(struct match_run *run)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, core_match_posted(run->m))
		core_match_cancel(run->m, UTIL_CONTAINER_OF(it, struct core_match_recv, order));
	UTIL_LIST_FOREACH_SAFE (it, tmp, core_match_unexpected(run->m))
		core_match_take(run->m, UTIL_CONTAINER_OF(it, struct core_match_msg, order));
}

static void match_json(const struct match_conf *conf, const struct match_row *row, unsigned len,
		       const double *ns)
{
	fprintf(conf->json,
		"{\"wire\": \"core_match\", \"label\": \"%s\", \"test\": \"match_%s_%s_%s\", "
		"\"size\": %u, \"unit\": \"ns\", \"median\": %.4g, \"p10\": %.4g, "
		"\"p90\": %.4g, \"samples\": %d}\n",
		conf->label, row->unexpected ? "unexpected" : "posted", shape_names[row->shapes],
		order_names[row->order], len, ns[conf->samples / 2], ns[conf->samples / 10],
		ns[conf->samples * 9 / 10], conf->samples);
}

static double match_cell(const struct match_conf *conf, struct match_run *run, unsigned len)
{
	double ns[SAMPLE_MAX];

	run->len = len;
	run->m = core_match_open();
	if (!run->m)
		match_fail("no memory");
	match_pick(run);
	match_fill(run);
	match_measure(run, ns, conf->samples);
	match_drain(run);
	core_match_close(run->m);
	if (conf->json)
		match_json(conf, &run->row, len, ns);
	return ns[conf->samples / 2];
}

static void match_table(const struct match_conf *conf, struct match_run *run)
{
	bool table = conf->json != stdout;

	if (table)
		printf("# ns per match and insertion, queue length:\n%-10s  %-6s %-7s", "# queue",
		       "shapes", "order");
	for (size_t i = 0; i < LEN_CNT && table; i++)
		printf("%9u", lens[i]);
	for (size_t r = 0; r < ROW_CNT; r++) {
		run->row = rows[r];
		if (table)
			printf("\n%-10s  %-6s %-7s", rows[r].unexpected ? "unexpected" : "posted",
			       shape_names[rows[r].shapes], order_names[rows[r].order]);
		for (size_t i = 0; i < LEN_CNT; i++) {
			double ns = match_cell(conf, run, lens[i]);

			if (table)
				printf("%9.1f", ns);
			fflush(stdout);
		}
	}
	if (table)
		putchar('\n');
}

static void match_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [-n SAMPLES] [-c CORE] [-l LABEL] [-j FILE]\n"
		"  -n N     samples in a point, the median is reported (21)\n"
		"  -c CORE  run there\n"
		"  -l TEXT  label in the reports\n"
		"  -j FILE  append JSON lines to FILE; -: to stdout, without the table\n",
		name);
	exit(2);
}

static struct match_conf match_options(int argc, char **argv)
{
	struct match_conf conf = { .samples = 21, .core = -1, .label = "" };
	int opt;

	while ((opt = getopt(argc, argv, "n:c:l:j:")) != -1) {
		switch (opt) {
		case 'n': conf.samples = atoi(optarg); break;
		case 'c': conf.core = atoi(optarg); break;
		case 'l': conf.label = optarg; break;
		case 'j': conf.json = strcmp(optarg, "-") ? fopen(optarg, "a") : stdout; break;
		default: match_usage(argv[0]);
		}
		if (opt == 'j' && !conf.json)
			match_fail("cannot write the JSON file");
	}
	if (conf.samples < 1 || conf.samples > SAMPLE_MAX || optind != argc)
		match_usage(argv[0]);
	return conf;
}

static void *match_alloc(size_t len)
{
	void *mem = aligned_alloc(UTIL_CACHE_LINE, util_align_up(len, UTIL_CACHE_LINE));

	if (!mem)
		match_fail("no memory");
	memset(mem, 0, len);
	return mem;
}

int main(int argc, char **argv)
{
	struct match_conf conf = match_options(argc, argv);
	struct match_run run = {
		.pick = match_alloc(PICK_CNT * sizeof(*run.pick)),
		.recvs = match_alloc(LEN_MAX * sizeof(*run.recvs)),
		.msgs = match_alloc(LEN_MAX * sizeof(*run.msgs)),
	};

	bench_pin(conf.core);
	match_table(&conf, &run);
	free(run.msgs);
	free(run.recvs);
	free(run.pick);
	return 0;
}
