/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ring of events in the statistics page, and their file. (util/event.h) */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/event.h"
#include "util/stats.h"

#define LIFE (UTIL_STATS_EVENTS - 1)

static const struct copyrpc_stats_event *rows_of(const void *page)
{
	const struct copyrpc_stats_page *head = page;

	return (const void *)((const char *)page + head->tables[COPYRPC_STATS_EVENTS].offset);
}

static uint64_t event_cnt(void)
{
	const void *recorder = rows_of(util_stats_page());

	return ((const struct copyrpc_stats_recorder *)recorder)->event_cnt;
}

static struct sockaddr_in peer(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
}

static void record(uint64_t value)
{
	struct sockaddr_in sin = peer((uint16_t)(1 + value % 1000));

	util_event(COPYRPC_STATS_LOST, (struct sockaddr *)&sin, value, ~value);
}

/** Checks that a row has event `number`, whose value is one less. */
static void expect_event(const struct copyrpc_stats_event *rows, uint64_t number)
{
	struct copyrpc_stats_event event;

	cr_assert(util_event_read(&rows[1 + (number - 1) % LIFE], &event), "%lu", number);
	cr_expect_eq(event.number, 2 * number);
	cr_expect_eq(event.kind, COPYRPC_STATS_LOST);
	cr_expect_eq(event.values[0], number - 1);
	cr_expect_eq(event.values[1], ~(number - 1));
	cr_expect_eq(event.peer.family, AF_INET);
	cr_expect_eq(event.peer.port, 1 + (number - 1) % 1000);
}

/** Returns a copy of a file with a page. The caller frees it. */
static void *loaded(int fd)
{
	struct stat st;
	void *mem;

	cr_assert_eq(fstat(fd, &st), 0);
	mem = malloc((size_t)st.st_size);
	cr_assert_eq(pread(fd, mem, (size_t)st.st_size, 0), st.st_size);
	return mem;
}

static int temp_file(char *name)
{
	int fd = mkstemp(name);

	cr_assert_geq(fd, 0);
	unlink(name);
	return fd;
}

Test(util_event, the_last_events_are_kept)
{
	static const uint64_t cnts[] = { 1, LIFE - 1, LIFE, LIFE + 1, 3 * LIFE + 5 };
	uint64_t done = 0;

	for (size_t i = 0; i < sizeof(cnts) / sizeof(cnts[0]); i++) {
		while (done < cnts[i])
			record(done++);
		cr_expect_eq(event_cnt(), done);
		for (uint64_t n = done > LIFE ? done - LIFE + 1 : 1; n <= done; n++)
			expect_event(rows_of(util_stats_page()), n);
	}
}

Test(util_event, times_grow_and_an_event_may_have_no_peer)
{
	const struct copyrpc_stats_event *rows;
	struct copyrpc_stats_event first, second;

	util_event(COPYRPC_STATS_DEVICE_UNUSED, NULL, 1, 2);
	util_event(COPYRPC_STATS_DEVICE_UNUSED, NULL, 3, 4);
	rows = rows_of(util_stats_page());
	cr_assert(util_event_read(&rows[1], &first) && util_event_read(&rows[2], &second));
	cr_expect_leq(first.time_ns, second.time_ns);
	cr_expect_eq(first.peer.family, 0);
	cr_expect_eq(second.values[1], 4);
	cr_expect_not(util_event_read(&rows[3], &first), "a row never used");
}

Test(util_event, a_row_that_another_thread_writes_is_left_to_it)
{
	struct copyrpc_stats_event *row, event;

	record(0);
	row = (struct copyrpc_stats_event *)rows_of(util_stats_page()) + 2;
	row->number = 1; /* claimed, and its writer stopped */
	record(1);
	cr_expect_eq(row->number, 1);
	cr_expect_eq(row->values[1], 0);
	cr_expect_not(util_event_read(row, &event));
	row->number = 2 * (LIFE + 2); /* a lap later */
	for (uint64_t n = 2; n < LIFE + 2; n++)
		record(n);
	cr_expect_eq(row->number, 2 * (LIFE + 2));
	cr_expect_eq(row->values[1], 0, "an older event does not replace a later one");
}

Test(util_event, a_file_has_the_events_before_and_after_and_survives_sigkill)
{
	char name[] = "/tmp/copyrpc_event_XXXXXX";
	int fd = temp_file(name), status;
	const struct copyrpc_stats_page *page;
	void *mem;
	pid_t pid = fork();

	if (!pid) {
		record(0);
		record(1);
		if (util_event_to_file(dup(fd)))
			_exit(1);
		for (uint64_t n = 2; n < LIFE + 2; n++)
			record(n);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	page = mem = loaded(fd);
	cr_expect_eq(page->magic, COPYRPC_STATS_MAGIC);
	cr_expect_eq(page->pid, pid);
	for (uint64_t n = 3; n <= LIFE + 2; n++)
		expect_event(rows_of(page), n);
	free(mem);
}

Test(util_event, a_file_whose_number_means_another_is_not_written)
{
	char name[] = "/tmp/copyrpc_event_XXXXXX", other[] = "/tmp/copyrpc_event_XXXXXX", byte;
	int fd = temp_file(name), mine = temp_file(other);

	cr_assert_eq(util_event_to_file(fd), 0);
	cr_assert_eq(dup2(mine, fd), fd);
	record(0);
	cr_expect_eq(pread(fd, &byte, 1, 0), 0, "the file of the application is still empty");
	expect_event(rows_of(util_stats_page()), 1);
}

Test(util_event, a_forked_child_does_not_write_the_file_of_its_parent)
{
	char name[] = "/tmp/copyrpc_event_XXXXXX";
	int fd = temp_file(name), copy = dup(fd), status;
	struct copyrpc_stats_event event;
	pid_t pid;
	void *mem;

	cr_assert_eq(util_event_to_file(fd), 0);
	record(0);
	pid = fork();
	if (!pid) {
		record(55);
		_exit(event_cnt() == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	mem = loaded(copy);
	expect_event(rows_of(mem), 1);
	cr_expect_not(util_event_read(&rows_of(mem)[2], &event));
	free(mem);
}

Test(util_event, a_file_that_cannot_be_written_is_refused)
{
	int fd = open("/dev/null", O_RDONLY);

	cr_expect_neq(util_event_to_file(fd), 0);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "closed");
	record(0);
	expect_event(rows_of(util_stats_page()), 1);
}

/* SIGXFSZ would end the process. */
Test(util_event, a_file_above_the_limit_on_file_sizes_is_refused)
{
	const struct rlimit lim = { 100 << 10, 100 << 10 };
	char name[] = "/tmp/copyrpc_event_XXXXXX";
	int fd = temp_file(name);

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_expect_eq(util_event_to_file(fd), EFBIG);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "closed");
	record(0);
	expect_event(rows_of(util_stats_page()), 1);
}

/** Returns row `i` of the endpoints in a loaded file. */
static const struct copyrpc_stats_endpoint *endpoint_of(const void *mem, uint32_t i)
{
	const struct copyrpc_stats_page *page = mem;
	const struct copyrpc_stats_table *table = &page->tables[COPYRPC_STATS_ENDPOINTS];

	return (const void *)((const char *)mem + table->offset + (size_t)i * table->row_len);
}

Test(util_event, a_file_has_the_counters_of_the_last_time_after_sigkill)
{
	char name[] = "/tmp/copyrpc_event_XXXXXX";
	int fd = temp_file(name), status;
	struct copyrpc_stats_endpoint *row;
	pid_t pid = fork();
	void *mem;

	if (!pid) {
		row = util_stats_get(COPYRPC_STATS_ENDPOINTS);
		util_stats_begin(row);
		row->unexpected = 5;
		if (util_event_to_file(dup(fd)))
			_exit(1);
		util_event_save_counters(0);
		row->unexpected = 6;
		util_event_save_counters(UINT64_MAX / 2); /* not yet */
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	mem = loaded(fd);
	cr_expect_eq(endpoint_of(mem, 1)->row.state, COPYRPC_STATS_LIVE);
	cr_expect_eq(endpoint_of(mem, 1)->unexpected, 5);
	cr_expect_eq(endpoint_of(mem, 2)->row.state, COPYRPC_STATS_FREE);
	free(mem);
}
