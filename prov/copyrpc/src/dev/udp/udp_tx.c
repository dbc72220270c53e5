/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending bursts (udp_dgram.h). */
#include <errno.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/uio.h>

#include "dev/udp/udp_dgram.h"
#include "util/copy.h"
#include "util/log.h"

/** Arguments of one sendmmsg. */
struct udp_burst {
	struct mmsghdr msgs[UDP_BURST];
	uint32_t runs[UDP_BURST]; /* datagrams of each message */
	struct iovec iov[UDP_BURST * UDP_RUN_MAX * DEV_DGRAM_PIECES / 8];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
	} ctl[UDP_BURST];
	uint32_t msg_cnt;
	uint32_t iov_cnt;
	uint32_t gathered; /* bytes in the gather buffer */
	bool near;         /* leaves by the connected socket */
};

#define UDP_BURST_IOV (sizeof(((struct udp_burst *)0)->iov) / sizeof(struct iovec))

/** Returns the number of datagrams from out[0] on that one message can carry. */
static uint32_t udp_run(const struct udp_dgram *ud, const struct dev_dgram_out *out, unsigned cnt)
{
	uint32_t seg = dev_dgram_out_len(out), bytes = seg, len, n;

	if (!ud->sock.gso || !seg)
		return 1;
	for (n = 1; n < cnt && n < UDP_RUN_MAX; n++) {
		len = dev_dgram_out_len(&out[n]);
		if (out[n].to != out->to || !len || len > seg || bytes + len > UDP_MTU_MAX)
			break;
		bytes += len;
		if (len < seg)
			return n + 1; /* a shorter datagram must be the last */
	}
	return n;
}

static void udp_burst_pieces(struct udp_burst *b, const struct dev_dgram_out *out)
{
	uint32_t i;

	for (i = 0; i < DEV_DGRAM_PIECES; i++) {
		if (!out->len[i])
			continue;
		b->iov[b->iov_cnt++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)out->base[i],
			.iov_len = out->len[i],
		};
	}
}

static void udp_gather_one(uint8_t **to, const struct dev_dgram_out *out)
{
	uint32_t i;

	for (i = 0; i < DEV_DGRAM_PIECES; i++) {
		if (!out->len[i])
			continue;
		util_copy(*to, out->base[i], out->len[i]);
		*to += out->len[i];
	}
}

/** Adds a run as one piece of the gather buffer. Returns false if that has no room. */
static bool udp_burst_gather(struct udp_burst *b, const struct udp_dgram *ud,
			     const struct dev_dgram_out *out, uint32_t n)
{
	uint32_t len = (n - 1) * dev_dgram_out_len(out) + dev_dgram_out_len(&out[n - 1]), i;
	uint8_t *to = udp_gather_buf(ud) + b->gathered;

	if (len > UDP_BUF_LEN - b->gathered)
		return false;
	b->iov[b->iov_cnt++] = (struct iovec){ to, len };
	b->gathered += len;
	for (i = 0; i < n; i++)
		udp_gather_one(&to, &out[i]);
	return true;
}

/** Adds the pieces of a run. Returns false if there is no room. */
static bool udp_burst_run(struct udp_burst *b, const struct udp_dgram *ud,
			  const struct dev_dgram_out *out, uint32_t n)
{
	uint32_t i;

	if (n > 1 && dev_dgram_out_len(out) <= UDP_GATHER_MAX)
		return udp_burst_gather(b, ud, out, n);
	for (i = 0; i < n; i++)
		udp_burst_pieces(b, &out[i]);
	return true;
}

static void udp_burst_segment(struct udp_burst *b, struct msghdr *msg, uint32_t seg)
{
	struct cmsghdr *cmsg;
	uint16_t len = (uint16_t)seg;

	msg->msg_control = &b->ctl[b->msg_cnt];
	msg->msg_controllen = sizeof(b->ctl[0].bytes);
	cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = SOL_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(len));
	memcpy(CMSG_DATA(cmsg), &len, sizeof(len));
}

/** Adds the next run. Returns its number of datagrams, or 0 if the burst is full. */
static uint32_t udp_burst_add(struct udp_burst *b, const struct udp_dgram *ud,
			      const struct dev_dgram_out *out, unsigned cnt)
{
	const struct udp_ah *to = (const struct udp_ah *)out->to;
	uint32_t room = (uint32_t)(UDP_BURST_IOV - b->iov_cnt) / DEV_DGRAM_PIECES, n;
	struct msghdr *msg;

	if (b->msg_cnt == UDP_BURST || !room)
		return 0;
	msg = &b->msgs[b->msg_cnt].msg_hdr;
	n = udp_run(ud, out, cnt < room ? cnt : room);
	*msg = (struct msghdr){
		.msg_name = b->near ? NULL : (void *)(uintptr_t)&to->addr,
		.msg_namelen = b->near ? 0 : udp_addr_len(&to->addr),
		.msg_iov = &b->iov[b->iov_cnt],
	};
	if (!udp_burst_run(b, ud, out, n))
		return 0;
	msg->msg_iovlen = (size_t)(&b->iov[b->iov_cnt] - msg->msg_iov);
	if (n > 1)
		udp_burst_segment(b, msg, dev_dgram_out_len(out));
	b->runs[b->msg_cnt++] = n;
	return n;
}

/**
 * Handles the errno of the first message. Returns -FI_EAGAIN, 0 (the datagrams are lost) or a fatal
 * error.
 */
static int udp_send_failed(struct udp_dgram *ud, int err)
{
	switch (err) {
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM: return -FI_EAGAIN;
	case EMSGSIZE:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ECONNREFUSED:
	case ENODEV:
	case EADDRNOTAVAIL:
	case EINVAL: /* a route of kind "blackhole" */
	case EACCES: /* "prohibit" */
	case EPERM:
		if (!ud->tx_warned)
			UTIL_WARN(EP_DATA,
				  "UDP datagrams cannot leave: %s%s. Sending is retried until the "
				  "operation times out\n",
				  strerror(err),
				  err == EPERM ? " (look at the firewall's rules for output)" : "");
		ud->tx_warned = true;
		return 0;
	default:
		if (ud->full_fd == ud->near.fd) {
			udp_near_drop(ud);
			return 0;
		}
		UTIL_WARN(EP_DATA, "the UDP socket is broken: %s\n", strerror(err));
		ud->status = -FI_EIO;
		return ud->status;
	}
}

static int udp_burst_fd(const struct udp_dgram *ud, const struct udp_burst *b)
{
	return b->near ? ud->near.fd : ud->sock.fd;
}

/** Sends the burst; a cheaper call serves a single message. Returns like sendmmsg. */
static int udp_burst_call(const struct udp_dgram *ud, struct udp_burst *b)
{
	const struct msghdr *msg = &b->msgs[0].msg_hdr;
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL, fd = udp_burst_fd(ud, b);
	ssize_t ret;

	if (b->msg_cnt > 1)
		return sendmmsg(fd, b->msgs, b->msg_cnt, flags);
	if (msg->msg_iovlen == 1 && !msg->msg_control)
		ret = sendto(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags,
			     msg->msg_name, msg->msg_namelen);
	else
		ret = sendmsg(fd, msg, flags);
	return ret < 0 ? -1 : 1;
}

/**
 * Returns true if the first run may leave as single datagrams: some interfaces do not support GSO.
 * If a single one does not leave either, GSO was not the reason.
 */
static bool udp_doubt_gso(struct udp_dgram *ud, const struct udp_burst *b, int err)
{
	bool doubted = b->runs[0] > 1 && (err == EINVAL || err == EIO || err == EMSGSIZE);

	if (doubted || ud->gso_doubted)
		ud->sock.gso = !doubted;
	ud->gso_doubted = doubted;
	return doubted;
}

/**
 * Returns true if the call is to be repeated. A connected socket first reports what ICMP has said
 * about an earlier datagram, such as one that was too long.
 */
static bool udp_burst_is_again(const struct udp_burst *b, int err, unsigned tries)
{
	return err == EINTR || (b->near && err == EMSGSIZE && tries == 1);
}

/** Sends the burst. Returns the number of datagrams sent or lost, or an error. */
static int udp_burst_send(struct udp_dgram *ud, struct udp_burst *b)
{
	int sent, ret, i, n = 0;
	unsigned tries = 0;

	do {
		sent = udp_burst_call(ud, b);
	} while (sent < 0 && udp_burst_is_again(b, errno, ++tries));
	if (sent <= 0) {
		if (udp_doubt_gso(ud, b, errno))
			return 0;
		ud->full_fd = udp_burst_fd(ud, b);
		ret = udp_send_failed(ud, errno);
		return ret ? ret : (int)b->runs[0];
	}
	ud->gso_doubted = false;
	for (i = 0; i < sent; i++)
		n += (int)b->runs[i];
	return n;
}

/** Counts a send call. A peer that has won the vote, and is the only one, costs a comparison. */
static inline void udp_near_vote(struct udp_dgram *ud, const struct udp_ah *to)
{
	if (UTIL_UNLIKELY(ud->near.first != to || ud->near.votes < UDP_NEAR_VOTES))
		udp_near_vote_cold(ud, to);
}

int udp_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;
	struct udp_burst b;
	unsigned done = 0;
	uint32_t at, n;
	int ret = ud->status;

	if (cnt)
		udp_near_vote(ud, (const struct udp_ah *)out->to);
	while (!ret && done < cnt) {
		b.msg_cnt = 0;
		b.iov_cnt = 0;
		b.gathered = 0;
		b.near = udp_is_near(ud, out[done].to);
		for (at = done; at < cnt && udp_is_near(ud, out[at].to) == b.near; at += n) {
			n = udp_burst_add(&b, ud, &out[at], cnt - at);
			if (!n)
				break;
		}
		ret = udp_burst_send(ud, &b);
		if (ret < 0)
			break;
		done += (unsigned)ret;
		ret = 0;
	}
	if (ret == -FI_EAGAIN && !dg->tx_full)
		udp_wait_for_room(ud, true);
	else if (!ret && dg->tx_full)
		udp_wait_for_room(ud, false);
	dg->tx_posted += done;
	dg->tx_done = dg->tx_posted;
	if (done || !ret)
		return (int)done;
	return ret;
}
