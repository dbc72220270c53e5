/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The summary has the numbers of the page, and nothing that did not occur. (stats/stats_print.h) */
#include "page.h"
#include "stats/stats_print.h"

Test(stats_text, a_summary_has_sums_sizes_waits_and_peers)
{
	struct page page;
	char *text;

	page_init(&page);
	text = page_printed(&page, stats_print_text);
	cr_expect_not_null(strstr(text, "program, pid 42 on node, rank 3\n"), "%s", text);
	cr_expect_not_null(strstr(text, "        1120 messages"), "%s", text);
	cr_expect_not_null(strstr(text, "8-15: 2"), "%s", text);
	cr_expect_not_null(strstr(text, "for the peer 11"), "%s", text);
	cr_expect_not_null(strstr(text, "accessed             6 ranges         154 B"), "%s", text);
	cr_expect_null(strstr(text, "  fetched "), "%s", text);
	cr_expect_not_null(
		strstr(text, "given                8 transfers     8192 B  which peers fetched"),
		"%s", text);
	cr_expect_not_null(strstr(text, "\n    long transfers: gave 4 (4096 B), fetched 0 (0 B)\n"),
			   "%s", text);
	cr_expect_not_null(strstr(text, "10.0.0.1:6"), "%s", text);
	cr_expect_not_null(strstr(text, "not shm: "), "%s", text);
	cr_expect_null(strstr(text, "losses"), "%s", text);
	cr_expect_not_null(strstr(text, "receives posted:  now 4, at most 5\n"), "%s", text);
	cr_expect_not_null(strstr(text, "unexpected messages:  at most 6\n"), "%s", text);
	cr_expect_not_null(strstr(text, "completions:  written 1040, of these with an error 4, "
					"not read yet 3\n"),
			   "%s", text);
	cr_expect_not_null(strstr(text, "2 ranges, 8192 B now; 9 in all, 0 refused\n"), "%s", text);
	cr_expect_not_null(strstr(text, "pools of requests and messages: 640 B\n"), "%s", text);
	cr_expect_null(strstr(text, "buffers for packets"), "%s", text);
	cr_expect_not_null(strstr(text, "\n    rank 17 (other, pid 43); round trip 12.3 us, "
					"shortest 9.0 us\n"),
			   "%s", text);
	cr_expect_null(strstr(text, "pid 0"), "%s", text);
	cr_expect_not_null(strstr(text, "mlx5 is not used: No such device\n"), "%s", text);
	free(text);
}

/** Expects a line with what is known of the first peer, and no other line with it. */
static void expect_identity(int32_t rank, int32_t pid, const char *host, uint64_t rtt_ns,
			    const char *line)
{
	struct page page;
	char *text;

	page_init(&page);
	page.peers[1].rank = rank;
	page.peers[1].pid = pid;
	memset(page.peers[1].host, 0, sizeof(page.peers[1].host));
	memcpy(page.peers[1].host, host, strlen(host));
	page.peers[1].rtt_ns = rtt_ns;
	text = page_printed(&page, stats_print_text);
	cr_expect_not_null(strstr(text, line), "%s instead of:%s", text, line);
	free(text);
}

Test(stats_text, a_peer_may_state_any_part_of_its_identity)
{
	expect_identity(17, 0, "", 0, "\n    rank 17\n");
	expect_identity(17, 0, "other", 0, "\n    rank 17 (other)\n");
	expect_identity(17, 0, "", 2000, "\n    rank 17; round trip 2.0 us, ");
	expect_identity(-1, 43, "", 0, "\n    pid 43\n");
	expect_identity(-1, 43, "other", 2000, "\n    pid 43 on other; round trip 2.0 us, ");
	expect_identity(-1, 0, "other", 0, "\n    a process on other\n");
	expect_identity(-1, 0, "", 2000, "\n    round trip 2.0 us, shortest 9.0 us\n");
}

Test(stats_text, without_long_transfers_there_is_no_line_of_them)
{
	struct page page;
	char *text;

	page_init(&page);
	page.peers[1].given = page.peers[2].given = 0;
	text = page_printed(&page, stats_print_text);
	cr_expect_null(strstr(text, "given"), "%s", text);
	cr_expect_null(strstr(text, "gave"), "%s", text);
	free(text);
	page.peers[2].gets = 5;
	page.peers[2].get_bytes = 2048;
	text = page_printed(&page, stats_print_text);
	cr_expect_not_null(strstr(text, "gave 0 (4096 B), fetched 5 (2048 B)\n"), "%s", text);
	free(text);
}

Test(stats_text, a_line_tells_what_devices_have_matched)
{
	struct page page;
	char *text;

	page_init(&page);
	text = page_printed(&page, stats_print_text);
	cr_expect_not_null(strstr(text, "2 requests           4 matched by the device, 6 by the "
					"processor\n"),
			   "%s", text);
	free(text);
	page.peers[1].tag_requests = page.peers[2].tag_requests = 0;
	page.peers[1].tag_matches = page.peers[2].tag_matches = 0;
	page.peers[1].tag_unmatched = page.peers[2].tag_unmatched = 0;
	text = page_printed(&page, stats_print_text);
	cr_expect_null(strstr(text, "by tags"), "%s", text);
	free(text);
}

Test(stats_text, peers_with_most_bytes_come_first)
{
	struct page page;
	char *text;

	page_init(&page);
	page.peers[2].get_bytes = 1 << 20;
	text = page_printed(&page, stats_print_text);
	cr_expect_lt(strstr(text, "0.0.0.0:7"), strstr(text, "10.0.0.1:6"), "%s", text);
	free(text);
}
