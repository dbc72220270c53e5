/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Method of measurement, apart from the transport that carries the messages.
 *
 * A program (mpi_bench, fi_tagged_bench) gives the driver a struct bench_wire: three ways to move
 * messages between rank 0 and rank 1, and two ways for the ranks to agree outside the timed part.
 * The driver owns everything else: options, number of rounds, samples, statistics, instruction
 * counters, the table and the JSON lines.
 *
 * Method: the rounds of one sample are doubled until a sample takes bench_conf.sample_us, which is
 * also the warm-up. Then many short samples are taken, and their median is reported, because on a
 * shared machine the mean measures other processes. Both ranks run the same samples; rank 0 holds
 * the clock. Received bytes are checked after the last sample of every point.
 *
 * Call order: bench_conf_init, bench_conf_option for each option, bench_run once the wire is up,
 * bench_conf_free at the end. One thread a rank. A failure ends the process: a benchmark has
 * nothing to clean up.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum bench_test {
	BENCH_LATENCY,  /* ping-pong: half a round trip, in us */
	BENCH_EXCHANGE, /* one message each way at once, until both have arrived, in us */
	BENCH_BW,       /* windows one way, an acknowledgement each: MB/s (10^6 bytes) */
	BENCH_BIBW,     /* windows both ways at once: MB/s, both directions added */
	BENCH_RATE,     /* BENCH_BW at bench_conf.rate_size, in million messages per second */
	BENCH_TEST_CNT,
};

enum {
	BENCH_SIZE_MAX = 64,   /* sizes in one run */
	BENCH_SAMPLE_MAX = 999 /* samples in one point */
};

struct bench_conf {
	unsigned tests; /* bit n: enum bench_test n */
	size_t sizes[BENCH_SIZE_MAX];
	int size_cnt;
	size_t rate_size; /* size of BENCH_RATE in bytes */
	int window;
	int samples;    /* number of samples in each point */
	long sample_us; /* minimum length of one sample */
	long budget_ms; /* Time after which a point ends early, once it has 5 samples */
	int cores[2];   /* rank n runs on cores[n]; -1: anywhere */
	int rt_prio;    /* SCHED_FIFO priority while samples are taken; 0: ordinary */
	long singles;   /* rounds that BENCH_LATENCY and BENCH_EXCHANGE time one by one; 0: none */
	bool table;
	FILE *json; /* NULL: none */
	const char *label;
};

struct bench_wire {
	const char *name; /* Name of the transport, for the reports */
	int rank;
	char *tx, *rx; /* bench_conf_max_size bytes each */

	/* One round: a message there and one back. */
	void (*pingpong)(struct bench_wire *wire, size_t size, long rounds);
	/* One round: window messages from rank 0 to rank 1, then an acknowledgement. */
	void (*stream)(struct bench_wire *wire, size_t size, int window, long rounds);
	/* One round: window messages each way, all in flight at once. */
	void (*exchange)(struct bench_wire *wire, size_t size, int window, long rounds);

	/* Returns rank 0's value on both ranks. */
	long (*agree)(struct bench_wire *wire, long value);
	/* Returns the sum over both ranks on rank 0. */
	uint64_t (*sum)(struct bench_wire *wire, uint64_t value);
};

#define BENCH_OPTIONS "t:s:r:w:n:T:B:c:P:R:l:j:"
#define BENCH_USAGE                                                                                \
	"  -t TEST,...   latency, exchange, bw, bibw, rate (default: latency,bw,rate)\n"           \
	"  -s SIZES      a,b,c or MIN:MAX in powers of two (default 0:4194304)\n"                  \
	"  -r SIZE       size of the rate test (8)\n"                                              \
	"  -w N          messages in a window (64)\n"                                              \
	"  -n N          samples in a point, the median is reported (41)\n"                        \
	"  -T US         length of one sample (1000)\n"                                            \
	"  -B MS         time for one point (400)\n"                                               \
	"  -c A,B        cores of rank 0 and rank 1\n"                                             \
	"  -P N          percentiles of N single rounds of latency and exchange (0)\n"             \
	"  -R PRIO       real-time priority while measuring (starves progress threads)\n"          \
	"  -l TEXT       label in the reports\n"                                                   \
	"  -j FILE       append JSON lines to FILE; - writes them to stdout, without the table\n"

/* Sets the defaults. */
void bench_conf_init(struct bench_conf *conf);
/* Parses one option of BENCH_OPTIONS. Returns 0, or -1 if the value is not valid. */
int bench_conf_option(struct bench_conf *conf, int opt, const char *arg);
size_t bench_conf_max_size(const struct bench_conf *conf);
/* Closes what the options opened. Ends the process if results could not be written. */
void bench_conf_free(struct bench_conf *conf);

/* Runs all points. Called by both ranks with the same conf; rank 0 reports. */
void bench_run(const struct bench_conf *conf, struct bench_wire *wire);
/*
 * Reports one number on rank 0: a table line and a JSON line. `size`: 0 for a number without one,
 * for example a start-up time.
 */
void bench_report_value(const struct bench_conf *conf, const struct bench_wire *wire,
			const char *test, size_t size, const char *unit, double value);
/* Sorts `values`. Returns their median. */
double bench_median(double *values, size_t cnt);

/*
 * bench_tail.c: percentiles of rounds that are timed one by one. A mean over many rounds hides the
 * few that take long.
 */
enum { BENCH_TAIL_CNT = 4 };
/* Fractions of the rounds, and their names in tables and JSON ("p50"). */
extern const double bench_tail_fractions[BENCH_TAIL_CNT];
extern const char *const bench_tail_names[BENCH_TAIL_CNT];
/*
 * Calls `round(arg)` `rounds` times and sets `us[i]` to the time in us that the fraction i of the
 * calls did not exceed. A value is at most 3.2 % too high (bench_hist.h) and contains one read of
 * the clock, about 25 ns.
 */
void bench_tail(void (*round)(void *arg), void *arg, long rounds, double us[BENCH_TAIL_CNT]);

/*
 * bench_progress.c: one line on the terminal of a run that takes longer than 2 s, which says what
 * is measured and how much is left. Prints nothing where stderr is no terminal.
 */
void bench_progress(const char *test, size_t size, int done, int total);
/* Removes that line, before something else is printed and at the end. */
void bench_progress_clear(void);

/* bench_host.c: services of the machine. */
uint64_t bench_now_ns(void);
void bench_pin(int core);
/* Sets SCHED_FIFO with `prio`, or the ordinary scheduler if 0. Returns false if not permitted */
bool bench_realtime(int prio);
/*
 * Opens a counter of this thread's user instructions. Returns its descriptor, or -1 if there is
 * none
 */
int bench_insn_open(void);
uint64_t bench_insn_read(int fd);
/*
 * Forks the second rank. The child is killed when its parent ends, and a child that fails ends the
 * parent.
 */
pid_t bench_fork(void);
void bench_join(pid_t child);

#endif
