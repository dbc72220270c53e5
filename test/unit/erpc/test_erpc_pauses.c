/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transfers over a network that loses packets, by processes that wait for a processor now and then.
 *
 * A pause may fall into a measured round trip. As most packets are repeated, and those are not
 * measured, few samples follow: the timeout must not become long by it.
 *
 *   COPYRPC_PAUSES  seeds, each of TRANSFERS transfers (default: 40)
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/erpc_pair.h"

#define MS        1000000ul
#define HALF      (512u << 10) /* bytes of one of two GETs */
#define LOST      300000u      /* of a million */
#define TRANSFERS 10u
#define SEEDS_MAX 1000u
#define POLL_NS   500u

/** Times that a process runs and pauses: up to twice run_ns, and from min_ns to max_ns. */
struct pauses {
	uint64_t run_ns, min_ns, max_ns;
};

struct times {
	double median_ms, mean_ms, longest_ms;
};

static struct erpc_pair p;
static uint64_t pause_ns, resume_ns; /* the next pause */
static bool resumed;                 /* the process pauses no longer, but has not polled */

static void draw_pause(const struct pauses *z)
{
	pause_ns = p.net.now_ns + 1 + rng_below(&p.rng, 2 * z->run_ns);
	resume_ns = pause_ns + z->min_ns + rng_below(&p.rng, z->max_ns - z->min_ns);
}

/** Makes progress at both ends. Returns the time of the next timer, at most until_ns. */
static uint64_t progress(uint64_t until_ns)
{
	for (unsigned i = 0; i < 2; i++) {
		struct erpc_ep *ep = p.end[i].ep;
		uint64_t due_ns;

		ep->armed = !resumed; /* else it has slept, and was not away */
		erpc_ep_progress(ep, p.net.now_ns);
		due_ns = erpc_ep_due_ns(ep);
		due_ns = due_ns > POLL_NS ? due_ns : POLL_NS;
		if (due_ns < until_ns - p.net.now_ns)
			until_ns = p.net.now_ns + due_ns;
	}
	resumed = false;
	return until_ns;
}

/** Advances time to the next packet or timer. Both ends are one process. */
static void step(const struct pauses *z)
{
	if (p.net.now_ns >= resume_ns)
		draw_pause(z);
	if (p.net.now_ns >= pause_ns) {
		fake_net_run(&p.net, resume_ns);
		resumed = true;
	} else {
		fake_net_step(&p.net, progress(pause_ns));
	}
}

/** Gets 1 MiB. Returns the time that takes. */
static uint64_t transfer(const struct pauses *z)
{
	struct pair_end *e = &p.end[0];
	uint64_t began_ns = p.net.now_ns;
	uint32_t done = e->gets_done + 2;

	e->get_exact = HALF;
	cr_assert(pair_get(e));
	cr_assert(pair_get(e));
	while (e->gets_done < done)
		step(z);
	return p.net.now_ns - began_ns;
}

static void transfers(const struct pauses *z, uint64_t seed, uint64_t *ns)
{
	erpc_pair_init(&p, seed);
	p.net.mtu = 1472;
	p.net.bytes_per_s = 3e9;
	erpc_pair_open(&p);
	erpc_pair_warm(&p);
	p.net.faults.drop = LOST;
	draw_pause(z);
	for (unsigned i = 0; i < TRANSFERS; i++)
		ns[i] = transfer(z);
	p.net.faults.drop = 0;
	erpc_pair_end(&p);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct times measure(struct pauses z)
{
	static uint64_t ns[SEEDS_MAX * TRANSFERS];
	uint64_t seeds = rng_env("COPYRPC_PAUSES", 40);
	uint32_t cnt = (uint32_t)(seeds < SEEDS_MAX ? seeds : SEEDS_MAX) * TRANSFERS, i;
	double sum = 0;
	struct times t;

	for (i = 0; i < cnt; i += TRANSFERS)
		transfers(&z, 1 + i / TRANSFERS, ns + i);
	for (i = 0; i < cnt; i++)
		sum += (double)ns[i];
	qsort(ns, cnt, sizeof(ns[0]), compare);
	t = (struct times){ .median_ms = (double)ns[cnt / 2] / MS,
			    .mean_ms = sum / cnt / MS,
			    .longest_ms = (double)ns[cnt - 1] / MS };
	printf("runs of %lu ms, pauses of %lu to %lu ms: 1 MiB takes %.1f ms, mean %.0f, "
	       "longest %.0f\n",
	       z.run_ns / MS, z.min_ns / MS, z.max_ns / MS, t.median_ms, t.mean_ms, t.longest_ms);
	return t;
}

Test(erpc_pauses, a_transfer_takes_the_time_of_its_pauses, .timeout = 300)
{
	struct times t = measure((struct pauses){ 20 * MS, 20 * MS, 100 * MS });

	cr_expect_lt(t.mean_ms, 30);
	cr_expect_lt(t.longest_ms, 4000);
}

/** The process runs a twelfth of the time. Timeouts of seconds would make up to a minute of it. */
Test(erpc_pauses, a_process_that_runs_seldom, .timeout = 300)
{
	struct times t = measure((struct pauses){ 5 * MS, 20 * MS, 100 * MS });

	cr_expect_lt(t.mean_ms, 300);
	cr_expect_lt(t.longest_ms, 8000);
}

Test(erpc_pauses, long_pauses, .timeout = 300)
{
	struct times t = measure((struct pauses){ 20 * MS, 20 * MS, 500 * MS });

	cr_expect_lt(t.mean_ms, 150);
	cr_expect_lt(t.longest_ms, 15000);
}
