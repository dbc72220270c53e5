/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets, their limits and their MTU (udp_sock.h). */
#include "dev/udp/udp_sock.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/job.h"
#include "util/log.h"
#include "util/param.h"
#include "util/port.h"

#define UDP_BUF_MAX  (4 << 20)
#define UDP_BUF_WARN (1 << 20) /* smaller receive buffers lose bursts */

static uint32_t udp_header_len(const union udp_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? 40 + 8 : 20 + 8;
}

/** Returns whether two IPv6 addresses are on one link: links may have the same link-local ones. */
static bool udp_addr_same_link(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	return !IN6_IS_ADDR_LINKLOCAL(&b->sin6_addr) || a->sin6_scope_id == b->sin6_scope_id;
}

/** Returns whether `a`, which is one of an interface, is the local address `b`. */
static bool udp_addr_same_host(const struct sockaddr *a, const union udp_addr *b)
{
	const union udp_addr *u = (const union udp_addr *)a;

	if (a->sa_family != b->sa.sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return u->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&u->in6.sin6_addr, &b->in6.sin6_addr) &&
	       udp_addr_same_link(&u->in6, &b->in6);
}

/** Converts a link's MTU to bytes of a datagram. */
static uint32_t udp_payload(const union udp_addr *addr, int mtu)
{
	int len = mtu - (int)udp_header_len(addr);

	if (len < (int)UDP_MTU_MIN)
		return UDP_MTU_MIN;
	return len < (int)UDP_MTU_MAX ? (uint32_t)len : UDP_MTU_MAX;
}

/** Returns the MTU of the interface with the local address, or the one every link has. */
static uint32_t udp_sock_mtu(const struct udp_sock *sock)
{
	struct ifreq ifr = { .ifr_mtu = 1280 };
	struct ifaddrs *list, *it;

	if (getifaddrs(&list))
		return udp_payload(&sock->local, ifr.ifr_mtu);
	for (it = list; it; it = it->ifa_next) {
		if (!it->ifa_addr || !udp_addr_same_host(it->ifa_addr, &sock->local))
			continue;
		strncpy(ifr.ifr_name, it->ifa_name, IFNAMSIZ - 1);
		if (ioctl(sock->fd, SIOCGIFMTU, &ifr))
			ifr.ifr_mtu = 1280;
		break;
	}
	freeifaddrs(list);
	return udp_payload(&sock->local, ifr.ifr_mtu);
}

/** Requests a buffer size, beyond the limit where permitted. Returns the size granted. */
static int udp_sock_buffer(int fd, int force, int plain, int want)
{
	socklen_t len = sizeof(int);
	int got = 0;

	if (setsockopt(fd, SOL_SOCKET, force, &want, sizeof(want)))
		setsockopt(fd, SOL_SOCKET, plain, &want, sizeof(want));
	getsockopt(fd, SOL_SOCKET, plain, &got, &len);
	return got / 2; /* the kernel reports twice the usable size */
}

/** Logs a small buffer, once per process and in one process of the job on this host. */
static void udp_sock_warn(int got, int want)
{
	static bool logged;

	if (got >= want || got >= UDP_BUF_WARN ||
	    __atomic_exchange_n(&logged, true, __ATOMIC_RELAXED))
		return;
	UTIL_WARN_HOST(EP_CTRL,
		       "UDP sockets hold %d bytes, %d are needed: large messages are slower, and "
		       "bursts of many peers are lost and sent again. Raise the limit: "
		       "sysctl -w net.core.rmem_max=%d\n",
		       got, want, want);
}

/** Returns the buffer size that a socket needs. */
static int udp_sock_buffer_len(const struct udp_sock *sock, uint32_t rx_cnt)
{
	uint64_t bytes = (uint64_t)rx_cnt * (sock->mtu + 1024u);

	return bytes < UDP_BUF_MAX ? (int)bytes : UDP_BUF_MAX;
}

static void udp_sock_buffers(struct udp_sock *sock, uint32_t rx_cnt)
{
	int want = udp_sock_buffer_len(sock, rx_cnt);
	int got = udp_sock_buffer(sock->fd, SO_RCVBUFFORCE, SO_RCVBUF, want);

	/* A full send buffer is -FI_EAGAIN: no datagram is lost. */
	udp_sock_buffer(sock->fd, SO_SNDBUFFORCE, SO_SNDBUF, want);
	udp_sock_warn(got, want);
	sock->rx_room = 2 * (uint32_t)got; /* includes the kernel's own overhead */
}

static void udp_sock_offloads(struct udp_sock *sock)
{
	int zero = 0, one = 1;
	socklen_t len = sizeof(zero);

	sock->gso = false;
	sock->gro = false;
	if (util_params.udp_plain)
		return;
	sock->gso = !getsockopt(sock->fd, SOL_UDP, UDP_SEGMENT, &zero, &len);
	sock->gro = !setsockopt(sock->fd, SOL_UDP, UDP_GRO, &one, sizeof(one));
}

static int udp_sock_bind(struct udp_sock *sock, const struct sockaddr *local, uint16_t port)
{
	socklen_t len = sizeof(sock->local);
	int one = 1, ret;

	memset(&sock->local, 0, sizeof(sock->local));
	if (local->sa_family == AF_INET6) {
		sock->local.in6 = *(const struct sockaddr_in6 *)local;
		sock->local.in6.sin6_port = htons(port);
		if (setsockopt(sock->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)))
			return -errno;
	} else {
		sock->local.in = *(const struct sockaddr_in *)local;
		sock->local.in.sin_port = htons(port);
	}
	ret = util_port_bind(sock->fd, &sock->local.sa, udp_addr_len(&sock->local));
	if (ret)
		return ret;
	return getsockname(sock->fd, &sock->local.sa, &len) ? -errno : 0;
}

int udp_sock_open(struct udp_sock *sock, const struct sockaddr *local, uint16_t port,
		  uint32_t rx_cnt)
{
	char text[64];
	int ret;

	sock->fd = -1;
	if (!local || (local->sa_family != AF_INET && local->sa_family != AF_INET6))
		return -FI_EINVAL;
	sock->fd = socket(local->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = sock->fd < 0 ? -errno : udp_sock_bind(sock, local, port);
	if (ret) {
		UTIL_WARN(EP_CTRL, "no UDP socket at %s: %s\n",
			  udp_addr_text((const union udp_addr *)local, text, sizeof(text)),
			  strerror(-ret));
		udp_sock_close(sock);
		return ret;
	}
	sock->mtu = udp_sock_mtu(sock);
	udp_sock_buffers(sock, rx_cnt);
	udp_sock_offloads(sock);
	UTIL_INFO(EP_CTRL, "UDP socket at %s, datagrams of up to %u bytes%s%s\n",
		  udp_addr_text(&sock->local, text, sizeof(text)), sock->mtu,
		  sock->gso ? ", GSO" : "", sock->gro ? ", GRO" : "");
	return 0;
}

void udp_sock_close(struct udp_sock *sock)
{
	if (sock->fd >= 0)
		close(sock->fd);
	sock->fd = -1;
}

/**
 * Binds `fd` to the address of `sock`, which the kernel permits while both have SO_REUSEPORT.
 * Without it from then on, no other process can have the port.
 */
static int udp_sock_share(const struct udp_sock *sock, int fd)
{
	int one = 1, zero = 0, ret;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
	    setsockopt(sock->fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)))
		return -errno;
	ret = bind(fd, &sock->local.sa, udp_addr_len(&sock->local)) ? -errno : 0;
	setsockopt(sock->fd, SOL_SOCKET, SO_REUSEPORT, &zero, sizeof(zero));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &zero, sizeof(zero));
	return ret;
}

int udp_sock_twin(const struct udp_sock *sock, uint32_t rx_cnt)
{
	int want = udp_sock_buffer_len(sock, rx_cnt), one = 1, ret;
	int fd = socket(sock->local.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (sock->local.sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (sock->gro)
		setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof(one));
	udp_sock_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, want);
	udp_sock_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, want);
	ret = udp_sock_share(sock, fd);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

uint32_t udp_sock_link_mtu(const struct sockaddr *local)
{
	struct udp_sock sock = { .fd = -1 };
	uint32_t mtu;

	if (local->sa_family == AF_INET)
		sock.local.in = *(const struct sockaddr_in *)local;
	else if (local->sa_family == AF_INET6)
		sock.local.in6 = *(const struct sockaddr_in6 *)local;
	else
		return 0;
	sock.fd = socket(local->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock.fd < 0)
		return 0;
	mtu = udp_sock_mtu(&sock);
	udp_sock_close(&sock);
	return mtu;
}

/**
 * Returns what the route of a connected socket carries, or -FI_EHOSTUNREACH. Where the system does
 * not report it (gVisor, qemu), the interface's.
 */
static int udp_sock_connected_mtu(int fd, const struct udp_sock *sock, const union udp_addr *peer)
{
	bool is_6 = peer->sa.sa_family == AF_INET6;
	int mtu, level = is_6 ? IPPROTO_IPV6 : IPPROTO_IP, name = is_6 ? IPV6_MTU : IP_MTU;
	socklen_t len = sizeof(mtu);

	if (!getsockopt(fd, level, name, &mtu, &len))
		return (int)udp_payload(peer, mtu);
	return errno == ENOPROTOOPT ? (int)sock->mtu : -FI_EHOSTUNREACH;
}

int udp_sock_route_mtu(const struct udp_sock *sock, const union udp_addr *peer)
{
	bool is_6 = peer->sa.sa_family == AF_INET6;
	union udp_addr local = sock->local;
	int fd, ret;

	if (peer->sa.sa_family != local.sa.sa_family)
		return -FI_EHOSTUNREACH;
	fd = socket(peer->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (is_6)
		local.in6.sin6_port = 0;
	else
		local.in.sin_port = 0;
	/* A connected socket reports the MTU of its route. */
	if (bind(fd, &local.sa, udp_addr_len(&local)) || connect(fd, &peer->sa, udp_addr_len(peer)))
		ret = errno == EMFILE || errno == ENFILE ? -errno : -FI_EHOSTUNREACH;
	else
		ret = udp_sock_connected_mtu(fd, sock, peer);
	close(fd);
	return ret;
}
