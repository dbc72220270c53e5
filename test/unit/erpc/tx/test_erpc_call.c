/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls: as many as call_room returns are accepted, and a refused call costs nothing. */
#include "erpc/tx/erpc_call.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "support/erpc_pair.h"

static struct erpc_pair p;

/** Sends some batches, the last of which may be half full. */
static void begin(struct pair_end *e)
{
	uint32_t i, cnt = rng_below(&p.rng, 8);

	for (i = 0; i < cnt; i++)
		pair_send(e, rng_chance(&p.rng, 1, 2) ? CORE_SEND_NOW : CORE_SEND_MORE);
}

static unsigned some_flags(void)
{
	static const unsigned flags[] = { 0, CORE_SEND_MORE, CORE_SEND_NOW };

	return flags[rng_below(&p.rng, 3)];
}

static void room_is_room(uint64_t seed, uint32_t mtu)
{
	struct pair_end *e = &p.end[0];
	size_t room, i, most = 0;
	unsigned round;

	erpc_pair_start(&p, seed, mtu);
	for (round = 0; round < 300; round++) {
		e->len_exact = 0;
		e->len_max = 2 * mtu;
		begin(e);
		e->len_exact = 1 + rng_below(&p.rng, rng_chance(&p.rng, 1, 2) ? 40 : 2 * mtu);
		room = erpc_call_room(&e->s->conn.chan, e->len_exact, PAIR_RESP_MAX);
		for (i = 0; i < room; i++)
			cr_assert_eq(pair_call(e, some_flags()), 0, "call %zu of %zu", i, room);
		most = room > most ? room : most;
		if (rng_chance(&p.rng, 1, 2))
			erpc_pair_settle(&p);
		else
			erpc_pair_run(&p, 3000);
	}
	cr_assert_gt(most, ERPC_BATCH_SLOTS);
	erpc_pair_end(&p);
}

Test(erpc_call, as_many_calls_as_call_room_returns_are_accepted)
{
	room_is_room(rng_env("COPYRPC_TEST_SEED", 1), 512);
	room_is_room(rng_env("COPYRPC_TEST_SEED", 2), 4096);
	room_is_room(rng_env("COPYRPC_TEST_SEED", 3), 9000);
}

/*
 * With batches in flight, and with CORE_SEND_MORE, calls take the fast path: each gets its reply.
 */
Test(erpc_call, calls_of_any_length_are_appended)
{
	struct pair_end *e = &p.end[0];
	uint32_t i;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 7), 1024);
	for (i = 0; i < 4000; i++) {
		e->len_exact = i % 80;
		e->len_max = 80;
		if (pair_call(e, rng_chance(&p.rng, 1, 2) ? CORE_SEND_MORE : 0) ||
		    rng_chance(&p.rng, 1, 30))
			erpc_pair_run(&p, 3000);
	}
	erpc_pair_settle(&p);
	cr_expect_gt(erpc_pair_frames(e->ep), 2 * erpc_pair_batches(e->ep), "%lu in %lu",
		     erpc_pair_frames(e->ep), erpc_pair_batches(e->ep));
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/** Sends calls until one is refused. Returns their number. */
static uint32_t fill(struct pair_end *e)
{
	uint32_t cnt = 0;

	while (!pair_call(e, CORE_SEND_MORE))
		cnt++;
	return cnt;
}

Test(erpc_call, refused_calls_cost_nothing_and_replies_return_the_grant)
{
	struct pair_end *e = &p.end[0];
	uint64_t grant, taken, all;
	uint32_t cnt, i;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 8), PAIR_MTU);
	all = e->s->calls.grant_left;
	for (i = 0; i < 20; i++) {
		e->len_max = e->len_exact = 1 + 97 * i;
		cnt = fill(e);
		cr_assert_gt(cnt, ERPC_BATCH_SLOTS);
		grant = e->s->calls.grant_left;
		taken = e->s->flow.posted;
		cr_expect_eq(grant, all - (uint64_t)cnt * erpc_call_cost(PAIR_RESP_MAX));
		cr_expect_eq(pair_call(e, 0), -FI_EAGAIN);
		cr_expect_eq(pair_call(e, CORE_SEND_NOW), -FI_EAGAIN);
		cr_expect_eq(e->s->calls.grant_left, grant);
		cr_expect_eq(e->s->flow.posted, taken);
		erpc_pair_settle(&p);
		cr_expect_eq(e->s->calls.grant_left, all, "round %u", i);
	}
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

static enum core_shortage shortage(const struct pair_end *e)
{
	return erpc_call_shortage(&e->s->conn.chan, e->len_exact, PAIR_RESP_MAX);
}

/** Fills the session with calls of `len` bytes and returns the cause of the refusal. */
static enum core_shortage fill_with(struct pair_end *e, uint32_t len)
{
	e->len_max = e->len_exact = len;
	cr_assert_eq(shortage(e), CORE_SHORT_NONE);
	fill(e);
	cr_assert_eq(e->s->conn.chan.shortage, shortage(e));
	return shortage(e);
}

Test(erpc_call, the_shortage_of_a_refused_call_is_credit_or_space)
{
	struct pair_end *e = &p.end[0];
	uint64_t taken;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 9), PAIR_MTU);
	cr_expect_eq(fill_with(e, 2 * PAIR_MTU), CORE_SHORT_SPACE);
	erpc_pair_settle(&p);
	cr_expect_eq(shortage(e), CORE_SHORT_NONE);
	taken = e->s->calls.grant_left - 3 * erpc_call_cost(PAIR_RESP_MAX);
	e->s->calls.grant_left -= taken;
	cr_expect_eq(fill_with(e, 8), CORE_SHORT_CREDIT);
	e->s->calls.grant_left += taken;
	erpc_pair_settle(&p);
	cr_expect_eq(shortage(e), CORE_SHORT_NONE);
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}

/* Slots that are in use because the device accepts no packets. */
Test(erpc_call, without_slots_behind_a_full_device_the_queue_is_short)
{
	struct pair_end *e = &p.end[0];
	unsigned cnt;

	erpc_pair_start(&p, rng_env("COPYRPC_TEST_SEED", 10), PAIR_MTU);
	cnt = e->ep->out.cnt;
	e->ep->out.cnt = ERPC_BURST;
	cr_expect_eq(shortage(e), CORE_SHORT_NONE, "there are slots");
	e->ep->out.cnt = cnt;
	cr_expect_eq(fill_with(e, 2 * PAIR_MTU), CORE_SHORT_SPACE);
	cnt = e->ep->out.cnt;
	e->ep->out.cnt = ERPC_BURST;
	cr_expect_eq(shortage(e), CORE_SHORT_QUEUE);
	e->ep->out.cnt = cnt;
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	erpc_pair_fini(&p);
}
