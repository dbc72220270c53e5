/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Filter of a socket: what matches arrives, and nothing else. */
#include "dev/udp/udp_filter.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <unistd.h>

static const struct dev_dgram_match match[] = { { 13, 0xF0, 0xB0 }, { 14, 0xFF, 0x5C } };
static struct sockaddr_in to;
static int rx, tx;

static void set_up(void)
{
	socklen_t len = sizeof(to);

	to = (struct sockaddr_in){ .sin_family = AF_INET };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rx = socket(AF_INET, SOCK_DGRAM, 0);
	tx = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert(!bind(rx, (struct sockaddr *)&to, len));
	cr_assert(!getsockname(rx, (struct sockaddr *)&to, &len));
}

static void tear_down(void)
{
	close(rx);
	close(tx);
}

TestSuite(udp_filter, .init = set_up, .fini = tear_down);

/** Over loopback a datagram is in the receiver's buffer when sendto returns, or nowhere. */
static bool arrives(uint8_t magic, uint8_t mark, size_t len)
{
	struct pollfd pfd = { .fd = rx, .events = POLLIN };
	uint8_t buf[64] = { 0 };
	bool came;

	buf[13] = magic;
	buf[14] = mark;
	cr_assert_eq(sendto(tx, buf, len, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)len);
	came = poll(&pfd, 1, 0) == 1;
	if (came)
		cr_assert_eq(recv(rx, buf, sizeof(buf), 0), (ssize_t)len);
	return came;
}

Test(udp_filter, drops_what_does_not_match)
{
	udp_filter_attach(rx, match, 2);
	cr_expect(arrives(0xB7, 0x5C, 64));
	cr_expect(arrives(0xB0, 0x5C, 16));
	cr_expect_not(arrives(0xA0, 0x5C, 64), "the magic is wrong");
	cr_expect_not(arrives(0xB0, 0x5D, 64), "the mark is wrong");
	cr_expect_not(arrives(0xB0, 0x5C, 14), "too short");
	cr_expect_not(arrives(0xB0, 0x5C, 0), "too short");
	cr_expect(arrives(0xBF, 0x5C, 15));
}

Test(udp_filter, nothing_to_match_lets_all_arrive)
{
	udp_filter_attach(rx, match, 0);
	cr_expect(arrives(0, 0, 64));
	cr_expect(arrives(0, 0, 0));
}
