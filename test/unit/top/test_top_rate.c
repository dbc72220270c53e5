/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rates are growth over time, of the same process and the same connection only. (top/top_rate.h) */
#include "top/top_rate.h"
#include "unit/stats/page.h"

static struct stats_view view_of(const struct page *page)
{
	struct stats_view view;

	cr_assert_eq(stats_view_copy(&view, page, sizeof(*page)), 0);
	return view;
}

Test(top_rate, growth_is_divided_by_the_time)
{
	struct page page;
	struct copyrpc_stats_peer before, now;
	struct top_rate rate;

	page_init(&page);
	before = now = page.peers[1];
	now.tx_singles += 6;
	now.tx_messages += 34;
	now.tx_batches[4] += 2;
	now.rx_messages += 50;
	now.tx_bytes += 1000;
	now.rx_bytes += 100;
	now.given_bytes += 500;
	now.get_bytes += 200;
	now.access_bytes += 300;
	now.no_credit += 3;
	now.paced += 1;
	rate = top_rate(&before, &now, 2);
	cr_expect_eq(rate.tx_messages, 20);
	cr_expect_eq(rate.rx_messages, 25);
	cr_expect_eq(rate.tx_bytes, 750);
	cr_expect_eq(rate.rx_bytes, 300);
	cr_expect_eq(rate.waits, 2);
	cr_expect_eq(rate.batch, 5, "40 messages in 6 single and 2 other batches");
}

Test(top_rate, counters_that_went_down_have_no_rate)
{
	struct page page;
	struct top_rate rate;

	page_init(&page);
	rate = top_rate(&page.peers[1], &page.peers[3], 1);
	cr_expect_eq(rate.tx_messages, 0);
	cr_expect_eq(rate.rx_bytes, 0);
	cr_expect_eq(rate.batch, 0);
}

Test(top_rate, a_process_is_the_same_if_number_and_start_are)
{
	struct page page;
	struct top_pages before = { .cnt = 1 };
	struct stats_view old, now;

	page_init(&page);
	old = view_of(&page);
	before.views = &old;
	now = view_of(&page);
	cr_expect_eq(top_rate_page(&before, &now), &old);
	now.page->start_ns++;
	cr_expect_null(top_rate_page(&before, &now));
	now.page->start_ns--;
	now.page->pid++;
	cr_expect_null(top_rate_page(&before, &now));
	stats_view_free(&old);
	stats_view_free(&now);
}

Test(top_rate, a_connection_is_the_same_if_its_row_was_not_used_again)
{
	struct page page;
	struct stats_view old, now;

	page_init(&page);
	old = view_of(&page);
	page.peers[2].row.use++;
	now = view_of(&page);
	cr_expect_eq(top_rate_peer(&old, &now, 1), stats_view_row(&old, COPYRPC_STATS_PEERS, 1));
	cr_expect_null(top_rate_peer(&old, &now, 2));
	cr_expect_null(top_rate_peer(&old, &now, 3), "a free row");
	cr_expect_null(top_rate_peer(&old, &now, PAGE_ROWS), "no row");
	cr_expect_null(top_rate_peer(NULL, &now, 1));
	stats_view_free(&old);
	stats_view_free(&now);
}
