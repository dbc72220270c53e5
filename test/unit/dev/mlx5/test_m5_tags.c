/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_tags.h"

#include <criterion/criterion.h>

TestSuite(m5_tags, .timeout = 200);

#define CNT 4u
#define QPN 0x123456u

static struct m5_tags tags;
static struct m5_tags_entry entry[CNT];
static int user[16];

static void start(void)
{
	m5_tags_init(&tags, entry, CNT);
}

static uint16_t list(void *u)
{
	uint16_t next;

	cr_assert(m5_tags_has_room(&tags));
	return m5_tags_list(&tags, u, &next);
}

/* Three laps. Entries become free in another order than they were handed out. */
Test(m5_tags, each_append_names_the_entry_of_the_next_one)
{
	uint16_t next, announced = 0, held[2] = { 0 };

	start();
	for (unsigned n = 0; n < 3 * CNT; n++) {
		uint16_t i = m5_tags_list(&tags, &user[0], &next);

		cr_assert_eq(i, announced);
		announced = next;
		held[n % 2] = i;
		if (n % 2) {
			cr_assert(m5_tags_drop(&tags, held[1], false));
			cr_assert(m5_tags_drop(&tags, held[0], false));
		}
		cr_assert_eq(tags.free_cnt + tags.listed_cnt, CNT);
	}
}

Test(m5_tags, the_last_free_entry_is_not_handed_out)
{
	start();
	for (unsigned i = 0; i + 1 < CNT; i++)
		list(&user[i]);
	cr_expect_not(m5_tags_has_room(&tags));
	cr_assert(m5_tags_drop(&tags, 1, false));
	cr_expect(m5_tags_has_room(&tags));
	cr_expect_eq(list(&user[5]), 3, "the one that was announced, not the one that became free");
	cr_assert(m5_tags_drop(&tags, 0, false));
	cr_expect_eq(list(&user[6]), 1, "in the order in which they became free");
}

Test(m5_tags, a_match_and_its_bytes)
{
	uint16_t i;

	start();
	i = list(&user[3]);
	cr_expect_eq(tags.listed_cnt, 1);
	cr_expect_null(m5_tags_ended(&tags, i), "no match yet");
	cr_expect_eq(m5_tags_matched(&tags, i, QPN), &user[3]);
	cr_expect_eq(tags.listed_cnt, 0);
	cr_expect_null(m5_tags_matched(&tags, i, QPN), "only one");
	cr_expect_not(m5_tags_ask(&tags, i));
	cr_expect_not(m5_tags_drop(&tags, i, false));
	cr_expect_eq(tags.free_cnt, CNT - 1);
	cr_expect_eq(m5_tags_ended(&tags, i), &user[3]);
	cr_expect_eq(tags.free_cnt, CNT);
	cr_expect_null(m5_tags_ended(&tags, i));
}

Test(m5_tags, a_removal_that_succeeds)
{
	void *u = &user[9];
	uint16_t i;

	start();
	i = list(&user[3]);
	cr_expect_not(m5_tags_removed(&tags, i, true, &u), "none was posted");
	cr_expect(m5_tags_ask(&tags, i));
	cr_expect_not(m5_tags_ask(&tags, i), "one at a time");
	cr_expect_eq(tags.free_cnt, CNT - 1, "it may still be matched");
	cr_expect(m5_tags_removed(&tags, i, true, &u));
	cr_expect_eq(u, &user[3]);
	cr_expect_eq(tags.free_cnt, CNT);
	cr_expect_eq(tags.listed_cnt, 0);
}

Test(m5_tags, a_removal_that_cannot_fail_and_reports_keeps_its_entry)
{
	void *u = &user[9];
	uint16_t i;

	start();
	i = list(&user[3]);
	cr_expect(m5_tags_drop(&tags, i, true));
	cr_expect_eq(tags.listed_cnt, 0);
	cr_expect_eq(tags.free_cnt, CNT - 1);
	cr_expect_null(m5_tags_matched(&tags, i, QPN));
	cr_expect(m5_tags_removed(&tags, i, true, &u));
	cr_expect_null(u, "the receive has ended before");
	cr_expect_eq(tags.free_cnt, CNT);
}

/* The bytes come before or after the end of the REMOVE. */
Test(m5_tags, a_removal_that_a_match_overtakes_frees_the_entry_after_both)
{
	for (unsigned bytes_first = 0; bytes_first < 2; bytes_first++) {
		void *u = &user[9];
		uint16_t i;

		start();
		i = list(&user[3]);
		cr_assert(m5_tags_ask(&tags, i));
		cr_expect_eq(m5_tags_matched(&tags, i, QPN), &user[3]);
		if (bytes_first)
			cr_expect_eq(m5_tags_ended(&tags, i), &user[3]);
		cr_expect_eq(tags.free_cnt, CNT - 1);
		cr_expect_not(m5_tags_removed(&tags, i, true, &u), "the device contradicts itself");
		cr_expect(m5_tags_removed(&tags, i, false, &u));
		cr_expect_null(u);
		if (!bytes_first)
			cr_expect_eq(m5_tags_ended(&tags, i), &user[3]);
		cr_expect_eq(tags.free_cnt, CNT);
		cr_expect_not(m5_tags_removed(&tags, i, false, &u));
	}
}

Test(m5_tags, what_a_lost_peer_matched_is_abandoned)
{
	uint16_t i, j, k;

	start();
	i = list(&user[0]);
	j = list(&user[1]);
	k = list(&user[2]);
	m5_tags_ask(&tags, k);
	m5_tags_matched(&tags, i, QPN);
	m5_tags_matched(&tags, j, QPN + 1);
	m5_tags_matched(&tags, k, QPN);
	cr_expect_eq(m5_tags_abandon(&tags, QPN), &user[0]);
	cr_expect_eq(m5_tags_abandon(&tags, QPN), &user[2]);
	cr_expect_null(m5_tags_abandon(&tags, QPN));
	cr_expect_eq(tags.free_cnt, 2, "the REMOVE of the last one has not ended");
	cr_expect_eq(m5_tags_ended(&tags, j), &user[1]);
}

Test(m5_tags, indices_of_the_device_beyond_the_table_are_refused)
{
	static const uint32_t bad[] = { CNT, 255, 65535 };
	void *u;

	start();
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_null(m5_tags_matched(&tags, bad[i], QPN));
		cr_expect_null(m5_tags_ended(&tags, bad[i]));
		cr_expect_not(m5_tags_removed(&tags, bad[i], true, &u));
		cr_expect_not(m5_tags_removed(&tags, bad[i], false, &u));
	}
}
