/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_COPYRPC_PORTS: util/port.c. */
#include "util/port.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util/param.h"

static char ports[32];

static int open_udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

static unsigned port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

static int bind_any(int fd, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return util_port_bind(fd, (struct sockaddr *)&at, sizeof(at));
}

/* Finds two neighbouring free ports, outside of what the kernel assigns, as the range. */
static uint16_t use_two_free_ports(void)
{
	for (unsigned port = 10000u + (unsigned)getpid() % 9000u * 2u;; port += 2) {
		int a = open_udp(), b = open_udp();
		bool are_free = !bind_any(a, (uint16_t)port) && !bind_any(b, (uint16_t)(port + 1));

		close(a);
		close(b);
		if (!are_free)
			continue;
		snprintf(ports, sizeof(ports), "%u-%u", port, port + 1);
		util_params.ports = ports;
		return (uint16_t)port;
	}
}

Test(util_port, a_range_and_a_single_port_are_read_and_nothing_else)
{
	const char *bad[] = { "",  "-",    "x",     "50000-",      "-50000",       "50001-50000",
			      "0", "0-10", "65536", "50000-65536", "50000-50010x", "50000 50010",
			      "+5" };
	uint16_t first, last;

	cr_assert(util_port_parse("50000-50999", &first, &last));
	cr_expect_eq(first, 50000);
	cr_expect_eq(last, 50999);
	cr_assert(util_port_parse("65535", &first, &last));
	cr_expect_eq(first, 65535);
	cr_expect_eq(last, 65535);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(util_port_parse(bad[i], &first, &last), "%s", bad[i]);
}

Test(util_port, sockets_take_the_ports_of_the_range_and_then_fail)
{
	uint16_t first = use_two_free_ports();
	int a = open_udp(), b = open_udp(), c = open_udp();
	unsigned sum;

	cr_assert_eq(bind_any(a, 0), 0);
	cr_assert_eq(bind_any(b, 0), 0);
	sum = port_of(a) + port_of(b);
	cr_expect_eq(sum, 2u * first + 1);
	cr_expect_eq(bind_any(c, 0), -EADDRINUSE);
	close(a);
	cr_expect_eq(bind_any(c, 0), 0);
	close(b);
	close(c);
}

Test(util_port, ports_of_root_are_not_said_to_be_in_use)
{
	static char reserved[] = "80-90";
	bool is_root = !geteuid();
	int a = open_udp();

	if (is_root && seteuid(65534))
		cr_skip_test("root, which cannot become another user");
	util_params.ports = reserved;
	cr_expect_eq(bind_any(a, 0), -EACCES);
	close(a);
	/* A process that has changed its user cannot be searched for leaks. */
	cr_assert(!is_root || (!seteuid(0) && !prctl(PR_SET_DUMPABLE, 1)));
}

Test(util_port, a_chosen_port_and_an_unreadable_range_do_not_limit)
{
	int a = open_udp(), b = open_udp();
	unsigned other;

	use_two_free_ports();
	util_params.ports = NULL;
	cr_assert_eq(bind_any(a, 0), 0);
	other = port_of(a);
	close(a);
	a = open_udp();
	util_params.ports = ports;
	cr_expect_eq(bind_any(a, (uint16_t)other), 0);
	cr_expect_eq(port_of(a), other);
	util_params.ports = "few";
	cr_expect_eq(bind_any(b, 0), 0);
	cr_expect_neq(port_of(b), 0u);
	close(a);
	close(b);
}
