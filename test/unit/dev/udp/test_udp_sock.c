/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets: MTU, routes, and unusable addresses. */
#include "dev/udp/udp_sock.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "util/param.h"

static union udp_addr ip4(const char *text)
{
	union udp_addr a = { .in = { .sin_family = AF_INET, .sin_port = htons(9) } };

	cr_assert_eq(inet_pton(AF_INET, text, &a.in.sin_addr), 1);
	return a;
}

Test(udp_sock, has_its_own_port_and_the_interfaces_mtu)
{
	union udp_addr any = ip4("127.0.0.1");
	struct udp_sock a, b;
	int ret;

	cr_assert_eq(udp_sock_open(&a, &any.sa, 0, 64), 0);
	cr_assert_eq(udp_sock_open(&b, &any.sa, 0, 64), 0);
	cr_expect_neq(a.local.in.sin_port, 0);
	cr_expect_neq(a.local.in.sin_port, any.in.sin_port, "the given port is not used");
	cr_expect_neq(a.local.in.sin_port, b.local.in.sin_port);
	cr_expect(fcntl(a.fd, F_GETFL) & O_NONBLOCK);
	cr_expect(fcntl(a.fd, F_GETFD) & FD_CLOEXEC);
	cr_expect_geq(a.mtu, UDP_MTU_MIN);
	cr_expect_leq(a.mtu, UDP_MTU_MAX);
	ret = udp_sock_route_mtu(&a, &b.local);
	cr_expect_eq(ret, (int)a.mtu, "the loopback route has the loopback's MTU");
	udp_sock_close(&a);
	udp_sock_close(&b);
	cr_expect_eq(a.fd, -1);
}

/** Makes a host of two links with the same link-local address and different MTUs, or skips. */
static void make_twin_links(void)
{
	static const char script[] = "ip link add near type veth peer name near2 && "
				     "ip link add far type veth peer name far2 && "
				     "ip link set near mtu 1400 up && ip link set near2 up && "
				     "ip link set far mtu 9000 up && ip link set far2 up && "
				     "ip addr add fe80::4711/64 dev near nodad && "
				     "ip addr add fe80::4711/64 dev far nodad";

	if (unshare(CLONE_NEWNET) || system(script))
		cr_skip_test("no network namespace, virtual Ethernet or IPv6");
}

Test(udp_sock, links_with_one_address_have_their_own_mtus)
{
	static const char *const names[] = { "near", "far" };
	static const uint32_t mtus[] = { 1400 - 48, 9000 - 48 };
	union udp_addr addr = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) } };
	struct udp_sock s;

	make_twin_links();
	cr_assert_eq(inet_pton(AF_INET6, "fe80::4711", &addr.in6.sin6_addr), 1);
	for (unsigned i = 0; i < 2; i++) {
		addr.in6.sin6_scope_id = if_nametoindex(names[i]);
		cr_assert_eq(udp_sock_open(&s, &addr.sa, 0, 16), 0);
		cr_expect_eq(s.mtu, mtus[i], "%s: %u", names[i], s.mtu);
		cr_expect_eq(udp_sock_link_mtu(&addr.sa), mtus[i]);
		udp_sock_close(&s);
	}
}

/** Makes the system one that does not report the MTU of a route, as those in user space do. */
static void hide_route_mtu(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP_MTU, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 6, .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		cr_skip_test("no seccomp filter");
}

Test(udp_sock, without_the_mtu_of_a_route_the_interfaces_is_taken)
{
	union udp_addr any = ip4("127.0.0.1");
	struct udp_sock sock;

	hide_route_mtu();
	cr_assert_eq(udp_sock_open(&sock, &any.sa, 0, 16), 0);
	cr_expect_eq(udp_sock_route_mtu(&sock, &sock.local), (int)sock.mtu);
	udp_sock_close(&sock);
}

Test(udp_sock, addresses_of_other_hosts_are_refused)
{
	union udp_addr elsewhere = ip4("192.0.2.1");
	struct sockaddr unix_addr = { .sa_family = AF_UNIX };
	struct udp_sock s;

	cr_expect_eq(udp_sock_open(&s, &elsewhere.sa, 0, 64), -FI_EADDRNOTAVAIL);
	cr_expect_eq(udp_sock_open(&s, &unix_addr, 0, 64), -FI_EINVAL);
	cr_expect_eq(udp_sock_open(&s, NULL, 0, 64), -FI_EINVAL);
	cr_expect_eq(s.fd, -1);
}

Test(udp_sock, there_is_no_route_to_the_other_family)
{
	union udp_addr any = ip4("127.0.0.1");
	union udp_addr six = { .in6 = { .sin6_family = AF_INET6,
					.sin6_port = htons(9),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	struct udp_sock s;

	cr_assert_eq(udp_sock_open(&s, &any.sa, 0, 64), 0);
	cr_expect_eq(udp_sock_route_mtu(&s, &six), -FI_EHOSTUNREACH);
	udp_sock_close(&s);
}

/* SO_RCVBUF as reported is the kernel's bound, and bounds the datagrams in flight. */
Test(udp_sock, rx_room_matches_the_kernels_bound)
{
	union udp_addr any = ip4("127.0.0.1");
	socklen_t len = sizeof(int);
	struct udp_sock s;
	int bytes = 0;

	cr_assert_eq(udp_sock_open(&s, &any.sa, 0, 16), 0);
	cr_assert_eq(getsockopt(s.fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len), 0);
	cr_expect_gt(bytes, 0);
	cr_expect_eq(s.rx_room, (uint32_t)bytes);
	udp_sock_close(&s);
}

Test(udp_sock, works_without_gso_and_gro)
{
	union udp_addr any = ip4("127.0.0.1");
	struct udp_sock s;

	util_params.udp_plain = 1;
	cr_assert_eq(udp_sock_open(&s, &any.sa, 0, 16), 0);
	cr_expect_not(s.gso);
	cr_expect_not(s.gro);
	udp_sock_close(&s);
}
