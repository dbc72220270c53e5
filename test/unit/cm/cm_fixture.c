/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nodes, addresses and process state for cm's tests: see cm_fixture.h. */
#include "unit/cm/cm_fixture.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cm/base/cm_addr.h"
#include "cm/node/cm_node.h"

void cm_test_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

int cm_test_memfd(const char *text)
{
	int fd = memfd_create("cm-test", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	CM_CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

bool cm_test_apart;

bool cm_test_is_nowhere(const struct sockaddr *addr)
{
	(void)addr;
	return false;
}

struct cm_node *cm_test_node(const char *key, int timeout_ms)
{
	struct cm_cfg cfg = { .job_key = key, .peer_timeout_ms = timeout_ms };
	struct cm_node *node;

	if (cm_test_apart)
		cfg.is_local = cm_test_is_nowhere;
	CM_CHECK(!cm_node_open_cfg(&cfg, &node));
	return node;
}

void cm_test_need_ipv6(void)
{
	FILE *file = fopen("/proc/net/if_inet6", "re");
	bool found = file && fgetc(file) != EOF;

	if (file)
		fclose(file);
	if (!found)
		cr_skip_test("no IPv6 here");
}

void cm_test_addr(const char *ip, uint16_t port, union cm_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (strchr(ip, ':')) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
		CM_CHECK(inet_pton(AF_INET6, ip, &addr->in6.sin6_addr) == 1);
	} else {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(port);
		CM_CHECK(inet_pton(AF_INET, ip, &addr->in.sin_addr) == 1);
	}
}

void cm_test_own_address(char *ip)
{
	struct ifaddrs *all, *it;
	union cm_addr addr;

	cr_assert(!getifaddrs(&all));
	for (it = all; it; it = it->ifa_next)
		if (it->ifa_addr && it->ifa_flags & IFF_UP && it->ifa_addr->sa_family == AF_INET &&
		    !cm_addr_import(it->ifa_addr, &addr) && !cm_addr_is_loopback(&addr))
			break;
	if (it)
		cr_assert(inet_ntop(AF_INET, &addr.in.sin_addr, ip, INET_ADDRSTRLEN));
	freeifaddrs(all);
	if (!it)
		cr_skip_test("no network but loopback");
}

union cm_addr cm_test_addr_of(const struct cm_end *end)
{
	union cm_addr addr;

	CM_CHECK(!cm_addr_import((const struct sockaddr *)&end->addr, &addr));
	return addr;
}

uint16_t cm_test_port(const struct cm_end *end)
{
	union cm_addr addr = cm_test_addr_of(end);

	return cm_addr_port(&addr);
}

void cm_test_sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

uint64_t cm_test_passes(struct cm_node *node)
{
	uint64_t cnt;

	cm_node_lock(node);
	cnt = node->pass_cnt;
	cm_node_unlock(node);
	return cnt;
}

double cm_test_cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

unsigned cm_test_fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	CM_CHECK(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

unsigned cm_test_fd_count_at_rest(struct cm_node *node)
{
	unsigned cnt;

	cm_node_lock(node);
	cnt = cm_test_fd_count();
	cm_node_unlock(node);
	return cnt;
}

void cm_test_limit_fds(int room)
{
	struct rlimit lim;
	int probe = dup(0);

	close(probe);
	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = room < 0 ? lim.rlim_max : (rlim_t)(probe + room);
	CM_CHECK(!setrlimit(RLIMIT_NOFILE, &lim));
}

static bool cm_test_is_listed(const char *text, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(text, list[i]))
			return true;
	return false;
}

void cm_test_transitions(const struct cm_states *states, const char *const *legal, size_t cnt)
{
	char pair[64];
	size_t found = 0;

	for (unsigned from = 0; from < states->cnt; from++) {
		for (unsigned to = 0; to < states->cnt; to++) {
			bool may = cm_state_may(states, from, to);

			snprintf(pair, sizeof(pair), "%s>%s", states->names[from],
				 states->names[to]);
			cr_expect_eq(may, cm_test_is_listed(pair, legal, cnt), "%s", pair);
			found += may;
		}
	}
	cr_expect_eq(found, cnt);
}

int cm_test_stuck_socket(int *reader)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 60 };
	static const char zeros[1 << 16];
	union cm_addr addr;
	socklen_t len = sizeof(addr.in);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cm_test_addr("127.0.0.1", 0, &addr);
	CM_CHECK(!bind(listener, &addr.sa, len) && !listen(listener, 1));
	CM_CHECK(!getsockname(listener, &addr.sa, &len) && !connect(fd, &addr.sa, len));
	*reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CM_CHECK(*reader >= 0);
	close(listener);
	CM_CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
	return fd;
}
