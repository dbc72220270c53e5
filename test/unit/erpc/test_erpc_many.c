/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Many sessions of one endpoint: numbers, credits, memory; and a paced session. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "erpc/tx/erpc_kick.h"
#include "support/erpc_pair.h"
#include "support/pool_used.h"

#define MANY 2000u

static struct erpc_pair p;

Test(erpc_many, a_freed_number_is_reused_last)
{
	static struct erpc_session *all[ERPC_SESSIONS_MAX];
	struct wire_erpc_params params;
	struct erpc_session *s;
	uint32_t i;

	erpc_pair_start(&p, 1, PAIR_MTU);
	cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &s), 0);
	i = params.session;
	erpc_session_close(s);
	cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &s), 0);
	cr_assert_neq(params.session, i);
	erpc_session_close(s);
	for (i = 0; i < ERPC_SESSIONS_MAX - 1; i++)
		cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &all[i]), 0);
	cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &s), -FI_EAGAIN);
	erpc_session_close(all[17]);
	cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &all[17]), 0);
	for (i = 0; i < ERPC_SESSIONS_MAX - 1; i++)
		erpc_session_close(all[i]);
	erpc_pair_fini(&p);
}

/** Returns the credits of a session while the device has `cnt` buffers and `room` bytes. */
static uint32_t credits_with(uint32_t cnt, uint32_t room)
{
	struct dev_dgram *dg = p.end[0].ep->dg;
	uint32_t own_cnt = dg->rx_cnt;
	struct wire_erpc_params params;
	struct erpc_session *s;

	dg->rx_cnt = cnt;
	dg->rx_room = room;
	cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &s), 0);
	dg->rx_cnt = own_cnt;
	erpc_session_close(s);
	return params.credits;
}

Test(erpc_many, sessions_have_more_credits_where_the_device_has_room)
{
	uint32_t one;

	erpc_pair_start(&p, 2, PAIR_MTU);
	one = p.end[0].ep->dg->mtu + DEV_DGRAM_ROOM;
	cr_expect_eq(credits_with(8192, 0), ERPC_CREDITS_MAX);
	cr_expect_eq(credits_with(8192, 1000 * one), ERPC_CREDITS_MAX);
	cr_expect_eq(credits_with(8192, 200 * one), 200);
	cr_expect_eq(credits_with(8192, 100 * one), ERPC_CREDITS_FEW);
	cr_expect_eq(credits_with(2048, 0), ERPC_CREDITS_FEW);
	erpc_pair_fini(&p);
}

Test(erpc_many, the_first_sessions_cannot_overflow_the_receive_buffers_and_all_get_some)
{
	struct erpc_session *all[MANY];
	struct wire_erpc_params params;
	uint32_t i, left, before = ERPC_CREDITS_MAX;

	erpc_pair_start(&p, 2, PAIR_MTU);
	for (i = 0; i < MANY; i++) {
		left = p.end[0].ep->dg->rx_cnt - p.end[0].ep->promised;
		cr_assert_eq(erpc_session_open(p.end[0].ep, &params, &all[i]), 0);
		cr_assert_geq(params.credits, ERPC_CREDITS_MIN);
		if (params.credits > ERPC_CREDITS_MIN)
			cr_assert_leq(8 * params.credits, left, "an eighth of the free buffers");
		cr_assert_leq(params.credits, before);
		before = params.credits;
		if (params.credits > ERPC_CREDITS_MIN)
			cr_assert_leq(p.end[0].ep->promised, p.end[0].ep->dg->rx_cnt);
	}
	for (i = 0; i < MANY; i++)
		erpc_session_close(all[i]);
	erpc_pair_fini(&p);
}

Test(erpc_many, memory_of_closed_sessions_is_used_again)
{
	static struct erpc_session *all[MANY];
	struct wire_erpc_params params;
	struct erpc_ep *ep;
	uint32_t i, round;
	size_t few = 0, huge = 0;

	erpc_pair_start(&p, 4, PAIR_MTU);
	ep = p.end[0].ep;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < MANY; i++) {
			cr_assert_eq(erpc_session_open(ep, &params, &all[i]), 0);
			cr_assert_eq((uintptr_t)all[i] % 64, 0,
				     "its lines are where they should be");
			cr_assert_not(all[i]->lossy, "zeroed");
			all[i]->lossy = true;
		}
		cr_expect_eq(ep->sessions_few.item_cnt, ERPC_SESSIONS_FEW);
		cr_expect_eq(pool_used(&ep->sessions_few), ERPC_SESSIONS_FEW);
		if (!round) {
			few = ep->sessions_few.item_cnt;
			huge = ep->sessions_huge.item_cnt;
		}
		cr_expect_eq(ep->sessions_few.item_cnt, few);
		cr_expect_eq(ep->sessions_huge.item_cnt, huge);
		for (i = 0; i < MANY; i++)
			erpc_session_close(all[i]);
		cr_expect_eq(pool_used(&ep->sessions_huge), 0);
	}
	erpc_pair_fini(&p);
}

Test(erpc_many, an_idle_session_has_only_its_struct)
{
	cr_expect_leq(sizeof(struct erpc_session), ERPC_SESSION_MEM_MAX);
	erpc_pair_start(&p, 3, PAIR_MTU);
	cr_assert_eq(pair_send(&p.end[0], 0), 0);
	cr_assert_gt(p.end[0].ep->bufs.used_cnt, 0);
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_expect_eq(p.end[0].ep->bufs.used_cnt, 0);
	cr_expect_eq(p.end[1].ep->bufs.used_cnt, 0);
	cr_expect_eq(pool_used(&p.end[1].ep->bodies), 0);
	erpc_pair_fini(&p);
}

/**
 * A narrow link with a queue of a few packets, where an unpaced session would lose most of them.
 */
Test(erpc_many, a_paced_session_adapts_to_a_narrow_link)
{
	unsigned i;

	erpc_pair_init(&p, 4);
	p.net.mtu = 1024;
	p.pace_rate = 1e9;
	erpc_pair_open(&p);
	p.net.bytes_per_s = 20e6;
	p.net.queue_max = 20000;
	p.end[0].get_max = 100000;
	for (i = 0; i < 20; i++) {
		pair_get(&p.end[0]);
		pair_send(&p.end[0], 0);
		erpc_pair_run(&p, 5000000);
	}
	erpc_pair_settle(&p);
	erpc_pair_check(&p);
	cr_assert_gt(p.end[0].gets_done, 5);
	cr_assert_gt(p.end[0].ep->unread.paced, 0);
	cr_assert_lt(p.end[0].s->time.timely.rate, 1e9);
	erpc_pair_fini(&p);
}
