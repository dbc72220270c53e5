/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UDP endpoint: opening, addresses, waiting. */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/dev/udp/udp_pair.h"

static struct udp_pair pair;

static int readable(struct dev_dgram *dg, int ms)
{
	struct pollfd pfd = { .fd = udp_dgram_ops.wait_fd(dg), .events = POLLIN };

	return poll(&pfd, 1, ms);
}

static void send_to_other(void)
{
	struct dev_dgram_out out = { .to = pair.to[0], .base = { "x" }, .len = { 1 } };

	cr_assert_eq(udp_dgram_ops.send(pair.dg[0], &out, 1), 1);
}

Test(udp_dgram, attributes_match_the_socket)
{
	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	cr_expect_eq(pair.dg[0]->rx_cnt, 16);
	cr_expect_eq(pair.dg[0]->inline_max, pair.dg[0]->mtu, "send copies all");
	cr_expect_eq(pair.to[0]->mtu, pair.dg[0]->mtu);
	udp_pair_close(&pair);
}

Test(udp_dgram, wait_fd_wakes_for_an_arrival)
{
	struct dev_dgram_in in;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[1]), 0);
	cr_expect_eq(readable(pair.dg[1], 0), 0);
	send_to_other();
	cr_expect_eq(readable(pair.dg[1], 60000), 1);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[1]), -FI_EAGAIN, "an arrival is pending");
	cr_assert_eq(udp_dgram_ops.poll(pair.dg[1], &in, 1), 1);
	udp_dgram_ops.release(pair.dg[1], in.slot);
	udp_dgram_ops.disarm(pair.dg[1]);
	cr_expect_eq(readable(pair.dg[1], 0), 0);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[1]), 0);
	udp_pair_close(&pair);
}

static void take(void)
{
	struct dev_dgram_in in;

	cr_assert_eq(udp_pair_poll(pair.dg[1], &in, 1), 1);
	udp_dgram_ops.release(pair.dg[1], in.slot);
}

/** Sends `cnt` datagrams and receives each by a poll of its own. */
static void send_and_take(unsigned cnt)
{
	while (cnt--) {
		send_to_other();
		take();
	}
}

Test(udp_dgram, the_socket_is_watched_only_for_sleepers)
{
	const struct udp_dgram *ud;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	ud = (const struct udp_dgram *)pair.dg[1];
	cr_expect(!ud->watched, "never armed");
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[1]), 0);
	send_and_take(2 * UDP_AWAKE);
	cr_expect(ud->watched, "armed");
	send_to_other();
	cr_expect_eq(readable(pair.dg[1], 60000), 1);
	take();
	udp_dgram_ops.disarm(pair.dg[1]);
	send_and_take(UDP_AWAKE);
	cr_expect(ud->watched, "may be armed again");
	send_and_take(1);
	cr_expect(!ud->watched);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[1]), 0);
	send_to_other();
	cr_expect_eq(readable(pair.dg[1], 60000), 1);
	udp_pair_close(&pair);
}

/**
 * Leaves endpoint 0 without room in its socket, by a stream whose other end, which is returned,
 * does not read. Over loopback, datagrams take no room of the sender's socket.
 */
static int fill_socket(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	static const char bytes[65536];
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), other;
	int stream = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	cr_assert_eq(connect(stream, (struct sockaddr *)&addr, len), 0);
	other = accept(listener, NULL, NULL);
	close(listener);
	while (send(stream, bytes, sizeof(bytes), MSG_DONTWAIT) > 0 ||
	       send(stream, bytes, 1, MSG_DONTWAIT) > 0)
		;
	cr_assert_neq(dup2(stream, ((struct udp_dgram *)pair.dg[0])->sock.fd), -1);
	close(stream);
	return other;
}

static int try_to_send(void)
{
	struct dev_dgram_out out = { .to = pair.to[0], .base = { "x" }, .len = { 1 } };

	return udp_dgram_ops.send(pair.dg[0], &out, 1);
}

/** Reads all bytes that fill the socket. */
static void empty_socket(int other)
{
	static char bytes[65536];

	while (recv(other, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

Test(udp_dgram, room_to_send_wakes_a_full_sender, .timeout = 200)
{
	int other;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	other = fill_socket();
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[0]), 0);
	cr_assert_eq(try_to_send(), -FI_EAGAIN);
	cr_expect(pair.dg[0]->tx_full);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[0]), 0);
	cr_expect_eq(readable(pair.dg[0], 0), 0);
	while (!readable(pair.dg[0], 1))
		empty_socket(other);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[0]), -FI_EAGAIN, "there is room already");
	cr_expect_not(pair.dg[0]->tx_full, "arm has noticed the room");
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[0]), 0);
	cr_expect_eq(readable(pair.dg[0], 0), 0, "the wait set ignores room now");
	cr_expect_eq(try_to_send(), 1);
	close(other);
	udp_pair_close(&pair);
}

Test(udp_dgram, a_successful_send_ends_the_wait_for_room, .timeout = 200)
{
	int other;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	other = fill_socket();
	cr_assert_eq(try_to_send(), -FI_EAGAIN);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[0]), 0);
	while (!readable(pair.dg[0], 1))
		empty_socket(other);
	cr_expect_eq(try_to_send(), 1);
	cr_expect_not(pair.dg[0]->tx_full);
	cr_expect_eq(readable(pair.dg[0], 0), 0);
	close(other);
	udp_pair_close(&pair);
}

Test(udp_dgram, received_and_unreturned_datagrams_make_arm_fail)
{
	struct dev_dgram_in in;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	send_to_other();
	send_to_other();
	send_to_other();
	cr_assert_eq(udp_pair_poll(pair.dg[1], &in, 1), 1);
	cr_expect_eq(udp_dgram_ops.arm(pair.dg[1]), -FI_EAGAIN);
	udp_pair_close(&pair);
}

Test(udp_dgram, unreachable_peers_are_refused)
{
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	cr_assert(udp_pair_open(&pair, AF_INET, 16));
	cr_assert_eq(udp_dgram_ops.describe(pair.dg[0], &desc), 0);
	desc.bytes[0] = 9;
	cr_expect_eq(udp_dgram_ops.resolve(pair.dg[0], &desc, &ah), -FI_EINVAL);
	udp_desc_encode(&(union udp_addr){ .in6 = { .sin6_family = AF_INET6,
						    .sin6_port = 1,
						    .sin6_addr = IN6ADDR_LOOPBACK_INIT } },
			1500, &desc);
	cr_expect_eq(udp_dgram_ops.resolve(pair.dg[0], &desc, &ah), -FI_EHOSTUNREACH);
	udp_pair_close(&pair);
}
