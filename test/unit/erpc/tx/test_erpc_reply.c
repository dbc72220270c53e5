/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replies gather in responses, and each arrives unchanged by any operation. */
#include "erpc/tx/erpc_reply.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "support/erpc_pair.h"

static struct erpc_pair p;

static void open_pair(uint64_t seed, uint32_t mtu)
{
	erpc_pair_start(&p, seed, mtu);
	p.end[1].defer_chance = 100;
}

static void close_pair(void)
{
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/* Replies of 0 to 3000 bytes, some longer than a packet, appended to others or not. */
static void replies_arrive(uint64_t seed, uint32_t mtu)
{
	struct pair_end *asks = &p.end[0], *gives = &p.end[1];
	unsigned round, i;

	open_pair(seed, mtu);
	gives->retain_call_chance = 60;
	for (round = 0; round < 200; round++) {
		for (i = (unsigned)rng_below(&p.rng, 20); i; i--)
			pair_call(asks, rng_chance(&p.rng, 1, 2) ? CORE_SEND_MORE : 0);
		erpc_pair_run(&p, 20000);
		for (i = (unsigned)rng_below(&p.rng, 20); i; i--)
			pair_reply_one(gives);
	}
	erpc_pair_settle(&p);
	cr_expect_gt(asks->replies, 500);
	cr_expect_eq(gives->s->reply_reserved, 0);
	cr_expect_eq(gives->s->resp.calls_pending, 0);
	cr_expect_eq(gives->s->resp.retained_len, 0, "all bytes of calls were released");
	close_pair();
}

Test(erpc_reply, replies_of_any_length_arrive)
{
	replies_arrive(rng_env("COPYRPC_TEST_SEED", 1), 512);
	replies_arrive(rng_env("COPYRPC_TEST_SEED", 2), 4096);
	replies_arrive(rng_env("COPYRPC_TEST_SEED", 3), 9000);
}

/* Returns a call at the other end that retains its bytes. */
static struct pair_call_ref one_call(void)
{
	p.end[1].retain_call_chance = 100;
	cr_assert_eq(pair_call(&p.end[0], 0), 0);
	erpc_pair_run(&p, 20000);
	cr_assert_eq(p.end[1].pending_cnt, 1);
	return p.end[1].pending[0];
}

Test(erpc_reply, a_reply_beyond_its_maximum_is_refused)
{
	struct core_chan *chan;
	struct pair_call_ref call;
	char buf[PAIR_RESP_MAX + 1] = { 0 };

	open_pair(1, 4096);
	chan = &p.end[1].s->conn.chan;
	call = one_call();
	cr_expect_eq(chan->ops->reply_release(chan, call.ref, call.retain, buf, sizeof(buf), 0),
		     -FI_EMSGSIZE);
	cr_expect_eq(p.end[1].s->resp.calls_pending, 1);
	cr_expect_gt(p.end[1].s->resp.retained_len, 0, "the bytes are still retained");
	erpc_pair_settle(&p);
	cr_expect_eq(p.end[0].replies, 1, "another reply was sent");
	close_pair();
}

Test(erpc_reply, after_a_failure_a_reply_only_releases_its_bytes)
{
	struct core_chan *chan;
	struct pair_call_ref call;

	open_pair(2, 4096);
	chan = &p.end[1].s->conn.chan;
	call = one_call();
	erpc_session_fail(p.end[1].s, -FI_EIO, NULL);
	cr_expect_eq(chan->ops->reply_release(chan, call.ref, call.retain, NULL, 0, 0), 0);
	cr_expect_eq(p.end[1].s->resp.retained_len, 0);
	cr_expect(util_list_is_empty(&p.end[1].s->replies));
	erpc_pair_fini(&p);
}
