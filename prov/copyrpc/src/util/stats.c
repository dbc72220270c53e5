/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory and rows of the statistics page: see stats.h. */
#include "util/stats.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/event.h"
#include "util/held.h"
#include "util/job.h"
#include "util/log.h"
#include "util/memfd.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static_assert(COPYRPC_STATS_SEALS ==
		      (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE),
	      "copyrpc/stats.h");

/** Rows of the largest table of objects. */
#define UTIL_STATS_ROWS UTIL_STATS_PEERS

static const struct {
	uint32_t row_len;
	uint32_t rows;
	uint32_t counters; /* offset of the first counter */
} util_stats_shape[COPYRPC_STATS_TABLES] = {
	[COPYRPC_STATS_TRANSPORTS] = { sizeof(struct copyrpc_stats_transport),
				       UTIL_STATS_TRANSPORTS,
				       sizeof(struct copyrpc_stats_transport) },
	[COPYRPC_STATS_ENDPOINTS] = { sizeof(struct copyrpc_stats_endpoint), UTIL_STATS_ENDPOINTS,
				      offsetof(struct copyrpc_stats_endpoint, waited_connection) },
	[COPYRPC_STATS_PEERS] = { sizeof(struct copyrpc_stats_peer), UTIL_STATS_PEERS,
				  offsetof(struct copyrpc_stats_peer, tx_singles) },
	[COPYRPC_STATS_RESTS] = { sizeof(struct copyrpc_stats_peer), UTIL_STATS_RESTS,
				  offsetof(struct copyrpc_stats_peer, tx_singles) },
	/* Rows of events are written by util/event.c. */
	[COPYRPC_STATS_EVENTS] = { sizeof(struct copyrpc_stats_event), UTIL_STATS_EVENTS,
				   sizeof(struct copyrpc_stats_event) },
	[COPYRPC_STATS_STALLS] = { sizeof(struct copyrpc_stats_event), UTIL_STATS_STALLS,
				   sizeof(struct copyrpc_stats_event) },
	[COPYRPC_STATS_WAITS] = { sizeof(struct copyrpc_stats_wait), UTIL_STATS_WAITS,
				  sizeof(struct copyrpc_stats_wait) },
	[COPYRPC_STATS_QUEUES] = { sizeof(struct copyrpc_stats_queue), UTIL_STATS_QUEUES,
				   offsetof(struct copyrpc_stats_queue, completions) },
	[COPYRPC_STATS_PROCESS] = { sizeof(struct copyrpc_stats_process), UTIL_STATS_PROCESS,
				    sizeof(struct copyrpc_stats_process) },
};

/** Use of a row. Beside the page: a search must not touch the memory of rows never used. */
struct util_stats_use {
	bool taken; /* belongs to an object, visible or not */
	bool ended; /* counters of an object that ended */
	uint32_t cnt;
};

/** Page of this process; guarded by `lock`. A forked child begins with none. */
static struct {
	pthread_mutex_t lock;
	struct copyrpc_stats_page *page; /* or NULL; also read without the lock */
	int fd;                          /* memfd of the page; -1: private */
	bool hide;
	struct util_stats_use rows[COPYRPC_STATS_TABLES][UTIL_STATS_ROWS];
} util_stats = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

void util_stats_set_text(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	memset(to + len, 0, size - len);
}

void util_stats_set_addr(struct copyrpc_stats_addr *to, const struct sockaddr *from)
{
	const struct sockaddr_in *in = (const void *)from;
	const struct sockaddr_in6 *in6 = (const void *)from;

	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET) {
		to->port = ntohs(in->sin_port);
		memcpy(to->bytes, &in->sin_addr, sizeof(in->sin_addr));
	} else if (from->sa_family == AF_INET6) {
		to->port = ntohs(in6->sin6_port);
		to->scope = in6->sin6_scope_id;
		memcpy(to->bytes, &in6->sin6_addr, sizeof(in6->sin6_addr));
	} else {
		return;
	}
	to->family = from->sa_family;
}

/* ---- memory ---- */

static void util_stats_lock(void)
{
	pthread_mutex_lock(&util_stats.lock);
}

static void util_stats_unlock(void)
{
	pthread_mutex_unlock(&util_stats.lock);
}

static uint32_t util_stats_page_len(void)
{
	uint32_t len = sizeof(struct copyrpc_stats_page);

	for (uint32_t i = 0; i < COPYRPC_STATS_TABLES; i++)
		len += util_stats_shape[i].row_len * util_stats_shape[i].rows;
	return len;
}

/**
 * In a forked child: puts private memory in the place of the parent's page, in which inherited
 * objects count.
 */
static void util_stats_in_child(void)
{
	if (util_stats.fd >= 0) {
		if (mmap(util_stats.page, util_stats_page_len(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			_exit(127);
		close(util_stats.fd);
	}
	util_stats.page = NULL;
	util_stats.fd = -1;
	util_event_in_child();
	memset(util_stats.rows, 0, sizeof(util_stats.rows));
	util_stats_unlock();
}

/* The handlers stay registered: the library is never unloaded (-z nodelete). */
static void util_stats_register(void)
{
	pthread_atfork(util_stats_lock, util_stats_unlock, util_stats_in_child);
}

void util_stats_guard_fork(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, util_stats_register);
}

static int util_stats_memfd(uint32_t len)
{
	int fd;

	if (len > util_file_max()) {
		errno = EFBIG;
		return -1;
	}
	fd = util_memfd(COPYRPC_STATS_NAME);
	if (fd >= 0 && ftruncate(fd, len)) {
		close(fd);
		return -1;
	}
	return fd;
}

/** Maps a memfd and seals it. Returns NULL with errno set. */
static void *util_stats_map_shared(uint32_t len)
{
	int fd = util_stats_memfd(len);
	void *mem = MAP_FAILED;

	if (fd >= 0)
		mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem != MAP_FAILED && fcntl(fd, F_ADD_SEALS, COPYRPC_STATS_SEALS)) {
		munmap(mem, len);
		mem = MAP_FAILED;
	}
	if (mem == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	util_stats.fd = fd;
	return mem;
}

static void *util_stats_map(uint32_t len)
{
	void *mem = util_stats.hide ? NULL : util_stats_map_shared(len);

	if (mem)
		return mem;
	UTIL_INFO(FABRIC, "no statistics page, copyrpc_top does not show this process: %s\n",
		  util_stats.hide ? "hidden by a test" : strerror(errno));
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mem == MAP_FAILED ? NULL : mem;
}

static void util_stats_set_names(struct copyrpc_stats_page *page)
{
	struct util_job_name self;

	util_job_self(&self);
	page->pid = self.pid;
	page->rank = self.rank;
	util_stats_set_text(page->host, sizeof(page->host), self.host);
	util_stats_set_text(page->command, sizeof(page->command), program_invocation_short_name);
	snprintf(page->release, sizeof(page->release), "%u.%u", FI_MAJOR(util_log_prov.version),
		 FI_MINOR(util_log_prov.version));
}

static void util_stats_set_tables(struct copyrpc_stats_page *page)
{
	uint32_t offset = sizeof(*page);

	for (uint32_t i = 0; i < COPYRPC_STATS_TABLES; i++) {
		struct copyrpc_stats_row *past = (void *)((char *)page + offset);

		page->tables[i] = (struct copyrpc_stats_table){
			.offset = offset,
			.row_len = util_stats_shape[i].row_len,
			.rows = util_stats_shape[i].rows,
		};
		past->state = COPYRPC_STATS_PAST;
		util_stats.rows[i][0].taken = true;
		offset += page->tables[i].row_len * page->tables[i].rows;
	}
}

/** Sets the time from which the times of events count. */
static void util_stats_set_clock(struct copyrpc_stats_page *page)
{
	struct copyrpc_stats_recorder *events =
		(void *)((char *)page + page->tables[COPYRPC_STATS_EVENTS].offset);
	struct copyrpc_stats_recorder *stalls =
		(void *)((char *)page + page->tables[COPYRPC_STATS_STALLS].offset);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	page->start_ns = (uint64_t)now.tv_sec * UTIL_NS_PER_S + (uint64_t)now.tv_nsec;
	events->clock_ns = stalls->clock_ns = util_clock_ns();
}

/** Takes the row of the process. */
static void util_stats_open_process(struct copyrpc_stats_page *page)
{
	util_stats.rows[COPYRPC_STATS_PROCESS][1].taken = true;
	util_held_show(page);
	util_stats_begin(util_held_row(page));
}

/** Makes the page unless there is one. Locked. Returns false without memory. */
static bool util_stats_ensure(void)
{
	uint32_t len = util_stats_page_len();
	struct copyrpc_stats_page *page;

	if (util_stats.page)
		return true;
	page = util_stats_map(len);
	if (!page)
		return false;
	util_stats_guard_fork();
	page->version = COPYRPC_STATS_VERSION;
	page->len = len;
	page->table_cnt = COPYRPC_STATS_TABLES;
	util_stats_set_names(page);
	util_stats_set_tables(page);
	util_stats_set_clock(page);
	util_stats_open_process(page);
	__atomic_store_n(&page->magic, COPYRPC_STATS_MAGIC, __ATOMIC_RELEASE);
	__atomic_store_n(&util_stats.page, page, __ATOMIC_RELEASE);
	return true;
}

const struct copyrpc_stats_page *util_stats_page(void)
{
	return __atomic_load_n(&util_stats.page, __ATOMIC_ACQUIRE);
}

struct copyrpc_stats_page *util_stats_make_page(void)
{
	struct copyrpc_stats_page *page = __atomic_load_n(&util_stats.page, __ATOMIC_ACQUIRE);

	if (page)
		return page;
	util_stats_lock();
	page = util_stats_ensure() ? util_stats.page : NULL;
	util_stats_unlock();
	return page;
}

void util_stats_hide(bool hide)
{
	util_stats.hide = hide;
}

/* ---- rows ---- */

static struct copyrpc_stats_row *util_stats_row(uint32_t table, uint32_t index)
{
	return (void *)((char *)util_stats.page + util_stats.page->tables[table].offset +
			(size_t)index * util_stats_shape[table].row_len);
}

/** Returns the table of a row and *index; COPYRPC_STATS_TABLES and UINT32_MAX: none. Locked. */
static uint32_t util_stats_find(const void *row, uint32_t *index)
{
	size_t at = (size_t)((const char *)row - (const char *)util_stats.page);

	*index = UINT32_MAX;
	for (uint32_t i = 0; util_stats.page && i < COPYRPC_STATS_TABLES; i++) {
		const struct copyrpc_stats_table *table = &util_stats.page->tables[i];

		if (at < table->offset || at - table->offset >= table->row_len * table->rows)
			continue;
		*index = (uint32_t)(at - table->offset) / table->row_len;
		return i;
	}
	return COPYRPC_STATS_TABLES;
}

/** Adds the counters of an ended row to row 0. */
static void util_stats_keep_sums(uint32_t table, const struct copyrpc_stats_row *ended)
{
	uint32_t first = util_stats_shape[table].counters;
	uint64_t *to = (void *)((char *)util_stats_row(table, 0) + first);
	const uint64_t *from = (const void *)((const char *)ended + first);

	for (uint32_t i = 0; i < (util_stats_shape[table].row_len - first) / 8; i++)
		to[i] += from[i];
}

/** Returns the number of the row to use next: one used least often. 0: all belong to objects. */
static uint32_t util_stats_next(uint32_t table)
{
	const struct util_stats_use *rows = util_stats.rows[table];
	uint32_t best = 0;

	for (uint32_t i = 1; i < util_stats_shape[table].rows; i++)
		if (!rows[i].taken && (!best || rows[i].cnt < rows[best].cnt))
			best = i;
	return best;
}

/** Takes a row that was never used, else one that ended. Returns NULL if there is none. Locked. */
static struct copyrpc_stats_row *util_stats_take(uint32_t table)
{
	uint32_t index = util_stats_next(table);
	struct util_stats_use *use = &util_stats.rows[table][index];
	struct copyrpc_stats_row *row;

	if (!index)
		return NULL;
	row = util_stats_row(table, index);
	if (use->ended) {
		util_stats_keep_sums(table, row);
		__atomic_store_n(&row->state, COPYRPC_STATS_FREE, __ATOMIC_SEQ_CST);
		memset(row, 0, util_stats_shape[table].row_len);
	}
	*use = (struct util_stats_use){ .taken = true, .cnt = use->cnt + 1 };
	row->use = use->cnt;
	return row;
}

void *util_stats_get(enum copyrpc_stats_table_id table)
{
	void *row;

	util_stats_lock();
	row = util_stats_ensure() ? util_stats_take(table) : NULL;
	util_stats_unlock();
	return row;
}

/** Takes the ended row of this peer. Returns NULL if there is none. Locked. */
static struct copyrpc_stats_peer *util_stats_take_ended(uint32_t endpoint,
							const struct copyrpc_stats_addr *addr)
{
	struct util_stats_use *rows = util_stats.rows[COPYRPC_STATS_PEERS];
	struct copyrpc_stats_peer *peer;

	for (uint32_t i = 1; i < UTIL_STATS_PEERS; i++) {
		if (!rows[i].ended)
			continue;
		peer = (struct copyrpc_stats_peer *)util_stats_row(COPYRPC_STATS_PEERS, i);
		if (peer->endpoint != endpoint || memcmp(&peer->addr, addr, sizeof(*addr)))
			continue;
		rows[i].taken = true;
		rows[i].ended = false;
		return peer;
	}
	return NULL;
}

struct copyrpc_stats_peer *util_stats_get_peer(uint32_t endpoint,
					       const struct copyrpc_stats_addr *addr)
{
	struct copyrpc_stats_peer *peer = NULL;

	util_stats_lock();
	if (util_stats_ensure()) {
		peer = util_stats_take_ended(endpoint, addr);
		if (!peer)
			peer = (void *)util_stats_take(COPYRPC_STATS_PEERS);
	}
	util_stats_unlock();
	if (!peer)
		return NULL;
	peer->endpoint = endpoint;
	peer->addr = *addr;
	peer->error = 0;
	peer->rtt_ns = 0; /* of the last connection, perhaps by another path */
	peer->rtt_best_ns = 0;
	return peer;
}

void util_stats_begin(void *row)
{
	struct copyrpc_stats_row *r = row;

	__atomic_store_n(&r->state, COPYRPC_STATS_LIVE, __ATOMIC_RELEASE);
}

void util_stats_end(void *row)
{
	struct copyrpc_stats_row *r = row;
	uint32_t table, index;

	if (!row)
		return;
	util_stats_lock();
	table = util_stats_find(row, &index);
	if (table != COPYRPC_STATS_TABLES) {
		__atomic_store_n(&r->state, COPYRPC_STATS_ENDED, __ATOMIC_RELEASE);
		util_stats.rows[table][index].taken = false;
		util_stats.rows[table][index].ended = true;
	}
	util_stats_unlock();
}

bool util_stats_is_used(enum copyrpc_stats_table_id table, uint32_t i)
{
	const struct util_stats_use *use = &util_stats.rows[table][i];
	bool used;

	util_stats_lock();
	used = use->taken || use->ended;
	util_stats_unlock();
	return used;
}

uint32_t util_stats_index(enum copyrpc_stats_table_id table, const void *row)
{
	uint32_t index;

	util_stats_lock();
	if (util_stats_find(row, &index) != (uint32_t)table)
		index = UINT32_MAX;
	util_stats_unlock();
	return index;
}
