/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CM endpoint: open, addresses, close (cm/cm_open.c). */
#include "cm/ep/cm_ep.h"

#include <criterion/criterion.h>
#include <net/if.h>
#include <ifaddrs.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "unit/cm/cm_fixture.h"
#include "util/name.h"
#include "util/param.h"

static struct cm_node *node;
static const struct cm_paths shm_only = { WIRE_CM_PATH_SHM, { WIRE_CM_PATH_SHM } };
static const struct cm_ep_ops no_ops;

static void set_up(void)
{
	node = cm_test_node(NULL, 0);
}

static void tear_down(void)
{
	cm_node_close(node);
}

TestSuite(cm_ep, .init = set_up, .fini = tear_down);

static int try_open(const char *ip, uint16_t port)
{
	struct cm_ep *cep;
	union cm_addr addr;
	int ret;

	cm_test_addr(ip, port, &addr);
	ret = cm_ep_open(node, &addr.sa, shm_only, &no_ops, NULL, &cep);
	if (!ret)
		cm_ep_close(cep);
	return ret;
}

Test(cm_ep, the_address_is_always_concrete)
{
	static const char *const ips[] = { "127.0.0.1", "::1", "0.0.0.0", "::", NULL };

	cm_test_need_ipv6();
	for (size_t i = 0; i < 5; i++) {
		struct sockaddr_storage ss;
		union cm_addr addr;
		struct cm_ep *cep;

		if (ips[i])
			cm_test_addr(ips[i], 0, &addr);
		cr_assert(
			!cm_ep_open(node, ips[i] ? &addr.sa : NULL, shm_only, &no_ops, NULL, &cep));
		cm_ep_addr(cep, &ss);
		cr_assert(!cm_addr_import((struct sockaddr *)&ss, &addr));
		cr_assert(cm_addr_is_peer(&addr));
		cr_assert(cm_ep_incarnation(cep));
		cm_ep_close(cep);
	}
}

static void count_tick(void *ctx)
{
	__atomic_fetch_add((unsigned *)ctx, 1, __ATOMIC_RELAXED);
}

Test(cm_ep, ticks_come_as_long_as_it_is_open, .timeout = 200)
{
	static const struct cm_ep_ops ops = { .tick = count_tick };
	const struct cm_cfg cfg = { .tick_ms = 1 };
	struct cm_node *ticking;
	struct cm_ep *cep;
	union cm_addr addr;
	unsigned cnt = 0, last;

	cr_assert_eq(cm_node_open_cfg(&cfg, &ticking), 0);
	cm_test_addr("127.0.0.1", 0, &addr);
	cr_assert_eq(cm_ep_open(ticking, &addr.sa, shm_only, &ops, &cnt, &cep), 0);
	while (__atomic_load_n(&cnt, __ATOMIC_RELAXED) < 5)
		usleep(1000);
	cm_ep_close(cep);
	last = cnt;
	usleep(20000);
	cr_expect_eq(cnt, last, "none after the close");
	cm_node_close(ticking);
}

Test(cm_ep, addresses_that_cannot_be_bound_are_errors)
{
	struct sockaddr unix_addr = { .sa_family = AF_UNIX };
	struct cm_ep *cep;
	struct cm_end a;

	cm_end_open(&a, node, "127.0.0.1", 0);
	cr_assert_eq(try_open("127.0.0.1", cm_test_port(&a)), -FI_EADDRINUSE);
	cr_assert_eq(try_open("203.0.113.77", 0), -FI_EADDRNOTAVAIL);
	cr_assert_eq(cm_ep_open(node, &unix_addr, shm_only, &no_ops, NULL, &cep), -FI_EINVAL);
	cm_end_close(&a);
}

/** Finds an IPv4 address of this host that is not loopback, or skips the test. */
static struct in_addr outer_addr(void)
{
	struct in_addr found = { 0 };
	struct ifaddrs *all;

	cr_assert(!getifaddrs(&all));
	for (struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next)
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_INET &&
		    !(ifa->ifa_flags & IFF_LOOPBACK))
			found = ((struct sockaddr_in *)(void *)ifa->ifa_addr)->sin_addr;
	freeifaddrs(all);
	if (!found.s_addr)
		cr_skip_test("no address but loopback");
	return found;
}

/** Opens an endpoint with two addresses. The only port permitted is taken at the second one. */
static int try_open_with_one_port(struct in_addr outer, struct cm_ep **cep)
{
	struct sockaddr_in taken = { .sin_family = AF_INET, .sin_addr = outer };
	struct sockaddr_in name = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;
	socklen_t len = sizeof(taken);
	char port[8];

	cr_assert(fd >= 0 && !bind(fd, (struct sockaddr *)&taken, len));
	cr_assert(!getsockname(fd, (struct sockaddr *)&taken, &len));
	snprintf(port, sizeof(port), "%u", ntohs(taken.sin_port));
	util_params.ports = port;
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	util_name_set_others(&name, &outer, 1);
	ret = cm_ep_open(node, (struct sockaddr *)&name, shm_only, &no_ops, NULL, cep);
	util_params.ports = NULL;
	close(fd);
	return ret;
}

Test(cm_ep, a_port_that_is_free_at_the_first_address_only_will_do_if_there_is_no_other)
{
	struct in_addr outer = outer_addr();
	int ret = -FI_EADDRINUSE;
	struct cm_ep *cep;

	/* Another process may have the port at the first address. */
	for (unsigned i = 0; i < 8 && ret == -FI_EADDRINUSE; i++)
		ret = try_open_with_one_port(outer, &cep);
	cr_assert_eq(ret, 0, "%d", ret);
	cr_expect_eq(cep->sock_cnt, 1);
	cm_ep_close(cep);
}

Test(cm_ep, without_descriptors_open_fails_and_leaks_nothing)
{
	unsigned before = cm_test_fd_count();

	for (int room = 0; room < 2; room++) {
		cm_test_limit_fds(room);
		cr_assert_eq(try_open("127.0.0.1", 0), -FI_EMFILE);
	}
	cm_test_limit_fds(-1);
	cr_assert_eq(try_open("127.0.0.1", 0), 0);
	cr_assert_eq(cm_test_fd_count(), before);
}

Test(cm_ep, an_address_that_cannot_be_a_peer_is_refused_at_once)
{
	union cm_addr to;
	struct cm_end a;

	cm_end_open(&a, node, "127.0.0.1", 0);
	cr_assert_eq(cm_end_connect(&a, &a), -FI_EINVAL);
	cm_test_addr("::1", 9, &to);
	cr_assert_eq(cm_connect(a.cep, &to.sa, false), -FI_EINVAL);
	cm_test_addr("127.0.0.1", 0, &to);
	cr_assert_eq(cm_connect(a.cep, &to.sa, false), -FI_EINVAL);
	cm_test_addr("0.0.0.0", 9, &to);
	cr_assert_eq(cm_connect(a.cep, &to.sa, false), -FI_EINVAL);
	cm_end_close(&a);
}

/* Counts sockets without close-on-exec among the descriptors opened since `known`. */
static unsigned count_inheritable(const bool *known)
{
	unsigned cnt = 0;

	for (int fd = 0; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);

		cnt += flags >= 0 && !known[fd] && !(flags & FD_CLOEXEC);
	}
	return cnt;
}

Test(cm_ep_exec, no_descriptor_is_inherited_by_an_executed_program)
{
	bool known[256];
	struct cm_end a, b;

	for (int fd = 0; fd < 256; fd++)
		known[fd] = fcntl(fd, F_GETFD) >= 0;
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cm_ends_connect(&a, &b, 1);
	cr_assert_eq(count_inheritable(known), 0);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_ep, no_up_call_follows_a_close_at_any_time)
{
	unsigned before = cm_test_fd_count();
	struct cm_node *other = cm_test_node(NULL, 0);
	struct cm_raw_peer s;

	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	for (unsigned i = 0; i < 200; i++) {
		struct cm_end a, b, c;
		unsigned up;

		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_end_open(&b, other, "127.0.0.1", 0);
		cm_end_open(&c, other, "127.0.0.1", 0);
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(!cm_end_connect(&c, &a));
		cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
		for (volatile unsigned k = 0; k < i * 500; k++)
			;
		up = a.up;
		cm_end_close(&a);
		cr_assert(a.up >= up); /* read after the close: no thread writes any more */
		cm_end_close(&b);
		cm_end_close(&c);
	}
	cm_raw_peer_close(&s);
	cm_node_close(other);
	cr_assert_eq(cm_test_fd_count(), before);
}

Test(cm_ep, hundreds_of_peers_come_up_and_go)
{
	enum { CNT = 300 };
	static struct cm_end peers[CNT];
	struct cm_node *other = cm_test_node(NULL, 0);
	struct cm_end a;

	cm_end_open(&a, node, "127.0.0.1", 0);
	for (unsigned i = 0; i < CNT; i++) {
		cm_end_open(&peers[i], other, "127.0.0.1", 0);
		/* One half connects, the other accepts. */
		cr_assert(!(i % 2 ? cm_end_connect(&a, &peers[i]) : cm_end_connect(&peers[i], &a)));
	}
	cr_assert(cm_end_wait(&a, &a.up, CNT, CM_TEST_WAIT_MS));
	for (unsigned i = 0; i < CNT; i++)
		cr_assert(cm_end_wait(&peers[i], &peers[i].up, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(cm_end_live(&a), CNT);
	for (unsigned i = 0; i < CNT; i++)
		cm_end_close(&peers[i]);
	cr_assert(cm_end_wait(&a, &a.down, CNT, CM_TEST_WAIT_MS));
	cr_assert_eq(a.down_err, -FI_ESHUTDOWN);
	cr_assert_eq(cm_end_reap(&a), CNT);
	cr_assert_eq(a.cep->peers.peer_cnt, 0);
	cm_end_close(&a);
	cm_node_close(other);
}

/* Finds a link-local address of an interface. */
static bool find_link_local(union cm_addr *addr)
{
	struct ifaddrs *list, *it;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (it = list; it && !found; it = it->ifa_next)
		if (it->ifa_addr && it->ifa_addr->sa_family == AF_INET6 &&
		    (it->ifa_flags & IFF_UP)) {
			const struct sockaddr_in6 *in6 = (const void *)it->ifa_addr;

			found = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) &&
				!cm_addr_import(it->ifa_addr, addr);
		}
	freeifaddrs(list);
	return found;
}

Test(cm_ep, link_local_addresses_work)
{
	struct cm_ep *probe;
	struct cm_end a, b;
	union cm_addr addr;

	if (!find_link_local(&addr) || cm_ep_open(node, &addr.sa, shm_only, &no_ops, NULL, &probe))
		cr_skip_test("no link-local address");
	cm_ep_close(probe);
	cm_end_open_at(&a, node, &addr);
	cm_end_open_at(&b, node, &addr);
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cr_assert(!cm_end_connect(&b, &a));
	cr_assert(cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(b.prepared, 1);
	cm_end_close(&a);
	cm_end_close(&b);
}
