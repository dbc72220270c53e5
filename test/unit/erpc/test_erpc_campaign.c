/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Long runs with increasing losses: nothing is lost, duplicated or reordered, each call gets one
 * reply; and the goodput.
 *
 * Short in the suite. `make erpc-campaign` runs millions of messages, and prints the table of
 * docs/datagram-protocol.md:
 *
 *   COPYRPC_CAMPAIGN        messages of each end for each loss (mixed)
 *   COPYRPC_CAMPAIGN_BYTES  bytes of each stream (goodput)
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/erpc_pair.h"

#define LINK    (25e9 / 8) /* bytes per second */
#define STEP_NS 10000u
#define PER_RUN 200000u /* numbers of a pair's calls have 20 bits */

static const uint32_t losses[] = { 0, 1000, 10000, 100000, 300000 }; /* of a million */

#define LOSSES (sizeof(losses) / sizeof(losses[0]))

static struct erpc_pair p;

/* ---- properties ---- */

/** Makes random steps and advances time. */
static void random_step(void)
{
	struct pair_end *e = &p.end[rng_below(&p.rng, 2)];
	uint32_t what = (uint32_t)rng_below(&p.rng, 100), i;

	for (i = (uint32_t)rng_below(&p.rng, 24); i && what < 70; i--)
		if (what < 40 ? pair_send(e, 0) : pair_call(e, 0))
			break;
	if (what >= 70 && what < 72)
		pair_get(e);
	while (rng_chance(&p.rng, 2, 3) && (pair_reply_one(e) || pair_release(e)))
		;
	erpc_pair_run(&p, rng_below(&p.rng, 20000));
}

static void mixed(uint64_t seed, uint32_t loss, uint64_t cnt)
{
	unsigned i;

	erpc_pair_init(&p, seed);
	p.net.mtu = seed & 1 ? 1024 : 4096;
	p.net.inline_max = seed & 2 ? 60 : 0;
	p.net.bytes_per_s = LINK;
	p.net.faults = (struct fake_faults){ .drop = loss,
					     .dup = loss / 2,
					     .reorder = loss,
					     .reorder_ns = 30000,
					     .corrupt = loss / 10 };
	erpc_pair_open(&p);
	for (i = 0; i < 2; i++) {
		p.end[i].defer_chance = 30;
		p.end[i].ends_chance = 10;
		p.end[i].ep->now.soon = p.end[i].ep->now.trust; /* such ends wait */
		p.end[i].retain_chance = p.end[i].retain_reply_chance = 5;
		p.end[i].len_max = 6000;
		p.end[i].get_max = loss >= 100000 ? 10000 : 100000;
	}
	while (p.end[0].sent < cnt || p.end[1].sent < cnt)
		random_step();
	for (i = 0; i < 2; i++) /* replies of one end do not starve its messages */
		cr_assert_lt(p.end[i].sent, 4 * p.end[!i].sent, "%u, the other end %u",
			     p.end[i].sent, p.end[!i].sent);
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	for (i = 0; i < 2; i++) {
		const struct copyrpc_stats_packets *s = p.end[i].ep->stats;

		cr_assert_eq(s->rx_malformed + s->rx_no_session + s->rx_bad_token +
				     s->rx_bad_source + s->rx_bad + s->rx_bad_state,
			     0);
		cr_assert_eq(p.end[i].gets_refused, 0);
	}
	cr_assert_eq(p.end[0].ep->stats->rx_pkts + p.end[1].ep->stats->rx_pkts,
		     p.net.cnt.delivered);
	erpc_pair_fini(&p);
}

Test(erpc_campaign, each_message_arrives_once)
{
	uint64_t cnt = rng_env("COPYRPC_CAMPAIGN", 2000), left, now, seed = 1;
	unsigned i;

	for (i = 0; i < LOSSES; i++) {
		for (left = cnt; left; left -= now) {
			now = left < PER_RUN ? left : PER_RUN;
			mixed(rng_env("COPYRPC_TEST_SEED", seed++), losses[i], now);
		}
		if (cnt > PER_RUN)
			printf("%lu messages and calls each way, %.1f %% lost: all received\n", cnt,
			       losses[i] / 10000.0);
	}
}

/* ---- goodput ---- */

struct stream {
	double gbit_s;
	double resent; /* fraction of packets that were sent again */
};

/** Sends messages of `len` bytes from one end as fast as possible. */
static struct stream stream(struct fake_faults faults, uint32_t len, uint64_t bytes)
{
	struct pair_end *e = &p.end[0];
	uint64_t began_ns, ended_ns;
	struct stream s;

	erpc_pair_init(&p, 3);
	p.net.mtu = 1472;
	p.net.bytes_per_s = LINK;
	p.net.faults = faults;
	erpc_pair_open(&p);
	e->len_exact = len;
	began_ns = p.net.now_ns;
	while ((uint64_t)e->sent * len < bytes) {
		while (!pair_send(e, 0))
			;
		erpc_pair_run(&p, STEP_NS);
	}
	while (p.end[1].received < e->sent)
		erpc_pair_run(&p, STEP_NS);
	ended_ns = p.net.now_ns; /* a session with losses lingers longer than that */
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	s.gbit_s = (double)e->sent * len * 8 / (double)(ended_ns - began_ns);
	s.resent = (double)e->ep->unread.resent / (double)e->ep->stats->tx_pkts;
	erpc_pair_fini(&p);
	return s;
}

Test(erpc_campaign, goodput_falls_with_the_loss)
{
	static const uint32_t lens[] = { 64, 1024, 16384, 65536 };
	uint64_t bytes = rng_env("COPYRPC_CAMPAIGN_BYTES", 100000);
	double before[4];
	struct stream s;
	unsigned i, k;

	printf("goodput, Gbit/s of 25 (fraction of packets sent again)\n| lost |");
	for (k = 0; k < 4; k++)
		printf(" %u B |", lens[k]);
	for (i = 0; i < LOSSES; i++) {
		printf("\n| %.1f %% |", losses[i] / 10000.0);
		for (k = 0; k < 4; k++) {
			s = stream((struct fake_faults){ .drop = losses[i] }, lens[k], bytes);
			printf(" %.3g (%.2g) |", s.gbit_s, s.resent);
			/* Slots are few: messages of any length fill half of the link. */
			cr_expect_gt(s.gbit_s, i ? 0 : 12.5, "%u B: %g", lens[k], s.gbit_s);
			/* Neighbours are not compared: the streams of the suite are short. */
			if (i == 0)
				before[k] = s.gbit_s;
			else if (losses[i] >= 100000)
				cr_expect_lt(s.gbit_s, before[k]);
		}
	}
	printf("\n");
}

/* Messages of several packets: early packets are kept. */
Test(erpc_campaign, reordering_costs_little)
{
	static const uint32_t lens[] = { 16384, 65536 };
	static const struct fake_faults late[] = {
		{ 0 },
		{ .reorder = 100000, .reorder_ns = 5000 },
		{ .reorder = 300000, .reorder_ns = 5000 },
		{ .reorder = 300000, .reorder_ns = 30000 },
		{ .reorder = 300000, .reorder_ns = 5000, .drop = 10000 },
	};
	uint64_t bytes = rng_env("COPYRPC_CAMPAIGN_BYTES", 1000000);
	double before[2] = { 0 };
	struct stream s;
	unsigned i, k;

	printf("goodput, Gbit/s of 25 (fraction of packets sent again)\n"
	       "| late, by up to | lost |");
	for (k = 0; k < 2; k++)
		printf(" %u B |", lens[k]);
	for (i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		printf("\n| %u %%, %lu us | %u %% |", late[i].reorder / 10000,
		       late[i].reorder_ns / 1000, late[i].drop / 10000);
		for (k = 0; k < 2; k++) {
			s = stream(late[i], lens[k], bytes);
			printf(" %.3g (%.2g) |", s.gbit_s, s.resent);
			before[k] = i ? before[k] : s.gbit_s;
			cr_expect_gt(s.gbit_s, before[k] / 3);
		}
	}
	printf("\n");
}
