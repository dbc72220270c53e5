/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UDP endpoint: open, close, addresses, waiting (udp_dgram.h). */
#include "dev/udp/udp_dgram.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev/udp/udp_filter.h"
#include "util/log.h"

static void udp_close(struct dev_dgram *dg)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;

	udp_near_drop(ud);
	if (ud->wait_fd >= 0)
		close(ud->wait_fd);
	udp_sock_close(&ud->sock);
	if (ud->bufs)
		munmap(ud->bufs, ((size_t)dg->rx_cnt + 1) * UDP_BUF_LEN);
	free(ud->free);
	free(ud->refs);
	free(ud);
}

/** Allocates `cnt` buffers for receiving, and the one that runs are gathered in. */
static int udp_make_bufs(struct udp_dgram *ud, uint32_t cnt)
{
	uint32_t i;
	void *mem;

	mem = mmap(NULL, ((size_t)cnt + 1) * UDP_BUF_LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return -FI_ENOMEM;
	ud->bufs = mem;
	ud->free = calloc(cnt, sizeof(*ud->free));
	ud->refs = calloc(cnt, sizeof(*ud->refs));
	if (!ud->free || !ud->refs)
		return -FI_ENOMEM;
	for (i = 0; i < cnt; i++)
		ud->free[i] = cnt - 1 - i;
	ud->free_cnt = cnt;
	return 0;
}

static int udp_make_wait(struct udp_dgram *ud)
{
	ud->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ud->wait_fd >= 0)
		return 0;
	UTIL_WARN(EP_CTRL, "cannot wait for datagrams: %s\n", strerror(errno));
	return -errno;
}

static int udp_open(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg)
{
	struct udp_dgram *ud = calloc(1, sizeof(*ud));
	int ret;

	if (!ud)
		return -FI_ENOMEM;
	ud->base.ops = &udp_dgram_ops;
	ud->base.rx_cnt = attr->rx_cnt;
	ud->wait_fd = -1;
	ud->near.fd = -1;
	ret = udp_sock_open(&ud->sock, attr->local, attr->port, attr->rx_cnt);
	if (!ret)
		ret = udp_make_bufs(ud, attr->rx_cnt);
	if (!ret)
		ret = udp_make_wait(ud);
	if (ret) {
		udp_close(&ud->base);
		return ret;
	}
	ud->full_fd = ud->sock.fd;
	udp_filter_attach(ud->sock.fd, attr->match, attr->match_cnt);
	memcpy(ud->match, attr->match, sizeof(ud->match));
	ud->match_cnt = attr->match_cnt;
	ud->base.mtu = ud->sock.mtu;
	ud->base.inline_max = ud->sock.mtu;
	ud->base.copies_ah = true;
	ud->base.rx_room = ud->sock.rx_room;
	*dg = &ud->base;
	return 0;
}

static int udp_describe(struct dev_dgram *dg, struct dev_desc *desc)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;

	udp_desc_encode(&ud->sock.local, dg->mtu, desc);
	return 0;
}

static int udp_resolve(struct dev_dgram *dg, const struct dev_desc *peer, struct dev_dgram_ah **out)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;
	struct udp_ah *ah = calloc(1, sizeof(*ah));
	uint32_t mtu;
	int ret;

	if (!ah)
		return -FI_ENOMEM;
	ret = udp_desc_decode(peer, &ah->addr, &mtu);
	if (ret) {
		UTIL_WARN(EP_CTRL, "peer's description refused: not a UDP endpoint\n");
		goto err_free;
	}
	if (ah->addr.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ah->addr.in6.sin6_addr))
		ah->addr.in6.sin6_scope_id = ud->sock.local.in6.sin6_scope_id;
	ret = udp_sock_route_mtu(&ud->sock, &ah->addr);
	if (ret < 0) {
		char text[64];

		UTIL_WARN(EP_CTRL, "no route to %s: %s\n",
			  udp_addr_text(&ah->addr, text, sizeof(text)), strerror(-ret));
		goto err_free;
	}
	udp_addr_id(&ah->addr, &ah->base.id);
	ah->base.mtu = mtu < dg->mtu ? mtu : dg->mtu;
	if ((uint32_t)ret < ah->base.mtu)
		ah->base.mtu = (uint32_t)ret;
	*out = &ah->base;
	return 0;

err_free:
	free(ah);
	return ret;
}

static uint32_t udp_route_mtu(struct dev_dgram *dg, const struct sockaddr *peer)
{
	union udp_addr addr = { .sa.sa_family = peer->sa_family };
	int ret;

	if (peer->sa_family == AF_INET)
		addr.in = *(const struct sockaddr_in *)peer;
	else if (peer->sa_family == AF_INET6)
		addr.in6 = *(const struct sockaddr_in6 *)peer;
	ret = udp_sock_route_mtu(&((struct udp_dgram *)dg)->sock, &addr);
	/* resolve reports a missing route. */
	return ret > 0 && (uint32_t)ret < dg->mtu ? (uint32_t)ret : dg->mtu;
}

static void udp_forget(struct dev_dgram *dg, struct dev_dgram_ah *ah)
{
	udp_near_forget((struct udp_dgram *)dg, (struct udp_ah *)ah);
	free(ah);
}

static int udp_watch_fd(struct udp_dgram *ud, int op, int fd)
{
	bool full = ud->base.tx_full && ud->full_fd == fd;
	struct epoll_event ev = { .events = EPOLLIN | (full ? EPOLLOUT : 0u) };

	return fd >= 0 && epoll_ctl(ud->wait_fd, op, fd, &ev) ? -errno : 0;
}

/** Adds the sockets to the wait set, or changes their events (epoll_ctl's `op`). */
static int udp_watch(struct udp_dgram *ud, int op)
{
	int ret = udp_watch_fd(ud, op, ud->sock.fd);

	if (ret)
		return ret;
	ud->watched = true;
	if (udp_watch_fd(ud, op, ud->near.fd))
		udp_near_drop(ud);
	return 0;
}

void udp_unwatch_cold(struct udp_dgram *ud)
{
	ud->watched = epoll_ctl(ud->wait_fd, EPOLL_CTL_DEL, ud->sock.fd, NULL) != 0;
	if (ud->near.fd >= 0 && epoll_ctl(ud->wait_fd, EPOLL_CTL_DEL, ud->near.fd, NULL))
		udp_near_drop(ud);
}

void udp_wait_for_room(struct udp_dgram *ud, bool full)
{
	ud->base.tx_full = full;
	if (ud->watched)
		udp_watch(ud, EPOLL_CTL_MOD);
}

static int udp_wait_fd(struct dev_dgram *dg)
{
	return ((struct udp_dgram *)dg)->wait_fd;
}

static struct pollfd udp_pollfd(const struct udp_dgram *ud, int fd)
{
	bool full = ud->base.tx_full && ud->full_fd == fd;

	return (struct pollfd){ .fd = fd, .events = (short)(POLLIN | (full ? POLLOUT : 0)) };
}

/** Adds the sockets to the wait set, which stays readable while one of them is. */
static int udp_arm(struct dev_dgram *dg)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;
	struct pollfd pfd[2] = { udp_pollfd(ud, ud->sock.fd), udp_pollfd(ud, ud->near.fd) };

	if (ud->status || ud->got_at < ud->got_cnt)
		return -FI_EAGAIN;
	/* A negative descriptor is ignored. */
	if (poll(pfd, 2, 0) > 0) {
		if ((pfd[0].revents | pfd[1].revents) & POLLOUT)
			udp_wait_for_room(ud, false);
		return -FI_EAGAIN;
	}
	ud->armed = true;
	return ud->watched ? 0 : udp_watch(ud, EPOLL_CTL_ADD);
}

/** Keeps the socket in the wait set: the next sleep may come soon. */
static void udp_disarm(struct dev_dgram *dg)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;

	ud->armed = false;
	ud->found_cnt = 0;
}

const struct dev_dgram_ops udp_dgram_ops = {
	.open = udp_open,
	.close = udp_close,
	.describe = udp_describe,
	.resolve = udp_resolve,
	.route_mtu = udp_route_mtu,
	.forget = udp_forget,
	.send = udp_send,
	.poll = udp_poll,
	.poll_into = udp_poll_into,
	.put_back = udp_put_back,
	.release = udp_release,
	.wait_fd = udp_wait_fd,
	.arm = udp_arm,
	.disarm = udp_disarm,
};
