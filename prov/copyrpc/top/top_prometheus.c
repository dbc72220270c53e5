/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements top_prometheus.h. Tested by test/suite.d/54-stats. */
#include "top/top_prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** Sums of a process that metrics are taken from. */
struct top_sums {
	struct copyrpc_stats_peer peer;
	struct copyrpc_stats_endpoint endpoint;
	struct copyrpc_stats_queue queue;
	struct copyrpc_stats_process process;
};

struct top_metric {
	const char *name;
	const char *help;
	size_t offset;
	bool is_level; /* may fall */
};

#define TOP_COUNTER(row, field, help)                                                              \
	{                                                                                          \
#field, help, offsetof(struct top_sums, row.field), false                          \
	}
#define TOP_LEVEL(row, field, name, help)                                                          \
	{                                                                                          \
		name, help, offsetof(struct top_sums, row.field), true                             \
	}

static const struct top_metric top_metrics[] = {
	TOP_COUNTER(peer, tx_messages, "Messages sent"),
	TOP_COUNTER(peer, rx_messages, "Messages received"),
	TOP_COUNTER(peer, tx_bytes, "Bytes of messages sent"),
	TOP_COUNTER(peer, rx_bytes, "Bytes of messages received"),
	TOP_COUNTER(peer, get_bytes, "Bytes of long transfers fetched"),
	TOP_COUNTER(peer, given_bytes, "Bytes of long transfers that peers fetched"),
	TOP_COUNTER(peer, access_bytes, "Bytes that the devices read or wrote in memory of peers"),
	TOP_COUNTER(peer, no_space, "Attempts to send without room"),
	TOP_COUNTER(peer, no_credit, "Attempts to send without credit"),
	TOP_COUNTER(peer, no_queue, "Batches that waited for the send queue"),
	TOP_COUNTER(peer, resent, "Packets sent again"),
	TOP_COUNTER(endpoint, unexpected, "Messages that arrived before their receive"),
	TOP_COUNTER(queue, completions, "Completions written"),
	TOP_COUNTER(process, registrations, "Ranges registered with RDMA devices"),
	TOP_LEVEL(endpoint, posted_now, "posted_receives", "Receives posted"),
	TOP_LEVEL(endpoint, posted_most, "posted_receives_most", "Most receives posted at a time"),
	TOP_LEVEL(endpoint, unexpected_queue, "unexpected_messages", "Unexpected messages queued"),
	TOP_LEVEL(endpoint, unexpected_queue_most, "unexpected_messages_most",
		  "Most unexpected messages queued at a time"),
	TOP_LEVEL(endpoint, unexpected_now, "unexpected_bytes", "Bytes of unexpected messages"),
	TOP_LEVEL(queue, unread, "unread_completions", "Completions written and not read"),
	TOP_LEVEL(process, registered, "registered_ranges", "Ranges registered with devices now"),
	TOP_LEVEL(process, pinned, "registered_bytes", "Bytes registered with devices now"),
	TOP_LEVEL(process, slots, "slot_bytes", "Bytes of buffers for packets"),
	TOP_LEVEL(process, pools, "pool_bytes", "Bytes of pools of requests and messages"),
};

static struct top_sums top_sums_of(const struct stats_view *view)
{
	struct top_sums sums = {
		.peer = stats_view_sum_peers(view),
		.endpoint = stats_view_sum_endpoints(view),
		.queue = stats_view_sum_queues(view),
		.process = *stats_view_process(view),
	};

	sums.peer.tx_messages = stats_tx_messages(&sums.peer);
	return sums;
}

/** Writes one metric of all processes, whose sums are given. */
static void top_print_metric(const struct top_pages *pages, const struct top_sums *sums,
			     const struct top_metric *metric)
{
	const char *ending = metric->is_level ? "" : "_total";

	printf("# HELP copyrpc_%s%s %s\n# TYPE copyrpc_%s%s %s\n", metric->name, ending,
	       metric->help, metric->name, ending, metric->is_level ? "gauge" : "counter");
	for (size_t i = 0; i < pages->cnt; i++) {
		const struct copyrpc_stats_page *page = pages->views[i].page;

		printf("copyrpc_%s%s{pid=\"%d\",command=\"%s\",rank=\"%d\"} %" PRIu64 "\n",
		       metric->name, ending, (int)page->pid, page->command, (int)page->rank,
		       *(const uint64_t *)((const char *)&sums[i] + metric->offset));
	}
}

void top_prometheus_print(const struct top_pages *pages)
{
	struct top_sums *sums = calloc(pages->cnt + 1, sizeof(*sums));

	if (!sums) {
		fprintf(stderr, "copyrpc_top: out of memory\n");
		exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < pages->cnt; i++)
		sums[i] = top_sums_of(&pages->views[i]);
	for (size_t i = 0; i < sizeof(top_metrics) / sizeof(top_metrics[0]); i++)
		top_print_metric(pages, sums, &top_metrics[i]);
	free(sums);
}
