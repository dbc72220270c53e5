/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints: everything arrives once, unchanged and in order, with any fault of the network. */
#include "erpc/erpc_progress.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/erpc_pair.h"

static struct erpc_pair p;

/** Makes random traffic both ways. */
static void random_traffic(unsigned steps, uint64_t slow_ns)
{
	unsigned i;

	for (i = 0; i < steps; i++) {
		struct pair_end *e = &p.end[rng_below(&p.rng, 2)];

		switch (rng_below(&p.rng, 12)) {
		case 0:
		case 1:
		case 2: pair_send(e, 0); break;
		case 3: pair_send(e, CORE_SEND_MORE); break;
		case 4: pair_send(e, CORE_SEND_NOW); break;
		case 5:
		case 6: pair_call(e, 0); break;
		case 7:
		case 8: pair_reply_one(e); break;
		case 9: pair_release(e); break;
		case 10:
			if (rng_chance(&p.rng, 1, 20))
				pair_get(e);
			break;
		default:
			erpc_pair_run(
				&p, rng_below(&p.rng, rng_chance(&p.rng, 9, 10) ? 20000 : slow_ns));
			break;
		}
	}
}

static void run(uint64_t seed, uint32_t mtu, uint32_t inline_max, uint32_t loss, unsigned steps)
{
	unsigned i;

	erpc_pair_init(&p, seed);
	p.net.mtu = mtu;
	p.net.inline_max = inline_max;
	p.net.faults = (struct fake_faults){
		.drop = loss, .dup = loss, .reorder = loss, .corrupt = loss / 4, .reorder_ns = 30000
	};
	p.net.busy_chance = loss / 4;
	erpc_pair_open(&p);
	for (i = 0; i < 2; i++) {
		p.end[i].retain_chance = 10;
		p.end[i].defer_chance = 50;
		p.end[i].retain_reply_chance = 10;
		p.end[i].len_max = 3 * mtu;
		if (loss >= 100000)
			p.end[i].get_max = 20 * mtu;
	}
	random_traffic((unsigned)rng_env("COPYRPC_TEST_STEPS", steps), loss ? 20000000 : 20000);
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_assert(loss || !p.end[0].ep->unread.losses);
	cr_assert_gt(p.end[0].sent + p.end[1].sent, steps / 100);
	cr_assert_gt(p.end[0].gets_done + p.end[1].gets_done, 0);
	cr_assert_eq(p.end[0].gets_refused + p.end[1].gets_refused, 0);
	cr_assert_eq(p.end[0].ep->stats->rx_bad + p.end[1].ep->stats->rx_bad, 0);
	erpc_pair_fini(&p);
}

Test(erpc_ep, everything_arrives_on_a_good_network)
{
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 1), i;

	for (i = 0; i < 5; i++)
		run(seed + i, 1024, 0, 0, 20000);
}

Test(erpc_ep, everything_arrives_from_a_device_that_reads_late)
{
	run(rng_env("COPYRPC_TEST_SEED", 2), 4096, 60, 0, 20000);
}

Test(erpc_ep, everything_arrives_once_with_losses)
{
	static const uint32_t losses[] = { 1000, 10000, 100000, 300000 };
	unsigned i;

	for (i = 0; i < 4; i++) {
		run(rng_env("COPYRPC_TEST_SEED", 10 + i), 300, 0, losses[i], 8000);
		run(rng_env("COPYRPC_TEST_SEED", 20 + i), 2048, 60, losses[i], 8000);
	}
}

Test(erpc_ep, packets_before_attach_wait_and_are_counted_once)
{
	unsigned i;

	erpc_pair_start(&p, 3, PAIR_MTU);
	p.end[1].s->attached = false;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	for (i = 0; i < 10; i++)
		erpc_pair_run(&p, 100000);
	cr_assert(erpc_ep_has_saved(p.end[1].ep));
	cr_assert_eq(p.end[1].received, 0);
	erpc_session_attach(p.end[1].s);
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_expect_eq(p.end[0].ep->stats->rx_pkts + p.end[1].ep->stats->rx_pkts,
		     p.net.cnt.delivered);
	erpc_pair_fini(&p);
}

/**
 * Several sessions are not attached: packets beyond the space are dropped, their buffers returned.
 */
Test(erpc_ep, packets_before_attach_are_bounded)
{
	struct erpc_session *here[4], *there[4];
	struct erpc_ep *ep;
	unsigned i, k;

	erpc_pair_start(&p, 4, PAIR_MTU);
	ep = p.end[1].ep;
	for (i = 0; i < 4; i++) {
		erpc_pair_join(p.end[0].ep, ep, &here[i], &there[i]);
		there[i]->attached = false;
		for (k = 0; k < 3; k++)
			cr_assert_geq(here[i]->conn.chan.ops->send_buf(
					      &here[i]->conn.chan, core_packed(WIRE_OP_MSG, 0), 0,
					      0, p.end[0].memory, 20000),
				      0);
	}
	erpc_pair_run(&p, 20000000);
	cr_expect_eq(ep->saved_cnt, ERPC_POLL_BURST);
	cr_expect_eq(ep->dg->rx_retained, ERPC_POLL_BURST);
	cr_expect_gt(ep->stats->rx_no_memory, 0);
	for (i = 0; i < 4; i++) {
		erpc_pair_close(here[i]);
		erpc_pair_close(there[i]);
	}
	erpc_pair_run(&p, 100000);
	cr_expect_eq(ep->dg->rx_retained, 0, "saved packets of closed sessions are returned");
	erpc_pair_fini(&p);
}

static uint32_t responses;

static void double_requests(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind == WIRE_ERPC_REQ)
		pkt->copies = 2;
	else
		responses++;
}

/** A repeated request while its response waits for room in the device gets one response. */
Test(erpc_ep, a_response_in_the_burst_is_not_repeated)
{
	erpc_pair_init(&p, 4);
	p.net.hook = double_requests;
	erpc_pair_open(&p);
	responses = 0;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	p.net.busy_chance = 1000000;
	erpc_pair_run(&p, 100000);
	cr_expect_eq(p.end[1].ep->stats->rx_repeats, 1);
	cr_expect_eq(responses, 0);
	p.net.busy_chance = 0;
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_expect_eq(responses, 1);
	erpc_pair_fini(&p);
}

/** A device that signals room lets its user sleep; other devices must be polled. */
Test(erpc_ep, is_quiet_with_a_full_device_that_wakes_it)
{
	struct erpc_ep *ep;

	erpc_pair_start(&p, 5, PAIR_MTU);
	ep = p.end[0].ep;
	p.net.busy_chance = 1000000;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_run(&p, 1000);
	cr_assert(ep->out.cnt);
	cr_expect_not(erpc_ep_is_quiet(ep));
	ep->dg->tx_full = true;
	cr_expect(erpc_ep_is_quiet(ep));
	ep->dg->tx_full = false;
	p.net.busy_chance = 0;
	erpc_pair_end(&p);
}

static bool is_idle;

static bool say_idle(struct dev_dgram *dg)
{
	return is_idle;
}

/** Idle polls are skipped, but not too many in a row, and none with work. */
Test(erpc_ep, idle_polls_skipped_in_a_row_are_bounded)
{
	struct dev_dgram_ops ops;
	const struct dev_dgram_ops *own;
	struct erpc_ep *ep;
	unsigned i;

	erpc_pair_start(&p, 5, PAIR_MTU);
	ep = p.end[0].ep;
	own = ep->dg->ops;
	cr_expect_not(erpc_ep_is_idle(ep), "this device has no is_idle");
	ops = *own;
	ops.is_idle = say_idle;
	ep->dg->ops = &ops;
	cr_expect_not(erpc_ep_is_idle(ep), "a packet has arrived");
	is_idle = true;
	for (i = 0; i < ERPC_IDLE_MAX; i++)
		cr_expect(erpc_ep_is_idle(ep));
	cr_expect_not(erpc_ep_is_idle(ep), "the time must be read");
	erpc_rx_poll(ep, ep->now_ns + (ERPC_IDLE_MAX + 1) * ERPC_AWAY_NS);
	cr_expect_not(ep->away, "it was polled often enough");
	cr_expect(erpc_ep_is_idle(ep));
	erpc_rx_poll(ep, ep->now_ns + 2 * ERPC_AWAY_NS + 1);
	cr_expect(ep->away);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	for (i = 0; i < ERPC_IDLE_FRESH; i++)
		cr_expect(erpc_ep_is_idle(ep));
	cr_expect_not(erpc_ep_is_idle(ep), "a sent packet needs its time");
	ep->dg->ops = own;
	erpc_pair_end(&p);
}

static uint8_t first_request[1024];
static uint32_t first_len;
static uint64_t first_num, late_replies;

static void see_requests(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind == WIRE_ERPC_REQ && !first_len) {
		memcpy(first_request, pkt->data, pkt->len);
		first_len = pkt->len;
		first_num = h.req_num;
	}
	late_replies += h.kind == WIRE_ERPC_RESP && h.req_num == first_num;
}

/**
 * A client that begins the next request has the previous response: no copy of it leaves any more.
 */
Test(erpc_ep, the_next_request_drops_the_previous_response)
{
	erpc_pair_init(&p, 5);
	p.net.hook = see_requests;
	erpc_pair_open(&p);
	first_len = 0;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	erpc_pair_settle(&p);
	cr_assert_eq(late_replies, 1);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	p.net.busy_chance = 1000000;
	fake_net_forge(&p.net, 0, 1, first_request, first_len, 0);
	erpc_pair_run(&p, 100000);
	cr_expect_eq(p.end[1].ep->stats->rx_repeats, 1, "the request was repeated");
	p.net.busy_chance = 0;
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_expect_eq(late_replies, 1, "and not sent again");
	erpc_pair_fini(&p);
}

/* ---- tokens ---- */

/** Inverts x ^ x >> by. */
static uint64_t unshift(uint64_t x, unsigned by)
{
	uint64_t y = x;
	unsigned i;

	for (i = by; i < 64; i += by)
		y = x ^ y >> by;
	return y;
}

/** Inverts the output function of splitmix64. */
static uint64_t unmix(uint64_t z)
{
	z = unshift(z, 31) * 0x319642B2D24D8EC3ull;
	z = unshift(z, 27) * 0x96DE1B173F119089ull;
	return unshift(z, 30);
}

/** A peer with the token of its own session cannot compute the token of another. */
Test(erpc_ep, tokens_are_not_predictable)
{
	struct dev_dgram_attr dg_attr = { .rx_cnt = 16, .tx_cnt = 16 };
	struct erpc_ep_attr attr = { .tx_cnt = 16 };
	struct wire_erpc_params params;
	struct erpc_session *s[3];
	struct erpc_ep *ep;
	struct fake_net net;
	unsigned i;

	fake_net_init(&net, 1);
	cr_assert_eq(fake_net_ops.open(fake_net_dev(&net), &dg_attr, &attr.dg), 0);
	cr_assert_eq(erpc_ep_open(&attr, &ep), 0);
	for (i = 0; i < 3; i++)
		cr_assert_eq(erpc_session_open(ep, &params, &s[i]), 0);
	cr_expect_neq(unmix(s[2]->token) - unmix(s[1]->token),
		      unmix(s[1]->token) - unmix(s[0]->token), "a row");
	for (i = 0; i < 3; i++)
		erpc_session_close(s[i]);
	erpc_ep_close(ep);
	fake_net_fini(&net);
}
