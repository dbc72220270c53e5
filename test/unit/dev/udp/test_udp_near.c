/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The connected socket for the peer that is sent most to, beside the endpoint's own one. */
#include "dev/udp/udp_near.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/dev/udp/udp_pair.h"

#define BUFS 64u

/* Endpoint 0 of `a` sends to endpoint 1, and to endpoint 1 of `b`; both send to it. */
static struct udp_pair a, b;
static struct dev_dgram_ah *to_b, *from_b;

static struct dev_dgram_ah *resolved(struct dev_dgram *dg, struct dev_dgram *peer)
{
	struct dev_dgram_ah *ah;
	struct dev_desc desc;

	cr_assert_eq(udp_dgram_ops.describe(peer, &desc), 0);
	cr_assert_eq(udp_dgram_ops.resolve(dg, &desc, &ah), 0);
	return ah;
}

static bool begin(int family)
{
	if (!udp_pair_open(&a, family, BUFS) || !udp_pair_open(&b, family, BUFS))
		return false;
	to_b = resolved(a.dg[0], b.dg[1]);
	from_b = resolved(b.dg[1], a.dg[0]);
	return true;
}

static void end(void)
{
	udp_dgram_ops.forget(a.dg[0], to_b);
	udp_dgram_ops.forget(b.dg[1], from_b);
	udp_pair_close(&a);
	udp_pair_close(&b);
}

static struct udp_dgram *ud(void)
{
	return (struct udp_dgram *)a.dg[0];
}

static bool is_near(const struct dev_dgram_ah *ah)
{
	return ud()->near.fd >= 0 && udp_is_near(ud(), ah);
}

static void send_by(struct dev_dgram *dg, struct dev_dgram_ah *to, uint32_t n)
{
	uint8_t bytes[40];
	struct dev_dgram_out out = { .to = to, .base = { bytes }, .len = { sizeof(bytes) } };

	udp_fill_bytes(bytes, sizeof(bytes), n);
	cr_assert_eq(udp_dgram_ops.send(dg, &out, 1), 1);
}

/** Polls often enough for both sockets. Returns the number of datagrams, the last one in *last. */
static unsigned drain(struct dev_dgram *dg, struct dev_dgram_in *last)
{
	unsigned found = 0;

	for (unsigned polls = 0; polls < 4 * UDP_NEAR_TURNS; polls++) {
		int n = udp_dgram_ops.poll(dg, last, 1);

		cr_assert_geq(n, 0);
		if (n) {
			udp_dgram_ops.release(dg, last->slot);
			polls = 0;
		}
		found += (unsigned)n;
	}
	return found;
}

/** Receives datagram `n` at `dg`, from the address of `from`. */
static void expect(struct dev_dgram *dg, struct dev_dgram *from, uint32_t n)
{
	struct dev_dgram_ah *ah = resolved(dg, from);
	struct dev_dgram_in in;

	cr_assert_eq(drain(dg, &in), 1, "datagram %u", n);
	cr_expect(udp_check_bytes(in.data, in.len, n));
	cr_expect_eq(memcmp(&in.from, &ah->id, sizeof(in.from)), 0, "the sender's address");
	udp_dgram_ops.forget(dg, ah);
}

static void send_many(struct dev_dgram_ah *to, struct dev_dgram *there, unsigned cnt)
{
	struct dev_dgram_in in;

	while (cnt--) {
		send_by(a.dg[0], to, cnt);
		cr_assert_eq(drain(there, &in), 1);
	}
}

static void win(void)
{
	send_many(a.to[0], a.dg[1], UDP_NEAR_VOTES);
	cr_assert(is_near(a.to[0]));
}

static void both_ways(void)
{
	win();
	send_by(a.dg[0], a.to[0], 1);
	expect(a.dg[1], a.dg[0], 1);
	send_by(a.dg[1], a.to[1], 2);
	expect(a.dg[0], a.dg[1], 2);
	send_by(a.dg[0], to_b, 3);
	expect(b.dg[1], a.dg[0], 3);
	send_by(b.dg[1], from_b, 4);
	expect(a.dg[0], b.dg[1], 4);
}

Test(udp_near, the_peer_sees_no_difference_and_others_are_received)
{
	cr_assert(begin(AF_INET));
	both_ways();
	end();
}

/* Drops the socket while there is a copy, such as one in a process that was forked. */
static void dropped_with_a_copy(int family)
{
	int copy;

	if (!begin(family))
		return; /* no IPv6 on this machine */
	win();
	copy = dup(ud()->near.fd);
	cr_assert_geq(copy, 0);
	udp_near_drop(ud());
	send_by(a.dg[1], a.to[1], 5);
	expect(a.dg[0], a.dg[1], 5);
	close(copy);
	end();
}

Test(udp_near, a_copy_of_a_closed_socket_keeps_no_datagram)
{
	dropped_with_a_copy(AF_INET);
	dropped_with_a_copy(AF_INET6);
}

Test(udp_near, likewise_with_ipv6)
{
	if (!begin(AF_INET6))
		return; /* no IPv6 on this machine */
	both_ways();
	end();
}

Test(udp_near, without_a_majority_there_is_none)
{
	cr_assert(begin(AF_INET));
	for (unsigned i = 0; i < UDP_NEAR_VOTES; i++) {
		send_many(a.to[0], a.dg[1], 2);
		send_many(to_b, b.dg[1], 2);
	}
	cr_expect_eq(ud()->near.fd, -1);
	end();
}

Test(udp_near, it_follows_the_majority)
{
	cr_assert(begin(AF_INET));
	win();
	send_many(to_b, b.dg[1], 2 * UDP_NEAR_VOTES);
	cr_assert(is_near(to_b));
	send_by(a.dg[1], a.to[1], 5);
	expect(a.dg[0], a.dg[1], 5);
	send_by(b.dg[1], from_b, 6);
	expect(a.dg[0], b.dg[1], 6);
	send_by(a.dg[0], a.to[0], 7);
	expect(a.dg[1], a.dg[0], 7);
	end();
}

/* Both sockets have datagrams: neither waits for the other to be empty. */
Test(udp_near, busy_sockets_take_turns)
{
	unsigned before_b = 0;
	struct dev_dgram_in in;

	cr_assert(begin(AF_INET));
	win();
	for (unsigned i = 0; i < 40; i++)
		send_by(a.dg[1], a.to[1], i);
	send_by(b.dg[1], from_b, 100);
	while (before_b < 41) {
		cr_assert_eq(udp_dgram_ops.poll(a.dg[0], &in, 1), 1);
		udp_dgram_ops.release(a.dg[0], in.slot);
		if (udp_check_bytes(in.data, in.len, 100))
			break;
		before_b++;
	}
	cr_expect_leq(before_b, UDP_NEAR_TURNS * UDP_BURST);
	drain(a.dg[0], &in);
	end();
}

Test(udp_near, it_ends_when_its_peer_is_forgotten)
{
	cr_assert(begin(AF_INET));
	win();
	udp_dgram_ops.forget(a.dg[0], a.to[0]);
	cr_expect_null(ud()->near.peer);
	cr_expect_eq(ud()->near.fd, -1);
	a.to[0] = resolved(a.dg[0], a.dg[1]);
	send_by(a.dg[0], a.to[0], 8);
	expect(a.dg[1], a.dg[0], 8);
	send_by(a.dg[1], a.to[1], 9);
	expect(a.dg[0], a.dg[1], 9);
	win();
	end();
}

/* The kernel reports the peer's end to a connected socket. */
Test(udp_near, a_closed_peer_ends_nothing)
{
	struct dev_dgram_in in;

	cr_assert(begin(AF_INET));
	win();
	udp_dgram_ops.forget(a.dg[1], a.to[1]);
	a.to[1] = NULL;
	udp_dgram_ops.close(a.dg[1]);
	a.dg[1] = NULL;
	for (unsigned i = 0; i < 4; i++) {
		send_by(a.dg[0], a.to[0], i);
		cr_expect_eq(drain(a.dg[0], &in), 0);
	}
	cr_expect_eq(ud()->status, 0);
	send_by(b.dg[1], from_b, 10);
	expect(a.dg[0], b.dg[1], 10);
	end();
}

/** Puts something that is no socket in the place of the connected one. */
static void break_near(void)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_neq(dup2(fds[0], ud()->near.fd), -1);
	close(fds[0]);
	close(fds[1]);
}

Test(udp_near, an_unexpected_error_ends_this_socket_alone)
{
	struct dev_dgram_in in;

	for (unsigned sends = 0; sends < 2; sends++) {
		cr_assert(begin(AF_INET));
		win();
		break_near();
		if (sends)
			send_by(a.dg[0], a.to[0], 11); /* lost */
		else
			cr_expect_eq(drain(a.dg[0], &in), 0);
		cr_expect_eq(ud()->near.fd, -1);
		send_many(a.to[0], a.dg[1], 2 * UDP_NEAR_VOTES);
		cr_expect_eq(ud()->near.fd, -1, "for good");
		cr_expect_eq(ud()->status, 0);
		end();
	}
}

static int readable(struct dev_dgram *dg)
{
	struct pollfd pfd = { .fd = udp_dgram_ops.wait_fd(dg), .events = POLLIN };

	return poll(&pfd, 1, 60000);
}

static void sleep_until(struct dev_dgram *from, struct dev_dgram_ah *to, uint32_t n)
{
	cr_assert_eq(udp_dgram_ops.arm(a.dg[0]), 0);
	send_by(from, to, n);
	cr_assert_eq(readable(a.dg[0]), 1);
	cr_expect_eq(udp_dgram_ops.arm(a.dg[0]), -FI_EAGAIN);
	udp_dgram_ops.disarm(a.dg[0]);
	expect(a.dg[0], from, n);
}

Test(udp_near, both_sockets_wake_a_sleeper)
{
	cr_assert(begin(AF_INET));
	win();
	sleep_until(a.dg[1], a.to[1], 12);
	sleep_until(b.dg[1], from_b, 13);
	end();
	/* Watched before there are two. */
	cr_assert(begin(AF_INET));
	sleep_until(b.dg[1], from_b, 14);
	cr_assert(ud()->watched);
	win();
	sleep_until(a.dg[1], a.to[1], 15);
	end();
}

Test(udp_near, no_other_process_can_have_the_port)
{
	int one = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert(begin(AF_INET));
	win();
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	cr_expect_eq(bind(fd, &ud()->sock.local.sa, udp_addr_len(&ud()->sock.local)), -1);
	cr_expect_eq(errno, EADDRINUSE);
	close(fd);
	end();
}

/* A target is filled from the connected socket, and datagrams at the own one arrive meanwhile. */
Test(udp_near, polls_into_a_target_leave_turns_to_the_own_socket)
{
	static uint8_t place[64 * 1000];
	const struct dev_dgram_target target = {
		.base = place, .len = sizeof(place), .head_len = 16, .part_len = 1000
	};
	struct dev_dgram_in in[BUFS];
	unsigned polls;

	cr_assert(begin(AF_INET));
	win();
	send_by(b.dg[1], from_b, 16);
	for (polls = 0; udp_dgram_ops.poll_into(a.dg[0], &target, in, BUFS) != 0; polls++)
		cr_assert_lt(polls, UDP_NEAR_TURNS);
	expect(a.dg[0], b.dg[1], 16);
	end();
}

/* Only its length is asked for, but for one of UDP_ASK_MAX turns: a datagram may have none. */
Test(udp_near, an_empty_own_socket_seldom_interrupts_polls_into_a_target)
{
	static uint8_t place[64 * 1000];
	const struct dev_dgram_target target = {
		.base = place, .len = sizeof(place), .head_len = 16, .part_len = 1000
	};
	struct dev_dgram_out empty = { 0 };
	struct dev_dgram_in in[BUFS];
	unsigned polls, left = 0;

	cr_assert(begin(AF_INET));
	win();
	for (polls = 0; polls < 16 * UDP_NEAR_TURNS; polls++)
		left += udp_dgram_ops.poll_into(a.dg[0], &target, in, BUFS) == 0;
	cr_expect_eq(left, 1);
	empty.to = from_b;
	cr_assert_eq(udp_dgram_ops.send(b.dg[1], &empty, 1), 1);
	send_by(b.dg[1], from_b, 17);
	for (polls = 0; udp_dgram_ops.poll_into(a.dg[0], &target, in, BUFS) != 0; polls++)
		cr_assert_lt(polls, 16 * UDP_NEAR_TURNS);
	drain(a.dg[0], in);
	cr_expect(udp_check_bytes(in[0].data, in[0].len, 17));
	end();
}
