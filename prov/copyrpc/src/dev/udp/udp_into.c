/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving into the target of poll_into (dgram.h), without a copy.
 *
 * One recvmsg. Its pieces are heads and places in turns, and at last the rest of the buffer with
 * the heads, so that any message fits:
 *
 * buffer:	 head 0 | head 1 | ... | rest
 * place:	 part 0 | part 1 | ...
 * message: head 0, part 0, head 1, part 1, ..., rest
 *
 * The kernel reports the length of the datagrams that it merged. If it matches the pieces, each
 * datagram is in its place. Otherwise the message is gathered into another buffer, for poll.
 */
#include <netinet/udp.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "dev/udp/udp_dgram.h"
#include "util/bits.h"
#include "util/copy.h"

#define UDP_HEAD_LEN 64u /* bytes of the buffer for each head */
#define UDP_HEADS    (UDP_RUN_MAX * UDP_HEAD_LEN)

#define UDP_ASK_MAX 16u /* polls of which one does not ask whether a datagram waits */

/* Shorter places, with the rest of the buffer, would not hold the longest message. */
#define UDP_PLACE_MIN UDP_HEADS

/** Pieces of a message. */
struct udp_pieces {
	struct iovec iov[2 * UDP_RUN_MAX + 1];
	size_t cnt;
	uint32_t len; /* bytes of the places */
};

static void udp_pieces_add(struct udp_pieces *p, void *base, size_t len)
{
	p->iov[p->cnt++] = (struct iovec){ .iov_base = base, .iov_len = len };
}

/** Fills p for at most `cnt` datagrams, of one message, with their heads in `buf`. */
static void udp_pieces_init(struct udp_pieces *p, const struct dev_dgram_target *place,
			    uint8_t *buf, unsigned cnt)
{
	unsigned max = UDP_MTU_MAX / (place->head_len + place->part_len);
	uint8_t *head = buf;
	uint32_t part;

	p->cnt = 0;
	p->len = 0;
	cnt = cnt < max ? cnt : max;
	for (; cnt && p->len < place->len && head < buf + UDP_HEADS; cnt--) {
		part = place->len - p->len;
		part = part < place->part_len ? part : place->part_len;
		udp_pieces_add(p, head, place->head_len);
		udp_pieces_add(p, place->base + p->len, part);
		p->len += part;
		head += UDP_HEAD_LEN;
	}
	udp_pieces_add(p, buf + UDP_HEADS, UDP_BUF_LEN - UDP_HEADS);
}

/** Returns true if `len` bytes in datagrams of `seg` match the pieces; the last may be shorter. */
static bool udp_pieces_fit(const struct udp_pieces *p, uint32_t len, uint32_t seg)
{
	size_t i, full;

	for (i = 0; i + 2 < p->cnt; i += 2) {
		full = p->iov[i].iov_len + p->iov[i + 1].iov_len;
		if (len <= seg)
			return len > p->iov[i].iov_len && len <= full;
		if (seg != full)
			return false;
		len -= seg;
	}
	return false;
}

/** Gathers the message from byte `off` on into a buffer for poll. Drops it if none is free. */
static void udp_run_gather(struct udp_dgram *ud, const struct udp_pieces *p, uint32_t off)
{
	const struct udp_run *run = &ud->run;
	uint32_t buf, len = run->len - off;

	if (ud->got_at == ud->got_cnt)
		ud->got_at = ud->got_cnt = 0;
	if (!ud->free_cnt || ud->got_cnt == UDP_BURST)
		return;
	buf = ud->free[--ud->free_cnt];
	ud->refs[buf] = 1;
	util_iov_gather(udp_buf(ud, buf), p->iov, p->cnt, off, len);
	ud->got[ud->got_cnt++] =
		(struct udp_got){ .buf = buf, .len = len, .seg = run->seg, .from = run->from };
}

/** Receives one message into the pieces. Returns 1, 0 (nothing, or dropped) or a fatal error. */
static int udp_run_receive(struct udp_dgram *ud, struct udp_pieces *p)
{
	union udp_addr from;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} ctl;
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = p->iov,
		.msg_iovlen = p->cnt,
		.msg_control = ud->sock.gro ? ctl.bytes : NULL,
		.msg_controllen = ud->sock.gro ? sizeof(ctl.bytes) : 0,
	};
	ssize_t ret = recvmsg(ud->rx_fd, &msg, MSG_DONTWAIT);

	if (ret < 0)
		return udp_rx_failed(ud);
	udp_rx_found(ud);
	if ((msg.msg_flags & MSG_TRUNC) || !msg.msg_namelen)
		return 0; /* truncated, or without sender */
	ud->run.len = (uint32_t)ret;
	ud->run.seg = udp_segment(&msg, ud->run.len);
	udp_addr_id(&from, &ud->run.from);
	return 1;
}

/** Returns the datagrams in their places. */
static int udp_run_return(struct udp_dgram *ud, struct dev_dgram_in *in)
{
	struct udp_run *run = &ud->run;
	uint32_t off, rest;

	ud->free_cnt--;
	for (run->cnt = 0, off = 0; off < run->len; off += run->seg) {
		rest = run->len - off;
		in[run->cnt] = (struct dev_dgram_in){
			.data = udp_buf(ud, run->buf) + run->cnt * UDP_HEAD_LEN,
			.len = rest < run->seg ? rest : run->seg,
			.slot = run->buf,
			.from = run->from,
		};
		run->cnt++;
	}
	ud->refs[run->buf] = run->cnt;
	ud->base.rx_retained += run->cnt;
	return (int)run->cnt;
}

/**
 * Returns true if a datagram waits at a socket. Asks only if the last poll of it `found` none, as a
 * call with many pieces is expensive then. A datagram without bytes is not seen: at times, which
 * `asked` counts, returns true without asking.
 */
static bool udp_waits(int fd, bool found, uint8_t *asked)
{
	int len;

	if (found || ++*asked % UDP_ASK_MAX == 0)
		return true;
	return ioctl(fd, FIONREAD, &len) || len;
}

int udp_poll_into(struct dev_dgram *dg, const struct dev_dgram_target *place,
		  struct dev_dgram_in *in, unsigned cnt)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;
	struct udp_pieces p;
	int ret;

	if (ud->status || ud->got_at < ud->got_cnt || ud->free_cnt < 2 ||
	    place->head_len > UDP_HEAD_LEN)
		return ud->status;
	if (ud->near.fd >= 0) {
		if (udp_near_is_own_next(&ud->near) &&
		    udp_waits(ud->sock.fd, ud->near.own_found, &ud->near.own_asked))
			return 0; /* poll takes both sockets */
		udp_near_pass(&ud->near);
	}
	ud->rx_fd = ud->near.fd >= 0 ? ud->near.fd : ud->sock.fd;
	if (!udp_waits(ud->rx_fd, ud->rx_found, &ud->asked))
		return -FI_EAGAIN;
	ud->run.buf = ud->free[ud->free_cnt - 1];
	udp_pieces_init(&p, place, udp_buf(ud, ud->run.buf), cnt);
	if (p.len < UDP_PLACE_MIN)
		return 0;
	ret = udp_run_receive(ud, &p);
	if (ret <= 0)
		return ret ? ret : -FI_EAGAIN;
	if (udp_pieces_fit(&p, ud->run.len, ud->run.seg))
		return udp_run_return(ud, in);
	ud->free_cnt--; /* the buffer with the heads */
	udp_run_gather(ud, &p, 0);
	ud->free[ud->free_cnt++] = ud->run.buf;
	return 0;
}

void udp_put_back(struct dev_dgram *dg, const struct dev_dgram_target *place, unsigned first)
{
	struct udp_dgram *ud = (struct udp_dgram *)dg;
	struct udp_pieces p;

	udp_pieces_init(&p, place, udp_buf(ud, ud->run.buf), ud->run.cnt);
	udp_run_gather(ud, &p, first * ud->run.seg);
	for (; first < ud->run.cnt; first++)
		udp_release(dg, ud->run.buf);
}
