/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoint on a UDP socket. Called by the datagram engine through udp_dgram_ops.
 *
 * Sending (udp_tx.c): a burst is one system call. A run of datagrams of one length to one peer is
 * one message, which the kernel cuts (GSO). The call copies, so tx_done follows at once. Short
 * datagrams of a run are gathered before: the kernel copies one piece of 64 KiB in 7 us, 44 of 1472
 * bytes, into pages that are in no cache, in 15.
 *
 * Receiving (udp_rx.c): recvmmsg fills free buffers, or recvmsg a single one after an empty poll.
 * The kernel may merge a run of one sender's datagrams into one buffer (GRO), so each buffer has 64
 * KiB and counts its unreleased datagrams. Untouched buffer pages cost nothing.
 *
 * Receiving in place (udp_into.c): one recvmsg alternates between heads, in a buffer, and the
 * target. Unexpected datagrams are gathered into a buffer for poll.
 *
 * The peer that is sent most to has a second socket (udp_near.h).
 *
 * Waiting: for each datagram, the sending call walks through all wait sets above a watched socket.
 * So the socket is watched from arm on, until UDP_AWAKE polls after disarm have found something.
 *
 * Runs in the polling thread; resolve in any.
 */
#ifndef DEV_UDP_UDP_DGRAM_H
#define DEV_UDP_UDP_DGRAM_H

#include "dev/udp/udp.h"
#include "dev/udp/udp_near.h"
#include "dev/udp/udp_sock.h"

#define UDP_BURST      16u        /* messages of one system call */
#define UDP_RUN_MAX    64u        /* datagrams that GSO cuts from one message */
#define UDP_BUF_LEN    (1u << 16) /* bytes of a receive buffer: the most that GRO merges */
#define UDP_GATHER_MAX 4096u      /* bytes of a datagram that is gathered */
#define UDP_AWAKE      64u        /* non-empty polls after disarm before the socket is unwatched */

struct udp_ah {
	struct dev_dgram_ah base;
	union udp_addr addr;
};

/** Contents of one buffer: `len` bytes of datagrams of `seg` bytes; the last may be shorter. */
struct udp_got {
	uint32_t buf;
	uint32_t len;
	uint32_t seg;
	uint32_t off; /* offset of the next datagram to return */
	struct dev_dgram_id from;
};

/** Datagrams returned by the last poll_into. */
struct udp_run {
	uint32_t buf; /* buffer with the heads */
	uint32_t len;
	uint32_t seg;
	uint32_t cnt; /* datagrams */
	struct dev_dgram_id from;
};

struct udp_dgram {
	struct dev_dgram base;
	struct udp_sock sock;
	struct udp_near near;
	int rx_fd;          /* socket of the last receive call */
	int full_fd;        /* socket without room, while base.tx_full */
	int status;         /* error that ended the endpoint, or 0 */
	bool tx_warned;     /* a send error was logged */
	bool gso_doubted;   /* GSO is off until single datagrams have shown what is wrong */
	bool rx_found;      /* the last receive call found something */
	uint8_t asked;      /* polls into a target that followed an empty one */
	bool armed;         /* between arm and disarm */
	bool watched;       /* the wait set has the socket */
	uint32_t found_cnt; /* non-empty polls since disarm, while watched */
	uint8_t *bufs;
	uint32_t *free; /* stack of free buffers */
	uint32_t free_cnt;
	/* per buffer: datagrams returned and unreleased, plus one while it has more */
	uint32_t *refs;
	uint32_t got_at;
	uint32_t got_cnt;
	struct udp_got got[UDP_BURST];
	struct udp_run run;
	int wait_fd; /* epoll over the sockets */
	struct dev_dgram_match match[DEV_DGRAM_MATCH_MAX];
	uint32_t match_cnt;
};

/** Returns true if the connected socket sends to `to`. */
static inline bool udp_is_near(const struct udp_dgram *ud, const struct dev_dgram_ah *to)
{
	return ud->near.peer && &ud->near.peer->base == to;
}

static inline uint8_t *udp_buf(const struct udp_dgram *ud, uint32_t buf)
{
	return ud->bufs + (size_t)buf * UDP_BUF_LEN;
}

/** Returns the buffer that runs are gathered in, behind those for receiving. */
static inline uint8_t *udp_gather_buf(const struct udp_dgram *ud)
{
	return udp_buf(ud, ud->base.rx_cnt);
}

int udp_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt);
int udp_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
void udp_release(struct dev_dgram *dg, uint32_t slot);
int udp_poll_into(struct dev_dgram *dg, const struct dev_dgram_target *place,
		  struct dev_dgram_in *in, unsigned cnt);
void udp_put_back(struct dev_dgram *dg, const struct dev_dgram_target *place, unsigned first);

/* Shared by both ways of receiving (udp_rx.c). */

/** Returns the length of the datagrams merged into these `len` bytes; `len` for a single one. */
uint32_t udp_segment(struct msghdr *msg, uint32_t len);
/** Handles an errno of a receive call. Returns 0, or the error that ended the endpoint. */
int udp_rx_failed(struct udp_dgram *ud);
/** Counts a successful receive call; unwatches the socket after UDP_AWAKE of them. */
void udp_rx_found(struct udp_dgram *ud);

/** Removes the socket from the wait set. */
void udp_unwatch_cold(struct udp_dgram *ud);

/** Makes the wait set report room to send, or no longer. */
void udp_wait_for_room(struct udp_dgram *ud, bool full);

#endif
