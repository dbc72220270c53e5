/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pages that a reader takes, and forged ones that it refuses or cleans. (stats/stats_view.h) */
#include <errno.h>

#include "page.h"
#include "support/rng.h"

static struct page page;

static int copy(void)
{
	struct stats_view view;
	int ret = stats_view_copy(&view, &page, sizeof(page));

	if (!ret)
		stats_view_free(&view);
	return ret;
}

Test(stats_view, sums_have_past_and_unlisted_connections)
{
	struct stats_view view;
	struct copyrpc_stats_peer sum;

	page_init(&page);
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	sum = stats_view_sum_peers(&view);
	cr_expect_eq(stats_tx_messages(&sum), 2 * 10 + 100 + 1000);
	cr_expect_eq(sum.rx_messages, 10);
	cr_expect_eq(stats_tx_batches(&sum, 0), 2 * 2 + 1000);
	cr_expect_eq(stats_tx_batches(&sum, 3), 2);
	cr_expect_eq(stats_view_sum_endpoints(&view).waited_peer, 11);
	cr_expect_eq(stats_view_sum_queues(&view).completions, 2 * 20 + 1000);
	cr_expect_eq(stats_view_sum_queues(&view).unread, 3, "of the open one");
	cr_expect_eq(stats_view_process(&view)->registrations, 9);
	cr_expect_null(stats_view_row(&view, COPYRPC_STATS_PEERS, 3), "free");
	cr_expect_null(stats_view_row(&view, COPYRPC_STATS_PEERS, PAGE_ROWS));
	stats_view_free(&view);
}

Test(stats_view, rows_of_a_later_release_may_be_longer)
{
	struct stats_view view;

	page_init(&page);
	page.head.tables[COPYRPC_STATS_TRANSPORTS].row_len *= 2;
	page.head.tables[COPYRPC_STATS_TRANSPORTS].rows /= 2;
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	cr_expect_not_null(stats_view_row(&view, COPYRPC_STATS_TRANSPORTS, 1));
	stats_view_free(&view);
}

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		page_init(&page);                                                                  \
		cr_assert_eq(copy(), 0);                                                           \
		change;                                                                            \
		cr_expect_eq(copy(), -EINVAL, #change);                                            \
	} while (0)

Test(stats_view, a_forged_head_is_refused)
{
	REFUSED(page.head.magic++);
	REFUSED(page.head.version = 0);
	REFUSED(page.head.version++);
	REFUSED(page.head.len = sizeof(page) + 8);
	REFUSED(page.head.len = 8);
	REFUSED(page.head.pid = 0);
	REFUSED(page.head.table_cnt = COPYRPC_STATS_TABLES - 1);
	for (unsigned i = 0; i < COPYRPC_STATS_TABLES; i++) {
		struct copyrpc_stats_table *table = &page.head.tables[i];

		REFUSED(table->offset = sizeof(page.head) - 8);
		REFUSED(table->offset += 4);
		REFUSED(table->offset = sizeof(page));
		REFUSED(table->offset = UINT32_MAX - 7);
		REFUSED(table->row_len -= 8);
		REFUSED(table->row_len += 4);
		REFUSED(table->row_len = UINT32_MAX - 7);
		REFUSED(table->rows = 4097);
		REFUSED(table->rows = UINT32_MAX);
		REFUSED((table->rows = 4096, table->row_len = 1u << 31));
		for (unsigned k = 0; k < COPYRPC_STATS_TABLES; k++)
			if (k != i)
				REFUSED(table->offset = page.head.tables[k].offset + 8);
	}
}

Test(stats_view, a_short_or_misaligned_page_is_refused)
{
	struct stats_view view;

	page_init(&page);
	cr_expect_eq(stats_view_copy(&view, &page, 0), -EINVAL);
	cr_expect_eq(stats_view_copy(&view, &page, sizeof(page.head) - 1), -EINVAL);
	cr_expect_eq(stats_view_copy(&view, &page, sizeof(page) - 8), -EINVAL);
	cr_expect_eq(stats_view_copy(&view, (char *)&page + 4, sizeof(page) - 4), -EINVAL);
	cr_expect_eq(stats_view_copy(&view, &page, COPYRPC_STATS_LEN_MAX + 8), -EINVAL);
}

Test(stats_view, texts_end_and_cannot_carry_commands)
{
	struct stats_view view;
	const struct copyrpc_stats_peer *peer;

	page_init(&page);
	memset(page.head.command, 'x', sizeof(page.head.command));
	memcpy(page.head.host, "a\033[2J\"\\\n{b", 11);
	memset(page.peers[1].device, '\n', sizeof(page.peers[1].device));
	memset(page.peers[1].host, '\033', sizeof(page.peers[1].host));
	memset(page.waits[2].host, '\033', sizeof(page.waits[2].host));
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	cr_expect_eq(strlen(view.page->command), sizeof(page.head.command) - 1);
	cr_expect_str_eq(view.page->host, "a?[2J????b");
	peer = stats_view_row(&view, COPYRPC_STATS_PEERS, 1);
	cr_expect_str_eq(peer->device, "???????????????");
	cr_expect_eq(strspn(peer->host, "?"), sizeof(peer->host) - 1);
	cr_expect_eq(strspn(stats_view_wait(&view, 2)->host, "?"), sizeof(peer->host) - 1);
	stats_view_free(&view);
}

Test(stats_view, the_reason_for_a_path_is_the_device_or_the_peer)
{
	struct stats_view view;
	struct copyrpc_stats_peer peer = { .path = COPYRPC_STATS_SHM };
	char why[96];

	page_init(&page);
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	cr_expect_null(stats_better_path(&view, &peer, why, sizeof(why)));
	peer.path = COPYRPC_STATS_UDP;
	cr_expect_str_eq(stats_better_path(&view, &peer, why, sizeof(why)), "shm");
	cr_expect_not_null(strstr(why, "another host"));
	page.transports[1].row.state = COPYRPC_STATS_FREE;
	stats_view_free(&view);
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	cr_expect_str_eq(stats_better_path(&view, &peer, why, sizeof(why)), "nic");
	cr_expect_not_null(strstr(why, "No such device"));
	stats_view_free(&view);
}

Test(stats_view, a_peer_is_named_by_what_it_states)
{
	char text[STATS_NAME_LEN];

	cr_expect_str_eq(stats_identity_text(17, 4711, "node7", text), "rank 17 (node7, pid 4711)");
	cr_expect_str_eq(stats_identity_text(17, 4711, "", text), "rank 17 (pid 4711)");
	cr_expect_str_eq(stats_identity_text(-1, 4711, "node7", text), "pid 4711 on node7");
	cr_expect_str_eq(stats_identity_text(-1, 4711, "", text), "pid 4711");
	cr_expect_str_eq(stats_identity_text(-1, 0, "", text), "");
}

/* Random bytes in place of any of the page's: refused, or every function works. */
Test(stats_view, no_bytes_lead_out_of_the_page)
{
	char addr[STATS_ADDR_LEN], why[96];
	struct stats_view view;
	struct rng rng = { .state = 1 };
	unsigned taken = 0;

	for (unsigned round = 0; round < 20000; round++) {
		page_init(&page);
		for (unsigned i = 0; i <= round % 8; i++)
			((uint8_t *)&page)[rng_below(&rng, round % 2 ? sizeof(page)
								     : sizeof(page.head))] =
				(uint8_t)rng_below(&rng, 256);
		if (stats_view_copy(&view, &page, sizeof(page)))
			continue;
		taken++;
		stats_view_sum_peers(&view);
		stats_view_sum_endpoints(&view);
		stats_view_sum_queues(&view);
		stats_view_process(&view);
		for (uint32_t i = 0; i < stats_view_rows(&view, COPYRPC_STATS_PEERS); i++) {
			const struct copyrpc_stats_peer *peer =
				stats_view_row(&view, COPYRPC_STATS_PEERS, i);

			if (!peer)
				continue;
			stats_addr_text(&peer->addr, addr);
			stats_better_path(&view, peer, why, sizeof(why));
			cr_assert_not_null(stats_path_name(peer->path));
		}
		stats_view_free(&view);
	}
	cr_expect_gt(taken, 1000);
	cr_expect_lt(taken, 19000);
}
