/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does an engine ask of a device that carries datagrams? THE DATAGRAM CONTRACT, beside dev.h.
 *
 * An endpoint sends to, and hears from, any number of others, whatever its device: packets of at
 * most `mtu` bytes that may be lost, doubled or come out of order, but whose bytes are whole and whose
 * sender is told. It lives on an open struct dev, whose mem_reg registers what is sent from.
 *
 * Sending: send() takes a burst and rings once. Datagrams are counted from 0 on, modulo 2^32. Up to
 * inline_max bytes are copied by the call; what is longer is gathered by the device, and stays
 * untouched until tx_done has passed its number. tx_done moves while polling, and lags: only some
 * datagrams report. DEV_DGRAM_REPORT makes one report for itself and all before it, so whoever must
 * have a buffer back (it was sent again, its owner wants it) marks its last datagram and waits for
 * that number.
 *
 * Receiving: poll() fills in what has come. The bytes stay in the device's buffer until release(),
 * in any order, from the thread that polls; released buffers go back to the device in bulk. A
 * datagram that finds no buffer is lost, silently: who needs that not to happen gives credits for
 * no more than rx_cnt.
 *
 * Addresses: describe() -> the handshake -> resolve() at the peer, which may take a while (it finds
 * a route) and may run in another thread. An address handle serves any number of sessions. Bytes
 * that claim to come from a peer are held against its id: dev_dgram_is_from().
 *
 * Nothing here allocates or blocks but open, resolve, forget and close. Errors of a send itself
 * (not of its way), and the device's own, are the endpoint's end: logged once, and send and poll
 * return them from then on.
 * Reviewed against: mlx5 and verbs UD, UDP sockets (sendmmsg copies: tx_done follows at once).
 */
#ifndef DEV_DGRAM_H
#define DEV_DGRAM_H

#include <sys/socket.h>

#include "dev/dev.h"

#define DEV_DGRAM_PIECES  2u       /* of a datagram: a header and its data, which lie apart */
#define DEV_DGRAM_CNT_MAX 32768u   /* of rx_cnt */
#define DEV_DGRAM_REPORT  (1 << 0) /* of dev_dgram_out.flags */
#define DEV_DGRAM_ROOM    1024u    /* what a datagram takes in rx_room besides its bytes */

/** Who sent it, or where it goes: equal for the same endpoint. Meaningless beyond that. */
struct dev_dgram_id {
	uint64_t word[3];
};

/** A peer's address, resolved. Devices embed it first. */
struct dev_dgram_ah {
	struct dev_dgram_id id;
	uint32_t mtu; /* of both ends */
};

/** A datagram to send: pieces one after the other, together at most the address' mtu. */
struct dev_dgram_out {
	const struct dev_dgram_ah *to;
	const void *base[DEV_DGRAM_PIECES];
	uint32_t len[DEV_DGRAM_PIECES]; /* 0: no such piece */
	/* Of base[i], covering it; needed above inline_max, if the device has mem_reg. */
	const struct dev_mem *mem[DEV_DGRAM_PIECES];
	uint32_t flags;
};

/** A datagram that came. */
struct dev_dgram_in {
	const uint8_t *data; /* len bytes; on a cache line of its own */
	uint32_t len;
	uint32_t slot; /* for release */
	struct dev_dgram_id from;
};

/** Where the payload of a run of datagrams belongs that may come next (poll_into). */
struct dev_dgram_target {
	uint8_t *base; /* whatever comes, these bytes may be written to */
	uint32_t len;
	uint32_t head_len; /* before the payload, in each datagram */
	uint32_t part_len; /* payload of each but the last one */
};

struct dev_dgram_attr {
	/* IP devices: the address to use, its port aside. Others have it from `dev`. */
	const struct sockaddr *local;
	uint16_t port;   /* IP devices: the port, host order; 0: any that is free */
	uint32_t rx_cnt; /* receive buffers, 1 to DEV_DGRAM_CNT_MAX */
	uint32_t tx_cnt; /* datagrams that may be on their way, at least 8 */
};

/** The part that the engine reads. Devices embed it first. */
struct dev_dgram {
	const struct dev_dgram_ops *ops;
	uint32_t mtu; /* bytes of a datagram, ours and all of them for the engine */
	uint32_t inline_max;
	uint32_t tx_posted; /* number of the next datagram */
	uint32_t tx_done;   /* all before this number have left their buffers */
	uint32_t rx_cnt;
	uint32_t rx_held; /* received, not released */
	bool copies_ah;   /* an address handle may be forgotten as soon as send is over */
	uint32_t rx_room; /* bytes that wait for poll, and DEV_DGRAM_ROOM each; 0: no such bound */
	/*
	 * The last send found no room, and an armed endpoint wakes when there is some. Devices whose room
	 * comes by polling alone never say so.
	 */
	bool tx_full;
};

struct dev_dgram_ops {
	/*
	 * An endpoint of its own on an open device (UDP: NULL): 0, or -FI_E* with a line in the
	 * log.
	 */
	int (*open)(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg);
	/* No address handle left. Buffers that were received are gone with it. */
	void (*close)(struct dev_dgram *dg);

	int (*describe)(struct dev_dgram *dg, struct dev_desc *desc);
	/* Validates it all. -FI_EINVAL, -FI_EHOSTUNREACH, -FI_ENOMEM: logged. */
	int (*resolve)(struct dev_dgram *dg, const struct dev_desc *peer, struct dev_dgram_ah **ah);
	/*
	 * The longest datagram that gets to this IP address, as far as is known; at most mtu. NULL: it does
	 * not depend on the address.
	 */
	uint32_t (*route_mtu)(struct dev_dgram *dg, const struct sockaddr *peer);
	/* Nothing that went there is open (tx_done), or the device copies_ah. */
	void (*forget)(struct dev_dgram *dg, struct dev_dgram_ah *ah);

	/*
	 * Sends out[0..cnt) in order, with one doorbell: how many were taken (less than cnt: no room
	 * for more now, it comes by polling), -FI_EAGAIN (none), or what ended the endpoint.
	 */
	int (*send)(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt);
	/*
	 * What has come, at most cnt (1 or more: reports of what was sent come behind what arrived
	 * before them): how many, or what ended the endpoint.
	 */
	int (*poll)(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
	/*
	 * Would poll find nothing? For a few instructions; it may say no and be wrong. NULL: only poll knows.
	 */
	bool (*is_idle)(struct dev_dgram *dg);
	/*
	 * As poll, for who knows what ought to come: at most cnt datagrams, whose payload is in its place
	 * already, and only the head is at in->data. -FI_EAGAIN: nothing came; 0: something else did, or the
	 * device would rather not; poll has it. NULL: this device cannot.
	 */
	int (*poll_into)(struct dev_dgram *dg, const struct dev_dgram_target *place,
			 struct dev_dgram_in *in, unsigned cnt);
	/*
	 * Of what the last poll_into gave, the datagrams from `first` on are something else after all: the
	 * next polls give them again, whole. Their place is as it was; their buffers are released.
	 */
	void (*put_back)(struct dev_dgram *dg, const struct dev_dgram_target *place,
			 unsigned first);
	/* The engine is done with that buffer. */
	void (*release)(struct dev_dgram *dg, uint32_t slot);

	/* As in dev_ops; for this endpoint alone. */
	int (*wait_fd)(struct dev_dgram *dg);
	int (*arm)(struct dev_dgram *dg);
	void (*disarm)(struct dev_dgram *dg);
};

static inline bool dev_dgram_is_from(const struct dev_dgram_ah *ah, const struct dev_dgram_in *in)
{
	return ah->id.word[0] == in->from.word[0] && ah->id.word[1] == in->from.word[1] &&
	       ah->id.word[2] == in->from.word[2];
}

/** Has the device left the buffers of datagram `number`? */
static inline bool dev_dgram_is_done(const struct dev_dgram *dg, uint32_t number)
{
	return (int32_t)(dg->tx_done - number) > 0;
}

static inline uint32_t dev_dgram_out_len(const struct dev_dgram_out *out)
{
	return out->len[0] + out->len[1];
}

#endif
