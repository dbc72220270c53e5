/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rates between two reads of the pages: see top_rate.h. */
#include "top/top_rate.h"

static double top_growth(uint64_t before, uint64_t now)
{
	return now > before ? (double)(now - before) : 0;
}

static uint64_t top_tx_bytes(const struct copyrpc_stats_peer *peer)
{
	return peer->tx_bytes + peer->given_bytes;
}

static uint64_t top_rx_bytes(const struct copyrpc_stats_peer *peer)
{
	return peer->rx_bytes + peer->get_bytes + peer->access_bytes;
}

static uint64_t top_waits(const struct copyrpc_stats_peer *peer)
{
	return peer->no_space + peer->no_credit + peer->no_queue + peer->no_memory + peer->paced;
}

static double top_batches(const struct copyrpc_stats_peer *before,
			  const struct copyrpc_stats_peer *now)
{
	double cnt = 0;

	for (unsigned k = 0; k < COPYRPC_STATS_SIZES; k++)
		cnt += top_growth(stats_tx_batches(before, k), stats_tx_batches(now, k));
	return cnt;
}

struct top_rate top_rate(const struct copyrpc_stats_peer *before,
			 const struct copyrpc_stats_peer *now, double seconds)
{
	double sent = top_growth(stats_tx_messages(before), stats_tx_messages(now));
	double batches = top_batches(before, now);

	return (struct top_rate){
		.tx_messages = sent / seconds,
		.rx_messages = top_growth(before->rx_messages, now->rx_messages) / seconds,
		.tx_bytes = top_growth(top_tx_bytes(before), top_tx_bytes(now)) / seconds,
		.rx_bytes = top_growth(top_rx_bytes(before), top_rx_bytes(now)) / seconds,
		.waits = top_growth(top_waits(before), top_waits(now)) / seconds,
		.batch = batches > 0 ? sent / batches : 0,
	};
}

const struct stats_view *top_rate_page(const struct top_pages *before, const struct stats_view *now)
{
	for (size_t i = 0; i < before->cnt; i++) {
		const struct copyrpc_stats_page *page = before->views[i].page;

		if (page->pid == now->page->pid && page->start_ns == now->page->start_ns)
			return &before->views[i];
	}
	return NULL;
}

const struct copyrpc_stats_peer *top_rate_peer(const struct stats_view *before,
					       const struct stats_view *now, uint32_t i)
{
	const struct copyrpc_stats_peer *row = stats_view_row(now, COPYRPC_STATS_PEERS, i);
	const struct copyrpc_stats_peer *old =
		before ? stats_view_row(before, COPYRPC_STATS_PEERS, i) : NULL;

	return row && old && old->row.use == row->row.use ? old : NULL;
}
