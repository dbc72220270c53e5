/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of the ring of events: threads record many laps of it, while another one reads it.
 *
 * All words of an event follow from one number, so a reader detects one that is put together from
 * several. The suite builds the test with TSan.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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
	printf("%d events of %d threads: %lu read whole\n", THREADS * EVENTS, THREADS,
	       (unsigned long)cnt);
	return 0;
}
