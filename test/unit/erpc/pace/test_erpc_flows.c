/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions that share a bottleneck fill it, keep its queue short and get equal shares, also a late
 * one, with sends and with gets. Tests the properties of Timely (test_erpc_timely.c) through slots,
 * credits, the wheel and measured round trips.
 *
 * `make erpc-plot` records the runs for test/plot/flows, which draws the picture in
 * docs/datagram-protocol.md:
 *
 *   COPYRPC_FLOWS  directory for one file per run, lines: ms, us of queue, longest, Gbit/s per flow
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/erpc_flows.h"

#define MS 1000000ull

static struct flows f;

/** Writes the bins to $COPYRPC_FLOWS/<name>. */
static void write_down(const char *name)
{
	const char *dir = getenv("COPYRPC_FLOWS");
	double bin_ns = (double)f.cfg.bin_ns;
	char path[512];
	unsigned i, k;
	FILE *out;

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	cr_assert_not_null(out, "cannot write %s", path);
	for (k = 0; k < f.bin_cnt; k++) {
		fprintf(out, "%.3f %.2f %.2f", k * bin_ns / 1e6, f.bins[k].queue_ns / 1e3,
			f.bins[k].queue_max_ns / 1e3);
		for (i = 0; i < f.cfg.cnt; i++)
			fprintf(out, " %.4f", f.bins[k].bytes[i] * 8 / bin_ns);
		fputc('\n', out);
	}
	fclose(out);
}

static unsigned bin_of(uint64_t ns)
{
	return (unsigned)(ns / f.cfg.bin_ns);
}

/** Runs the simulation and prints its last quarter. */
static void run(const struct flows_cfg *cfg, const char *name)
{
	unsigned from;

	flows_run(cfg, &f);
	write_down(name);
	from = f.bin_cnt * 3 / 4;
	printf("%-12s %2u flows: %.3f of the link, %3.0f us queued (at most %.0f), fairness %.3f, "
	       "%lu lost\n",
	       name, cfg->cnt, flows_used(&f, from, f.bin_cnt),
	       flows_queue_ns(&f, from, f.bin_cnt) / 1e3,
	       flows_queue_max_ns(&f, from, f.bin_cnt) / 1e3, flows_fairness(&f, from, f.bin_cnt),
	       f.lost);
}

/** Asserts that the link is used, the queue is short and shares are equal, from `ns` on. */
static void expect_shared(uint64_t ns, double queue_us)
{
	unsigned from = bin_of(ns);

	cr_expect_gt(flows_used(&f, from, f.bin_cnt), 0.85);
	cr_expect_gt(flows_fairness(&f, from, f.bin_cnt), 0.9);
	cr_expect_lt(flows_queue_ns(&f, from, f.bin_cnt) / 1e3, queue_us);
	cr_expect_eq(f.lost, 0);
}

/** All flows start together; with `late` the last one starts at a third of the time. */
static void together(unsigned cnt, bool get, double queue_us, const char *name)
{
	struct flows_cfg cfg = flows_cfg_default(cnt);

	cfg.get = get;
	run(&cfg, name);
	expect_shared(20 * MS, queue_us);
}

static void late(unsigned cnt, bool get, double queue_us, const char *name)
{
	struct flows_cfg cfg = flows_cfg_default(cnt);

	cfg.get = get;
	cfg.last_start_ns = 30 * MS;
	run(&cfg, name);
	cr_expect_eq(f.bins[bin_of(cfg.last_start_ns) - 1].bytes[cnt - 1], 0);
	cr_expect_gt(flows_used(&f, bin_of(10 * MS), bin_of(cfg.last_start_ns)), 0.85);
	expect_shared(50 * MS, queue_us);
}

Test(erpc_flows, two_flows_share_a_link)
{
	together(2, false, 100, "2");
}

Test(erpc_flows, sixteen_flows_share_a_link)
{
	together(16, false, 300, "16");
}

Test(erpc_flows, a_late_flow_gets_an_equal_share)
{
	late(2, false, 100, "2-late");
}

Test(erpc_flows, a_late_sixteenth_flow_gets_an_equal_share)
{
	late(16, false, 300, "16-late");
}

Test(erpc_flows, gets_share_a_link)
{
	together(2, true, 100, "2-get");
	late(16, true, 300, "16-get");
}

/**
 * Runs a narrow link with a queue shorter than Timely's thresholds, and ends that are woken for
 * each packet. All start at full rate; the shares count from the second second on.
 */
static void narrow(unsigned cnt, unsigned mbit, uint64_t queue_max, const char *name)
{
	struct flows_cfg cfg = flows_cfg_default(cnt);
	unsigned from;

	cfg.link_bytes_per_s = mbit * 125000.0;
	cfg.mtu = 1472;
	cfg.queue_max = queue_max;
	cfg.step_ns = 1000000 / mbit;
	cfg.wake_ns = 100000;
	cfg.host_ns = 300000;
	cfg.ns = mbit < 100 ? 8000 * MS : 3000 * MS;
	cfg.bin_ns = cfg.ns / 500;
	run(&cfg, name);
	from = f.bin_cnt / 3;
	cr_expect_gt(flows_used(&f, from, f.bin_cnt), 0.85);
	cr_expect_gt(flows_fairness(&f, from, f.bin_cnt), 0.9);
}

Test(erpc_flows, a_narrow_link_is_shared)
{
	narrow(2, 200, 250000, "2-narrow");
	narrow(16, 200, 250000, "16-narrow");
}

Test(erpc_flows, a_very_narrow_link_is_shared)
{
	narrow(2, 20, 60000, "2-very-narrow");
	narrow(16, 20, 60000, "16-very-narrow");
}

/** Runs without the wheel: credits alone keep a longer queue, growing with the number of flows. */
static double unpaced(unsigned cnt, const char *name)
{
	struct flows_cfg cfg = flows_cfg_default(cnt);

	cfg.paced = false;
	cfg.last_start_ns = 30 * MS;
	run(&cfg, name);
	return flows_queue_ns(&f, bin_of(50 * MS), f.bin_cnt);
}

Test(erpc_flows, without_pacing_the_queue_is_longer)
{
	struct flows_cfg cfg = flows_cfg_default(16);
	double paced;

	unpaced(2, "2-unpaced");
	flows_run(&cfg, &f);
	paced = flows_queue_ns(&f, bin_of(50 * MS), f.bin_cnt);
	cr_expect_gt(unpaced(16, "16-unpaced"), 2 * paced);
}

/** Runs one flow alone; an end computes for four times Timely's threshold of congestion. */
static double alone(bool senders_away)
{
	struct flows_cfg cfg = flows_cfg_default(1);

	cfg.every_ns = 1 * MS;
	cfg.away_ns = MS / 5;
	cfg.senders_away = senders_away;
	run(&cfg, senders_away ? "1-busy" : "1-busy-peer");
	return flows_used(&f, f.bin_cnt * 3 / 4, f.bin_cnt);
}

Test(erpc_flows, an_absent_end_is_not_taken_for_congestion)
{
	/* Four fifths of the time, and the rest of the window; 0.79 if absence counted. */
	cr_expect_gt(alone(false), 0.80);
	cr_expect_gt(alone(true), 0.80);
}
