/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A page with an endpoint and two peers, for tests of its readers. */
#ifndef UNIT_STATS_PAGE_H
#define UNIT_STATS_PAGE_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats_view.h"

#define PAGE_ROWS 4u

struct page {
	struct copyrpc_stats_page head;
	struct copyrpc_stats_transport transports[PAGE_ROWS];
	struct copyrpc_stats_endpoint endpoints[PAGE_ROWS];
	struct copyrpc_stats_peer peers[PAGE_ROWS];
	struct copyrpc_stats_peer rests[PAGE_ROWS];
	struct copyrpc_stats_event events[PAGE_ROWS];
	struct copyrpc_stats_event stalls[PAGE_ROWS];
	struct copyrpc_stats_wait waits[PAGE_ROWS];
	struct copyrpc_stats_queue queues[PAGE_ROWS];
	struct copyrpc_stats_process process[PAGE_ROWS];
};

static inline void page_table(struct page *page, unsigned i, const void *rows, size_t row_len)
{
	page->head.tables[i] = (struct copyrpc_stats_table){
		.offset = (uint32_t)((const char *)rows - (const char *)page),
		.row_len = (uint32_t)row_len,
		.rows = PAGE_ROWS,
	};
}

static inline void page_init(struct page *page)
{
	struct in_addr host = { .s_addr = htonl(0x0a000001) };

	memset(page, 0, sizeof(*page));
	page->head = (struct copyrpc_stats_page){
		.magic = COPYRPC_STATS_MAGIC,
		.version = COPYRPC_STATS_VERSION,
		.len = sizeof(*page),
		.pid = 42,
		.rank = 3,
		.command = "program",
		.host = "node",
		.release = "0.1",
		.table_cnt = COPYRPC_STATS_TABLES,
	};
	page_table(page, COPYRPC_STATS_TRANSPORTS, page->transports, sizeof(page->transports[0]));
	page_table(page, COPYRPC_STATS_ENDPOINTS, page->endpoints, sizeof(page->endpoints[0]));
	page_table(page, COPYRPC_STATS_PEERS, page->peers, sizeof(page->peers[0]));
	page_table(page, COPYRPC_STATS_RESTS, page->rests, sizeof(page->rests[0]));
	page_table(page, COPYRPC_STATS_EVENTS, page->events, sizeof(page->events[0]));
	page_table(page, COPYRPC_STATS_STALLS, page->stalls, sizeof(page->stalls[0]));
	page_table(page, COPYRPC_STATS_WAITS, page->waits, sizeof(page->waits[0]));
	page_table(page, COPYRPC_STATS_QUEUES, page->queues, sizeof(page->queues[0]));
	page_table(page, COPYRPC_STATS_PROCESS, page->process, sizeof(page->process[0]));
	page->queues[0] = (struct copyrpc_stats_queue){ .row.state = COPYRPC_STATS_PAST,
							.completions = 1000 };
	page->queues[1] = (struct copyrpc_stats_queue){ .row.state = COPYRPC_STATS_LIVE,
							.unread = 3,
							.room = 64,
							.completions = 20,
							.failed = 2 };
	page->queues[2] = page->queues[1];
	page->queues[2].row.state = COPYRPC_STATS_ENDED;
	page->process[1] = (struct copyrpc_stats_process){ .row.state = COPYRPC_STATS_LIVE,
							   .registered = 2,
							   .pinned = 8192,
							   .pools = 640,
							   .registrations = 9 };
	page->waits[1] = (struct copyrpc_stats_wait){ .row.state = COPYRPC_STATS_ENDED };
	page->waits[2] = (struct copyrpc_stats_wait){ .row.state = COPYRPC_STATS_LIVE,
						      .peer = { .family = AF_INET, .port = 6 },
						      .pid = 43,
						      .rank = 17,
						      .host = "other",
						      .cause = COPYRPC_STATS_FOR_ROOM,
						      .since_ns = 100,
						      .arrived_ns = 90 };
	page->transports[1] = (struct copyrpc_stats_transport){ .row.state = COPYRPC_STATS_LIVE,
								.name = "shm",
								.path = COPYRPC_STATS_SHM };
	page->transports[2] = (struct copyrpc_stats_transport){
		.row.state = COPYRPC_STATS_ENDED,
		.name = "mlx5",
		.path = COPYRPC_STATS_NIC,
		.error = 19 /* ENODEV */
	};
	page->endpoints[1] =
		(struct copyrpc_stats_endpoint){ .row.state = COPYRPC_STATS_LIVE,
						 .addr = { .family = AF_INET, .port = 5 },
						 .connects = 2,
						 .posted_now = 4,
						 .posted_most = 5,
						 .unexpected_queue_most = 6,
						 .waited_peer = 11 };
	page->peers[1] = (struct copyrpc_stats_peer){ .row.state = COPYRPC_STATS_LIVE,
						      .addr = { .family = AF_INET, .port = 6 },
						      .endpoint = 1,
						      .path = COPYRPC_STATS_SHM,
						      .device = "shm",
						      .pid = 43,
						      .rank = 17,
						      .host = "other",
						      .rtt_ns = 12345,
						      .rtt_best_ns = 9000,
						      .tx_singles = 2,
						      .tx_messages = 8,
						      .tx_batches = { 0, 0, 0, 1 },
						      .tx_bytes = 1000,
						      .rx_messages = 5,
						      .rx_bytes = 500,
						      .accesses = 3,
						      .access_bytes = 77,
						      .given = 4,
						      .given_bytes = 4096,
						      .tag_requests = 1,
						      .tag_matches = 2,
						      .tag_unmatched = 3 };
	page->peers[2] = page->peers[1];
	page->peers[2].row.state = COPYRPC_STATS_ENDED;
	page->peers[2].path = COPYRPC_STATS_UDP;
	page->peers[2].addr.port = 7;
	page->peers[2].pid = 0;
	page->peers[2].rank = -1;
	page->peers[2].host[0] = '\0';
	page->peers[2].rtt_ns = 0;
	memcpy(page->peers[1].addr.bytes, &host, sizeof(host));
	page->peers[0].row.state = COPYRPC_STATS_PAST;
	page->peers[0].tx_messages = 100;
	page->rests[1].row.state = COPYRPC_STATS_LIVE;
	page->rests[1].tx_singles = 1000;
}

/** Returns what `print` writes of the page, in memory that the caller frees. */
static inline char *page_printed(const struct page *page,
				 void (*print)(FILE *out, const struct stats_view *view))
{
	struct stats_view view;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	cr_assert_eq(stats_view_copy(&view, page, sizeof(*page)), 0);
	print(out, &view);
	fclose(out);
	stats_view_free(&view);
	return text;
}

#endif
