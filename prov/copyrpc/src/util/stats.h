/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the statistics page (copyrpc/stats.h, docs/statistics.md): one per process, made when
 * the first row is requested. Knows the tables and what their rows have in common, not what is
 * counted: each layer gets the rows of its objects and counts in them with plain stores, under the
 * lock of the object.
 *
 * Counters are in the page itself, so a reader sees each at once, nothing copies them, and a
 * process that sleeps is not woken. An object that ends leaves its counters in its row. A new
 * object takes a free row, else one that ended, whose counters are added to row 0 of the table.
 *
 * Without a page (no memfd, a kernel without F_SEAL_FUTURE_WRITE) the same memory is private:
 * counting and the report at the end work, others see nothing. A forked child has a private copy,
 * and gets a page of its own with its first row.
 *
 * Any thread. Tested by test/unit/util/test_stats.c.
 */
#ifndef UTIL_STATS_H
#define UTIL_STATS_H

#include <copyrpc/stats.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "util/bits.h"
#include "util/probe.h"

/** Rows of the tables, row 0 included. */
#define UTIL_STATS_TRANSPORTS 65u
#define UTIL_STATS_ENDPOINTS  65u
#define UTIL_STATS_PEERS      257u
#define UTIL_STATS_RESTS      65u
#define UTIL_STATS_EVENTS     (1u + 1024u)
#define UTIL_STATS_STALLS     (1u + 256u)
#define UTIL_STATS_WAITS      65u
#define UTIL_STATS_QUEUES     65u
#define UTIL_STATS_PROCESS    2u

/**
 * Registers the fork handlers, if they are not. Called before others register theirs: handlers that
 * are registered first lock last, and all locks may be held by a thread that takes this one.
 */
void util_stats_guard_fork(void);

/**
 * Returns a row for a new object, zeroed except `row`, or NULL if all are live. It becomes visible
 * with util_stats_begin. One of the table COPYRPC_STATS_PEERS that ended with this address and
 * endpoint is continued: its counters stay.
 */
void *util_stats_get(enum copyrpc_stats_table_id table);
struct copyrpc_stats_peer *util_stats_get_peer(uint32_t endpoint,
					       const struct copyrpc_stats_addr *addr);

/** Makes a row visible after its fields were set. */
void util_stats_begin(void *row);

/** Marks the row of an object that ends. NULL: no effect. */
void util_stats_end(void *row);

/** Returns the number of a row in its table. */
uint32_t util_stats_index(enum copyrpc_stats_table_id table, const void *row);

/** Returns true if row `i` of a table belongs to an object, or did. */
bool util_stats_is_used(enum copyrpc_stats_table_id table, uint32_t i);

/** Converts an address. One of another family is unknown. */
void util_stats_set_addr(struct copyrpc_stats_addr *to, const struct sockaddr *from);

/** Copies a text, shortened if need be. */
void util_stats_set_text(char *to, size_t size, const char *from);

/**
 * Adds to a counter that changes with each message, batch or packet. A build with
 * UTIL_STATS_UNCOUNTED shows what these cost (test/suite.d/67-cost).
 */
UTIL_INLINE void util_stats_add(uint64_t *counter, uint64_t n)
{
#ifdef UTIL_STATS_UNCOUNTED
	(void)counter;
	(void)n;
#else
	*counter += n;
#endif
}

/** Counts a batch of `messages` messages, at least one, and `bytes` bytes that leaves. */
UTIL_INLINE void util_stats_batch(struct copyrpc_stats_peer *peer, uint32_t messages,
				  uint32_t bytes)
{
	UTIL_PROBE3(batch, peer, messages, bytes);
	util_stats_add(&peer->tx_bytes, bytes);
	if (UTIL_LIKELY(messages == 1)) {
		util_stats_add(&peer->tx_singles, 1);
		return;
	}
	util_stats_add(&peer->tx_batches[31u ^ (unsigned)__builtin_clz(messages)], 1);
	util_stats_add(&peer->tx_messages, messages);
}

/** Counts a message that leaves in one step, as a batch of its own. */
UTIL_INLINE void util_stats_single(struct copyrpc_stats_peer *peer, uint64_t bytes)
{
	UTIL_PROBE3(batch, peer, 1, bytes);
	util_stats_add(&peer->tx_singles, 1);
	util_stats_add(&peer->tx_bytes, bytes);
}

/** Counts a batch without messages. */
UTIL_INLINE void util_stats_credit(struct copyrpc_stats_peer *peer, uint64_t bytes)
{
	util_stats_add(&peer->tx_credits, 1);
	util_stats_add(&peer->tx_bytes, bytes);
}

/** Counts the messages and bytes of a batch that arrived. */
UTIL_INLINE void util_stats_arrived(struct copyrpc_stats_peer *peer, uint64_t messages,
				    uint64_t bytes)
{
	UTIL_PROBE3(arrival, peer, messages, bytes);
	util_stats_add(&peer->rx_messages, messages);
	util_stats_add(&peer->rx_bytes, bytes);
}

/** Counts a long transfer that the peer has fetched. NULL: nothing is counted. */
UTIL_INLINE void util_stats_given(struct copyrpc_stats_peer *peer, uint64_t bytes)
{
	if (!peer)
		return;
	util_stats_add(&peer->given, 1);
	util_stats_add(&peer->given_bytes, bytes);
}

/**
 * Returns the page of this process, or NULL if there is none yet. The page is never unmapped.
 */
const struct copyrpc_stats_page *util_stats_page(void);

/** Like util_stats_page, and makes the page if there is none. NULL: no memory. */
struct copyrpc_stats_page *util_stats_make_page(void);

/** For tests: the next page is not a memfd. */
void util_stats_hide(bool hide);

#endif
