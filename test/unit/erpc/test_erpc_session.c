/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions: parameters of both ends, lingering, failure and stop. */
#include "erpc/erpc_setup.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "support/erpc_pair.h"

#define MTU 4096u

static struct erpc_pair p;
static uint32_t longest;

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	longest = pkt->len > longest ? pkt->len : longest;
}

static void setup(void)
{
	longest = 0;
	erpc_pair_init(&p, 1);
	p.net.mtu = MTU;
	p.net.hook = look;
	erpc_pair_open(&p);
}

static void teardown(void)
{
	erpc_pair_fini(&p);
}

static struct dev_dgram_ah *path(unsigned from)
{
	struct dev_dgram *dg = p.end[!from].ep->dg;
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	cr_assert_eq(dg->ops->describe(dg, &desc), 0);
	dg = p.end[from].ep->dg;
	cr_assert_eq(dg->ops->resolve(dg, &desc, &ah), 0);
	return ah;
}

/** Replaces the session by one with the given path MTUs of both ends. */
static void connect_mtus(const uint32_t mtu[2])
{
	struct wire_erpc_params params[2];
	unsigned i;

	for (i = 0; i < 2; i++) {
		erpc_session_close(p.end[i].s);
		cr_assert_eq(erpc_session_open(p.end[i].ep, &params[i], &p.end[i].s), 0);
		cr_expect_eq(params[i].mtu, MTU, "the MTU of the path is unknown");
		p.end[i].s->mtu = params[i].mtu = mtu[i];
		p.end[i].s->user = &p.end[i];
	}
	for (i = 0; i < 2; i++) {
		cr_assert_eq(erpc_session_connect(p.end[i].s, &params[!i], path(i)), 0);
		erpc_session_attach(p.end[i].s);
	}
}

Test(erpc_session, the_smaller_mtu_applies_to_both_ends, .init = setup, .fini = teardown)
{
	static const uint32_t mtus[][2] = {
		{ MTU, MTU }, { 1500, MTU }, { MTU, 1500 }, { 600, 1500 }, { 256, 257 },
	};
	unsigned i, k;

	for (i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		uint32_t least = mtus[i][0] < mtus[i][1] ? mtus[i][0] : mtus[i][1];

		longest = 0;
		connect_mtus(mtus[i]);
		for (k = 0; k < 2; k++) {
			cr_expect_eq(p.end[k].s->payload, least - WIRE_ERPC_HDR_LEN);
			p.end[k].sent = p.end[k].received = p.end[k].calls_sent = p.end[k].replies =
				0;
			p.end[k].acked = 0;
			p.end[k].len_exact = 3 * MTU;
			cr_assert_eq(pair_send(&p.end[k], 0), 0);
			cr_assert_eq(pair_call(&p.end[k], 0), 0);
			cr_assert(pair_get(&p.end[k]));
		}
		erpc_pair_settle(&p);
		erpc_pair_check(&p);
		cr_expect_eq(longest, least, "%u: packets are full, and not longer", longest);
	}
}

static int connect_with(struct wire_erpc_params theirs, uint32_t ah_mtu)
{
	struct wire_erpc_params own;
	struct erpc_session *s;
	struct dev_dgram_ah *ah = path(0);
	int ret;

	ah->mtu = ah_mtu;
	cr_assert_eq(erpc_session_open(p.end[0].ep, &own, &s), 0);
	ret = erpc_session_connect(s, &theirs, ah);
	erpc_session_close(s);
	return ret;
}

Test(erpc_session, invalid_parameters_are_refused, .init = setup, .fini = teardown)
{
	struct wire_erpc_params good = {
		.version = WIRE_ERPC_VERSION, .session = 1, .credits = 8, .token = 5, .mtu = 1500
	};
	struct wire_erpc_params params = good;

	cr_expect_eq(connect_with(params, MTU), 0);
	cr_expect_eq(connect_with(params, 1500), 0);
	cr_expect_eq(connect_with(params, 1499), -FI_EAGAIN,
		     "the path has changed since it was advertised: connect again");
	params.mtu = 255;
	cr_expect_eq(connect_with(params, MTU), -FI_EIO);
	params = good;
	params.credits = 0;
	cr_expect_eq(connect_with(params, MTU), -FI_EIO);
	params = good;
	params.zero = 1;
	cr_expect_eq(connect_with(params, MTU), -FI_EIO);
	params = good;
	params.version++;
	cr_expect_eq(connect_with(params, MTU), -FI_EOPNOTSUPP);
}

/**
 * Without a session's token its request numbers are unknown, even with many sessions of one's own.
 */
Test(erpc_session, first_request_numbers_differ_between_sessions, .init = setup, .fini = teardown)
{
	struct erpc_session *here[16], *there[16];
	unsigned i, k;

	for (i = 0; i < 16; i++)
		erpc_pair_join(p.end[0].ep, p.end[1].ep, &here[i], &there[i]);
	for (i = 0; i < 16; i++) {
		cr_expect_eq(here[i]->tx[0].c.req_num % ERPC_SLOTS, 0);
		cr_expect_lt(here[i]->tx[0].c.req_num, WIRE_ERPC_REQ_MAX);
		for (k = 0; k < i; k++) {
			cr_expect_neq(here[i]->tx[0].c.req_num, here[k]->tx[0].c.req_num);
			cr_expect_neq(there[i]->tx[0].c.req_num, there[k]->tx[0].c.req_num);
		}
		cr_expect_neq(here[i]->tx[0].c.req_num, there[i]->tx[0].c.req_num);
	}
	for (i = 0; i < 16; i++) {
		erpc_pair_close(here[i]);
		erpc_pair_close(there[i]);
	}
}

static uint32_t to_lose;

static void lose_responses(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = erpc_pair_hdr(pkt);

	if (h.kind != WIRE_ERPC_RESP || !to_lose)
		return;
	to_lose--;
	pkt->copies = 0;
}

/** Sends a message and drops `cnt` of its responses. Advances time until it is acknowledged. */
static void send_with_lost_responses(uint32_t cnt)
{
	to_lose = cnt;
	p.net.hook = lose_responses;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	while (p.end[0].acked != p.end[0].s->flow.posted)
		erpc_pair_run(&p, 1000);
	cr_assert_eq(to_lose, 0);
}

/** Asserts that the session lingers for `ns`. */
static void expect_lingers(struct erpc_session *s, uint64_t ns)
{
	uint64_t last_resp_ns = s->last_resp_ns;

	cr_assert_gt(last_resp_ns, 0);
	cr_expect(erpc_session_is_busy(s));
	erpc_ep_progress(s->ep, last_resp_ns + ns - 1);
	cr_expect(erpc_session_is_busy(s));
	erpc_ep_progress(s->ep, last_resp_ns + ns);
	cr_expect_not(erpc_session_is_busy(s), "not longer");
}

/** The session has no loss so far, but its last response may be the first one. */
Test(erpc_session, without_loss_a_session_lingers_for_four_time_outs, .init = setup,
     .fini = teardown)
{
	struct erpc_session *s = p.end[1].s;

	send_with_lost_responses(0);
	cr_expect_not(erpc_session_is_busy(p.end[0].s), "the sender has its response");
	cr_expect_not(s->lossy);
	expect_lingers(s, 4 * erpc_rto_ns(&s->flow.rto));
}

/** The first lost packet is the last response of an end that closes at once. */
Test(erpc_session, a_first_loss_does_not_lose_the_last_response, .init = setup, .fini = teardown)
{
	struct erpc_session *s = p.end[1].s;

	to_lose = 1;
	p.net.hook = lose_responses;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	while (!s->last_resp_ns)
		erpc_pair_run(&p, 1000);
	cr_assert_eq(to_lose, 0);
	cr_assert_not(s->lossy);
	while (erpc_session_is_busy(s))
		erpc_pair_run(&p, 1000);
	cr_expect_eq(p.end[0].acked, p.end[0].s->flow.posted);
}

/**
 * The last response has no acknowledgement: its sender lingers until it would be requested again.
 */
Test(erpc_session, after_losses_a_session_lingers_longer, .init = setup, .fini = teardown)
{
	struct erpc_session *s = p.end[1].s;

	send_with_lost_responses(2);
	cr_expect(s->lossy);
	cr_expect_gt(erpc_session_linger_ns(s), (1 + 1.5 * (64 - 2)) * erpc_rto_ns(&s->flow.rto),
		     "five doublings, each spread by half");
	expect_lingers(s, erpc_session_linger_ns(s));
}

/** A peer that closes when idle loses no last response, however often packets are lost. */
Test(erpc_session, a_session_closed_when_idle_owes_no_response, .init = setup, .fini = teardown)
{
	unsigned rounds;

	send_with_lost_responses(1); /* makes the losses certain */
	to_lose = 2;
	p.net.hook = lose_responses;
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	for (rounds = 0; p.end[1].received < 2 || erpc_session_is_busy(p.end[1].s); rounds++) {
		erpc_pair_run(&p, 1000);
		cr_assert_lt(rounds, 1000000);
	}
	cr_expect_eq(to_lose, 0);
	cr_expect_eq(p.end[0].acked, p.end[0].s->flow.posted);
}

/** Closes after a send without a report: does the device still read the address? */
Test(erpc_session, an_address_that_the_device_copied_is_freed_at_once)
{
	static const bool copies[] = { false, true };
	struct wire_erpc_params params;
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct erpc_ep *ep;

		erpc_pair_init(&p, 1);
		p.net.inline_max = 60;
		erpc_pair_open(&p);
		ep = p.end[0].ep;
		ep->dg->copies_ah = copies[i];
		p.end[0].len_exact = 100;
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
		erpc_pair_settle(&p);
		cr_assert_neq(ep->dg->tx_done, ep->dg->tx_posted);
		erpc_session_close(p.end[0].s);
		cr_expect_eq(util_list_is_empty(&ep->zombies), copies[i]);
		if (!copies[i])
			cr_expect_eq(
				UTIL_CONTAINER_OF(ep->zombies.next, struct erpc_session, fail_link)
					->last_tx,
				ep->dg->tx_posted - 1, "until the last datagram is done");
		cr_assert_eq(erpc_session_open(ep, &params, &p.end[0].s), 0);
		erpc_pair_fini(&p);
	}
}

/** Opens a session with datagrams of `mtu` bytes, paced at bytes/s, or not paced (0). */
static struct erpc_session *open_with(uint32_t mtu, double pace_rate)
{
	erpc_pair_init(&p, 1);
	p.net.mtu = mtu;
	p.pace_rate = pace_rate;
	erpc_pair_open(&p);
	return p.end[0].s;
}

Test(erpc_session, lengths_are_bounded_by_the_packet_numbers)
{
	static const struct {
		uint32_t mtu, eager, get;
	} rows[] = {
		{ 256, 65 << 10, 240 * ((1 << 14) - 1) },
		{ 4096, 65 << 10, 4 << 20 },
		{ (32 << 10) + 15, 65 << 10, 4 << 20 },
		{ (32 << 10) + 16, (32 << 10) - 32, 4 << 20 }, /* from here on in one packet */
		{ 65000, 65000 - 16 - 32, 4 << 20 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct erpc_session *s = open_with(rows[i].mtu, 0);

		cr_expect_eq(s->conn.chan.eager_max, rows[i].eager, "%u", rows[i].mtu);
		cr_expect_eq(s->gets.max, rows[i].get, "%u", rows[i].mtu);
		erpc_pair_fini(&p);
	}
}

/** Rates from a slow link, with a queue longer than the longest RTO, to a fast one. */
Test(erpc_session, time_outs_are_longer_than_the_queues_of_paced_sessions)
{
	uint64_t min_ns = UINT64_MAX;

	for (double rate = 1e3; rate < 1e10; rate *= 10) {
		const struct erpc_rto *rto = &open_with(MTU, rate)->flow.rto;
		uint64_t queue_ns = 4 * (uint64_t)p.end[0].ep->timely_cfg.t_high_ns;

		cr_expect_eq(rto->min_ns, queue_ns < ERPC_RTO_MAX ? queue_ns : ERPC_RTO_MAX, "%g",
			     rate);
		cr_expect_leq(rto->min_ns, min_ns);
		cr_expect_geq(erpc_rto_ns(rto), rto->min_ns, "%g", rate);
		cr_expect_leq(erpc_rto_ns(rto), rto->max_ns, "%g", rate);
		min_ns = rto->min_ns;
		erpc_pair_fini(&p);
	}
	cr_expect_leq(min_ns, 5000000);
}

static struct erpc_session *join_with(struct wire_erpc_params theirs)
{
	struct wire_erpc_params own;
	struct erpc_session *s;

	cr_assert_eq(erpc_session_open(p.end[0].ep, &own, &s), 0);
	cr_assert_eq(erpc_session_connect(s, &theirs, path(0)), 0);
	return s;
}

static const struct wire_erpc_params little = {
	.version = WIRE_ERPC_VERSION, .session = 1, .credits = 3, .token = 5, .mtu = MTU
};

Test(erpc_session, credits_are_the_smaller_of_both_ends, .init = setup, .fini = teardown)
{
	struct wire_erpc_params plenty = little;
	struct erpc_session *s;

	s = join_with(little);
	cr_expect_eq(s->flow.credits, 3);
	erpc_session_close(s);
	plenty.credits = UINT16_MAX;
	s = join_with(plenty);
	cr_expect_eq(s->flow.credits, s->credit_promised);
	erpc_session_close(s);
}

Test(erpc_session, attach_to_a_failed_endpoint_fails, .init = setup, .fini = teardown)
{
	struct erpc_session *s = join_with(little);

	erpc_ep_fail(p.end[0].ep, -FI_EIO);
	cr_expect_eq(s->err, 0, "not failed before attach");
	erpc_session_attach(s);
	cr_expect_eq(s->err, -FI_EIO);
	erpc_session_close(s);
}

Test(erpc_session, a_failed_session_sends_nothing, .init = setup, .fini = teardown)
{
	struct erpc_session *s = p.end[0].s;
	uint64_t left;

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(pair_send(&p.end[0], 0), 0);
	cr_assert(s->batch.buf, "two wait");
	left = p.net.cnt.sent + s->ep->out.cnt;
	erpc_session_fail(s, -FI_EIO, NULL);
	erpc_session_mark(s);
	cr_expect(util_list_is_empty(&s->ep->dirty));
	erpc_session_flush(s);
	erpc_session_fail(s, -FI_ETIMEDOUT, NULL);
	cr_expect_eq(s->err, -FI_EIO, "the first error remains");
	cr_expect_neq(pair_send(&p.end[0], 0), 0);
	cr_expect_eq(p.net.cnt.sent + s->ep->out.cnt, left);
}

/** Otherwise the next progress call would access a freed session. */
Test(erpc_session, a_stopped_session_is_in_no_list)
{
	static const double rates[] = { 0, 1e6 };

	for (unsigned i = 0; i < 2; i++) {
		struct erpc_session *s = open_with(MTU, rates[i]);
		struct erpc_ep *ep = s->ep;
		struct util_list *const lists[] = { &ep->dirty, &ep->waiting, &ep->piggybacking,
						    &ep->failing };

		for (unsigned k = 0; k < 20; k++)
			pair_send(&p.end[0], 0);
		erpc_ep_progress(ep, ++p.net.now_ns);
		pair_send(&p.end[0], 0);
		util_list_push_back(&ep->waiting, &s->wait_link);
		util_list_push_back(&ep->piggybacking, &s->piggyback_link);
		erpc_session_fail(s, -FI_EIO, NULL);
		cr_assert_neq(s->flow.timer, ERPC_TIMER_NONE);
		erpc_session_stop(s);
		for (unsigned k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
			cr_expect(util_list_is_empty(lists[k]), "%u", k);
		cr_expect(erpc_set_is_empty(&ep->fresh));
		cr_expect(erpc_set_is_empty(&ep->new_timers));
		cr_expect_eq(ep->timers.cnt, 0);
		cr_expect_eq(ep->wheel.cnt, 0);
		cr_expect_eq(ep->out.cnt, 0, "no packet is in the burst");
		erpc_pair_fini(&p);
	}
}

/** Sets one mask or list at a time. */
Test(erpc_session, is_busy_while_a_response_is_due, .init = setup, .fini = teardown)
{
	struct erpc_session *s = p.end[0].s;
	uint8_t *const masks[] = { &s->resp.due_mask, &s->ack.wait_mask, &s->ack.empty_mask };
	struct util_list reply;

	cr_expect_not(erpc_session_is_busy(s));
	for (unsigned i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		*masks[i] = 1;
		cr_expect(erpc_session_is_busy(s), "%u", i);
		*masks[i] = 0;
	}
	s->rx[ERPC_SLOTS - 1].out.unsent = 1;
	cr_expect(erpc_session_is_busy(s));
	s->rx[ERPC_SLOTS - 1].out.unsent = 0;
	util_list_push_back(&s->replies, &reply);
	cr_expect(erpc_session_is_busy(s));
	util_list_remove(&reply);
	cr_expect_not(erpc_session_is_busy(s));
}

Test(erpc_session, linger_time_is_bounded, .init = setup, .fini = teardown)
{
	struct erpc_session s = { .flow.rto.first_ns = 200000 };

	cr_expect_eq(erpc_session_linger_ns(&s), 800000);
	s.lossy = true;
	cr_expect_eq(erpc_session_linger_ns(&s), 50000000);
	s.flow.rto.first_ns = 1000000;
	cr_expect_eq(erpc_session_linger_ns(&s), 96000000);
	s.flow.rto.first_ns = ERPC_RTO_MAX;
	cr_expect_eq(erpc_session_linger_ns(&s), 1000000000);
}

/** Callers make progress then, which reports the failure and ends what waits. */
Test(erpc_session, a_failed_session_has_room_for_nothing, .init = setup, .fini = teardown)
{
	struct erpc_session *s = p.end[0].s;

	erpc_session_fail(s, -FI_ENETDOWN, NULL);
	cr_expect_eq(pair_send(&p.end[0], 0), -FI_EAGAIN);
	cr_expect_eq(s->conn.chan.ops->send_buf(&s->conn.chan, core_packed(WIRE_OP_MSG, 0), 0, 0,
						"some", 4),
		     -FI_EAGAIN);
	cr_expect_eq(pair_call(&p.end[0], 0), -FI_EAGAIN);
	cr_expect_eq(s->conn.chan.shortage, CORE_SHORT_CONNECTION);
	cr_expect_eq(s->ep->err, 0, "the endpoint goes on");
}
