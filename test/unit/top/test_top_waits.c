/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waits over processes: chains, circles, ends. (top/top_waits.h) */
#include "top/top_waits.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PROCESSES 6
#define ROWS      8u
#define S         UINT64_C(1000000000)

/** A page with an endpoint and its waits. */
struct page {
	struct copyrpc_stats_page head;
	struct copyrpc_stats_transport transport;
	struct copyrpc_stats_endpoint endpoints[ROWS];
	struct copyrpc_stats_peer peer, rest;
	struct copyrpc_stats_event events[1], stalls[1];
	struct copyrpc_stats_wait waits[ROWS];
	struct copyrpc_stats_queue queues[1];
	struct copyrpc_stats_process process[1];
};

static struct page pages[PROCESSES];
static char states[PROCESSES];

static char state_of(int pid)
{
	return states[pid - 100];
}

static void table(struct page *page, unsigned i, const void *rows, size_t row_len, uint32_t cnt)
{
	page->head.tables[i] = (struct copyrpc_stats_table){
		.offset = (uint32_t)((const char *)rows - (const char *)page),
		.row_len = (uint32_t)row_len,
		.rows = cnt,
	};
}

static struct copyrpc_stats_addr addr_of(unsigned i)
{
	return (struct copyrpc_stats_addr){ .family = AF_INET,
					    .port = (uint16_t)(7 + i),
					    .bytes = { 10 } };
}

/** Makes the page of process i: number 100 + i, rank i, made at 1000 s. */
static void make(unsigned i)
{
	struct page *page = &pages[i];
	struct copyrpc_stats_recorder recorder = { .row.state = COPYRPC_STATS_PAST,
						   .clock_ns = 1000 * S,
						   .looked_ns = 19 * S };

	memset(page, 0, sizeof(*page));
	page->head = (struct copyrpc_stats_page){
		.magic = COPYRPC_STATS_MAGIC,
		.version = COPYRPC_STATS_VERSION,
		.len = sizeof(*page),
		.pid = 100 + (int)i,
		.rank = (int)i,
		.command = "job",
		.host = "here",
		.table_cnt = COPYRPC_STATS_TABLES,
	};
	table(page, COPYRPC_STATS_TRANSPORTS, &page->transport, sizeof(page->transport), 1);
	table(page, COPYRPC_STATS_ENDPOINTS, page->endpoints, sizeof(page->endpoints[0]), ROWS);
	table(page, COPYRPC_STATS_PEERS, &page->peer, sizeof(page->peer), 1);
	table(page, COPYRPC_STATS_RESTS, &page->rest, sizeof(page->rest), 1);
	table(page, COPYRPC_STATS_EVENTS, page->events, sizeof(page->events[0]), 1);
	table(page, COPYRPC_STATS_STALLS, page->stalls, sizeof(page->stalls[0]), 1);
	table(page, COPYRPC_STATS_WAITS, page->waits, sizeof(page->waits[0]), ROWS);
	table(page, COPYRPC_STATS_QUEUES, page->queues, sizeof(page->queues[0]), 1);
	table(page, COPYRPC_STATS_PROCESS, page->process, sizeof(page->process[0]), 1);
	memcpy(&page->events[0], &recorder, sizeof(recorder));
	page->endpoints[3] = (struct copyrpc_stats_endpoint){ .row.state = COPYRPC_STATS_LIVE,
							      .addr = addr_of(i) };
	states[i] = 'R';
}

/** Process `from` waits for `to` since `s` seconds before now, which is at 1020 s. */
static void wait_for(unsigned from, unsigned to, unsigned s)
{
	unsigned i = 1;

	while (pages[from].waits[i].row.state)
		i++;
	pages[from].waits[i] = (struct copyrpc_stats_wait){
		.row.state = COPYRPC_STATS_LIVE,
		.peer = addr_of(to),
		.cause = COPYRPC_STATS_FOR_CREDIT,
		.rank = -1,
		.since_ns = (20 - s) * S,
	};
}

static void setup(void)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		make(i);
}

/** Returns what is printed of the first `cnt` pages. The caller frees it. */
static char *printed(size_t cnt)
{
	struct stats_view views[PROCESSES];
	struct top_pages all = { .views = views, .cnt = cnt };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; i < cnt; i++)
		cr_assert_eq(stats_view_copy(&views[i], &pages[i], sizeof(pages[i])), 0);
	top_waits_print(out, &all, 1020 * S, state_of);
	fclose(out);
	for (size_t i = 0; i < cnt; i++)
		stats_view_free(&views[i]);
	return text;
}

static void expect(size_t cnt, const char *expected)
{
	char *text = printed(cnt);

	cr_expect_str_eq(text, expected);
	free(text);
}

Test(top_waits, no_wait_is_said_so, .init = setup)
{
	expect(3, "no process waits for a peer\n");
	expect(0, "no process waits for a peer\n");
	pages[0].waits[1] = (struct copyrpc_stats_wait){ .row.state = COPYRPC_STATS_ENDED };
	expect(1, "no process waits for a peer\n");
}

Test(top_waits, a_chain_ends_at_the_process_that_is_stopped, .init = setup)
{
	wait_for(0, 1, 12);
	wait_for(1, 2, 11);
	states[2] = 'T';
	expect(3, "rank 0 (job, pid 100) waits 12 s for credit of rank 1 (job, pid 101)\n"
		  "rank 1 (job, pid 101) waits 11 s for credit of rank 2 (job, pid 102)\n"
		  "end of the chain of 2 processes: rank 2 (job, pid 102), which is stopped\n");
}

Test(top_waits, a_circle_is_said_once_whatever_leads_to_it, .init = setup)
{
	wait_for(0, 1, 12); /* leads to the circle */
	wait_for(1, 2, 12);
	wait_for(2, 3, 12);
	wait_for(3, 1, 12);
	wait_for(4, 4, 12); /* a circle of one */
	expect(6, "rank 0 (job, pid 100) waits 12 s for credit of rank 1 (job, pid 101)\n"
		  "rank 1 (job, pid 101) waits 12 s for credit of rank 2 (job, pid 102)\n"
		  "rank 2 (job, pid 102) waits 12 s for credit of rank 3 (job, pid 103)\n"
		  "rank 3 (job, pid 103) waits 12 s for credit of rank 1 (job, pid 101)\n"
		  "rank 4 (job, pid 104) waits 12 s for credit of rank 4 (job, pid 104)\n"
		  "circle: rank 1 (job, pid 101) -> rank 2 (job, pid 102) -> "
		  "rank 3 (job, pid 103) -> rank 1 (job, pid 101)\n"
		  "circle: rank 4 (job, pid 104) -> rank 4 (job, pid 104)\n");
}

Test(top_waits, a_chain_follows_the_oldest_wait, .init = setup)
{
	wait_for(0, 1, 5);
	wait_for(0, 2, 9);
	((struct copyrpc_stats_recorder *)(void *)pages[2].events)->looked_ns = 5 * S;
	expect(3, "rank 0 (job, pid 100) waits 5 s for credit of rank 1 (job, pid 101)\n"
		  "rank 0 (job, pid 100) waits 9 s for credit of rank 2 (job, pid 102)\n"
		  "end of the chain of 1 process: rank 2 (job, pid 102), "
		  "which has made no progress for 15 s (it computes)\n");
}

Test(top_waits, a_process_number_tells_equal_addresses_apart, .init = setup)
{
	pages[1].endpoints[3].addr = addr_of(2);
	wait_for(0, 2, 5);
	pages[0].waits[1].pid = 102;
	expect(3, "rank 0 (job, pid 100) waits 5 s for credit of rank 2 (job, pid 102)\n"
		  "end of the chain of 1 process: rank 2 (job, pid 102)\n");
}

Test(top_waits, a_peer_of_another_host_and_forged_rows_are_named_as_they_are, .init = setup)
{
	wait_for(0, 9, 5);
	wait_for(1, 0, 6);
	pages[1].waits[1].cause = 4711;
	pages[1].waits[1].since_ns = UINT64_MAX; /* in the future */
	pages[0].head.rank = -1;
	expect(2, "job (pid 100) waits 5 s for credit of 10.0.0.0:16, "
		  "which is not a process of this host that can be read\n"
		  "rank 1 (job, pid 101) waits 0 s for ? of job (pid 100)\n"
		  "end of the chain of 1 process: job (pid 100), "
		  "which waits for a peer that cannot be read\n");
}

Test(top_waits, a_peer_of_another_host_is_named_as_it_named_itself, .init = setup)
{
	struct copyrpc_stats_wait *wait = &pages[0].waits[1];

	wait_for(0, PROCESSES, 12);
	wait->rank = 17;
	wait->pid = 4711;
	snprintf(wait->host, sizeof(wait->host), "there");
	expect(1, "rank 0 (job, pid 100) waits 12 s for credit of rank 17 (there, pid 4711) at "
		  "10.0.0.0:13, which is on another host\n");
	wait->rank = -1;
	expect(1, "rank 0 (job, pid 100) waits 12 s for credit of pid 4711 on there at "
		  "10.0.0.0:13, which is on another host\n");
	snprintf(wait->host, sizeof(wait->host), "here");
	expect(1, "rank 0 (job, pid 100) waits 12 s for credit of pid 4711 on here at "
		  "10.0.0.0:13, which is not a process of this host that can be read\n");
	memset(wait->host, '\033', sizeof(wait->host));
	wait->host[2] = '\0';
	expect(1, "rank 0 (job, pid 100) waits 12 s for credit of pid 4711 on ?? at "
		  "10.0.0.0:13, which is on another host\n");
}
