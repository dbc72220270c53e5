/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Networks whose round trip is far longer than the timeout, from the start or later. Nothing is
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

static void open_at(uint64_t one_way_ns)
{
	erpc_pair_init(&p, 1);
	p.net.latency_ns = one_way_ns;
	p.net.mtu = 1472;
	p.net.bytes_per_s = 1e9;
	erpc_pair_open(&p);
	p.end[0].get_exact = GET_LEN;
}

static uint64_t resent_so_far(void)
{
	return p.end[0].s->conn.chan.stats->resent + p.end[1].s->conn.chan.stats->resent;
}

/* Sends messages one after the other, and then gets. Returns the packets that were sent again. */
static uint64_t exchange(unsigned msgs, unsigned gets)
{
	uint64_t before = resent_so_far();

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
	return resent_so_far() - before;
}

static uint64_t resent(uint64_t one_way_ns, unsigned msgs, unsigned gets)
{
	uint64_t cnt;

	open_at(one_way_ns);
	cnt = exchange(msgs, gets);
	erpc_pair_end(&p);
	return cnt;
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

/* A round trip that grows, as behind a queue that fills up, is measured anew. */
Test(erpc_far, a_round_trip_that_grows_is_learned, .timeout = 300)
{
	static const unsigned ways[] = { 5, 20, 40, 80, 150, 300 };

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		uint64_t first, then;

		open_at(100000);
		exchange(200, 2);
		p.net.latency_ns = ways[i] * MS;
		first = exchange(20, 2);
		then = exchange(20, 8);
		printf("0.1 to %u ms one way: %lu packets again, then %lu\n", ways[i], first, then);
		cr_expect_leq(then, 2);
		cr_expect_leq(first, 120);
		erpc_pair_end(&p);
	}
}
