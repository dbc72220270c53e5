/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP sockets and packets on them: see cm_stream.h. */
#include "cm/msg/cm_stream.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "cm/base/cm_mac.h"
#include "util/port.h"

static int cm_stream_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int cm_stream_bind(int fd, union cm_addr *addr, int backlog)
{
	socklen_t len = sizeof(*addr);
	int one = 1, ret;

	/* Permits binding while connections of an earlier listener linger at this port. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		return -errno;
	if (addr->sa.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)))
		return -errno;
	ret = util_port_bind(fd, &addr->sa, cm_addr_len(addr));
	if (ret)
		return ret;
	return listen(fd, backlog) || getsockname(fd, &addr->sa, &len) ? -errno : 0;
}

int cm_stream_listen(union cm_addr *addr, int backlog)
{
	int fd = cm_stream_socket(addr->sa.sa_family);
	int ret;

	if (fd < 0)
		return fd;
	ret = cm_stream_bind(fd, addr, backlog);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int cm_stream_connect(const union cm_addr *to)
{
	int fd = cm_stream_socket(to->sa.sa_family);
	int ret;

	if (fd < 0)
		return fd;
	if (!connect(fd, &to->sa, cm_addr_len(to)) || errno == EINPROGRESS || errno == EINTR)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static int cm_stream_name(int (*ask)(int fd, struct sockaddr *sa, socklen_t *len), int fd,
			  union cm_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (ask(fd, (struct sockaddr *)&ss, &len))
		return -errno;
	return cm_addr_import((struct sockaddr *)&ss, addr);
}

static int cm_stream_get_local(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getsockname(fd, sa, len);
}

static int cm_stream_get_remote(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getpeername(fd, sa, len);
}

int cm_stream_names(const struct cm_stream *stream, union cm_addr *local, union cm_addr *remote)
{
	int ret = cm_stream_name(cm_stream_get_local, stream->src.fd, local);

	return ret ? ret : cm_stream_name(cm_stream_get_remote, stream->src.fd, remote);
}

int cm_stream_send(struct cm_node *node, struct cm_stream *stream, struct wire_connreq_pkt *pkt)
{
	union cm_addr local, remote;
	uint8_t buf[WIRE_CONNREQ_MAX];
	int ret = cm_stream_names(stream, &local, &remote);
	size_t len;
	ssize_t sent;

	if (ret)
		return ret;
	pkt->nonce = stream->nonce;
	len = wire_connreq_encode(pkt, buf);
	cm_mac_seal(&node->key, &local, &remote, buf, len);
	do {
		sent = send(stream->src.fd, buf, len, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == len ? 0 : -FI_ENOBUFS;
}

/* Receives until `want` bytes are buffered. */
static int cm_stream_fill(struct cm_stream *stream, size_t want)
{
	while (stream->have < want) {
		ssize_t got =
			recv(stream->src.fd, stream->buf + stream->have, want - stream->have, 0);

		if (!got)
			return -FI_ECONNRESET;
		if (got < 0 && errno != EINTR)
			return errno == EWOULDBLOCK ? -FI_EAGAIN : -errno;
		if (got > 0)
			stream->have += (size_t)got;
	}
	return 0;
}

/* Decodes the packet in the buffer and checks that it belongs to this stream. */
static int cm_stream_open(struct cm_node *node, struct cm_stream *stream,
			  struct wire_connreq_pkt *pkt)
{
	union cm_addr local, remote;
	int ret = wire_connreq_decode(stream->buf, stream->have, pkt);

	if (!ret)
		ret = cm_stream_names(stream, &local, &remote);
	if (ret)
		return ret;
	if (!cm_mac_check(&node->key, &remote, &local, stream->buf, stream->have))
		return -FI_EKEYREJECTED;
	if (!stream->nonce && pkt->type == WIRE_CONNREQ_GREET)
		stream->nonce = pkt->nonce;
	return pkt->nonce == stream->nonce ? 0 : -FI_EINVAL;
}

int cm_stream_recv(struct cm_node *node, struct cm_stream *stream, struct wire_connreq_pkt *pkt)
{
	int ret = cm_stream_fill(stream, WIRE_CONNREQ_LEN_OFF);
	size_t len;

	if (ret)
		return ret;
	len = wire_connreq_peek_len(stream->buf);
	if (!len)
		return -FI_EINVAL;
	ret = cm_stream_fill(stream, len);
	if (ret)
		return ret;
	ret = cm_stream_open(node, stream, pkt);
	stream->have = 0;
	return ret;
}
