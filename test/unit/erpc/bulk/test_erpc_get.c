/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gets: lost parts, packets in flight, and the end of a session. */
#include "erpc/bulk/erpc_get.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/erpc_pair.h"

#define US    1000u
#define MTU   1024u
#define PARTS 20u

static struct erpc_pair p;
static struct {
	uint32_t part;     /* number of the RESP */
	uint32_t drop;     /* times to drop it */
	uint64_t delay_ns; /* delay of the next one */
	uint32_t parts;    /* times that it was sent */
	uint32_t came;     /* RESP packets with bytes */
	uint32_t asked;    /* packets of the getting end */
	uint32_t drop_ask; /* number of one of these to drop, from 1 */
	uint32_t asked_parts;
} see;

/** Notes a packet that requests parts. */
static void look_at_request(struct fake_pkt *pkt, const struct wire_erpc_hdr *h)
{
	struct wire_erpc_get req;

	see.asked++;
	if (h->kind == WIRE_ERPC_REQ) {
		memcpy(&req, pkt->data + WIRE_ERPC_HDR_LEN, sizeof(req));
		see.asked_parts += req.more + 1;
	} else {
		see.asked_parts += h->msg_size + 1;
	}
	if (see.asked == see.drop_ask)
		pkt->copies = 0;
}

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind != WIRE_ERPC_RESP && h.req_num % ERPC_SLOTS >= ERPC_GET_SLOT)
		look_at_request(pkt, &h);
	see.came += h.kind == WIRE_ERPC_RESP && pkt->len > WIRE_ERPC_HDR_LEN;
	if (h.kind != WIRE_ERPC_RESP || h.pkt_num != see.part)
		return;
	see.parts++;
	if (see.drop) {
		see.drop--;
		pkt->copies = 0;
	} else if (see.delay_ns) {
		pkt->delay_ns = see.delay_ns;
		see.delay_ns = 0;
	}
}

static const struct copyrpc_stats_packets *stats(void)
{
	return p.end[0].ep->stats;
}

static const struct copyrpc_stats_peer *counts(void)
{
	return &p.end[0].ep->unread;
}

/** Starts with measured round trips. `room`: bytes that the device buffers without polls. */
static void begin_with_room(uint32_t mtu, uint32_t room)
{
	memset(&see, 0, sizeof(see));
	erpc_pair_init(&p, 1);
	p.net.mtu = mtu;
	p.net.rx_room = room;
	p.net.bytes_per_s = 3e9;
	erpc_pair_open(&p);
	erpc_pair_warm(&p);
	p.net.hook = look;
	p.end[0].get_exact = PARTS * p.end[0].s->payload;
}

static void begin(uint32_t mtu)
{
	begin_with_room(mtu, 0);
}

static void end(void)
{
	erpc_pair_end(&p);
}

static void until_done(uint32_t cnt)
{
	unsigned rounds;

	for (rounds = 0; p.end[0].gets_done + p.end[0].gets_refused < cnt; rounds++) {
		erpc_pair_run(&p, US);
		cr_assert_lt(rounds, 1000000);
	}
}

Test(erpc_get, one_packet_requests_the_whole_window)
{
	begin(MTU);
	cr_assert(pair_get(&p.end[0]));
	until_done(1);
	cr_expect_eq(see.asked, 1);
	cr_expect_eq(see.asked_parts, PARTS);
	cr_expect_eq(see.came, PARTS);
	p.end[0].get_exact = PAIR_GET_LEN;
	memset(&see, 0, sizeof(see));
	cr_assert(pair_get(&p.end[0]));
	erpc_pair_run(&p, US);
	cr_expect_eq(see.asked, 1);
	cr_expect_eq(see.asked_parts, p.end[0].s->credit_max, "credits bound it");
	until_done(2);
	cr_expect_eq(see.asked_parts, see.came, "no part is requested twice");
	cr_expect_eq(counts()->resent, 0);
	end();
}

/** One takes most of the credits, the other requests its parts as they return. */
Test(erpc_get, two_request_further_parts_together)
{
	uint32_t parts = 200, most;

	begin(MTU);
	most = p.end[0].s->credit_max;
	cr_assert_lt(most, p.end[0].s->get_window);
	p.end[0].get_exact = (size_t)parts * p.end[0].s->payload;
	cr_assert(pair_get(&p.end[0]));
	cr_assert(pair_get(&p.end[0]));
	until_done(2);
	cr_expect_eq(see.asked_parts, 2 * parts);
	cr_expect_leq(see.asked, 2 * parts / (most / 4) + 4, "a quarter of them at a time");
	end();
}

/** The rate decides when each part may be on the link. */
Test(erpc_get, a_paced_session_requests_parts_one_by_one)
{
	begin(MTU);
	p.end[0].s->paced = true;
	cr_assert(pair_get(&p.end[0]));
	until_done(1);
	cr_expect_eq(see.asked, PARTS);
	cr_expect_eq(see.asked_parts, PARTS);
	p.end[0].s->paced = false;
	end();
}

/** The time-out repeats one packet; the parts that it requested arrive, or are requested again. */
Test(erpc_get, lost_requests_are_repeated)
{
	uint32_t i;

	for (i = 1; i <= 12; i++) {
		begin(MTU);
		p.end[0].get_exact = (size_t)6 * p.end[0].s->credit_max * p.end[0].s->payload;
		see.drop_ask = i;
		cr_assert(pair_get(&p.end[0]));
		until_done(1);
		cr_expect_eq(p.end[0].gets_done, 1);
		cr_expect_gt(counts()->losses, 0, "packet %u", i);
		end();
	}
}

Test(erpc_get, a_lost_part_is_detected_by_three_behind_it)
{
	uint32_t i;

	for (i = 1; i + 3 < PARTS; i++) {
		begin(MTU);
		see.part = i;
		see.drop = 1;
		cr_assert(pair_get(&p.end[0]));
		until_done(1);
		cr_expect_eq(p.end[0].gets_done, 1);
		cr_expect_eq(counts()->losses, 1, "part %u", i);
		cr_expect_eq(counts()->timeouts, 0, "part %u", i);
		end();
	}
}

/** Parts that arrive early are kept: none is requested twice. */
Test(erpc_get, a_part_that_two_others_overtake_is_not_lost)
{
	begin(MTU);
	see.part = 5;
	see.delay_ns = (uint64_t)(2.5 * MTU / p.net.bytes_per_s * 1e9);
	cr_assert(pair_get(&p.end[0]));
	until_done(1);
	cr_expect_eq(see.parts, 1);
	cr_expect_eq(stats()->rx_early, 2);
	cr_expect_eq(counts()->resent, 0);
	cr_expect_eq(counts()->losses, 0);
	cr_expect_eq(counts()->timeouts, 0);
	end();
}

/** Runs a get to its end. Returns the maximum of packets in flight. */
static uint32_t most_under_way(void)
{
	const struct erpc_tx *tx;
	uint32_t most = 0, flying;
	unsigned rounds;

	p.end[0].get_exact = PAIR_GET_LEN;
	cr_assert(pair_get(&p.end[0]));
	tx = &p.end[0].s->tx[ERPC_GET_SLOT];
	for (rounds = 0; !p.end[0].gets_done; rounds++) {
		erpc_pair_run(&p, US);
		flying = erpc_client_in_flight(&tx->c);
		most = flying > most ? flying : most;
		cr_assert_lt(rounds, 1000000);
	}
	return most;
}

/** Long packets: the window is smaller than the credits, at most 512 KiB in flight. */
Test(erpc_get, in_flight_is_bounded_by_the_window)
{
	uint32_t most;

	begin(60000);
	cr_assert_lt(p.end[0].s->get_window, p.end[0].s->credit_max / 2);
	most = most_under_way();
	cr_expect_leq(most * p.end[0].s->payload, 512u << 10);
	cr_expect_eq(most, p.end[0].s->get_window, "the window is used");
	end();
}

/** Two gets fit the device's buffer without polls. One packet of each is always requested. */
Test(erpc_get, in_flight_is_bounded_by_the_receive_room)
{
	begin_with_room(60000, 2 * 3 * (60000 + DEV_DGRAM_ROOM));
	cr_expect_eq(most_under_way(), 3);
	end();
	begin_with_room(60000, 60000);
	cr_expect_eq(most_under_way(), 1);
	end();
}

/**
 * A time-out sends one packet. After its response the window is back, and not as large as the
 * credits.
 */
Test(erpc_get, after_a_time_out_the_window_is_restored)
{
	const struct erpc_tx *tx;

	begin(60000);
	p.end[0].get_exact = PAIR_GET_LEN;
	see.part = 1;
	see.drop = 1;
	cr_assert(pair_get(&p.end[0]));
	tx = &p.end[0].s->tx[ERPC_GET_SLOT];
	p.net.faults.drop = 1000000; /* drops everything for a while */
	while (!counts()->timeouts)
		erpc_pair_run(&p, US);
	cr_expect_eq(tx->c.window, 1);
	p.net.faults.drop = 0;
	see.drop = 0;
	while (tx->c.window == 1)
		erpc_pair_run(&p, US);
	cr_expect_eq(tx->c.window, p.end[0].s->get_window);
	end();
}

/**
 * Requested gets and gets that wait for a slot end once, with the session's error. No byte is
 * written afterwards.
 */
Test(erpc_get, a_failed_session_ends_each_get_once)
{
	static uint8_t before[PAIR_GET_LEN];
	unsigned i;

	begin(MTU);
	p.end[0].get_exact = PAIR_GET_LEN;
	for (i = 0; i < PAIR_GET_MAX; i++)
		cr_assert(pair_get(&p.end[0]));
	erpc_pair_run(&p, 100 * US);
	cr_assert_eq(p.end[0].gets_done, 0);
	cr_assert_gt(see.came, 0);
	erpc_session_fail(p.end[0].s, -FI_EIO, NULL);
	erpc_ep_progress(p.end[0].ep, p.net.now_ns);
	cr_expect_eq(p.end[0].down, -FI_EIO);
	cr_expect_eq(p.end[0].gets_refused, PAIR_GET_MAX);
	for (i = 0; i < PAIR_GET_MAX; i++) {
		cr_expect_not(p.end[0].gets[i].open);
		cr_expect_eq(p.end[0].gets[i].get.status, -FI_EIO);
	}
	memcpy(before, p.end[0].gets[0].buf, PAIR_GET_LEN);
	erpc_pair_run(&p, 1000 * US);
	cr_expect(!memcmp(before, p.end[0].gets[0].buf, PAIR_GET_LEN));
	cr_expect_eq(p.end[0].gets_refused, PAIR_GET_MAX);
	erpc_pair_fini(&p);
}
