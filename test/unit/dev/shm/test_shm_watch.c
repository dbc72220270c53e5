/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_watch.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "shm_watched.h"

TestSuite(shm_watch, .fini = pair_fini, .timeout = 200);

#define MANY 100

/*
 * Expects that the writer of a link, which has taken half a ring since it was armed, posts again
 * once it is parked. The other half shows that this does not depend on the offset.
 */
static void expect_post_after_parking(int i)
{
	pair_write(&a[i], HALF);
	cr_expect(pair_expect(db, &b[i], HALF, shm_tune_default.per_poll));
	park(i);
	pair_write(&a[i], HALF);
	cr_expect(shm_inbox_is_set(db->inbox), "link %d", i);
}

Test(shm_watch, silent_links_are_parked_except_a_few)
{
	const struct shm_tune *t = &shm_tune_default;

	setup_of(10);
	cr_expect_eq(db->act_cnt, 10);
	poll_idle(t->tick * (t->idle_ticks - 1));
	cr_expect_eq(db->act_cnt, 10);
	poll_idle(t->tick * (2 + 2 * 10 + 10));
	cr_expect_eq(db->act_cnt, t->keep);
	poll_idle(t->tick * t->idle_ticks * 3);
	cr_expect_eq(db->act_cnt, t->keep);
}

Test(shm_watch, a_link_in_use_is_not_parked)
{
	const struct shm_tune *t = &shm_tune_default;
	uint32_t i;

	setup_of(10);
	for (i = 0; i < 20; i++) {
		poll_idle(t->tick * t->idle_ticks / 4);
		pair_write(&a[7], 1);
		cr_assert(pair_expect(db, &b[7], 1, 20));
	}
	cr_expect(is_active(7));
	cr_expect_eq(pair_shm_link(&b[7])->epoch, 0, "its writer never posted");
}

Test(shm_watch, links_beyond_one_polls_limit_are_parked)
{
	setup_of(MANY);
	poll_idle(shm_tune_default.tick * MANY);
	cr_expect_eq(db->act_cnt, shm_tune_default.per_poll);
}

Test(shm_watch, a_post_makes_a_parked_link_active_and_next)
{
	setup_of(10);
	park(3);
	cr_expect(!is_active(3));
	pair_write(&a[3], 2);
	cr_expect(pair_expect(db, &b[3], 2, 1));
	cr_expect(is_active(3));
}

Test(shm_watch, writer_posts_once_for_each_change)
{
	setup_of(2);
	park(0);
	pair_write(&a[0], 1);
	cr_expect(shm_inbox_is_set(db->inbox));
	cr_expect(pair_expect(db, &b[0], 1, 1));
	pair_write(&a[0], 1);
	pair_write(&a[0], 1);
	cr_expect(!shm_inbox_is_set(db->inbox));
	cr_expect(pair_expect(db, &b[0], 1, 2));
	cr_expect(pair_expect(db, &b[0], 1, 2));
	park(0);
	pair_write(&a[0], 1);
	cr_expect(shm_inbox_is_set(db->inbox));
}

Test(shm_watch, a_link_with_a_pending_write_is_not_parked)
{
	setup_of(2);
	pair_write(&a[0], 1);
	cr_expect(!shm_watch_park(db, pair_shm_link(&b[0])));
	cr_expect(is_active(0));
	cr_expect(pair_expect(db, &b[0], 1, 2));
	/* The writer still owes its post, which is no event. */
	pair_write(&a[0], 1);
	cr_expect(pair_expect(db, &b[0], 1, 2));
	poll_idle(100);
}

Test(shm_watch, sweep_finds_a_lost_notification_in_bounded_time)
{
	struct dev_event ev;
	uint32_t i, bound;

	setup_of(MANY);
	poll_idle(shm_tune_default.tick * MANY);
	for (i = 0; is_active((int)i); i++)
		;
	bound = (unsettled_cnt() + 1) * shm_tune_default.tick;
	lose_notification((int)i);
	pair_write(&a[i], HALF);
	cr_expect(!shm_inbox_is_set(db->inbox));
	cr_assert(pair_poll(db, &ev, bound));
	cr_expect_eq(ev.link, b[i].link);
	expect_post_after_parking((int)i);
}

Test(shm_watch, arming_for_a_sleep_settles_every_parked_link)
{
	setup_of(MANY);
	poll_idle(shm_tune_default.tick * MANY);
	cr_expect_eq(unsettled_cnt(), MANY - shm_tune_default.per_poll);
	cr_assert_eq(shm_watch_arm_all(db), 0);
	cr_expect_eq(unsettled_cnt(), 0);
	/* Parking an armed and settled link needs neither another change nor the sweep. */
	park((int)((struct transport *)db->act[0].link->base.user - b));
	cr_expect_eq(unsettled_cnt(), 0);
}

Test(shm_watch, arming_fails_while_a_write_is_pending)
{
	setup_of(4);
	pair_write(&a[1], 1);
	cr_expect_eq(shm_watch_arm_all(db), -FI_EAGAIN, "an active link's word");
	cr_expect(pair_expect(db, &b[1], 1, 1));
	cr_assert_eq(shm_watch_arm_all(db), 0);

	pair_write(&a[1], 1);
	cr_expect_eq(shm_watch_arm_all(db), -FI_EAGAIN, "a post");
	cr_expect(pair_expect(db, &b[1], 1, 1));
	cr_assert_eq(shm_watch_arm_all(db), 0);
}

Test(shm_watch, arming_finds_a_notification_that_was_lost_before_the_barrier)
{
	setup_of(4);
	park(2);
	lose_notification(2);
	pair_write(&a[2], HALF);
	cr_expect_eq(shm_watch_arm_all(db), -FI_EAGAIN);
	cr_expect(pair_expect(db, &b[2], HALF, 4));
	expect_post_after_parking(2);
	cr_expect(pair_expect(db, &b[2], HALF, 4));
	cr_assert_eq(shm_watch_arm_all(db), 0);
}

Test(shm_watch, arming_finds_the_post_of_a_settled_link)
{
	setup_of(4);
	cr_assert_eq(shm_watch_arm_all(db), 0);
	park(2);
	cr_assert_eq(unsettled_cnt(), 0);
	pair_write(&a[2], 1);
	cr_expect_eq(shm_watch_arm_all(db), -FI_EAGAIN);
	cr_expect(pair_expect(db, &b[2], 1, 1));
}

Test(shm_watch, after_arming_every_writer_posts)
{
	int i;

	setup_of(MANY);
	poll_idle(shm_tune_default.tick * MANY);
	for (i = 0; i < MANY; i++) {
		cr_assert_eq(shm_watch_arm_all(db), 0);
		pair_write(&a[i], 1);
		cr_assert(shm_inbox_is_set(db->inbox), "link %d", i);
		cr_assert(pair_expect(db, &b[i], 1, 2));
	}
}

Test(shm_watch, surplus_posts_and_posts_for_unknown_links_are_harmless)
{
	uint32_t i, id;

	setup_of(20);
	for (i = 0; i < 3; i++) {
		memset(db->inbox, 0xff, SHM_INBOX_LEN);
		poll_idle(1000);
		for (id = 0; id < SHM_LINKS_MAX; id += 7)
			shm_inbox_post(db->inbox, id);
		poll_idle(1000);
	}
	for (i = 0; i < 20; i++) {
		pair_write(&a[i], 1);
		cr_assert(pair_expect(db, &b[i], 1, 2000));
	}
}

/* Links that are parked are armed, too, but no writer owes a post. */
Test(shm_watch, a_flood_of_posts_closes_the_inbox_and_delays_messages_by_a_bounded_time)
{
	uint32_t polls = SHM_GUARD_LOOK * shm_tune_default.tick + 12;

	setup_of(10);
	for (uint32_t flood = 0; flood < 4 * SHM_GUARD_SURPLUS; flood++) {
		for (int i = 0; i < 10; i++)
			if (is_active(i))
				park(i);
		memset(db->inbox, 0xff, SHM_INBOX_LEN);
		poll_idle(polls);
	}
	cr_expect_neq(db->guard.closed, 0u);
	for (int i = 0; i < 10; i++) {
		if (is_active(i))
			park(i);
		pair_write(&a[i], 1);
		memset(db->inbox, 0xff, SHM_INBOX_LEN);
		cr_assert(pair_expect(db, &b[i], 1, polls));
	}
	poll_idle((SHM_GUARD_TICKS + 2 * SHM_GUARD_LOOK) * shm_tune_default.tick);
	cr_expect_eq(db->guard.closed, 0u);
	cr_expect_eq(db->polled, db->inbox);
}

/* --- posts that another peer erases --- */

static void erased_while_polling(int cnt)
{
	uint32_t bound = ((uint32_t)cnt + 1) * SHM_PATROL_TICKS * shm_tune_default.tick;
	int i, k;

	setup_settled(cnt);
	for (k = 0; k < 3; k++) {
		i = k * (cnt - 1) / 2;
		pair_write(&a[i], HALF);
		erase_posts();
		cr_assert(pair_expect(db, &b[i], HALF, bound), "link %d of %d", i, cnt);
		expect_post_after_parking(i);
		cr_assert(pair_expect(db, &b[i], HALF, 1));
		park(i);
		cr_assert_eq(shm_watch_arm_all(db), 0);
	}
}

Test(shm_watch, erased_post_of_the_only_link_is_found)
{
	erased_while_polling(1);
}

Test(shm_watch, erased_post_of_64_links_is_found)
{
	erased_while_polling(64);
}

Test(shm_watch, erased_post_of_200_links_is_found)
{
	erased_while_polling(MOST);
}

Test(shm_watch, erased_post_of_an_active_link_is_owed_again_when_it_is_parked)
{
	setup_of(4);
	cr_assert_eq(shm_watch_arm_all(db), 0);
	pair_write(&a[1], 3);
	erase_posts();
	cr_assert(pair_expect(db, &b[1], 3, 4));
	park(1);
	cr_expect_eq(unsettled_cnt(), 1);
	pair_write(&a[1], 1);
	cr_expect(shm_inbox_is_set(db->inbox));
	cr_expect(pair_expect(db, &b[1], 1, 1));
}

Test(shm_watch, a_post_that_comes_after_its_word_was_found_is_not_surplus)
{
	setup_of(2);
	park(1);
	lose_notification(1);
	pair_write(&a[1], 1);
	cr_assert(pair_expect(db, &b[1], 1, 4 * shm_tune_default.tick));
	pair_shm_link(&a[1])->posted--; /* the writer saw the change late */
	pair_write(&a[1], 1);
	cr_assert(shm_inbox_is_set(db->inbox));
	cr_assert(pair_expect(db, &b[1], 1, 2));
	cr_expect_eq(db->guard.surplus, 0u);
}

Test(shm_watch, a_dead_link_is_not_patrolled)
{
	struct dev_event ev;

	setup_settled(2);
	shm_watch_end(db, pair_shm_link(&b[0]), &ev);
	pair_write(&a[0], 1);
	erase_posts();
	poll_idle(4 * SHM_PATROL_TICKS * shm_tune_default.tick);
}

Test(shm_watch, detaching_in_any_order_keeps_the_rest_reachable)
{
	uint64_t seed = 0x0ddba11, r;
	int left = 40, i, k;
	bool gone[40] = { false };

	setup_of(40);
	while (left) {
		r = pair_rand(&seed);
		i = (int)(r % 40);
		if (gone[i])
			continue;
		if (r >> 63 && is_active(i))
			park(i);
		pair_close(&a[i], &b[i]);
		gone[i] = true;
		left--;
		poll_idle((uint32_t)(r >> 40) % 300 + 1);
		for (k = 0; k < 40; k++) {
			if (gone[k])
				continue;
			pair_write(&a[k], 1);
			cr_assert(pair_expect(db, &b[k], 1, 1000));
		}
	}
	cr_expect_eq(db->act_cnt, 0);
	cr_expect_eq(unsettled_cnt(), 0);
	poll_idle(1000);
}
