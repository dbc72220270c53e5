/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replies that end a message wait for the next one of a process that polls, and not for long. */
#include "erpc/tx/erpc_defer.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "erpc/tx/erpc_batch.h"
#include "erpc/tx/erpc_now.h"
#include "support/erpc_pair.h"

static struct erpc_pair p;

/** Opens a pair whose end 1 is likely to poll again soon. */
static void begin(void)
{
	erpc_pair_start(&p, 5, PAIR_MTU);
	p.end[0].len_exact = 16;
	p.end[1].len_exact = 200; /* longer than the reply */
	p.end[1].defer_chance = 100;
	p.end[1].ep->now.soon = p.end[1].ep->now.trust / ERPC_NOW_LIKELY;
}

static void end(void)
{
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_expect_null(p.end[1].ep->defer.session);
	erpc_pair_fini(&p);
}

static uint64_t left(void)
{
	return p.end[1].ep->dg->tx_posted;
}

static void poll_receiver(void)
{
	p.net.now_ns++;
	erpc_ep_progress(p.end[1].ep, p.net.now_ns);
}

/** Sends a call, which the receiver gets. */
static void call(void)
{
	cr_assert_eq(pair_call(&p.end[0], 0), 0);
	fake_net_run(&p.net, p.net.now_ns + p.net.latency_ns);
	poll_receiver();
}

/** Replies to it in a progress call. Returns the packets that leave with that. */
static uint64_t reply(bool (*one)(struct pair_end *e))
{
	uint64_t before = left();

	p.end[1].ep->running = true;
	cr_assert(one(&p.end[1]));
	poll_receiver();
	return left() - before;
}

Test(erpc_defer, a_message_takes_the_reply_along)
{
	uint64_t before;

	begin();
	call();
	cr_expect_eq(reply(pair_end_one), 0);
	cr_expect_not(erpc_ep_is_quiet(p.end[1].ep), "no thread may sleep");
	cr_expect(erpc_session_is_busy(p.end[1].s));
	before = left();
	cr_assert_eq(pair_send(&p.end[1], 0), 0);
	cr_expect_eq(left(), before + 2);
	fake_net_run(&p.net, p.net.now_ns + p.net.latency_ns);
	erpc_ep_progress(p.end[0].ep, ++p.net.now_ns);
	cr_expect_eq(p.end[0].replies, 1);
	cr_expect_eq(p.end[0].received, 1);
	poll_receiver();
	cr_expect_eq(left(), before + 2, "it has left once");
	end();
}

Test(erpc_defer, the_next_progress_calls_send_it)
{
	uint64_t before;

	begin();
	for (unsigned i = 0; i < 10; i++) {
		call();
		cr_expect_eq(reply(pair_end_one), 0);
		before = left();
		for (unsigned polls = 1; polls < ERPC_DEFER_POLLS; polls++) {
			cr_expect_eq(left(), before);
			poll_receiver();
		}
		poll_receiver();
		cr_expect_eq(left(), before + 1);
		erpc_pair_settle(&p);
		cr_expect_eq(p.end[0].replies, i + 1);
	}
	end();
}

Test(erpc_defer, a_message_that_gathers_takes_it_along_too)
{
	uint64_t before;

	begin();
	p.end[1].s->flow.bursts = ERPC_BURSTS_TRUST;
	call();
	cr_expect_eq(reply(pair_end_one), 0);
	before = left();
	cr_assert_eq(pair_send(&p.end[1], 0), 0);
	cr_expect_eq(left(), before, "it gathers");
	poll_receiver();
	cr_expect_eq(left(), before + 2);
	end();
}

Test(erpc_defer, a_process_earns_it_by_polls)
{
	begin();
	p.end[1].ep->now.soon -= 2;
	for (unsigned i = 0; i < 2; i++) {
		call();
		cr_expect_eq(reply(pair_end_one), 1, "at once");
		erpc_pair_settle(&p);
	}
	call();
	cr_expect_eq(reply(pair_end_one), 0);
	end();
}

Test(erpc_defer, a_late_poll_with_a_reply_that_waited_ends_trust_for_longer)
{
	uint32_t trust;

	begin();
	trust = p.end[1].ep->now.trust;
	call();
	cr_expect_eq(reply(pair_end_one), 0);
	p.net.now_ns += 2 * ERPC_NOW_SOON_NS;
	poll_receiver();
	cr_expect_not(erpc_now_is_likely(p.end[1].ep));
	cr_expect_eq(p.end[1].ep->now.trust, 4 * trust);
	end();
}

Test(erpc_defer, other_replies_do_not_wait)
{
	begin();
	call();
	cr_expect_eq(reply(pair_reply_one), 1);
	erpc_pair_settle(&p);
	/* Nor does one behind which another kind follows. */
	call();
	p.end[1].ep->running = true;
	erpc_defer_reply(p.end[1].s, CORE_SEND_ENDS);
	cr_expect_eq(reply(pair_reply_one), 1);
	end();
}

Test(erpc_defer, it_leaves_with_a_batch_that_waits)
{
	begin();
	call();
	p.end[1].s->flow.bursts = ERPC_BURSTS_TRUST;
	cr_assert_eq(pair_send(&p.end[1], 0), 0);
	cr_expect_eq(reply(pair_end_one), 2);
	end();
}

Test(erpc_defer, it_leaves_with_packets_of_other_sessions)
{
	struct wire_erpc_hdr h = { .kind = WIRE_ERPC_CR };

	begin();
	call();
	erpc_out_put(&p.end[1].ep->out, p.end[1].s->ah, &h, NULL, 0, NULL, NULL, NULL);
	cr_expect_eq(reply(pair_end_one), 2);
	end();
}

Test(erpc_defer, a_session_that_fails_is_forgotten)
{
	begin();
	call();
	cr_expect_eq(reply(pair_end_one), 0);
	cr_assert_eq(p.end[1].ep->defer.session, p.end[1].s);
	erpc_session_fail(p.end[1].s, -FI_EIO, NULL);
	erpc_session_stop(p.end[1].s);
	cr_expect_null(p.end[1].ep->defer.session);
	poll_receiver();
	erpc_pair_fini(&p);
}
