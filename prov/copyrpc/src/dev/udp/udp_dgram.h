/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is a datagram endpoint on a UDP socket?
 *
 * Sending (udp_tx.c): a burst is one system call; a run of datagrams of one length to one peer is one
 * message of it, which the kernel cuts (GSO). The call copies, so tx_done follows at once.
 *
 * Receiving (udp_rx.c): recvmmsg fills free buffers, recvmsg one where nothing came lately. The
 * kernel may join a run of one sender's datagrams into one buffer (GRO), so each buffer holds up to
 * 64 KiB and counts those of its datagrams that are not released. Untouched buffer pages cost
 * nothing.
 *
 * ... and straight to where it belongs (udp_into.c): one recvmsg whose pieces are heads, in a buffer, and
 * places, by turns. What was not expected is gathered into a buffer, as if it had come there.
 *
 * Waiting: the kernel walks through all wait sets above a watched socket for each datagram, in the call that
 * sends it. So the socket is watched from arm on, until so many polls after disarm found something
 * (UDP_AWAKE) that nobody seems to sleep any more.
 *
 * Owner: who polls; resolve may run in another thread.
 * Shown by test/unit/dev/udp/test_udp_dgram.c.
 */
#ifndef UDP_UDP_DGRAM_H
#define UDP_UDP_DGRAM_H

#include "dev/udp/udp.h"
#include "dev/udp/udp_sock.h"

#define UDP_BURST   16u        /* messages of one system call */
#define UDP_RUN_MAX 64u        /* datagrams that GSO cuts from one message */
#define UDP_BUF_LEN (1u << 16) /* of a receive buffer: all that GRO may join */
#define UDP_AWAKE   64u        /* polls that found something since disarm */

struct udp_ah {
	struct dev_dgram_ah base;
	union udp_addr addr;
};

/** What one buffer received: `len` bytes of datagrams of `seg` bytes, the last may be shorter. */
struct udp_got {
	uint32_t buf;
	uint32_t len;
	uint32_t seg;
	uint32_t off; /* of the next datagram to hand out */
	struct dev_dgram_id from;
};

/** What the last poll_into gave. */
struct udp_run {
	uint32_t buf; /* of the heads */
	uint32_t len;
	uint32_t seg;
	uint32_t cnt; /* datagrams */
	struct dev_dgram_id from;
};

struct udp_dgram {
	struct dev_dgram base;
	struct udp_sock sock;
	int status;         /* what ended the endpoint, or 0 */
	bool tx_warned;     /* that datagrams cannot leave was said */
	bool rx_found;      /* the last look found something */
	bool armed;         /* somebody sleeps, or may */
	bool watched;       /* the wait set has the socket */
	uint32_t found_cnt; /* polls that found something since disarm, while watched */
	uint8_t *bufs;
	uint32_t *free; /* LIFO of buffers */
	uint32_t free_cnt;
	uint32_t *refs; /* of each buffer: datagrams handed out, and one while more are in it */
	uint32_t got_at;
	uint32_t got_cnt;
	struct udp_got got[UDP_BURST];
	struct udp_run run;
	int wait_fd; /* epoll over the socket */
};

static inline uint8_t *udp_buf(const struct udp_dgram *ud, uint32_t buf)
{
	return ud->bufs + (size_t)buf * UDP_BUF_LEN;
}

int udp_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt);
int udp_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
void udp_release(struct dev_dgram *dg, uint32_t slot);
int udp_poll_into(struct dev_dgram *dg, const struct dev_dgram_target *place,
		  struct dev_dgram_in *in, unsigned cnt);
void udp_put_back(struct dev_dgram *dg, const struct dev_dgram_target *place, unsigned first);

/* What both ways of receiving share (udp_rx.c). */

/** Length of the datagrams that the kernel joined to these `len` bytes; `len` if there is one. */
uint32_t udp_segment(struct msghdr *msg, uint32_t len);
/** The kernel had nothing (errno): 0, or what ended the endpoint. */
int udp_rx_failed(struct udp_dgram *ud);
/** The kernel had something. */
void udp_rx_found(struct udp_dgram *ud);

/** Nobody sleeps: the wait set lets go of the socket. */
void udp_unwatch_cold(struct udp_dgram *ud);

/** Has the wait set look for room to send, or no longer. */
void udp_wait_for_room(struct udp_dgram *ud, bool full);

#endif
