/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of the ring of events: threads record many laps of it, while another one reads it,
 * and while counters grow, as a sender's, another one saves the counters to a file.
 *
 * All words of an event follow from one number, so a reader detects one that is put together from
 * several. The file has a number of messages that the row had. The suite builds the test with TSan.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/event.h"
#include "util/stats.h"

#define THREADS 3
#define EVENTS  40000

static bool stop; /* atomic */

static void record(uint32_t value)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)value) };

	sin.sin_addr.s_addr = value;
	util_event(COPYRPC_STATS_LOST, (struct sockaddr *)&sin, value, ~(uint64_t)value);
}

static void *run_writer(void *arg)
{
	const uint32_t *first = arg;

	for (uint32_t i = 0; i < EVENTS; i++)
		record(*first + i);
	return NULL;
}

static void check(const struct copyrpc_stats_event *event)
{
	uint32_t value = (uint32_t)event->values[0], at;

	__builtin_memcpy(&at, event->peer.bytes, sizeof(at));
	if (event->values[1] == ~event->values[0] && at == value &&
	    event->peer.port == (uint16_t)value && event->kind == COPYRPC_STATS_LOST)
		return;
	fprintf(stderr, "event %lu is mixed from several\n", (unsigned long)event->number);
	exit(1);
}

static uint64_t read_all(void)
{
	const struct copyrpc_stats_page *page = util_stats_page();
	const struct copyrpc_stats_event *rows =
		(const void *)((const char *)page + page->tables[COPYRPC_STATS_EVENTS].offset);
	struct copyrpc_stats_event event;
	uint64_t cnt = 0;

	for (uint32_t i = 1; i < UTIL_STATS_EVENTS; i++)
		if (util_event_read(&rows[i], &event)) {
			check(&event);
			cnt++;
		}
	return cnt;
}

static void *run_reader(void *arg)
{
	uint64_t *cnt = arg;

	do
		*cnt += read_all();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED));
	return NULL;
}

/* ---- counters ---- */

static void *run_sender(void *arg)
{
	struct copyrpc_stats_peer *peer = arg;

	/* A relaxed load would let the compiler keep the counters in registers. */
	do
		util_stats_single(peer, 64);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE));
	return NULL;
}

/** Saves counters until the file has had two numbers of messages that differ. */
static void save_counters(const struct copyrpc_stats_peer *peer, int fd)
{
	size_t at = (size_t)((const char *)&peer->tx_singles - (const char *)util_stats_page());
	uint64_t first = 0, seen = 0, last = 0;

	while (!first || seen == first) {
		util_event_save_counters(0);
		if (pread(fd, &seen, sizeof(seen), (off_t)at) != sizeof(seen) || seen < last) {
			fprintf(stderr, "the file has %lu messages after %lu\n",
				(unsigned long)seen, (unsigned long)last);
			exit(1);
		}
		last = seen;
		first = first ? first : seen;
	}
}

/** Returns an open file without a name. */
static int open_file(void)
{
	char name[] = "/tmp/copyrpc_stress_XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || util_event_to_file(dup(fd))) {
		fprintf(stderr, "no file\n");
		exit(1);
	}
	unlink(name);
	return fd;
}

static void count(void)
{
	struct copyrpc_stats_addr addr = { .family = AF_INET, .port = 7 };
	struct copyrpc_stats_peer *peer = util_stats_get_peer(1, &addr);
	pthread_t sender;
	int fd = open_file();

	util_stats_begin(peer);
	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	pthread_create(&sender, NULL, run_sender, peer);
	save_counters(peer, fd);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(sender, NULL);
	close(fd);
}

/* ---- events ---- */

int main(void)
{
	pthread_t writers[THREADS], reader;
	uint32_t first[THREADS];
	uint64_t cnt = 0;

	record(0);
	pthread_create(&reader, NULL, run_reader, &cnt);
	for (uint32_t i = 0; i < THREADS; i++) {
		first[i] = i * EVENTS;
		pthread_create(&writers[i], NULL, run_writer, &first[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(writers[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	if (!cnt || !read_all()) {
		fprintf(stderr, "no event was read\n");
		return 1;
	}
	count();
	printf("%d events of %d threads: %lu read whole\n", THREADS * EVENTS, THREADS,
	       (unsigned long)cnt);
	return 0;
}
