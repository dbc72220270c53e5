/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lost packets are sent again soon and once, and a slow peer gets few repetitions. */
#include "erpc/tx/erpc_loss.h"

#include <criterion/criterion.h>
#include <string.h>

#include "erpc/erpc_progress.h"
#include "support/erpc_pair.h"

#define US      1000u
#define MS      1000000u
#define RTT_NS  10000u
#define SLOT_NS (1u << ERPC_LOSS_SHIFT)
#define MTU     1024u
#define PARTS   20u

static struct erpc_pair p;
static struct {
	enum wire_erpc_kind kind;
	uint32_t first, last; /* numbers of packets to drop */
	uint32_t times;       /* times to drop, in total */
	uint32_t seen[4];     /* of each kind */
} lose;

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	lose.seen[h.kind]++;
	if (!lose.times || h.kind != lose.kind || h.pkt_num < lose.first || h.pkt_num > lose.last)
		return;
	lose.times--;
	pkt->copies = 0;
}

static const struct copyrpc_stats_peer *counts(void)
{
	return &p.end[0].ep->unread;
}

/** Starts with measured round trips. */
static void begin(void)
{
	erpc_pair_start(&p, 1, MTU);
	p.net.bytes_per_s = 3e9;
	erpc_pair_warm(&p);
	p.net.hook = look;
	memset(&lose, 0, sizeof(lose));
}

static void end(void)
{
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	erpc_loss_forget_idle(p.end[0].ep);
	erpc_loss_forget_idle(p.end[1].ep);
	cr_expect_eq(p.end[0].ep->timers.cnt, 0, "an idle session has no timer");
	cr_expect_eq(p.end[1].ep->timers.cnt, 0);
	erpc_pair_fini(&p);
}

/** Waits until everything is acknowledged. Returns the time that takes. */
static uint64_t until_arrived(void)
{
	uint64_t began_ns = p.net.now_ns;

	while (p.end[0].s->conn.chan.ops->is_busy(&p.end[0].s->conn.chan)) {
		erpc_pair_run(&p, US);
		cr_assert_lt(p.net.now_ns - began_ns, 1000ull * MS);
		p.end[0].s->lossy = false; /* no lingering */
	}
	return p.net.now_ns - began_ns;
}

/** Sends a message of PARTS packets, some of which are dropped. */
static uint64_t long_message(enum wire_erpc_kind kind, uint32_t first, uint32_t last,
			     uint32_t times)
{
	p.end[0].len_exact = PARTS * p.end[0].s->payload - 100;
	lose.kind = kind;
	lose.first = first;
	lose.last = last;
	lose.times = times;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	return until_arrived();
}

Test(erpc_loss, only_timers_of_packets_in_flight_enter_the_wheel)
{
	struct erpc_ep *ep;
	unsigned lost;

	for (lost = 0; lost < 2; lost++) {
		begin();
		ep = p.end[0].ep;
		lose.kind = WIRE_ERPC_REQ;
		lose.times = lost;
		p.end[0].len_exact = 8;
		p.end[1].s->trust.quick_replies = 0; /* the response leaves at once */
		erpc_loss_forget_idle(ep);
		/* a slot begins, in which the response arrives */
		erpc_pair_run(&p, SLOT_NS - p.net.now_ns % SLOT_NS);
		erpc_ep_progress(ep, p.net.now_ns);
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		cr_assert_not(erpc_set_is_empty(&ep->new_timers));
		cr_expect_leq(erpc_ep_due_ns(ep), SLOT_NS, "a thread sleeps no longer");
		erpc_pair_run(&p, 2 * SLOT_NS);
		cr_expect(erpc_set_is_empty(&ep->new_timers));
		cr_expect_eq(ep->timers.cnt, lost);
		until_arrived();
		cr_expect_eq(counts()->timeouts, lost);
		end();
	}
}

Test(erpc_loss, without_loss_nothing_is_resent)
{
	begin();
	cr_expect_leq(long_message(WIRE_ERPC_REQ, 0, 0, 0), 5 * RTT_NS);
	cr_expect_eq(counts()->resent, 0);
	end();
}

Test(erpc_loss, a_missing_packet_is_detected_by_later_ones)
{
	uint32_t i;

	for (i = 0; i + 4 < PARTS; i++) {
		begin();
		cr_expect_leq(long_message(WIRE_ERPC_REQ, i, i, 1), 8 * RTT_NS, "packet %u", i);
		cr_expect_eq(counts()->losses, 1);
		cr_expect_eq(counts()->timeouts, 0);
		cr_expect_eq(p.end[1].ep->stats->gaps, 1);
		end();
	}
}

Test(erpc_loss, a_packet_may_be_lost_repeatedly)
{
	begin();
	cr_expect_leq(long_message(WIRE_ERPC_REQ, 5, 5, 4), 20 * RTT_NS);
	cr_expect_eq(counts()->timeouts, 0);
	cr_expect_eq(counts()->losses, 4);
	end();
}

Test(erpc_loss, a_lost_last_packet_is_resent_alone)
{
	begin();
	cr_expect_leq(long_message(WIRE_ERPC_REQ, PARTS - 1, PARTS - 1, 1),
		      ERPC_RTO_MIN + 10 * RTT_NS);
	cr_expect_eq(counts()->timeouts, 1);
	cr_expect_eq(counts()->resent, 1);
	end();
}

Test(erpc_loss, credit_returns_cover_earlier_ones)
{
	begin();
	cr_expect_leq(long_message(WIRE_ERPC_CR, 0, PARTS, UINT32_MAX), 5 * RTT_NS);
	cr_expect_eq(counts()->losses, 0);
	end();
}

/** All parts arrived, but the responses were lost: one packet detects that. */
Test(erpc_loss, a_repeated_packet_returns_the_progress)
{
	begin();
	lose.kind = WIRE_ERPC_RESP;
	lose.last = UINT32_MAX;
	lose.times = 1;
	p.end[0].len_exact = PARTS * p.end[0].s->payload - 100;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_expect_eq(counts()->timeouts, 1);
	cr_expect_eq(counts()->resent, 1);
	end();
}

Test(erpc_loss, a_later_acknowledgement_shows_a_loss)
{
	uint64_t began_ns;

	begin();
	p.end[0].len_exact = MTU - 100;
	lose.kind = WIRE_ERPC_REQ;
	lose.times = 1;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	began_ns = p.net.now_ns;
	erpc_pair_run(&p, US);
	cr_assert_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
	until_arrived();
	cr_expect_lt(p.net.now_ns - began_ns, ERPC_RTO_MIN / 2);
	cr_expect_eq(counts()->resent, 1);
	end();
}

Test(erpc_loss, three_early_batches_show_the_missing_one)
{
	uint64_t began_ns;
	unsigned i;

	begin();
	/* No batch takes two of them. */
	p.end[0].len_exact = ERPC_BATCH_PKTS / 2 * p.end[0].s->payload + 1;
	lose.kind = WIRE_ERPC_REQ;
	lose.last = UINT32_MAX;
	lose.times = ERPC_BATCH_PKTS / 2;
	began_ns = p.net.now_ns;
	for (i = 0; i < 5; i++)
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_expect_lt(p.net.now_ns - began_ns, 6 * RTT_NS, "%lu", p.net.now_ns - began_ns);
	cr_expect_eq(counts()->losses, 1);
	cr_expect_eq(counts()->timeouts, 0);
	cr_expect_eq(p.end[1].ep->stats->gaps, 4);
	end();
}

/** A call may be replied to at any time: later acknowledgements do not show a loss. */
Test(erpc_loss, a_call_without_reply_is_not_lost)
{
	unsigned i;

	begin();
	p.end[1].defer_chance = 100;
	cr_assert_eq(pair_call(&p.end[0], 0), 0);
	erpc_pair_run(&p, US);
	for (i = 0; i < 10; i++) {
		cr_assert_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
		erpc_pair_run(&p, 5 * US);
	}
	cr_expect_eq(counts()->resent, 0);
	end();
}

/** Half of all round trips lost are twelve losses in a row, now and then. */
Test(erpc_loss, many_losses_in_a_row_do_not_double_the_timeout_for_ever)
{
	uint64_t ns;

	begin();
	ns = long_message(WIRE_ERPC_REQ, PARTS - 1, PARTS - 1, 12);
	cr_expect_lt(ns, 150ull * MS, "%lu", ns); /* with doublings alone 819 ms */
	end();
}

/** Stops the peer's progress for `ns`. Returns the packets that were sent to it meanwhile. */
static uint32_t while_away(uint64_t ns)
{
	uint64_t until_ns = p.net.now_ns + ns;
	uint32_t before = lose.seen[WIRE_ERPC_REQ];
	unsigned i;

	p.end[0].len_exact = MTU - 100;
	for (i = 0; i < 4; i++)
		cr_assert_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
	while (p.net.now_ns < until_ns) {
		erpc_ep_progress(p.end[0].ep, p.net.now_ns);
		fake_net_run(&p.net, p.net.now_ns + 10 * US);
	}
	before = lose.seen[WIRE_ERPC_REQ] - before;
	erpc_pair_settle(&p);
	return before;
}

Test(erpc_loss, an_absent_peer_is_not_flooded)
{
	uint32_t first;

	begin();
	first = while_away(100ull * MS);
	/* 4, repeated after 0.2, 0.6, 1.4, 3, 6, 12.6, 25, 38 ... ms */
	cr_expect_leq(first, 4 * 12, "%u", first);
	cr_expect_lt(while_away(100ull * MS), first, "the doublings remain");
	cr_expect_gt(p.end[1].ep->stats->rx_repeats, 0);
	end();
}

/** Drops requests of end 0. */
static void lose_requests(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind == WIRE_ERPC_REQ && h.session == p.end[1].s->num &&
	    pkt->to == fake_port_of(p.end[1].ep->dg)->number) {
		lose.times++;
		pkt->copies = 0;
	}
}

/** Returns how often a message is sent within `ns`, all in vain, while its peer sends or not. */
static uint32_t in_vain(uint64_t ns, bool sends)
{
	uint64_t until_ns;
	uint32_t times;

	begin();
	p.net.hook = lose_requests;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	for (until_ns = p.net.now_ns + ns; p.net.now_ns < until_ns;) {
		if (sends)
			pair_send(&p.end[1], 0);
		erpc_pair_run(&p, 100 * US);
	}
	times = lose.times;
	p.net.hook = NULL;
	end();
	return times;
}

/** Doubling applies to silent peers. */
Test(erpc_loss, the_backoff_for_a_sending_peer_is_bounded)
{
	uint32_t silent = in_vain(500ull * MS, false), sends = in_vain(500ull * MS, true);

	cr_expect_gt(sends, 4 * silent, "%u, and %u for a silent peer", sends, silent);
}

/** Notes `cnt` losses, `ns` after each other. */
static void lose_many(unsigned cnt, uint64_t ns)
{
	while (cnt--) {
		p.end[0].ep->now_ns += ns;
		erpc_loss_note(p.end[0].s);
	}
	p.net.now_ns = p.end[0].ep->now_ns;
}

/* Messages behind an incomplete one wait for it. */
Test(erpc_loss, many_in_a_row_make_long_messages_gets)
{
	struct core_chan *chan;

	begin();
	chan = &p.end[0].s->conn.chan;
	chan->eager_min = 2 * ERPC_LOSS_EAGER;
	lose_many(ERPC_LOSS_MANY - 1, MS);
	cr_expect_eq(p.end[0].limits, 0);
	lose_many(2 * ERPC_LOSS_MANY, ERPC_LOSS_CERTAIN_NS);
	cr_expect_eq(p.end[0].limits, 0, "rare ones do not");
	lose_many(10 * ERPC_LOSS_MANY, ERPC_LOSS_CERTAIN_NS - 1);
	cr_expect_eq(p.end[0].limits, 1, "core is notified once");
	cr_expect_eq(chan->eager_min, ERPC_LOSS_EAGER);
	end();
	begin();
	p.end[0].limits = 0;
	p.end[0].s->conn.chan.eager_min = ERPC_LOSS_EAGER / 2;
	lose_many(10 * ERPC_LOSS_MANY, MS);
	cr_expect_eq(p.end[0].limits, 0, "a lower limit stays");
	end();
}
