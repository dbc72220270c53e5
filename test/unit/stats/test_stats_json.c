/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The JSON of a page, byte by byte; test/suite.d/54-stats parses that of a job. (stats_print.h) */
#include "page.h"
#include "stats/stats_print.h"

Test(stats_json, each_member_is_written)
{
	struct page page;
	char *text;

	page_init(&page);
	text = page_printed(&page, stats_print_json);
	cr_expect_eq(strncmp(text,
			     "{\"format\":\"copyrpc-stats\",\"version\":2,\"release\":\"0.1\","
			     "\"command\":\"program\",\"host\":\"node\",\"pid\":42,\"rank\":3,"
			     "\"start_ns\":0,\"total\":{\"tx_messages\":1120,\"tx_bytes\":2000,",
			     140),
		     0, "%s", text);
	cr_expect_not_null(strstr(text, "{\"name\":\"mlx5\",\"path\":\"nic\",\"state\":\"failed\","
					"\"error\":19,\"memory\":0}"),
			   "%s", text);
	cr_expect_not_null(
		strstr(text,
		       "{\"address\":\"10.0.0.1:6\",\"endpoint\":\"0.0.0.0:5\","
		       "\"state\":\"up\",\"path\":\"shm\",\"device\":\"shm\","
		       "\"error\":0,\"pid\":43,\"rank\":17,\"host\":\"other\","
		       "\"rtt_ns\":12345,\"rtt_best_ns\":9000,\"tx_messages\":10,\"tx_bytes\":1000,"
		       "\"rx_messages\":5,\"rx_bytes\":500"),
		"%s", text);
	cr_expect_not_null(strstr(text, "\"accesses\":6,\"access_bytes\":154,\"access_errors\":0,"
					"\"given\":8,\"given_bytes\":8192,"
					"\"tag_requests\":2,\"tag_matches\":4,"
					"\"tag_unmatched\":6"),
			   "%s", text);
	cr_expect_not_null(strstr(text, "\"tx_batches\":[2,0,0,1]"), "%s", text);
	cr_expect_not_null(strstr(text, "\"better_path\":\"shm\""), "%s", text);
	cr_expect_not_null(
		strstr(text,
		       "\"events\":[],\"waits\":[{\"address\":\"0.0.0.0:6\","
		       "\"pid\":43,\"rank\":17,\"host\":\"other\",\"for\":\"room in the ring\","
		       "\"since_ns\":100,\"arrived_ns\":90}]}"),
		"%s", text);
	cr_expect_not_null(strstr(text, "\"posted_now\":4,\"posted_most\":5,\"unexpected_queue\":0,"
					"\"unexpected_queue_most\":6"),
			   "%s", text);
	cr_expect_not_null(
		strstr(text, "\"queues\":{\"completions\":1040,\"failed\":4,\"unread\":3}"), "%s",
		text);
	cr_expect_not_null(strstr(text,
				  "\"queues\":[{\"state\":\"up\",\"room\":64,\"completions\":20,"
				  "\"failed\":2,\"unread\":3}"),
			   "%s", text);
	cr_expect_not_null(strstr(text,
				  "\"process\":{\"registrations\":9,\"registration_errors\":0,"
				  "\"registered\":2,\"pinned\":8192,\"slots\":0,\"pools\":640}"),
			   "%s", text);
	cr_expect_str_eq(text + strlen(text) - 3, "}]}");
	free(text);
}
