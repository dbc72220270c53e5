/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Networks whose round trip is far longer than the timeout before the first sample. Nothing is
 * lost, so few packets may be sent twice: those before the round trip is known.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/erpc_pair.h"

#define MS      1000000ul
#define GET_LEN (256u << 10)

static struct erpc_pair p;

static void run_until(bool (*is_done)(void))
{
	uint64_t end_ns = p.net.now_ns + 600000 * MS;

	while (!is_done()) {
		uint64_t next_ns = end_ns;

		cr_assert_lt(p.net.now_ns, end_ns);
		for (unsigned i = 0; i < 2; i++) {
			uint64_t due_ns;

			p.end[i].ep->armed = true;
			erpc_ep_progress(p.end[i].ep, p.net.now_ns);
			due_ns = p.net.now_ns + erpc_ep_due_ns(p.end[i].ep);
			next_ns = due_ns > p.net.now_ns && due_ns < next_ns ? due_ns : next_ns;
		}
		fake_net_step(&p.net, next_ns);
	}
}

static uint32_t gets_wanted, msgs_wanted;

static bool has_got(void)
{
	return p.end[0].gets_done == gets_wanted;
}

static bool is_received(void)
{
	return p.end[1].received == msgs_wanted;
}

/* Sends messages one after the other, and then gets. Returns the packets that were sent again. */
static uint64_t resent(uint64_t one_way_ns, unsigned msgs, unsigned gets)
{
	const struct copyrpc_stats_peer *stats[2];
	uint64_t before;

	erpc_pair_init(&p, 1);
	p.net.latency_ns = one_way_ns;
	p.net.mtu = 1472;
	p.net.bytes_per_s = 1e9;
	erpc_pair_open(&p);
	for (unsigned i = 0; i < 2; i++)
		stats[i] = p.end[i].s->conn.chan.stats;
	p.end[0].get_exact = GET_LEN;
	before = stats[0]->resent + stats[1]->resent;
	for (unsigned i = 0; i < msgs; i++) {
		msgs_wanted = p.end[1].received + 1;
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		run_until(is_received);
	}
	for (unsigned i = 0; i < gets; i++) {
		gets_wanted = p.end[0].gets_done + 1;
		cr_assert(pair_get(&p.end[0]));
		run_until(has_got);
	}
	before = stats[0]->resent + stats[1]->resent - before;
	erpc_pair_end(&p);
	return before;
}

Test(erpc_far, packets_are_repeated_only_until_the_round_trip_is_known, .timeout = 300)
{
	static const unsigned ways[] = { 1, 10, 15, 25, 40, 80, 150, 300 };

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		uint64_t few = resent(ways[i] * MS, 20, 2), many = resent(ways[i] * MS, 20, 12);

		printf("%u ms one way: %lu packets again\n", ways[i], many);
		cr_expect_eq(many, few);
		cr_expect_leq(many, 30);
	}
}
