/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct placement: parts of gets are placed, and wrong guesses cost only time. */
#include "erpc/bulk/erpc_direct.h"

#include <criterion/criterion.h>

#include "support/erpc_pair.h"

#define GETS 40u

static struct erpc_pair p;
static uint64_t into, back;

static int count_into(struct dev_dgram *dg, const struct dev_dgram_target *place,
		      struct dev_dgram_in *in, unsigned cnt)
{
	int n = fake_net_ops.poll_into(dg, place, in, cnt);

	into += n > 0 ? (unsigned)n : 0;
	return n;
}

static void count_back(struct dev_dgram *dg, const struct dev_dgram_target *place, unsigned first)
{
	back += fake_port_of(dg)->into_cnt - first;
	fake_net_ops.put_back(dg, place, first);
}

static struct dev_dgram_ops counting;

static void open_pair(unsigned pieces)
{
	into = back = 0;
	erpc_pair_start(&p, 3, PAIR_MTU);
	counting = fake_net_ops;
	counting.poll_into = count_into;
	counting.put_back = count_back;
	p.end[0].ep->dg->ops = &counting;
	p.end[0].get_pieces = pieces;
}

static void close_pair(void)
{
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	do
		erpc_ep_progress(p.end[0].ep, p.net.now_ns);
	while (p.end[0].ep->direct_skip);
	erpc_ep_progress(p.end[0].ep, p.net.now_ns);
	cr_expect_null(p.end[0].ep->direct_session, "no part is expected");
	p.end[0].ep->dg->ops = &fake_net_ops;
	erpc_pair_fini(&p);
}

static void get_some(void)
{
	uint32_t want = p.end[0].gets_done + GETS;

	while (p.end[0].gets_done < want) {
		pair_get(&p.end[0]);
		erpc_pair_run(&p, 20000);
	}
}

Test(erpc_direct, without_other_traffic_all_parts_are_placed)
{
	open_pair(1);
	get_some();
	erpc_pair_settle(&p);
	cr_expect_eq(back, 0);
	cr_expect_eq(into, p.end[1].ep->stats->tx_pkts, "two gets at a time, no part was copied");
	close_pair();
}

Test(erpc_direct, other_packets_in_between_are_processed)
{
	open_pair(1);
	while (p.end[0].gets_done < GETS) {
		pair_get(&p.end[0]);
		pair_send(&p.end[1], 0);
		pair_call(&p.end[1], 0);
		pair_send(&p.end[0], 0);
		erpc_pair_run(&p, 20000);
		while (pair_reply_one(&p.end[0]) || pair_reply_one(&p.end[1]))
			;
	}
	cr_expect_gt(into, back);
	cr_expect_gt(back, 0, "batches consist of parts, too");
	close_pair();
}

Test(erpc_direct, losses_and_reordering_are_recovered)
{
	open_pair(1);
	p.net.faults = (struct fake_faults){
		.drop = 20000, .dup = 20000, .reorder = 50000, .reorder_ns = 20000
	};
	get_some();
	p.net.faults = (struct fake_faults){ 0 };
	cr_expect_gt(into, 0);
	cr_expect_gt(p.end[0].ep->unread.losses, 0);
	close_pair();
}

Test(erpc_direct, several_iov_entries_are_not_placed)
{
	open_pair(2);
	get_some();
	cr_expect_eq(into, 0);
	close_pair();
}

/* An end that gets from many peers guesses wrong and stops to guess. */
Test(erpc_direct, after_a_wrong_guess_some_polls_go_without)
{
	struct erpc_ep *ep;

	open_pair(1);
	ep = p.end[0].ep;
	cr_assert(pair_get(&p.end[0]));
	erpc_ep_progress(ep, p.net.now_ns);
	cr_assert_eq(ep->direct_session, p.end[0].s);
	/* The guess expects the response to another request. */
	while (p.end[0].s->gets.pkts_cnt)
		p.end[0].s->gets.pkts_cnt--;
	erpc_direct_received(p.end[0].s, ERPC_GET_SLOT);
	cr_expect_gt(ep->direct_skip, 0);
	close_pair();
}

/** Counts bit by bit. */
static uint32_t run_of(const struct erpc_gets *gets)
{
	uint32_t n = 0;

	while (n < gets->pkts_cnt &&
	       erpc_gets_pkt(gets, gets->pkts_at + n) == erpc_gets_pkt(gets, gets->pkts_at))
		n++;
	return n;
}

Test(erpc_direct, the_packets_in_a_row_of_a_slot_are_counted)
{
	struct rng rng = { .state = 5 };
	unsigned i, j, parts;

	for (i = 0; i < 20000; i++) {
		struct erpc_gets gets = {
			.pkts_at = (uint8_t)rng_below(&rng, 256),
			.pkts_cnt = (uint8_t)rng_below(&rng, ERPC_GET_PKTS_MAX + 1),
		};

		parts = 1 + (unsigned)rng_below(&rng, ERPC_GET_PKTS_MAX);
		for (j = 0; j < ERPC_GET_PKTS_MAX; j++)
			erpc_gets_set_pkt(&gets, gets.pkts_at + j,
					  ERPC_GET_SLOT + (i + j / parts) % ERPC_GET_SLOTS);
		cr_assert_eq(erpc_gets_run(&gets), run_of(&gets), "at %u, %u packets", gets.pkts_at,
			     gets.pkts_cnt);
	}
}

Test(erpc_direct, a_closed_session_is_not_guessed)
{
	open_pair(1);
	cr_assert(pair_get(&p.end[0]));
	erpc_ep_progress(p.end[0].ep, p.net.now_ns);
	cr_assert_not_null(p.end[0].ep->direct_session);
	p.end[0].s->err = -1;
	erpc_session_end(p.end[0].s);
	cr_expect_null(p.end[0].ep->direct_session);
	p.end[0].ep->dg->ops = &fake_net_ops;
	erpc_pair_fini(&p);
}

/* A duplicate response arrives during the next get and is not placed. */
Test(erpc_direct, duplicate_parts_change_nothing)
{
	open_pair(1);
	p.net.faults = (struct fake_faults){ .dup = 300000 };
	p.net.latency_ns = 50000;
	get_some();
	p.net.faults = (struct fake_faults){ 0 };
	cr_expect_gt(back, 0);
	cr_expect_gt(p.end[0].ep->stats->rx_stale, 0);
	close_pair();
}
