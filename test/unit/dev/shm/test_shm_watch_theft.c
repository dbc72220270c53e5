/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines that a peer takes away from polls: closed inboxes and distrusted links. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "shm_watched.h"

TestSuite(shm_watch_theft, .fini = pair_fini, .timeout = 200);

static const struct shm_times slow = { .tick = 100, .own = 30, .inbox = 1000, .ring = 1000 };

/* Simulates timed loads of the inbox, slow ones, until it is closed or `cnt` are over. */
static void steal_inbox(int cnt)
{
	struct shm_times times = slow;

	times.ring = times.own;
	while (cnt-- && !db->guard.closed)
		shm_watch_judge(db, &times, false, false);
}

/* Simulates slow loads of the ring of link `i`. */
static void steal_ring(int i)
{
	struct shm_times times = slow;

	times.inbox = times.own;
	db->timed = pair_shm_link(&b[i])->id;
	for (int cnt = 0; cnt < 10 && !pair_shm_link(&b[i])->distrust; cnt++)
		shm_watch_judge(db, &times, false, false);
}

/* Makes links silent for so long that their rings are timed. */
static void fall_silent(void)
{
	poll_idle((SHM_TIME_SILENT + 2) * shm_tune_default.tick);
}

static void setup_distrusted(int cnt, int i)
{
	setup_of(cnt);
	fall_silent();
	steal_ring(i);
	cr_assert_neq(pair_shm_link(&b[i])->distrust, 0u);
}

Test(shm_watch_theft, an_inbox_whose_line_is_taken_away_is_closed_and_opens)
{
	setup_of(10);
	steal_inbox(100);
	cr_assert_eq(db->guard.closed, SHM_GUARD_THEFT);
	cr_expect_eq(db->polled, &shm_guard_empty);
	for (int i = 0; i < 10; i++) {
		park(i);
		pair_write(&a[i], 1);
		cr_assert(pair_expect(db, &b[i], 1, (SHM_GUARD_LOOK + 1) * shm_tune_default.tick));
	}
	poll_idle((SHM_GUARD_THEFT + 1) * shm_tune_default.tick);
	cr_expect_eq(db->guard.closed, 0u);
	cr_expect_eq(db->polled, db->inbox);
}

Test(shm_watch_theft, while_the_inbox_is_closed_an_erased_post_is_found_sooner)
{
	setup_settled(64);
	steal_inbox(100);
	for (int i = 0; i < 64; i += 9) {
		pair_write(&a[i], HALF);
		erase_posts();
		cr_assert(pair_expect(db, &b[i], HALF, (64 + 1) * shm_tune_default.tick), "%d", i);
	}
}

Test(shm_watch_theft, posts_that_are_owed_end_the_suspicion)
{
	setup_of(2);
	for (int i = 0; i < 100; i++) {
		steal_inbox(2);
		park(1);
		pair_write(&a[1], 1);
		cr_assert(pair_expect(db, &b[1], 1, 2));
		cr_assert_eq(db->guard.closed, 0u);
	}
}

Test(shm_watch_theft, a_load_of_the_inbox_that_found_a_post_is_no_evidence)
{
	setup_of(2);
	for (int i = 0; i < 100; i++)
		shm_watch_judge(db, &slow, true, true);
	cr_expect_eq(db->guard.closed, 0u);
}

Test(shm_watch_theft, a_link_whose_ring_is_taken_away_is_parked)
{
	setup_distrusted(4, 1);
	cr_expect(!is_active(1));
	cr_expect_eq(unsettled_cnt(), 0u, "the sweep does not look at it");
	for (int i = 0; i < 4; i++)
		cr_expect_eq(is_active(i), i != 1);
}

Test(shm_watch_theft, a_distrusted_link_is_active_for_a_tick_after_its_message)
{
	setup_distrusted(4, 1);
	for (int i = 0; i < 20; i++) {
		pair_write(&a[1], 1);
		cr_assert(pair_expect(db, &b[1], 1, 1));
		cr_assert(is_active(1));
		poll_idle(shm_tune_default.tick);
		cr_assert(!is_active(1));
		cr_assert_eq(db->distrusted_active, 0u);
	}
}

Test(shm_watch_theft, a_surplus_post_does_not_make_a_distrusted_link_active)
{
	setup_distrusted(4, 1);
	shm_inbox_post(db->inbox, pair_shm_link(&b[1])->id);
	poll_idle(1);
	cr_expect(!is_active(1));
	pair_write(&a[1], 1);
	cr_expect(pair_expect(db, &b[1], 1, 1));
}

Test(shm_watch_theft, the_patrol_finds_messages_of_a_distrusted_link)
{
	setup_distrusted(4, 1);
	lose_notification(1);
	pair_write(&a[1], HALF);
	cr_expect(pair_expect(db, &b[1], HALF, 5 * SHM_PATROL_TICKS * shm_tune_default.tick));
}

Test(shm_watch_theft, arming_finds_the_lost_notification_of_a_distrusted_link)
{
	setup_distrusted(4, 1);
	lose_notification(1);
	pair_write(&a[1], HALF);
	cr_expect_eq(shm_watch_arm_all(db), -FI_EAGAIN);
	cr_expect(pair_expect(db, &b[1], HALF, 4));
	poll_idle(shm_tune_default.tick);
	cr_expect_eq(shm_watch_arm_all(db), 0);
}

Test(shm_watch_theft, distrust_ends_and_is_longer_the_next_time)
{
	uint32_t polls = 3 * SHM_PATROL_TICKS * shm_tune_default.tick * SHM_DISTRUST;

	setup_distrusted(2, 1);
	cr_expect_eq(pair_shm_link(&b[1])->distrust, SHM_DISTRUST);
	poll_idle(polls);
	cr_assert_eq(pair_shm_link(&b[1])->distrust, 0u);
	cr_expect_eq(unsettled_cnt(), 1u, "the sweep looks at it again");
	steal_ring(1);
	cr_expect_eq(pair_shm_link(&b[1])->distrust, 2 * SHM_DISTRUST,
		     "parked links are timed, too");
	cr_expect_eq(unsettled_cnt(), 0u);
	for (int i = 0; i < 30; i++) {
		pair_shm_link(&b[1])->distrust = 0;
		steal_ring(1);
	}
	cr_expect_eq(pair_shm_link(&b[1])->distrust, SHM_DISTRUST << SHM_DISTRUST_MOST);
}

Test(shm_watch_theft, a_link_with_messages_is_not_distrusted)
{
	setup_of(2);
	for (int i = 0; i < 100; i++) {
		pair_write(&a[1], 1);
		cr_assert(pair_expect(db, &b[1], 1, shm_tune_default.tick * SHM_TIME_SILENT));
		steal_ring(1);
	}
	cr_expect_eq(pair_shm_link(&b[1])->distrust, 0u);
}

Test(shm_watch_theft, detaching_a_distrusted_link_leaves_the_others)
{
	setup_distrusted(4, 1);
	pair_write(&a[1], 1);
	cr_assert(pair_expect(db, &b[1], 1, 1));
	cr_assert_eq(db->distrusted_active, 1u);
	pair_close(&a[1], &b[1]);
	cr_expect_eq(db->distrusted_active, 0u);
	db->timed = 1;
	for (int i = 0; i < 100; i++)
		shm_watch_judge(db, &slow, true, false);
	poll_idle(100000);
	pair_write(&a[2], 1);
	cr_expect(pair_expect(db, &b[2], 1, 1000));
}
