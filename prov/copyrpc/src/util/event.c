/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements event.h. */
#include "util/event.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/memfd.h"
#include "util/stats.h"

/** File of the events. Its number may come to mean another file: the application closes any. */
static struct {
	int fd; /* -1: none; atomic */
	dev_t dev;
	ino_t ino;
} util_event_file = { .fd = -1 };

static bool util_event_is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == util_event_file.dev &&
	       st.st_ino == util_event_file.ino;
}

/** Writes bytes of the page at their place in the file. Returns 0 or an errno. */
static int util_event_save(int fd, const void *from, size_t len, size_t offset)
{
	ssize_t done;

	while (len) {
		done = pwrite(fd, from, len, (off_t)offset);
		if (done < 0 && errno != EINTR)
			return errno;
		if (done > 0) {
			from = (const char *)from + done;
			offset += (size_t)done;
			len -= (size_t)done;
		}
	}
	return 0;
}

/** Tables of events. Stalls have their own, so that they do not replace the others. */
static const struct util_event_ring {
	enum copyrpc_stats_table_id table;
	uint32_t rows;
} util_event_rings[] = {
	{ COPYRPC_STATS_EVENTS, UTIL_STATS_EVENTS },
	{ COPYRPC_STATS_STALLS, UTIL_STATS_STALLS },
};

#define UTIL_EVENT_RINGS (sizeof(util_event_rings) / sizeof(util_event_rings[0]))

static const struct util_event_ring *util_event_ring(enum copyrpc_stats_event_kind kind)
{
	return &util_event_rings[kind >= COPYRPC_STATS_STALL];
}

static struct copyrpc_stats_recorder *util_event_recorder(struct copyrpc_stats_page *page,
							  const struct util_event_ring *ring)
{
	return (void *)((char *)page + page->tables[ring->table].offset);
}

static struct copyrpc_stats_event *util_event_row(struct copyrpc_stats_page *page,
						  const struct util_event_ring *ring,
						  uint64_t number)
{
	struct copyrpc_stats_event *rows = (void *)util_event_recorder(page, ring);

	return &rows[1 + (number - 1) % (ring->rows - 1)];
}

/** Claims a row for an event unless it has a later one, or is being written. */
static bool util_event_claim(struct copyrpc_stats_event *row, uint64_t number)
{
	uint64_t seen = __atomic_load_n(&row->number, __ATOMIC_RELAXED);

	do {
		if (seen % 2 || seen >= 2 * number)
			return false;
	} while (!__atomic_compare_exchange_n(&row->number, &seen, 2 * number - 1, true,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return true;
}

/**
 * Fills a row that is claimed. Each store is a release, so none moves before the claim: a reader
 * that finds the same number before and after the other words has read one event.
 */
static void util_event_fill(struct copyrpc_stats_event *row,
			    const struct copyrpc_stats_event *event)
{
	const util_event_word *from = (const void *)event;
	util_event_word *to = (void *)row;

	for (size_t i = 1; i < sizeof(*row) / 8; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	__atomic_store_n(&to[0], from[0], __ATOMIC_RELEASE);
}

static void util_event_save_one(const struct copyrpc_stats_page *page,
				const struct copyrpc_stats_event *row,
				const struct copyrpc_stats_event *event)
{
	int fd = __atomic_load_n(&util_event_file.fd, __ATOMIC_ACQUIRE), err = errno;

	if (fd >= 0 && util_event_is_own(fd))
		util_event_save(fd, event, sizeof(*event),
				(size_t)((const char *)row - (const char *)page));
	errno = err;
}

void util_event(enum copyrpc_stats_event_kind kind, const struct sockaddr *peer, uint64_t value0,
		uint64_t value1)
{
	struct copyrpc_stats_page *page = util_stats_make_page();
	struct copyrpc_stats_event event = { .kind = kind, .values = { value0, value1 } };
	const struct util_event_ring *ring = util_event_ring(kind);
	struct copyrpc_stats_recorder *recorder;
	struct copyrpc_stats_event *row;
	uint64_t number;

	if (!page)
		return;
	recorder = util_event_recorder(page, ring);
	number = __atomic_add_fetch(&recorder->event_cnt, 1, __ATOMIC_RELAXED);
	row = util_event_row(page, ring, number);
	if (!util_event_claim(row, number))
		return;
	event.number = 2 * number;
	event.time_ns = util_clock_ns() - recorder->clock_ns;
	if (peer)
		util_stats_set_addr(&event.peer, peer);
	util_event_fill(row, &event);
	util_event_save_one(page, row, &event);
}

/** Writes the head of a table. Returns 0 or an errno. */
static int util_event_save_head(int fd, struct copyrpc_stats_page *page,
				const struct util_event_ring *ring)
{
	const struct copyrpc_stats_recorder recorder = {
		.row.state = COPYRPC_STATS_PAST,
		.clock_ns = util_event_recorder(page, ring)->clock_ns,
	};

	return util_event_save(fd, &recorder, sizeof(recorder), page->tables[ring->table].offset);
}

/** Writes the head of the page and those of the tables. The rest is zero: free rows. */
static int util_event_save_heads(int fd, struct copyrpc_stats_page *page)
{
	int err = page->len > util_file_max() ? EFBIG : posix_fallocate(fd, 0, page->len);

	for (size_t i = 0; !err && i < UTIL_EVENT_RINGS; i++)
		err = util_event_save_head(fd, page, &util_event_rings[i]);
	return err ? err : util_event_save(fd, page, sizeof(*page), 0);
}

/** Writes the events of before. */
static void util_event_save_rows(struct copyrpc_stats_page *page,
				 const struct util_event_ring *ring)
{
	struct copyrpc_stats_event event;

	for (uint64_t number = 1; number < ring->rows; number++) {
		const struct copyrpc_stats_event *row = util_event_row(page, ring, number);

		if (util_event_read(row, &event))
			util_event_save_one(page, row, &event);
	}
}

int util_event_to_file(int fd)
{
	struct copyrpc_stats_page *page = util_stats_make_page();
	struct stat st;
	int err = page ? util_event_save_heads(fd, page) : ENOMEM;

	if (!err && fstat(fd, &st))
		err = errno;
	if (err) {
		close(fd);
		return err;
	}
	util_event_file.dev = st.st_dev;
	util_event_file.ino = st.st_ino;
	__atomic_store_n(&util_event_file.fd, fd, __ATOMIC_RELEASE);
	for (size_t i = 0; i < UTIL_EVENT_RINGS; i++)
		util_event_save_rows(page, &util_event_rings[i]);
	return 0;
}

/* ---- counters in the file ---- */

static bool util_event_is_ring(uint32_t table)
{
	return table == COPYRPC_STATS_EVENTS || table == COPYRPC_STATS_STALLS;
}

static_assert(sizeof(struct copyrpc_stats_peer) >= sizeof(struct copyrpc_stats_endpoint) &&
		      sizeof(struct copyrpc_stats_peer) >= sizeof(struct copyrpc_stats_wait),
	      "util_event_save_row");

/**
 * Copies words that others write with plain stores, each with one load. Volatile and not atomic:
 * TSan reports an atomic load beside a plain store whatever the attribute says.
 */
static __attribute__((no_sanitize_thread)) void util_event_load(
	util_event_word *to, const volatile util_event_word *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		to[i] = from[i];
}

/** Writes a row that others write meanwhile. */
static void util_event_save_row(int fd, const void *row, size_t len, size_t offset)
{
	util_event_word copy[sizeof(struct copyrpc_stats_peer) / 8];

	util_event_load(copy, row, len / 8);
	util_event_save(fd, copy, len, offset);
}

/** Writes the rows of a table that were ever in use. */
static void util_event_save_table(int fd, const struct copyrpc_stats_page *page, uint32_t table)
{
	const struct copyrpc_stats_table *t = &page->tables[table];

	for (uint32_t i = 0; i < t->rows; i++) {
		size_t offset = t->offset + (size_t)i * t->row_len;

		if (util_stats_is_used(table, i))
			util_event_save_row(fd, (const char *)page + offset, t->row_len, offset);
	}
}

void util_event_save_counters(uint64_t period_ns)
{
	static uint64_t saved_ns;
	const struct copyrpc_stats_page *page = util_stats_page();
	int fd = __atomic_load_n(&util_event_file.fd, __ATOMIC_ACQUIRE);
	uint64_t now_ns = util_clock_ns(), last_ns = __atomic_load_n(&saved_ns, __ATOMIC_RELAXED);

	if (!page || fd < 0 || !util_event_is_own(fd) ||
	    (last_ns && now_ns - last_ns < period_ns) ||
	    !__atomic_compare_exchange_n(&saved_ns, &last_ns, now_ns, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	for (uint32_t table = 0; table < COPYRPC_STATS_TABLES; table++)
		if (!util_event_is_ring(table))
			util_event_save_table(fd, page, table);
}

uint64_t util_event_clock(void)
{
	struct copyrpc_stats_page *page = util_stats_make_page();

	return page ? util_event_recorder(page, &util_event_rings[0])->clock_ns : 0;
}

void util_event_looked(uint64_t now_ns)
{
	struct copyrpc_stats_page *page = util_stats_make_page();
	struct copyrpc_stats_recorder *recorder;

	if (!page)
		return;
	recorder = util_event_recorder(page, &util_event_rings[0]);
	__atomic_store_n(&recorder->looked_ns, now_ns - recorder->clock_ns, __ATOMIC_RELAXED);
}

void util_event_in_child(void)
{
	if (util_event_file.fd >= 0 && util_event_is_own(util_event_file.fd))
		close(util_event_file.fd);
	util_event_file.fd = -1;
}
