/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replay: an observer of all packets sends them again at any time. Everything is still delivered
 * once and in order. While nothing is in flight each replayed packet is refused and counted or, if
 * it belongs to the last request of its slot, causes packets without new content: one, or as many
 * as an RFR requests. Memory that was exposed is not read.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/erpc_pair.h"

#define MTU      300u
#define TAPE_MAX 30000u
#define STEPS    1500u

static struct erpc_pair p;

struct packet {
	uint32_t from, to, len;
	uint8_t bytes[MTU];
};

/** Packets on the wire, in the order in which they were sent. */
static struct tape {
	struct packet *pkt; /* TAPE_MAX */
	uint32_t cnt;
	bool off;
	uint32_t with_bytes; /* responses with bytes since `off` */
	uint32_t kinds[4];
} tape;

static void record(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = { 0 };

	cr_assert_leq(pkt->len, MTU);
	cr_assert(wire_erpc_get(&h, pkt->data, pkt->len));
	if (tape.off) {
		tape.with_bytes +=
			h.req_num % ERPC_SLOTS >= ERPC_GET_SLOT && pkt->len > WIRE_ERPC_HDR_LEN;
		return;
	}
	cr_assert_lt(tape.cnt, TAPE_MAX);
	tape.kinds[h.kind]++;
	tape.pkt[tape.cnt].from = pkt->from;
	tape.pkt[tape.cnt].to = pkt->to;
	tape.pkt[tape.cnt].len = pkt->len;
	memcpy(tape.pkt[tape.cnt++].bytes, pkt->data, pkt->len);
}

static void replay(uint32_t i, uint64_t delay_ns)
{
	fake_net_forge(&p.net, tape.pkt[i].from, tape.pkt[i].to, tape.pkt[i].bytes, tape.pkt[i].len,
		       delay_ns);
}

static void do_something(void)
{
	struct pair_end *e = &p.end[rng_below(&p.rng, 2)];

	switch (rng_below(&p.rng, 10)) {
	case 0:
	case 1:
	case 2: pair_send(e, 0); break;
	case 3: pair_send(e, CORE_SEND_MORE); break;
	case 4:
	case 5: pair_call(e, 0); break;
	case 6: pair_reply_one(e); break;
	case 7: pair_release(e); break;
	case 8:
		if (rng_chance(&p.rng, 1, 10))
			pair_get(e);
		break;
	default: erpc_pair_run(&p, rng_below(&p.rng, 50000)); break;
	}
}

static void begin(uint64_t seed)
{
	unsigned i;

	tape = (struct tape){ .pkt = tape.pkt };
	erpc_pair_init(&p, seed);
	p.net.mtu = MTU;
	p.net.faults = (struct fake_faults){ .drop = 20000, .reorder = 20000, .reorder_ns = 30000 };
	p.net.hook = record;
	erpc_pair_open(&p);
	for (i = 0; i < 2; i++) {
		p.end[i].defer_chance = 50;
		p.end[i].retain_chance = 10;
		p.end[i].len_max = 3000;
		p.end[i].get_max = 4 * ERPC_CREDITS_MAX * MTU;
	}
}

/** Replays a recent packet and any packet. */
static void replay_some(void)
{
	uint32_t lately = tape.cnt < 64 ? tape.cnt : 64;

	if (!tape.cnt)
		return;
	replay((uint32_t)(tape.cnt - 1 - rng_below(&p.rng, lately)), rng_below(&p.rng, 40000));
	replay((uint32_t)rng_below(&p.rng, tape.cnt), rng_below(&p.rng, 40000));
}

static void make_tape(void)
{
	tape.pkt = calloc(TAPE_MAX, sizeof(*tape.pkt));
	cr_assert(tape.pkt);
}

static void drop_tape(void)
{
	free(tape.pkt);
}

TestSuite(erpc_replay, .init = make_tape, .fini = drop_tape);

Test(erpc_replay, during_traffic_no_replay_is_delivered_twice)
{
	uint64_t seed;
	unsigned i;

	for (seed = 1; seed <= 10; seed++) {
		begin(seed);
		for (i = 0; i < STEPS; i++) {
			do_something();
			replay_some();
		}
		erpc_pair_settle(&p);
		erpc_pair_check(&p);
		cr_expect_eq(p.end[0].gets_refused + p.end[1].gets_refused, 0);
		for (i = 0; i < 4; i++)
			cr_expect_gt(tape.kinds[i], 20, "kind %u", i);
		erpc_pair_fini(&p);
	}
}

/** Returns the counters of packets without effect. */
static uint64_t refused(const struct copyrpc_stats_packets *stats)
{
	return stats->rx_stale + stats->rx_early + stats->rx_bad + stats->rx_repeats;
}

static struct pair_end *end_at(uint32_t number)
{
	return &p.end[fake_port_of(p.end[1].ep->dg)->number == number];
}

/** Replays a packet to an end without requests in flight. */
static void replay_one(uint32_t i)
{
	struct pair_end *e = end_at(tape.pkt[i].to);
	struct copyrpc_stats_packets *stats = e->ep->stats;
	uint64_t was_refused = refused(stats), sent = p.net.cnt.sent, again = stats->rx_repeats;
	uint64_t parts = 1; /* packets that may be sent */
	uint32_t received = e->received, replies = e->replies, got = e->gets_done;
	size_t bufs = e->ep->bufs.used_cnt;
	struct wire_erpc_hdr h = { 0 };

	cr_assert(wire_erpc_get(&h, tape.pkt[i].bytes, tape.pkt[i].len));
	replay(i, 0);
	fake_net_run(&p.net, p.net.now_ns);
	erpc_ep_progress(e->ep, p.net.now_ns);
	cr_expect_eq(e->s->err, 0, "packet %u, kind %u", i, h.kind);
	cr_expect_eq(e->received, received);
	cr_expect_eq(e->replies, replies);
	cr_expect_eq(e->gets_done, got);
	cr_expect_eq(e->ep->bufs.used_cnt, bufs, "packet %u, kind %u", i, h.kind);
	cr_expect_eq(e->ep->dg->rx_retained, 0);
	/* An RFR may request parts of the last response again. */
	if (h.kind == WIRE_ERPC_RFR)
		parts += h.msg_size;
	cr_expect_leq(p.net.cnt.sent, sent + parts);
	if (refused(stats) == was_refused)
		cr_expect(h.kind == WIRE_ERPC_RFR && p.net.cnt.sent == sent + parts,
			  "packet %u, kind %u: not refused", i, h.kind);
	else
		cr_expect(refused(stats) == was_refused + 1, "packet %u, kind %u", i, h.kind);
	cr_expect(p.net.cnt.sent == sent || h.kind == WIRE_ERPC_RFR ||
			  stats->rx_repeats == again + 1,
		  "packet %u, kind %u: a packet was sent", i, h.kind);
}

Test(erpc_replay, when_idle_each_replay_is_refused_or_repeats_a_response)
{
	uint64_t seed;
	uint32_t i;

	for (seed = 21; seed <= 26; seed++) {
		begin(seed);
		for (i = 0; i < STEPS; i++)
			do_something();
		erpc_pair_settle(&p);
		erpc_pair_check(&p);
		erpc_pair_run(&p, 1000000);
		tape.off = true;
		memset(&p.net.faults, 0, sizeof(p.net.faults));
		for (i = 0; i < tape.cnt; i++)
			replay_one(i);
		for (i = 0; i < tape.cnt; i++)
			replay_one(tape.cnt - 1 - i);
		cr_expect_eq(tape.with_bytes, 0, "memory that is no longer exposed");
		tape.off = false;
		for (i = 0; i < 100; i++)
			do_something();
		erpc_pair_end(&p);
	}
}

/**
 * Packets of one session are replayed to the next between the same two, and to one with its number.
 */
Test(erpc_replay, a_later_session_refuses_replays_of_the_earlier)
{
	struct erpc_session *old[2];
	uint64_t before;
	uint32_t i;

	begin(31);
	for (i = 0; i < STEPS; i++)
		do_something();
	erpc_pair_settle(&p);
	tape.off = true;
	for (i = 0; i < 2; i++) {
		old[i] = p.end[i].s;
		erpc_session_close(old[i]);
		p.end[i].ep->next_num = 0;
	}
	erpc_pair_join(p.end[0].ep, p.end[1].ep, &p.end[0].s, &p.end[1].s);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(p.end[i].s->num, 0);
		p.end[i].s->user = &p.end[i];
		p.end[i].acked = 0;
	}
	before = p.end[0].ep->stats->rx_bad_token + p.end[1].ep->stats->rx_bad_token;
	memset(&p.net.faults, 0, sizeof(p.net.faults));
	for (i = 0; i < tape.cnt; i++) {
		replay(i, 0);
		do_something();
		erpc_pair_run(&p, 1000);
	}
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_expect_eq(p.end[0].ep->stats->rx_bad_token + p.end[1].ep->stats->rx_bad_token,
		     before + tape.cnt);
	erpc_pair_fini(&p);
}
