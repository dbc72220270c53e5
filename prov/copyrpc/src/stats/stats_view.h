/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checked copy of a statistics page (copyrpc/stats.h). Called by the report of the provider and by
 * copyrpc_top, which does not link libfabric: includes the C library and inline functions of util/.
 *
 * The writer of the page may be any process of the user: the copy is taken once, word by word, and
 * all offsets, lengths and texts in it are checked before use. Numbers may be any. After
 * stats_view_copy succeeded, each row that the functions below return lies in the copy, and texts
 * end and are printable.
 *
 * Tested by test/unit/stats/test_stats_view.c.
 */
#ifndef STATS_STATS_VIEW_H
#define STATS_STATS_VIEW_H

#include <copyrpc/stats.h>
#include <stdbool.h>
#include <stddef.h>

struct stats_view {
	struct copyrpc_stats_page *page; /* copy */
	size_t len;
};

/**
 * Copies the page at `src`, of which `len` bytes can be read. Returns 0, -EINVAL if it is not a
 * page of version 2, or -ENOMEM.
 */
int stats_view_copy(struct stats_view *view, const void *src, size_t len);
void stats_view_free(struct stats_view *view);

/** Returns row `i` of a table, or NULL if there is none or it is free. Row 0 has past sums. */
const void *stats_view_row(const struct stats_view *view, enum copyrpc_stats_table_id table,
			   uint32_t i);
/** Returns the number of rows of a table. */
uint32_t stats_view_rows(const struct stats_view *view, enum copyrpc_stats_table_id table);

/** Returns the event in row `i`, or NULL if there is none. Kind and values may be any. */
const struct copyrpc_stats_event *stats_view_event(const struct stats_view *view,
						   enum copyrpc_stats_table_id table, uint32_t i);
/** Returns the wait in row `i`, or NULL if there is none. */
const struct copyrpc_stats_wait *stats_view_wait(const struct stats_view *view, uint32_t i);
/** Returns row 0 of the events; zeros if there is none. */
const struct copyrpc_stats_recorder *stats_view_recorder(const struct stats_view *view);
/**
 * Returns the events and stalls in order, *cnt of them, in memory that the caller frees, or NULL
 * without memory. They are valid as long as the view.
 */
const struct copyrpc_stats_event **stats_view_events(const struct stats_view *view, size_t *cnt);

/** Returns the messages that a connection sent. */
static inline uint64_t stats_tx_messages(const struct copyrpc_stats_peer *peer)
{
	return peer->tx_singles + peer->tx_messages;
}

/** Returns the batches of 2^k up to 2^(k+1) - 1 messages. */
static inline uint64_t stats_tx_batches(const struct copyrpc_stats_peer *peer, unsigned k)
{
	return peer->tx_batches[k] + (k ? 0 : peer->tx_singles);
}

/**
 * Return the sum of all connections, past ones too, and of all endpoints and queues. Only counters
 * are set, and levels of endpoints and queues: sums of those that are open, and the highest ones.
 */
struct copyrpc_stats_peer stats_view_sum_peers(const struct stats_view *view);
struct copyrpc_stats_endpoint stats_view_sum_endpoints(const struct stats_view *view);
struct copyrpc_stats_queue stats_view_sum_queues(const struct stats_view *view);
/** Returns what the process holds; zeros if it is not stated. */
const struct copyrpc_stats_process *stats_view_process(const struct stats_view *view);

/** Length of a text for an identity. */
#define STATS_NAME_LEN 128u

/** Writes the identity of a row (util_job_text): "rank 17 (node7, pid 4711)". Returns `text`. */
char *stats_identity_text(int32_t rank, int32_t pid, const char *host, char text[STATS_NAME_LEN]);

/** Length of a text for an address. */
#define STATS_ADDR_LEN 64u

/** Writes "ADDRESS:PORT", or "?" if the family is unknown. */
void stats_addr_text(const struct copyrpc_stats_addr *addr, char text[STATS_ADDR_LEN]);
/** Returns the name of a path, "?" if it is unknown. */
const char *stats_path_name(uint32_t path);
/**
 * Returns the name of the best path that both the process and `path` would lead one to expect, but
 * that does not carry the connection, and the reason in *why; NULL: `path` is the best one.
 */
const char *stats_better_path(const struct stats_view *view, const struct copyrpc_stats_peer *peer,
			      char *why, size_t size);

#endif
