/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The statistics page: reading and writing by others, and the rows of objects. (util/stats.h) */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/stats.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/** Opens the page of this process as another one would. Returns -1 if there is none. */
static int open_page(int flags)
{
	DIR *dir = opendir("/proc/self/fd");
	char path[300], link[64];
	struct dirent *entry;
	int fd = -1;

	cr_assert_not_null(dir);
	while (fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		ssize_t len = readlink(path, link, sizeof(link) - 1);

		link[len < 0 ? 0 : len] = '\0';
		if (!strcmp(link, "/memfd:" COPYRPC_STATS_NAME " (deleted)"))
			fd = open(path, flags);
	}
	closedir(dir);
	return fd;
}

static struct copyrpc_stats_peer *get_peer(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct copyrpc_stats_addr addr;
	struct copyrpc_stats_peer *peer;

	util_stats_set_addr(&addr, (struct sockaddr *)&sin);
	peer = util_stats_get_peer(1, &addr);
	if (peer)
		util_stats_begin(peer);
	return peer;
}

Test(util_stats, others_can_read_the_page_and_not_write_it)
{
	struct copyrpc_stats_peer *peer = get_peer(7);
	const struct copyrpc_stats_page *page;
	const struct copyrpc_stats_peer *row;
	int fd = open_page(O_RDWR);
	struct stat st;
	char byte = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	page = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(page, MAP_FAILED);
	cr_expect_eq(page->magic, COPYRPC_STATS_MAGIC);
	cr_expect_eq(page->version, COPYRPC_STATS_VERSION);
	cr_expect_eq(page->len, st.st_size);
	cr_expect_eq(page->pid, getpid());
	util_stats_single(peer, 64);
	row = (const void *)((const char *)page + page->tables[COPYRPC_STATS_PEERS].offset +
			     util_stats_index(COPYRPC_STATS_PEERS, peer) * sizeof(*row));
	cr_expect_eq(row->tx_singles, 1, "visible at once");
	cr_expect_eq(pwrite(fd, &byte, 1, 0), -1);
	cr_expect_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	cr_expect_eq(ftruncate(fd, 0), -1);
	cr_expect_eq(ftruncate(fd, 2 * st.st_size), -1);
	cr_expect_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	cr_expect_eq(fcntl(fd, F_GET_SEALS) & (int)COPYRPC_STATS_SEALS, (int)COPYRPC_STATS_SEALS);
	close(fd);
}

Test(util_stats, without_a_memfd_rows_count_and_nothing_is_shown)
{
	struct copyrpc_stats_peer *peer;

	util_stats_hide(true);
	peer = get_peer(7);
	cr_assert_not_null(peer);
	util_stats_batch(peer, 3, 128);
	cr_expect_eq(peer->tx_messages, 3);
	cr_expect_eq(open_page(O_RDONLY), -1);
	cr_expect_eq(util_stats_index(COPYRPC_STATS_PEERS, peer), 1);
}

/* SIGXFSZ would end the process. */
Test(util_stats, a_limit_on_file_sizes_is_as_no_memfd)
{
	const struct rlimit lim = { 100 << 10, 100 << 10 };
	struct copyrpc_stats_peer *peer;

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	peer = get_peer(7);
	cr_assert_not_null(peer);
	util_stats_single(peer, 64);
	cr_expect_eq(peer->tx_singles, 1);
	cr_expect_eq(open_page(O_RDONLY), -1);
}

Test(util_stats, batches_are_counted_by_the_logarithm_of_their_messages)
{
	static const uint32_t messages[] = { 1, 2, 3, 4, 7, 8, UINT32_MAX };
	struct copyrpc_stats_peer *peer = get_peer(7);
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		util_stats_batch(peer, messages[i], 32);
		sum += messages[i];
	}
	cr_expect_eq(peer->tx_batches[0], 0);
	cr_expect_eq(peer->tx_singles, 1);
	cr_expect_eq(peer->tx_batches[1], 2);
	cr_expect_eq(peer->tx_batches[2], 2);
	cr_expect_eq(peer->tx_batches[3], 1);
	cr_expect_eq(peer->tx_batches[31], 1);
	cr_expect_eq(peer->tx_singles + peer->tx_messages, sum);
	cr_expect_eq(peer->tx_bytes, 7 * 32);
}

Test(util_stats, a_peer_that_comes_back_goes_on_counting)
{
	struct copyrpc_stats_peer *peer = get_peer(7), *other = get_peer(8);

	cr_expect_neq(peer, other);
	util_stats_single(peer, 64);
	peer->rtt_ns = 5000;
	peer->rtt_best_ns = 4000;
	util_stats_end(peer);
	cr_expect_eq(peer->row.state, COPYRPC_STATS_ENDED);
	cr_expect_eq(get_peer(7), peer);
	cr_expect_eq(peer->tx_singles, 1);
	cr_expect_eq(peer->rtt_ns, 0, "the next connection may have none");
	cr_expect_eq(peer->rtt_best_ns, 0);
	cr_expect_eq(peer->row.state, COPYRPC_STATS_LIVE);
}

Test(util_stats, no_count_is_lost_when_rows_are_used_again)
{
	struct copyrpc_stats_peer *peer = NULL;
	const struct copyrpc_stats_page *page;
	uint64_t sum = 0;

	for (unsigned i = 0; i < 3 * UTIL_STATS_PEERS; i++) {
		peer = get_peer((uint16_t)(i + 1));
		cr_assert_not_null(peer, "%u", i);
		cr_assert_eq(peer->tx_singles, 0, "%u", i);
		util_stats_single(peer, 10);
		util_stats_end(peer);
	}
	page = util_stats_page();
	for (uint32_t i = 0; i < UTIL_STATS_PEERS; i++) {
		const struct copyrpc_stats_peer *row =
			(const void *)((const char *)page +
				       page->tables[COPYRPC_STATS_PEERS].offset + i * sizeof(*row));

		sum += row->tx_bytes;
	}
	cr_expect_eq(sum, 30 * UTIL_STATS_PEERS);
	cr_expect_gt(peer->row.use, 1);
}

Test(util_stats, a_table_of_live_rows_is_full)
{
	struct copyrpc_stats_peer none = { .row.state = COPYRPC_STATS_LIVE };

	for (unsigned i = 1; i < UTIL_STATS_PEERS; i++)
		cr_assert_not_null(get_peer((uint16_t)i), "%u", i);
	cr_expect_null(get_peer(UTIL_STATS_PEERS));
	util_stats_end(&none); /* not in the page: no effect */
	cr_expect_eq(none.row.state, COPYRPC_STATS_LIVE);
	util_stats_end(NULL);
	cr_expect_null(get_peer(UTIL_STATS_PEERS));
}

Test(util_stats, a_forked_child_changes_nothing_of_its_parent)
{
	struct copyrpc_stats_peer *peer = get_peer(7);
	pid_t child;
	int status;

	util_stats_single(peer, 64);
	child = fork();
	if (!child) {
		struct copyrpc_stats_peer *own;

		peer->tx_singles = 99; /* inherited */
		util_stats_end(peer);
		if (open_page(O_RDONLY) != -1)
			_exit(1);
		own = get_peer(7);
		if (!own || own == peer || own->tx_singles || util_stats_page()->pid != getpid())
			_exit(2);
		_exit(open_page(O_RDONLY) >= 0 ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%x", status);
	cr_expect_eq(peer->tx_singles, 1);
	cr_expect_eq(peer->row.state, COPYRPC_STATS_LIVE);
}

Test(util_stats, texts_and_addresses_are_bounded)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	struct sockaddr other = { .sa_family = AF_UNIX };
	struct copyrpc_stats_addr addr;
	char text[4];

	util_stats_set_text(text, sizeof(text), "abcdef");
	cr_expect_str_eq(text, "abc");
	sin6.sin6_addr.s6_addr[15] = 1;
	util_stats_set_addr(&addr, (struct sockaddr *)&sin6);
	cr_expect_eq(addr.family, AF_INET6);
	cr_expect_eq(addr.port, 9);
	cr_expect_eq(addr.bytes[15], 1);
	util_stats_set_addr(&addr, &other);
	cr_expect_eq(addr.family, 0);
}
