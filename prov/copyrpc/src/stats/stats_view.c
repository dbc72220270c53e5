/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements stats_view.h. */
#include "stats/stats_view.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/event.h"
#include "util/job_name.h"

static const uint32_t stats_row_len[COPYRPC_STATS_TABLES] = {
	[COPYRPC_STATS_TRANSPORTS] = sizeof(struct copyrpc_stats_transport),
	[COPYRPC_STATS_ENDPOINTS] = sizeof(struct copyrpc_stats_endpoint),
	[COPYRPC_STATS_PEERS] = sizeof(struct copyrpc_stats_peer),
	[COPYRPC_STATS_RESTS] = sizeof(struct copyrpc_stats_peer),
	[COPYRPC_STATS_EVENTS] = sizeof(struct copyrpc_stats_event),
	[COPYRPC_STATS_STALLS] = sizeof(struct copyrpc_stats_event),
	[COPYRPC_STATS_WAITS] = sizeof(struct copyrpc_stats_wait),
	[COPYRPC_STATS_QUEUES] = sizeof(struct copyrpc_stats_queue),
	[COPYRPC_STATS_PROCESS] = sizeof(struct copyrpc_stats_process),
};

/* ---- checks ---- */

static uint64_t stats_table_end(const struct copyrpc_stats_table *t)
{
	return (uint64_t)t->offset + (uint64_t)t->row_len * t->rows;
}

static bool stats_table_is_valid(const struct copyrpc_stats_page *page, uint32_t table)
{
	const struct copyrpc_stats_table *t = &page->tables[table];

	return t->offset >= sizeof(*page) && !(t->offset % 8) && !(t->row_len % 8) &&
	       t->row_len >= stats_row_len[table] && t->rows <= COPYRPC_STATS_ROWS_MAX &&
	       stats_table_end(t) <= page->len;
}

/** Returns true if two tables share bytes: what is checked in one could change in the other. */
static bool stats_tables_overlap(const struct copyrpc_stats_table *a,
				 const struct copyrpc_stats_table *b)
{
	return a->offset < stats_table_end(b) && b->offset < stats_table_end(a);
}

static bool stats_page_is_valid(const struct copyrpc_stats_page *page, size_t len)
{
	if (page->magic != COPYRPC_STATS_MAGIC || page->version != COPYRPC_STATS_VERSION ||
	    page->len < sizeof(*page) || page->len > len || page->pid <= 0 ||
	    page->table_cnt < COPYRPC_STATS_TABLES)
		return false;
	for (uint32_t i = 0; i < COPYRPC_STATS_TABLES; i++) {
		if (!stats_table_is_valid(page, i))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (stats_tables_overlap(&page->tables[i], &page->tables[k]))
				return false;
	}
	return true;
}

/** Ends a text and replaces what is not printable, or has a meaning in a format. */
static void stats_clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(" .,:;_-+/@()[]", *text))
			*text = '?';
}

static void stats_clean_rows(struct stats_view *view)
{
	for (uint32_t i = 0; i < stats_view_rows(view, COPYRPC_STATS_TRANSPORTS); i++) {
		struct copyrpc_stats_transport *row =
			(void *)(uintptr_t)stats_view_row(view, COPYRPC_STATS_TRANSPORTS, i);

		if (row)
			stats_clean(row->name, sizeof(row->name));
	}
	for (uint32_t i = 0; i < stats_view_rows(view, COPYRPC_STATS_PEERS); i++) {
		struct copyrpc_stats_peer *row =
			(void *)(uintptr_t)stats_view_row(view, COPYRPC_STATS_PEERS, i);

		if (!row)
			continue;
		stats_clean(row->device, sizeof(row->device));
		stats_clean(row->host, sizeof(row->host));
	}
	for (uint32_t i = 0; i < stats_view_rows(view, COPYRPC_STATS_WAITS); i++) {
		struct copyrpc_stats_wait *row =
			(void *)(uintptr_t)stats_view_row(view, COPYRPC_STATS_WAITS, i);

		if (row)
			stats_clean(row->host, sizeof(row->host));
	}
}

/** Word of a page, whatever the fields in it. */
typedef uint64_t __attribute__((may_alias)) stats_word;

/** Copies a page that others write meanwhile, each word with one load. */
static __attribute__((no_sanitize_thread)) void stats_load(stats_word *to, const stats_word *from,
							   size_t words)
{
	for (size_t i = 0; i < words; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/** Copies the events once more, each as a whole. One that changes meanwhile is left out. */
static void stats_load_events(struct copyrpc_stats_page *copy, const void *src,
			      enum copyrpc_stats_table_id table)
{
	const struct copyrpc_stats_table *t = &copy->tables[table];

	for (uint32_t i = 1; i < t->rows; i++) {
		size_t at = t->offset + (size_t)i * t->row_len;
		struct copyrpc_stats_event *event = (void *)((char *)copy + at);

		if (!util_event_read((const void *)((const char *)src + at), event) ||
		    (event->number / 2 - 1) % (t->rows - 1) != i - 1)
			event->number = 0;
	}
}

/** Leaves out waits whose row was used for another one while they were copied. */
static __attribute__((no_sanitize_thread)) void stats_check_waits(struct copyrpc_stats_page *copy,
								  const void *src)
{
	const struct copyrpc_stats_table *t = &copy->tables[COPYRPC_STATS_WAITS];

	for (uint32_t i = 1; i < t->rows; i++) {
		size_t at = t->offset + (size_t)i * t->row_len;
		struct copyrpc_stats_row *row = (void *)((char *)copy + at);
		stats_word now = __atomic_load_n((const stats_word *)((const char *)src + at),
						 __ATOMIC_RELAXED);

		if (now != *(const stats_word *)row)
			row->state = COPYRPC_STATS_FREE;
	}
}

int stats_view_copy(struct stats_view *view, const void *src, size_t len)
{
	struct copyrpc_stats_page *copy;

	if (len < sizeof(*copy) || len > COPYRPC_STATS_LEN_MAX || (uintptr_t)src % 8)
		return -EINVAL;
	copy = calloc(1, len);
	if (!copy)
		return -ENOMEM;
	stats_load((stats_word *)copy, src, len / 8);
	if (!stats_page_is_valid(copy, len)) {
		free(copy);
		return -EINVAL;
	}
	*view = (struct stats_view){ .page = copy, .len = len };
	stats_load_events(copy, src, COPYRPC_STATS_EVENTS);
	stats_load_events(copy, src, COPYRPC_STATS_STALLS);
	stats_check_waits(copy, src);
	/* Texts are cleaned last, when nothing of the other process is copied any more. */
	stats_clean(copy->command, sizeof(copy->command));
	stats_clean(copy->host, sizeof(copy->host));
	stats_clean(copy->release, sizeof(copy->release));
	stats_clean_rows(view);
	return 0;
}

void stats_view_free(struct stats_view *view)
{
	free(view->page);
	view->page = NULL;
}

/* ---- rows ---- */

uint32_t stats_view_rows(const struct stats_view *view, enum copyrpc_stats_table_id table)
{
	return view->page->tables[table].rows;
}

const void *stats_view_row(const struct stats_view *view, enum copyrpc_stats_table_id table,
			   uint32_t i)
{
	const struct copyrpc_stats_table *t = &view->page->tables[table];
	const struct copyrpc_stats_row *row;

	if (i >= t->rows)
		return NULL;
	row = (const void *)((const char *)view->page + t->offset + (size_t)i * t->row_len);
	return row->state == COPYRPC_STATS_LIVE || row->state == COPYRPC_STATS_ENDED ||
			       row->state == COPYRPC_STATS_PAST
		       ? row
		       : NULL;
}

static void stats_add(void *to, const void *from, size_t first, size_t len)
{
	uint64_t *sum = (uint64_t *)((char *)to + first);
	const uint64_t *more = (const uint64_t *)((const char *)from + first);

	for (size_t i = 0; i < (len - first) / 8; i++)
		sum[i] += more[i];
}

struct copyrpc_stats_peer stats_view_sum_peers(const struct stats_view *view)
{
	static const enum copyrpc_stats_table_id tables[] = { COPYRPC_STATS_PEERS,
							      COPYRPC_STATS_RESTS };
	struct copyrpc_stats_peer sum = { .row.state = COPYRPC_STATS_FREE };

	for (unsigned t = 0; t < 2; t++)
		for (uint32_t i = 0; i < stats_view_rows(view, tables[t]); i++) {
			const void *row = stats_view_row(view, tables[t], i);

			if (row)
				stats_add(&sum, row,
					  offsetof(struct copyrpc_stats_peer, tx_singles),
					  sizeof(sum));
		}
	return sum;
}

/** Adds the levels of an endpoint: those of now if it is open, and the highest of all. */
static void stats_add_levels(struct copyrpc_stats_endpoint *sum,
			     const struct copyrpc_stats_endpoint *row)
{
	if (row->row.state == COPYRPC_STATS_LIVE) {
		sum->unexpected_now += row->unexpected_now;
		sum->posted_now += row->posted_now;
		sum->unexpected_queue += row->unexpected_queue;
	}
	if (row->posted_most > sum->posted_most)
		sum->posted_most = row->posted_most;
	if (row->unexpected_queue_most > sum->unexpected_queue_most)
		sum->unexpected_queue_most = row->unexpected_queue_most;
}

struct copyrpc_stats_endpoint stats_view_sum_endpoints(const struct stats_view *view)
{
	struct copyrpc_stats_endpoint sum = { .row.state = COPYRPC_STATS_FREE };

	for (uint32_t i = 0; i < stats_view_rows(view, COPYRPC_STATS_ENDPOINTS); i++) {
		const struct copyrpc_stats_endpoint *row =
			stats_view_row(view, COPYRPC_STATS_ENDPOINTS, i);

		if (!row)
			continue;
		stats_add(&sum, row, offsetof(struct copyrpc_stats_endpoint, waited_connection),
			  sizeof(sum));
		stats_add_levels(&sum, row);
	}
	return sum;
}

struct copyrpc_stats_queue stats_view_sum_queues(const struct stats_view *view)
{
	struct copyrpc_stats_queue sum = { .row.state = COPYRPC_STATS_FREE };

	for (uint32_t i = 0; i < stats_view_rows(view, COPYRPC_STATS_QUEUES); i++) {
		const struct copyrpc_stats_queue *row =
			stats_view_row(view, COPYRPC_STATS_QUEUES, i);

		if (!row)
			continue;
		sum.completions += row->completions;
		sum.failed += row->failed;
		if (row->row.state == COPYRPC_STATS_LIVE)
			sum.unread += row->unread;
	}
	return sum;
}

const struct copyrpc_stats_process *stats_view_process(const struct stats_view *view)
{
	static const struct copyrpc_stats_process none;
	const void *row = stats_view_row(view, COPYRPC_STATS_PROCESS, 1);

	return row ? row : &none;
}

/* ---- events ---- */

const struct copyrpc_stats_event *stats_view_event(const struct stats_view *view,
						   enum copyrpc_stats_table_id table, uint32_t i)
{
	const struct copyrpc_stats_table *t = &view->page->tables[table];
	const struct copyrpc_stats_event *event =
		(const void *)((const char *)view->page + t->offset + (size_t)i * t->row_len);

	return i && i < t->rows && event->number ? event : NULL;
}

/** Compares by time; events of one time by number. */
static int stats_earlier(const void *a, const void *b)
{
	const struct copyrpc_stats_event *const *x = a, *const *y = b;

	if ((*x)->time_ns != (*y)->time_ns)
		return (*x)->time_ns < (*y)->time_ns ? -1 : 1;
	return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

const struct copyrpc_stats_event **stats_view_events(const struct stats_view *view, size_t *cnt)
{
	static const enum copyrpc_stats_table_id tables[] = { COPYRPC_STATS_EVENTS,
							      COPYRPC_STATS_STALLS };
	uint32_t rows = stats_view_rows(view, COPYRPC_STATS_EVENTS) +
			stats_view_rows(view, COPYRPC_STATS_STALLS);
	const struct copyrpc_stats_event **events = calloc(rows + 1, sizeof(*events));

	*cnt = 0;
	for (unsigned t = 0; events && t < 2; t++)
		for (uint32_t i = 1; i < stats_view_rows(view, tables[t]); i++) {
			events[*cnt] = stats_view_event(view, tables[t], i);
			*cnt += events[*cnt] != NULL;
		}
	if (events)
		qsort(events, *cnt, sizeof(const struct copyrpc_stats_event *), stats_earlier);
	return events;
}

const struct copyrpc_stats_wait *stats_view_wait(const struct stats_view *view, uint32_t i)
{
	const struct copyrpc_stats_row *row =
		i ? stats_view_row(view, COPYRPC_STATS_WAITS, i) : NULL;

	return row && row->state == COPYRPC_STATS_LIVE ? (const void *)row : NULL;
}

const struct copyrpc_stats_recorder *stats_view_recorder(const struct stats_view *view)
{
	static const struct copyrpc_stats_recorder none;
	const void *row = stats_view_row(view, COPYRPC_STATS_EVENTS, 0);

	return row ? row : &none;
}

/* ---- texts ---- */

void stats_addr_text(const struct copyrpc_stats_addr *addr, char text[STATS_ADDR_LEN])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->family == AF_INET && inet_ntop(AF_INET, addr->bytes, host, sizeof(host)))
		snprintf(text, STATS_ADDR_LEN, "%s:%u", host, addr->port);
	else if (addr->family == AF_INET6 && inet_ntop(AF_INET6, addr->bytes, host, sizeof(host)))
		snprintf(text, STATS_ADDR_LEN, "[%s]:%u", host, addr->port);
	else
		snprintf(text, STATS_ADDR_LEN, "?");
}

static_assert(STATS_NAME_LEN == UTIL_JOB_TEXT_LEN, "one length of texts");

char *stats_identity_text(int32_t rank, int32_t pid, const char *host, char text[STATS_NAME_LEN])
{
	struct util_job_name who = { .rank = rank, .pid = pid };

	snprintf(who.host, sizeof(who.host), "%s", host);
	return util_job_text(&who, text);
}

const char *stats_path_name(uint32_t path)
{
	switch (path) {
	case COPYRPC_STATS_SHM: return "shm";
	case COPYRPC_STATS_NIC:
	case COPYRPC_STATS_UDS: return "nic";
	case COPYRPC_STATS_UDP: return "udp";
	default: return "?";
	}
}

/** Returns the error because of which no transport has the path, 0 if one has, -1 if none tried. */
static int stats_path_error(const struct stats_view *view, uint32_t path)
{
	int err = -1;

	for (uint32_t i = 1; i < stats_view_rows(view, COPYRPC_STATS_TRANSPORTS); i++) {
		const struct copyrpc_stats_transport *row =
			stats_view_row(view, COPYRPC_STATS_TRANSPORTS, i);

		if (!row || row->path != path)
			continue;
		if (!row->error)
			return 0;
		err = row->error;
	}
	return err;
}

const char *stats_better_path(const struct stats_view *view, const struct copyrpc_stats_peer *peer,
			      char *why, size_t size)
{
	for (uint32_t path = COPYRPC_STATS_SHM; path < COPYRPC_STATS_UDP && path < peer->path;
	     path <<= 1) {
		int err = stats_path_error(view, path);

		if (err == -1)
			continue;
		if (err)
			snprintf(why, size, "not available here: %s", strerror(err));
		else
			snprintf(why, size, "%s",
				 path == COPYRPC_STATS_SHM
					 ? "the peer is on another host, or does not offer it"
					 : "the peer does not offer it, or it does not lead there");
		return stats_path_name(path);
	}
	return NULL;
}
