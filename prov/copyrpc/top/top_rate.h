/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rates between two reads of the pages. Called by the live view of copyrpc_top.
 *
 * A page may be forged: a counter that went down has the rate 0. Tested by
 * test/unit/top/test_top_rate.c.
 */
#ifndef TOP_TOP_RATE_H
#define TOP_TOP_RATE_H

#include "top/top_pages.h"

/** Activity of a process or a connection, for each second. */
struct top_rate {
	double tx_messages, rx_messages;
	double tx_bytes, rx_bytes; /* with long transfers; accesses as received */
	double waits;              /* attempts refused, and packets that waited */
	double batch;              /* messages in a batch; 0: no batch was sent */
};

/** Returns the rates between two states of the counters, `seconds` apart (above 0). */
struct top_rate top_rate(const struct copyrpc_stats_peer *before,
			 const struct copyrpc_stats_peer *now, double seconds);

/** Returns the page of the same process in an earlier read, or NULL. */
const struct stats_view *top_rate_page(const struct top_pages *before,
				       const struct stats_view *now);

/**
 * Returns row `i` of the connections in an earlier page if it was the same connection then, or
 * NULL. `before`: may be NULL.
 */
const struct copyrpc_stats_peer *top_rate_peer(const struct stats_view *before,
					       const struct stats_view *now, uint32_t i);

#endif
