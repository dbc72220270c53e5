/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements udp_near.h. */
#include "dev/udp/udp_near.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dev/udp/udp_dgram.h"
#include "dev/udp/udp_filter.h"
#include "util/log.h"

/**
 * Makes the socket receive nothing any more. A process that was forked from this one may hold a
 * copy, with which it lives on: it leaves the peer's datagrams and the wait set now. Datagrams from
 * the port that it is connected to (discard) do not exist.
 */
static void udp_near_part(struct udp_dgram *ud)
{
	union udp_addr nobody = ud->sock.local;

	if (nobody.sa.sa_family == AF_INET6)
		nobody.in6.sin6_port = htons(UDP_NEAR_DISCARD);
	else
		nobody.in.sin_port = htons(UDP_NEAR_DISCARD);
	epoll_ctl(ud->wait_fd, EPOLL_CTL_DEL, ud->near.fd, NULL);
	if (connect(ud->near.fd, &nobody.sa, udp_addr_len(&nobody)))
		UTIL_INFO(EP_DATA, "the UDP socket of one peer cannot be moved: %s\n",
			  strerror(errno));
}

static void udp_near_close(struct udp_dgram *ud)
{
	struct udp_near *near = &ud->near;
	bool was_full = ud->base.tx_full && ud->full_fd == near->fd;

	near->peer = NULL;
	if (near->fd >= 0) {
		udp_near_part(ud);
		close(near->fd);
	}
	near->fd = -1;
	ud->full_fd = ud->sock.fd;
	if (was_full)
		udp_wait_for_room(ud, true);
}

void udp_near_drop(struct udp_dgram *ud)
{
	ud->near.off = true;
	udp_near_close(ud);
}

/** Opens the socket, if it is not open, and adds it to the wait set. Returns 0 or -errno. */
static int udp_near_open(struct udp_dgram *ud)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd;

	if (ud->near.fd >= 0)
		return 0;
	fd = udp_sock_twin(&ud->sock, ud->base.rx_cnt);
	if (fd < 0)
		return fd;
	udp_filter_attach(fd, ud->match, ud->match_cnt);
	ud->near.fd = fd;
	return ud->watched && epoll_ctl(ud->wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void udp_near_connect(struct udp_dgram *ud, const struct udp_ah *to)
{
	int ret = udp_near_open(ud);
	char text[64];

	if (!ret && connect(ud->near.fd, &to->addr.sa, udp_addr_len(&to->addr)))
		ret = -errno;
	udp_addr_text(&to->addr, text, sizeof(text));
	if (ret) {
		UTIL_INFO(EP_DATA, "no UDP socket for %s alone: %s\n", text, strerror(-ret));
		udp_near_drop(ud);
		return;
	}
	UTIL_INFO(EP_DATA, "a UDP socket for %s alone, to which most datagrams go\n", text);
	ud->near.peer = to;
}

void udp_near_vote_cold(struct udp_dgram *ud, const struct udp_ah *to)
{
	struct udp_near *near = &ud->near;

	if (near->off)
		return;
	if (near->first != to) {
		if (near->votes) {
			near->votes--;
			return;
		}
		near->first = to;
	}
	if (near->votes < UDP_NEAR_VOTES && ++near->votes == UDP_NEAR_VOTES && near->peer != to)
		udp_near_connect(ud, to);
}

void udp_near_forget(struct udp_dgram *ud, const struct udp_ah *ah)
{
	if (ud->near.peer == ah)
		udp_near_close(ud);
	if (ud->near.first == ah) {
		ud->near.first = NULL;
		ud->near.votes = 0;
	}
}
