/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of a page as text and JSON. (stats/stats_event.c) */
#include "page.h"

#include <errno.h>

#include "stats/stats_print.h"

static struct page page;

static struct copyrpc_stats_event event(uint64_t number, uint32_t kind, uint64_t value0,
					uint64_t value1)
{
	return (struct copyrpc_stats_event){
		.number = 2 * number,
		.time_ns = number * 1500000000,
		.kind = kind,
		.peer = { .family = AF_INET, .port = 7, .bytes = { 10, 0, 0, 2 } },
		.values = { value0, value1 },
	};
}

/** Prints the page by `print`. The caller frees the text. */
static char *printed(void (*print)(FILE *out, const struct stats_view *view))
{
	struct stats_view view;
	char *text = NULL;
	size_t len;
	FILE *out;

	cr_assert_eq(stats_view_copy(&view, &page, sizeof(page)), 0);
	out = open_memstream(&text, &len);
	print(out, &view);
	fclose(out);
	stats_view_free(&view);
	return text;
}

static void expect(const char *text, const char *part)
{
	cr_expect(strstr(text, part) != NULL, "no \"%s\" in %s", part, text);
}

Test(stats_event, the_last_events_are_in_order_whatever_row_they_are_in)
{
	char *text;

	page_init(&page);
	page.events[3] = event(3, COPYRPC_STATS_CONNECTING, 0, 0);
	page.events[1] = event(4, COPYRPC_STATS_CONNECTED, COPYRPC_STATS_UDP,
			       COPYRPC_STATS_SHM | COPYRPC_STATS_NIC);
	page.events[2] = event(5, COPYRPC_STATS_LOST, COPYRPC_STATS_UDP, ETIMEDOUT);
	text = printed(stats_print_events);
	expect(text, "program, pid 42 on node, rank 3\n");
	expect(text, "+4.500000 s  10.0.0.2:7             requests a connection\n");
	expect(text, "+6.000000 s  10.0.0.2:7             connected by udp; not by shm, nic: ");
	expect(text, "+7.500000 s  10.0.0.2:7             connection lost by udp: "
		     "Connection timed out\n");
	cr_expect_lt(strstr(text, "requests"), strstr(text, "connected by"));
	cr_expect_lt(strstr(text, "connected by"), strstr(text, "lost"));
	free(text);
}

Test(stats_event, stalls_and_other_events_are_in_order_of_time)
{
	char *text;

	page_init(&page);
	page.events[1] = event(1, COPYRPC_STATS_CONNECTING, 0, 0);
	page.events[2] = event(2, COPYRPC_STATS_CLOSED, COPYRPC_STATS_SHM, 0);
	page.stalls[1] = event(1, COPYRPC_STATS_STALL, COPYRPC_STATS_FOR_CREDIT, 9);
	page.stalls[1].time_ns += 1;
	page.stalls[2] = event(2, COPYRPC_STATS_WAIT_END, COPYRPC_STATS_FOR_ACK, 12300000000);
	page.stalls[2].time_ns -= 1;
	text = printed(stats_print_events);
	expect(text, "requests a connection\n");
	expect(strstr(text, "requests"), "sending is refused for credit, 9 times\n");
	expect(strstr(text, "refused"), "the operation waited for an acknowledgement for 12.3 s\n");
	expect(strstr(text, "waited"), "closed by the peer by shm\n");
	free(text);
}

Test(stats_event, rows_that_are_forged_or_being_written_are_left_out)
{
	char *text;

	page_init(&page);
	page.events[1] = event(2, COPYRPC_STATS_CONNECTING, 0, 0); /* belongs in row 2 */
	page.events[2] = event(2, COPYRPC_STATS_CONNECTING, 0, 0);
	page.events[2].number |= 1;
	page.events[3] = event(3, 0xffffffff, UINT64_MAX, 12);
	page.events[3].peer.family = 77;
	text = printed(stats_print_events);
	cr_expect_null(strstr(text, "requests"));
	expect(text, "?                      event 4294967295: 18446744073709551615, 12\n");
	free(text);
	page.events[3] = event(3, COPYRPC_STATS_LOST, UINT64_MAX, UINT64_MAX);
	text = printed(stats_print_events);
	expect(text, "connection lost by ?: ?\n");
	free(text);
	page.head.tables[COPYRPC_STATS_EVENTS].rows = 0;
	text = printed(stats_print_events);
	expect(text, "  none\n");
	free(text);
}

Test(stats_event, json_has_kind_address_and_values)
{
	char *text;

	page_init(&page);
	page.events[1] = event(1, COPYRPC_STATS_DEVICE_UNUSED, COPYRPC_STATS_NIC, ENODEV);
	page.events[1].peer.family = 0;
	page.events[2] = event(2, COPYRPC_STATS_MOVED, COPYRPC_STATS_SHM, COPYRPC_STATS_UDP);
	text = printed(stats_print_json_events);
	cr_expect_str_eq(text, "[{\"time_ns\":1500000000,\"kind\":\"device_unused\","
			       "\"address\":\"\",\"values\":[2,19]},"
			       "{\"time_ns\":3000000000,\"kind\":\"moved\","
			       "\"address\":\"10.0.0.2:7\",\"values\":[1,8]}]");
	free(text);
}
