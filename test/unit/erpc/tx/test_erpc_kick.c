/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Retransmission, and the selection of packets for round-trip samples. */
#include "erpc/tx/erpc_kick.h"

#include <criterion/criterion.h>
#include <string.h>

#include "erpc/tx/erpc_loss.h"
#include "support/erpc_pair.h"

#define US  1000u
#define MS  1000000u
#define MTU 1024u

static struct erpc_pair p;

/** Faults of the next packets of one kind from or to end 0. */
static struct {
	enum wire_erpc_kind kind;
	uint32_t drop;     /* packets to drop */
	uint32_t delay;    /* packets to delay after them */
	uint64_t delay_ns; /* their delay */
	uint32_t seen;
	bool mute; /* drops all CR */
} plan;

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind == WIRE_ERPC_CR && plan.mute)
		pkt->copies = 0;
	if (h.kind != plan.kind)
		return;
	plan.seen++;
	if (plan.drop) {
		plan.drop--;
		pkt->copies = 0;
	} else if (plan.delay) {
		plan.delay--;
		pkt->delay_ns = plan.delay_ns;
	}
}

static const struct copyrpc_stats_peer *counts(void)
{
	return &p.end[0].ep->unread;
}

/** Starts with measured round trips. */
static void begin(void)
{
	erpc_pair_start(&p, 1, MTU);
	erpc_pair_warm(&p);
	p.net.hook = look;
	memset(&plan, 0, sizeof(plan));
	plan.kind = WIRE_ERPC_REQ;
}

static void end(void)
{
	p.net.busy_chance = 0;
	erpc_pair_end(&p);
}

static void until_arrived(void)
{
	unsigned rounds;

	for (rounds = 0; p.end[0].acked != p.end[0].s->flow.posted; rounds++) {
		erpc_pair_run(&p, US);
		cr_assert_lt(rounds, 1000000);
	}
}

/** A device accepts nothing for long: a packet that waits for it is not lost, and leaves once. */
Test(erpc_kick, packets_in_the_burst_are_not_lost)
{
	begin();
	p.net.busy_chance = 1000000;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, 200 * MS);
	cr_assert_gt(p.end[0].s->tx[0].out.unsent, 0);
	cr_expect_eq(counts()->timeouts, 0);
	cr_expect_eq(counts()->losses, 0);
	p.net.busy_chance = 0;
	erpc_pair_settle(&p);
	cr_expect_eq(plan.seen, 1);
	cr_expect_eq(counts()->resent, 0);
	end();
}

/** Forges a CR with a gap: packet 0 of slot 0 is missing, and later ones arrived. */
static void forge_gap(void)
{
	struct erpc_session *to = p.end[0].s;
	uint8_t bytes[WIRE_ERPC_HDR_LEN];
	struct wire_erpc_hdr h = {
		.req_type = WIRE_ERPC_GAP,
		.session = to->num,
		.kind = WIRE_ERPC_CR,
		.req_num = to->tx[0].c.req_num,
		.tag = to->tag,
	};

	wire_erpc_put(bytes, &h);
	fake_net_forge(&p.net, 1, 0, bytes, sizeof(bytes), 1);
	erpc_pair_run(&p, 10);
}

/** Repeated gap reports resend a packet once per round trip, and never while it is in the burst. */
Test(erpc_kick, a_missing_packet_in_the_burst_is_not_resent)
{
	begin();
	p.end[0].len_exact = 10 * MTU;
	plan.drop = UINT32_MAX;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, US);
	p.net.busy_chance = 1000000;
	forge_gap();
	cr_assert_eq(counts()->losses, 1);
	cr_assert_gt(p.end[0].s->tx[0].out.unsent, 0);
	erpc_pair_run(&p, 2 * p.end[0].s->flow.rto.srtt_ns);
	forge_gap();
	cr_expect_eq(counts()->losses, 1, "the packet is in the burst");
	plan.drop = 0;
	p.net.busy_chance = 0;
	erpc_pair_settle(&p);
	end();
}

Test(erpc_kick, a_missing_packet_is_resent_once_per_round_trip)
{
	begin();
	p.end[0].len_exact = 10 * MTU;
	plan.drop = UINT32_MAX;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, US);
	forge_gap();
	cr_expect_eq(counts()->losses, 1);
	erpc_pair_run(&p, p.end[0].s->flow.rto.srtt_ns / 2);
	forge_gap();
	cr_expect_eq(counts()->losses, 1, "the report may be older than the retransmission");
	erpc_pair_run(&p, p.end[0].s->flow.rto.srtt_ns);
	forge_gap();
	cr_expect_eq(counts()->losses, 2);
	plan.drop = 0;
	end();
}

/** The response to the first copy, just after the second left, would be a very short sample. */
Test(erpc_kick, an_ambiguous_response_is_not_measured)
{
	struct erpc_rto before;

	begin();
	before = p.end[0].s->flow.rto;
	plan.delay = 2;
	plan.delay_ns = erpc_rto_ns(&before) - before.srtt_ns + 40 * US;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_assert_eq(plan.seen, 2, "it was sent again before the response arrived");
	cr_assert_eq(counts()->timeouts, 1);
	cr_expect_eq(p.end[0].s->flow.rto.srtt_ns, before.srtt_ns);
	cr_expect_eq(p.end[0].s->flow.rto.var_ns, before.var_ns);
	cr_expect_eq(p.end[0].s->flow.rto.kept, 1, "the early time-out doubles the next one");
	end();
}

/** A loss does not lengthen the samples. */
Test(erpc_kick, the_time_until_a_retransmission_is_not_measured)
{
	struct erpc_rto before;

	begin();
	before = p.end[0].s->flow.rto;
	plan.drop = 2;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_assert_eq(plan.seen, 3);
	cr_expect_eq(p.end[0].s->flow.rto.srtt_ns, before.srtt_ns);
	cr_expect_eq(p.end[0].s->flow.rto.var_ns, before.var_ns);
	end();
}

/** Nor does the loss of the first packet of a long request. */
Test(erpc_kick, the_time_until_a_long_request_is_repeated_is_not_measured)
{
	struct erpc_rto before;

	begin();
	before = p.end[0].s->flow.rto;
	p.end[0].len_exact = 5 * MTU;
	plan.drop = 6;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_assert_eq(plan.drop, 0);
	cr_assert_gt(counts()->timeouts, 0);
	cr_expect_eq(p.end[0].s->flow.rto.srtt_ns, before.srtt_ns);
	end();
}

/** Nor does a wait that the peer does not report. */
Test(erpc_kick, the_silent_wait_of_a_batch_is_not_measured)
{
	struct erpc_rto before;
	unsigned i;

	begin();
	p.end[0].len_exact = MTU - 100;
	before = p.end[0].s->flow.rto;
	plan.drop = 1;
	plan.mute = true;
	for (i = 0; i < 2; i++) {
		cr_assert_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
		erpc_pair_run(&p, i ? US : erpc_rto_ns(&before) - 60 * US);
	}
	until_arrived();
	cr_assert_eq(counts()->timeouts, 1, "the second one had not timed out yet");
	cr_expect_leq(p.end[0].s->flow.rto.srtt_ns, before.srtt_ns + US);
	end();
}

/** Batches are acknowledged in order: a batch behind a lost one waits longer than a round trip. */
Test(erpc_kick, the_wait_of_a_batch_for_another_is_not_measured)
{
	struct erpc_rto before;
	unsigned i;

	begin();
	p.end[0].len_exact = MTU - 100;
	before = p.end[0].s->flow.rto;
	plan.drop = 1;
	for (i = 0; i < 3; i++)
		cr_assert_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
	until_arrived();
	cr_assert_gt(p.end[1].ep->stats->gaps, 0);
	cr_expect_leq(p.end[0].s->flow.rto.srtt_ns, before.srtt_ns + US);
	end();
}

/** The report of the wait is sent at once and measures the round trip. */
Test(erpc_kick, a_kept_report_is_measured)
{
	unsigned i;

	memset(&plan, 0, sizeof(plan));
	erpc_pair_init(&p, 1);
	p.net.mtu = MTU;
	p.net.hook = look;
	erpc_pair_open(&p);
	p.end[0].len_exact = MTU - 100;
	plan.kind = WIRE_ERPC_REQ;
	plan.drop = 1;
	for (i = 0; i < 3; i++)
		cr_assert_eq(pair_send(&p.end[0], CORE_SEND_NOW), 0);
	erpc_pair_run(&p, 3 * p.net.latency_ns);
	cr_assert_gt(p.end[1].ep->stats->gaps, 0);
	cr_expect_eq(p.end[1].received, 0);
	cr_expect_geq(p.end[0].s->flow.rto.srtt_ns, 2 * p.net.latency_ns);
	cr_expect_leq(p.end[0].s->flow.rto.srtt_ns, 2 * p.net.latency_ns + US);
	end();
}

/** In a longer request a packet that was sent once is measured again. */
Test(erpc_kick, a_packet_sent_once_after_a_retransmission_is_measured)
{
	struct erpc_rto before;

	begin();
	before = p.end[0].s->flow.rto;
	p.end[0].len_exact = 60 * MTU; /* more than the credits: its last packets leave later */
	p.net.latency_ns *= 2;
	plan.drop = 1;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_assert_gt(counts()->resent, 0);
	cr_expect_gt(p.end[0].s->flow.rto.srtt_ns, before.srtt_ns);
	end();
}

/** Makes losses certain: drops a packet with others behind it. */
static void lose_one(void)
{
	uint32_t before = p.end[0].len_exact;

	p.end[0].len_exact = 10 * MTU;
	plan.drop = 1;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	p.end[0].len_exact = before;
	cr_assert_eq(counts()->timeouts, 0);
	plan.seen = 0;
}

/** Returns the time that a single message takes that is dropped `times` times. */
static uint64_t single_message(uint32_t times)
{
	uint64_t began_ns = p.net.now_ns;

	plan.drop = times;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_arrived();
	cr_assert_eq(plan.drop, 0);
	return p.net.now_ns - began_ns;
}

/**
 * No packet follows the last one. If losses are certain it is probed within a few round trips, each
 * time.
 */
Test(erpc_kick, after_losses_the_last_packet_is_probed_soon)
{
	uint64_t patient_ns, soon_ns;

	begin();
	patient_ns = single_message(3);
	cr_assert_geq(patient_ns, 7 * ERPC_RTO_MIN, "the peer may only be slow");
	end();
	begin();
	lose_one();
	soon_ns = single_message(3);
	cr_expect_lt(soon_ns, 3 * ERPC_RTO_MIN / 2, "%lu", soon_ns);
	cr_expect_eq(plan.seen, 4, "one packet at a time");
	cr_expect_eq(p.end[0].s->flow.rto.kept, 0, "no doubling remains");
	cr_expect_lt(single_message(1), ERPC_RTO_MIN / 2);
	end();
}

/** Observations of a network expire. */
Test(erpc_kick, an_old_loss_has_no_effect)
{
	begin();
	lose_one();
	erpc_pair_run(&p, ERPC_LOSS_CERTAIN_NS + MS);
	cr_expect_geq(single_message(1), ERPC_RTO_MIN);
	end();
}

/** A peer that is gone a moment after a loss gets more packets, but not many. */
Test(erpc_kick, an_absent_peer_is_not_flooded_after_losses)
{
	uint64_t until_ns;

	begin();
	lose_one();
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	until_ns = p.net.now_ns + 1000ull * MS;
	while (p.net.now_ns < until_ns) {
		erpc_ep_progress(p.end[0].ep, p.net.now_ns);
		fake_net_run(&p.net, p.net.now_ns + 10 * US);
	}
	cr_expect_leq(plan.seen, 36, "%u", plan.seen);
	end();
}

/** Sends a message whose response waits in the device until the sender polls, 300 ms later. */
static void message_and_pause(void)
{
	struct erpc_ep *sender = p.end[0].ep, *receiver = p.end[1].ep;
	unsigned i;

	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, US);
	for (i = 0; i < 100; i++) {
		fake_net_run(&p.net, p.net.now_ns + 3 * MS);
		receiver->armed = true;
		erpc_ep_progress(receiver, p.net.now_ns);
	}
	sender->armed = false;
	erpc_ep_progress(sender, p.net.now_ns);
	until_arrived();
}

Test(erpc_kick, one_pause_does_not_make_the_timeout_long)
{
	begin();
	message_and_pause();
	cr_expect_eq(counts()->timeouts, 0, "the response was there");
	cr_expect_leq(erpc_rto_ns(&p.end[0].s->flow.rto), 2 * ERPC_LATE_NS);
	end();
}

Test(erpc_kick, an_end_that_always_pauses_is_measured)
{
	unsigned i;

	begin();
	for (i = 0; i < 100; i++)
		message_and_pause();
	cr_expect_gt(p.end[0].s->flow.rto.srtt_ns, 250 * MS);
	end();
}
