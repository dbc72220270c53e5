/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct placement: parts of gets are placed, and wrong guesses cost only time. */
#include "erpc/bulk/erpc_direct.h"

#include <criterion/criterion.h>
#include <stdio.h>

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

#define ROW 6u

static struct dev_dgram_in row[ROW];
static uint8_t heads[ROW][WIRE_ERPC_HDR_LEN];
static unsigned released;

static void count_release(struct dev_dgram *dg, uint32_t slot)
{
	(void)dg;
	cr_expect_eq(slot, released++);
}

/** Begins a get, and forges its next parts. Returns its slot. */
static uint32_t begin_row(void)
{
	struct erpc_session *s = p.end[0].s;
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_RESP, .session = s->num, .tag = s->tag };
	uint32_t slot, i;

	p.end[0].get_exact = (size_t)2 * ROW * s->payload;
	cr_assert(pair_get(&p.end[0]));
	erpc_ep_progress(p.end[0].ep, p.net.now_ns);
	cr_assert_gt(erpc_direct_expected(s, &slot), ROW);
	h.req_num = s->tx[slot].c.req_num;
	h.msg_size = s->tx[slot].c.resp_max;
	for (i = 0; i < ROW; i++, h.pkt_num++) {
		wire_erpc_put(heads[i], &h);
		row[i] = (struct dev_dgram_in){ .data = heads[i],
						.len = WIRE_ERPC_HDR_LEN + s->payload,
						.slot = i,
						.from = s->ah->id };
	}
	counting.release = count_release;
	return slot;
}

/** Takes a row, expects the effects of `n` parts, and undoes them. */
static void expect_taken(uint32_t slot, unsigned n, const char *what)
{
	static struct erpc_session before;
	struct erpc_session *s = p.end[0].s;
	uint64_t pkts = s->ep->stats->rx_pkts;

	before = *s;
	released = 0;
	cr_expect_eq(erpc_direct_take_run(s, slot, row, ROW), n, "%s", what);
	cr_expect_eq(released, n);
	cr_expect_eq(s->tx[slot].c.rx, before.tx[slot].c.rx + n);
	cr_expect_eq(s->flow.credits, before.flow.credits + n);
	cr_expect_eq(s->gets.pkts_at, before.gets.pkts_at + n);
	cr_expect_eq(s->gets.pkts_cnt, before.gets.pkts_cnt - n);
	cr_expect_eq(s->ep->stats->rx_pkts, pkts + n);
	*s = before;
}

static void end_row(void)
{
	p.end[0].ep->dg->ops = &fake_net_ops;
	close_pair();
}

Test(erpc_direct, parts_in_a_row_are_taken_but_the_last)
{
	struct erpc_session *s;
	uint32_t slot;

	open_pair(1);
	s = p.end[0].s;
	slot = begin_row();
	expect_taken(slot, ROW - 1, "a row");
	s->tx[slot].c.tx = s->tx[slot].c.rx + 3u;
	expect_taken(slot, 2, "three were requested");
	s->tx[slot].c.tx = s->tx[slot].c.tx_max;
	s->err = -1;
	expect_taken(slot, 0, "the session has failed");
	s->err = 0;
	s->tx[slot].c.ahead.word[0] = 2;
	expect_taken(slot, 0, "a part came early");
	s->tx[slot].c.ahead.word[0] = 0;
	s->ep->paces = true;
	expect_taken(slot, 0, "each part measures a round trip");
	s->ep->paces = false;
	end_row();
}

Test(erpc_direct, a_row_ends_before_a_packet_that_differs)
{
	uint32_t slot, k, bit;
	char what[32];

	open_pair(1);
	slot = begin_row();
	for (k = 0; k < ROW; k++) {
		for (bit = 0; bit < 8 * WIRE_ERPC_HDR_LEN; bit++) {
			heads[k][bit / 8] ^= (uint8_t)(1 << bit % 8);
			snprintf(what, sizeof(what), "packet %u, bit %u", k, bit);
			expect_taken(slot, k < 2 ? 0 : k - 1, what);
			heads[k][bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		row[k].len--;
		expect_taken(slot, k < 2 ? 0 : k - 1, "shorter");
		row[k].len++;
		row[k].from.word[0] ^= 1;
		expect_taken(slot, k < 2 ? 0 : k - 1, "from elsewhere");
		row[k].from.word[0] ^= 1;
	}
	end_row();
}
