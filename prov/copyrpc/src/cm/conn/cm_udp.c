/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UDP sockets of a CM endpoint, and replies to REQ: see cm_udp.h. */
#include "cm/conn/cm_udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm/conn/cm_dgram.h"
#include "cm/conn/cm_pkt.h"
#include "cm/conn/cm_req.h"
#include "cm/ep/cm_ep.h"
#include "util/clock.h"
#include "util/port.h"

#define CM_UDP_BURST  64 /* packets per event */
#define CM_UDP_RCVBUF (1 << 20)

static void cm_udp_set_options(int fd, int family)
{
	int on = 1, len = CM_UDP_RCVBUF;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &len, sizeof(len));
	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	} else {
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	}
}

int cm_udp_bind(union cm_addr *addr)
{
	int fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*addr);
	union cm_addr bound;
	int ret;

	if (fd < 0)
		return -errno;
	cm_udp_set_options(fd, addr->sa.sa_family);
	ret = util_port_bind(fd, &addr->sa, cm_addr_len(addr));
	if (!ret && getsockname(fd, &bound.sa, &len))
		ret = -errno;
	if (!ret) {
		cm_addr_import(&bound.sa, addr);
		return fd;
	}
	close(fd);
	return ret;
}

static ssize_t cm_udp_sendto(struct cm_ep *cep, const uint8_t *buf, size_t len,
			     const struct cm_route *via)
{
	const struct cm_cfg *cfg = &cep->node->cfg;
	socklen_t to_len = cm_addr_len(&via->to);
	int fd = cep->socks[via->sock].src.fd;

	if (cfg->udp_send)
		return cfg->udp_send(cfg->udp_send_ctx, fd, buf, len, &via->to.sa, to_len);
	return sendto(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL, &via->to.sa, to_len);
}

static struct sock_extended_err *cm_udp_find_error(struct msghdr *mh)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(mh); cmsg; cmsg = CMSG_NXTHDR(mh, cmsg))
		if ((cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVERR) ||
		    (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_RECVERR))
			return (struct sock_extended_err *)(void *)CMSG_DATA(cmsg);
	return NULL;
}

static void cm_udp_on_unreachable(struct cm_peer *peer, const union cm_addr *to, uint64_t nonce,
				  int err)
{
	struct cm_conn *conn = peer->conn;

	if (conn && conn->is_dgram && conn->nonce == nonce)
		cm_dgram_on_unreachable(conn, err);
	else
		cm_req_on_unreachable(peer, to, nonce, err);
}

/* Handles an ICMP error, if it quotes a nonce: only the peers and the path between them have it. */
static void cm_udp_on_error(struct cm_ep *cep, struct msghdr *mh, const union cm_addr *raw,
			    const uint8_t *quote, size_t len)
{
	const struct sock_extended_err *ee = cm_udp_find_error(mh);
	struct cm_peer *peer;
	union cm_addr to;

	if (!ee || (ee->ee_origin != SO_EE_ORIGIN_ICMP && ee->ee_origin != SO_EE_ORIGIN_ICMP6))
		return;
	if (ee->ee_errno == EMSGSIZE || cm_addr_import(&raw->sa, &to))
		return;
	peer = cm_peer_find(cep, &to);
	if (peer)
		cm_udp_on_unreachable(peer, &to, wire_cm_peek_nonce(quote, len),
				      -(int)ee->ee_errno);
}

/* Takes one error from the socket's queue. Returns false if there is none. */
static bool cm_udp_take_error(struct cm_ep *cep, int fd)
{
	uint8_t quote[WIRE_CM_MAX];
	_Alignas(struct cmsghdr) char control[512];
	union cm_addr raw;
	struct iovec iov = { .iov_base = quote, .iov_len = sizeof(quote) };
	struct msghdr mh = { .msg_name = &raw,
			     .msg_namelen = sizeof(raw),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control) };
	ssize_t n;

	memset(&raw, 0, sizeof(raw));
	n = recvmsg(fd, &mh, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR;
	cm_udp_on_error(cep, &mh, &raw, quote, (size_t)n);
	return true;
}

static void cm_udp_take_errors(struct cm_ep *cep, int fd)
{
	for (unsigned i = 0; i < CM_UDP_BURST && cm_udp_take_error(cep, fd); i++)
		;
}

int cm_udp_send_bytes(struct cm_ep *cep, const uint8_t *buf, size_t len, const struct cm_route *via)
{
	if (cm_udp_sendto(cep, buf, len, via) >= 0)
		return 0;
	/* The socket may report the ICMP error of an earlier packet instead of sending this one. */
	cm_udp_take_errors(cep, cep->socks[via->sock].src.fd);
	if (cm_udp_sendto(cep, buf, len, via) >= 0)
		return 0;
	switch (errno) {
	case ECONNREFUSED:
	case EINTR:
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM: return 0; /* lost, like in the network */
	default: return -errno;
	}
}

int cm_udp_send(struct cm_ep *cep, struct wire_cm_pkt *pkt, const struct cm_route *via)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_pkt_seal(cep, via, pkt, buf);

	return cm_udp_send_bytes(cep, buf, len, via);
}

int cm_udp_send_req(struct cm_ep *cep, const struct cm_route *via, const union cm_addr *name,
		    uint64_t nonce)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_REQ, .nonce = nonce, .features = CM_FEATURES };

	pkt.req.paths = cep->paths.all;
	pkt.req.has_name = name != NULL;
	if (name)
		cm_addr_to_wire(name, &pkt.req.name);
	return cm_udp_send(cep, &pkt, via);
}

static void cm_udp_refuse(struct cm_ep *cep, const struct cm_route *via,
			  const struct wire_cm_pkt *req, int err, const char *text)
{
	struct wire_cm_pkt pkt;

	if (!cm_stranger_take(cep, &via->to, util_clock_ns()))
		return;
	cm_pkt_nak(&pkt, req->nonce, req->src_inc, err, text);
	cep->stats->tx_naks++;
	cm_udp_send(cep, &pkt, via);
}

static void cm_udp_send_ack(struct cm_ep *cep, const struct cm_route *via,
			    const struct wire_cm_pkt *req)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_ACK,
				   .nonce = req->nonce,
				   .dst_inc = req->src_inc,
				   .features = CM_FEATURES };
	uint64_t now_ns = util_clock_ns();

	if (!cm_stranger_take(cep, &via->to, now_ns))
		return;
	cm_cookie_make(&cep->jar, &via->to, req->src_inc, req->nonce, now_ns, pkt.ack.cookie);
	memcpy(pkt.ack.name, cep->name, WIRE_CM_NAME_LEN);
	pkt.ack.paths = cm_ep_sound_paths(cep, cep->paths.all & req->req.paths);
	cep->stats->tx_acks++;
	cm_udp_send(cep, &pkt, via);
}

/* Returns whether the sender looks for another endpoint, one that has this address elsewhere. */
static bool cm_udp_is_for_other(const struct cm_ep *cep, const struct wire_cm_pkt *req)
{
	union cm_addr name;

	if (!req->req.has_name)
		return false;
	cm_addr_from_wire(&req->req.name, &name);
	return !cm_addr_is_equal(&name, &cep->addr);
}

static void cm_udp_on_req(struct cm_ep *cep, const struct cm_route *via,
			  const struct wire_cm_pkt *req)
{
	if (req->src_inc == cep->inc)
		cep->stats->rx_stale++; /* own packet, reflected */
	else if (cm_udp_is_for_other(cep, req))
		cm_udp_refuse(cep, via, req, -FI_EADDRNOTAVAIL,
			      "another process has this address here");
	else if (req->features & WIRE_CM_FEATURES_REQUIRED & ~CM_FEATURES)
		cm_udp_refuse(cep, via, req, -FI_ENOPROTOOPT,
			      "unknown features; install the same copyrpc on both sides");
	else if (!(req->req.paths & cep->paths.all))
		cm_udp_refuse(cep, via, req, -FI_EOPNOTSUPP,
			      "no common path; compare FI_COPYRPC_PATHS of both processes");
	else
		cm_udp_send_ack(cep, via, req);
}

/* Handles ACK or NAK. */
static void cm_udp_on_reply(struct cm_ep *cep, const struct cm_route *via,
			    const struct wire_cm_pkt *pkt)
{
	struct cm_peer *peer = cm_peer_find(cep, &via->to);

	if (!peer || pkt->dst_inc != cep->inc || pkt->src_inc == cep->inc)
		cep->stats->rx_stale++;
	else if (pkt->type == WIRE_CM_ACK)
		cm_req_on_ack(peer, via, pkt);
	else
		cm_req_on_nak(peer, via, pkt);
}

static void cm_udp_on_datagram(struct cm_ep *cep, const struct cm_route *via, const uint8_t *buf,
			       size_t len)
{
	struct wire_cm_pkt pkt;
	int ret = cm_pkt_open_datagram(cep, via, buf, len, &pkt);

	if (ret == -FI_ENOPROTOOPT && pkt.type == WIRE_CM_REQ && len >= WIRE_CM_NAK_MAX)
		cm_udp_refuse(cep, via, &pkt, ret,
			      "the peer speaks version 1 of the handshake; install the same "
			      "copyrpc on both sides");
	if (ret)
		return;
	switch (pkt.type) {
	case WIRE_CM_REQ: cm_udp_on_req(cep, via, &pkt); break;
	case WIRE_CM_ACK: cm_udp_on_reply(cep, via, &pkt); break;
	default:
		if (!cm_dgram_on_pkt(cep, via, &pkt))
			cm_udp_on_reply(cep, via, &pkt);
		break;
	}
}

/* Receives one datagram. Returns false if there is none. */
static bool cm_udp_take_datagram(struct cm_ep_sock *sock)
{
	struct cm_route via = { .sock = (uint32_t)(sock - sock->cep->socks) };
	uint8_t buf[WIRE_CM_MAX + 1];
	union cm_addr raw;
	socklen_t from_len = sizeof(raw);
	ssize_t n;

	memset(&raw, 0, sizeof(raw));
	n = recvfrom(sock->src.fd, buf, sizeof(buf), MSG_DONTWAIT, &raw.sa, &from_len);
	if (n < 0)
		return errno != EAGAIN; /* a queued error, removed by this call */
	if (!cm_addr_import(&raw.sa, &via.to) && cm_addr_is_peer(&via.to))
		cm_udp_on_datagram(sock->cep, &via, buf, (size_t)n);
	return true;
}

void cm_udp_on_ready(struct cm_src *src, uint32_t events)
{
	struct cm_ep_sock *sock = UTIL_CONTAINER_OF(src, struct cm_ep_sock, src);

	if (events & EPOLLERR)
		cm_udp_take_errors(sock->cep, src->fd);
	for (unsigned i = 0; i < CM_UDP_BURST && cm_udp_take_datagram(sock); i++)
		;
}
