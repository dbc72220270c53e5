/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines of the live view: their columns stand below their heads, whatever the numbers are.
 * (top/top_lines.h)
 */
#include "top/top_lines.h"
#include "unit/stats/page.h"

Test(top_lines, numbers_have_at_most_six_characters)
{
	static const struct {
		double number;
		const char *text;
	} cases[] = {
		{ 0, "0" },        { 0.26, "0.26" },  { 9.9, "9.9" },   { 42, "42" },
		{ 999.4, "999" },  { 999.6, "1k" },   { 9940, "9.9k" }, { 123456, "123k" },
		{ 1.2e7, "12M" },  { 3.4e9, "3.4G" }, { 5e12, "5T" },   { 6e15, "6P" },
		{ 1.8e19, "18E" },
	};
	char text[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect_str_eq(top_number_text(cases[i].number, text), cases[i].text);
		cr_expect_leq(strlen(text), 6);
	}
}

/** Returns whether `text` ends in the column of `line` in which `head` ends in `columns`. */
static bool under(const char *columns, const char *head, const char *line, const char *text)
{
	const char *at = strstr(columns, head);
	size_t end = at ? (size_t)(at - columns) + strlen(head) : 0;

	return at && strlen(line) >= end && !memcmp(line + end - strlen(text), text, strlen(text));
}

Test(top_lines, values_of_a_process_stand_below_their_heads)
{
	struct page page;
	struct stats_view view;
	struct top_rate rate = { .tx_messages = 1234567,
				 .rx_messages = 12,
				 .tx_bytes = 3e9,
				 .rx_bytes = 4e6,
				 .batch = 16,
				 .waits = 0.5 };
	char line[TOP_LINE_LEN];

	page_init(&page);
	page.endpoints[1].died = 3;
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	top_process_line(line, &view, &rate);
	cr_expect(under(top_process_columns, "PID", line, "42"), "%s", line);
	cr_expect(under(top_process_columns, "RANK", line, " 3"), "%s", line);
	cr_expect(under(top_process_columns, "SENT/s", line, "1.2M"), "%s", line);
	cr_expect(under(top_process_columns, "RECV/s", line, " 12"), "%s", line);
	cr_expect(under(top_process_columns, "SENT B/s", line, " 3G"), "%s", line);
	cr_expect(under(top_process_columns, "RECV B/s", line, " 4M"), "%s", line);
	cr_expect(under(top_process_columns, "BATCH", line, " 16"), "%s", line);
	cr_expect(under(top_process_columns, "WAITS/s", line, "0.5"), "%s", line);
	cr_expect(under(top_process_columns, "PEERS", line, " 1"), "one of two is up: %s", line);
	cr_expect(under(top_process_columns, "GONE", line, " 3"), "%s", line);
	cr_expect_not_null(strstr(line, " program "), "%s", line);
	cr_expect_not_null(strstr(line, " shm "), "%s", line);
	stats_view_free(&view);
}

Test(top_lines, a_connection_has_its_end_or_the_reason_for_its_path)
{
	struct page page;
	struct stats_view view;
	struct top_rate rate = { .tx_messages = 7 };
	char line[TOP_LINE_LEN];

	page_init(&page);
	page.peers[2].error = 110; /* ETIMEDOUT */
	page.peers[3] = page.peers[2];
	page.peers[3].row.state = COPYRPC_STATS_LIVE;
	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	top_peer_line(line, &view, stats_view_row(&view, COPYRPC_STATS_PEERS, 1), &rate);
	cr_expect_eq(strncmp(line, "10.0.0.1:6 ", 11), 0, "%s", line);
	cr_expect(under(top_peer_columns, "SENT/s", line, " 7"), "%s", line);
	cr_expect_not_null(strstr(line, " up; rank 17 (other, pid 43); round trip 12.3 us"), "%s",
			   line);
	top_peer_line(line, &view, stats_view_row(&view, COPYRPC_STATS_PEERS, 2), NULL);
	cr_expect(under(top_peer_columns, "SENT/s", line, " -"), "%s", line);
	cr_expect_not_null(strstr(line, "ended: Connection timed out"), "%s", line);
	top_peer_line(line, &view, stats_view_row(&view, COPYRPC_STATS_PEERS, 3), &rate);
	cr_expect_not_null(strstr(line, "up, not shm: "), "%s", line);
	stats_view_free(&view);
}
