/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receiving datagrams (udp_dgram.h). */
#include <errno.h>
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/uio.h>

#include "dev/udp/udp_dgram.h"
#include "util/bits.h"
#include "util/log.h"

/** Arguments of one recvmmsg. */
struct udp_fill {
	struct mmsghdr msgs[UDP_BURST];
	struct iovec iov[UDP_BURST];
	union udp_addr from[UDP_BURST];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} ctl[UDP_BURST];
};

/** Drops a reference to a buffer and frees it with the last one. */
static void udp_unref(struct udp_dgram *ud, uint32_t buf)
{
	if (!--ud->refs[buf])
		ud->free[ud->free_cnt++] = buf;
}

/**
 * Offers the newest free buffers to the kernel and returns their number. They stay in the stack
 * until used. After an empty poll only one is offered, as recvmsg is a cheaper call than recvmmsg.
 */
static uint32_t udp_fill_offer(struct udp_fill *f, const struct udp_dgram *ud)
{
	uint32_t want = ud->rx_found ? UDP_BURST : 1;
	uint32_t cnt = ud->free_cnt < want ? ud->free_cnt : want, i;

	for (i = 0; i < cnt; i++) {
		f->iov[i].iov_base = udp_buf(ud, ud->free[ud->free_cnt - 1 - i]);
		f->iov[i].iov_len = UDP_BUF_LEN;
		f->msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &f->from[i],
			.msg_namelen = sizeof(f->from[i]),
			.msg_iov = &f->iov[i],
			.msg_iovlen = 1,
			.msg_control = ud->sock.gro ? f->ctl[i].bytes : NULL,
			.msg_controllen = ud->sock.gro ? sizeof(f->ctl[i].bytes) : 0,
		};
	}
	return cnt;
}

uint32_t udp_segment(struct msghdr *msg, uint32_t len)
{
	struct cmsghdr *cmsg;
	int seg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_UDP || cmsg->cmsg_type != UDP_GRO)
			continue;
		memcpy(&seg, CMSG_DATA(cmsg), sizeof(seg));
		if (seg > 0 && (uint32_t)seg < len)
			return (uint32_t)seg;
	}
	return len;
}

/** Takes over the contents of message i in `buf`. */
static void udp_fill_take(struct udp_fill *f, uint32_t i, uint32_t buf, struct udp_dgram *ud)
{
	struct udp_got *got = &ud->got[ud->got_cnt];

	ud->refs[buf] = 1;
	if ((f->msgs[i].msg_hdr.msg_flags & MSG_TRUNC) || !f->msgs[i].msg_hdr.msg_namelen) {
		udp_unref(ud, buf); /* truncated, or without sender: dropped */
		return;
	}
	got->buf = buf;
	got->len = f->msgs[i].msg_len;
	got->seg = udp_segment(&f->msgs[i].msg_hdr, got->len);
	got->off = 0;
	udp_addr_id(&f->from[i], &got->from);
	ud->got_cnt++;
}

/** Calls recvmmsg, or recvmsg for a single message. Returns like recvmmsg. */
static int udp_fill_call(const struct udp_dgram *ud, struct udp_fill *f, uint32_t cnt)
{
	ssize_t ret;

	if (cnt > 1)
		return recvmmsg(ud->rx_fd, f->msgs, cnt, MSG_DONTWAIT, NULL);
	ret = recvmsg(ud->rx_fd, &f->msgs[0].msg_hdr, MSG_DONTWAIT);
	if (ret < 0)
		return -1;
	f->msgs[0].msg_len = (unsigned)ret;
	return 1;
}

int udp_rx_failed(struct udp_dgram *ud)
{
	ud->rx_found = false;
	if (ud->rx_fd == ud->sock.fd)
		ud->near.own_found = false;
	if (errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ECONNREFUSED)
		return 0;
	if (ud->rx_fd != ud->sock.fd) {
		udp_near_drop(ud);
		return 0;
	}
	UTIL_WARN(EP_DATA, "the UDP socket is broken: %s\n", strerror(errno));
	ud->status = -FI_EIO;
	return ud->status;
}

void udp_rx_found(struct udp_dgram *ud)
{
	ud->rx_found = true;
	if (ud->rx_fd == ud->sock.fd)
		ud->near.own_found = true;
	if (UTIL_UNLIKELY(ud->watched && !ud->armed) && ++ud->found_cnt > UDP_AWAKE)
		udp_unwatch_cold(ud);
}

/** Receives from a socket. Returns 0, or the error that ended the endpoint. */
static int udp_fill_from(struct udp_dgram *ud, int fd)
{
	struct udp_fill f;
	uint32_t cnt = udp_fill_offer(&f, ud);
	uint32_t used[UDP_BURST];
	int ret, i;

	ud->rx_fd = fd;
	if (!cnt)
		return 0;
	ret = udp_fill_call(ud, &f, cnt);
	if (ret <= 0)
		return ret ? udp_rx_failed(ud) : 0;
	udp_rx_found(ud);
	/* Pops all used buffers before freeing any, which pushes onto the stack. */
	for (i = 0; i < ret; i++)
		used[i] = ud->free[--ud->free_cnt];
	for (i = 0; i < ret; i++)
		udp_fill_take(&f, (uint32_t)i, used[i], ud);
	return 0;
}

/**
 * Receives more, after all before was returned: from the connected socket, or from the own one, if
 * that is open alone, or in turn. Returns as udp_fill_from.
 */
static int udp_fill(struct udp_dgram *ud)
{
	int ret = 0;

	ud->got_at = 0;
	ud->got_cnt = 0;
	if (ud->near.fd < 0 || udp_near_is_own_turn(&ud->near))
		ret = udp_fill_from(ud, ud->sock.fd);
	if (!ret && !ud->got_cnt && ud->near.fd >= 0)
		ret = udp_fill_from(ud, ud->near.fd);
	return ret;
}

/** Returns the next datagram of the received messages. */
static void udp_return(struct udp_dgram *ud, struct dev_dgram_in *in)
{
	struct udp_got *got = &ud->got[ud->got_at];
	uint32_t rest = got->len - got->off;

	in->data = udp_buf(ud, got->buf) + got->off;
	in->len = rest < got->seg ? rest : got->seg;
	in->slot = got->buf;
	in->from = got->from;
	ud->refs[got->buf]++;
	ud->base.rx_retained++;
	got->off += in->len;
	if (got->off == got->len) {
		ud->got_at++;
		udp_unref(ud, got->buf);
	}
}

int udp_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;
	unsigned n = 0;
	int ret = ud->status;

	if (!ret && ud->got_at == ud->got_cnt)
		ret = udp_fill(ud);
	if (ret)
		return ret;
	while (n < cnt && ud->got_at < ud->got_cnt)
		udp_return(ud, &in[n++]);
	return (int)n;
}

void udp_release(struct dev_dgram *dg, uint32_t slot)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;

	dg->rx_retained--;
	udp_unref(ud, slot);
}
