/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device contract for datagrams: implemented by mlx5, verbs, udp and fault, called by the datagram
 * engine. Links: dev.h.
 *
 * An endpoint exchanges packets of at most `mtu` bytes with any number of peers. Packets may be
 * lost, duplicated or reordered. Their bytes arrive whole and with the sender's id. An endpoint
 * lives on an open struct dev, and the device's mem_reg registers the memory that it sends from.
 *
 * Sending: send() takes a burst and rings one doorbell. Datagrams are numbered from 0, modulo 2^32.
 * The call copies up to inline_max bytes. The device gathers longer ones, and their buffers must
 * not change until tx_done has passed their number. tx_done moves in poll and lags: only some
 * datagrams report. DEV_DGRAM_REPORT makes one report for itself and all before it. An engine that
 * needs a buffer back marks the last datagram sent from it and waits for that number.
 *
 * Receiving: the bytes stay in the device's buffer until release(), in any order, from the polling
 * thread. Released buffers return to the device in bulk. A datagram that finds no buffer is lost
 * without notice; credits for at most rx_cnt datagrams prevent that.
 *
 * Addresses: describe() -> the handshake -> resolve() at the peer, in any thread; it may take long,
 * as it looks for a route. An address handle serves any number of sessions. dev_dgram_is_from()
 * compares the id of a received datagram with it.
 *
 * Only open, resolve, forget and close allocate or block. An error of a send or of the device ends
 * the endpoint: it is logged once, and send and poll return it from then on.
 */
#ifndef DEV_DGRAM_H
#define DEV_DGRAM_H

#include <sys/socket.h>

#include "dev/dev.h"

#define DEV_DGRAM_PIECES  2u       /* pieces of a datagram: header and data */
#define DEV_DGRAM_CNT_MAX 32768u   /* largest rx_cnt */
#define DEV_DGRAM_REPORT  (1 << 0) /* flag in dev_dgram_out.flags */
#define DEV_DGRAM_ROOM    1024u    /* bytes of rx_room per datagram, besides its data */

/** Identity of an endpoint, equal for all its datagrams. Opaque to the engine. */
struct dev_dgram_id {
	uint64_t word[3];
};

/** Resolved address of a peer. Devices embed it first. */
struct dev_dgram_ah {
	struct dev_dgram_id id;
	uint32_t mtu; /* smaller of both ends */
};

/** Datagram to send: its pieces in order, together at most the address' mtu. */
struct dev_dgram_out {
	const struct dev_dgram_ah *to;
	const void *base[DEV_DGRAM_PIECES];
	uint32_t len[DEV_DGRAM_PIECES]; /* 0: no piece */
	/* mem[i] covers base[i]. Needed above inline_max, if the device has mem_reg. */
	const struct dev_mem *mem[DEV_DGRAM_PIECES];
	uint32_t flags;
};

/** Received datagram. */
struct dev_dgram_in {
	const uint8_t *data; /* len bytes, at the start of a cache line */
	uint32_t len;
	uint32_t slot; /* for release */
	struct dev_dgram_id from;
};

/** Destination for the payload of a run of expected datagrams (poll_into). */
struct dev_dgram_target {
	uint8_t *base; /* the device may write to these bytes whatever arrives */
	uint32_t len;
	uint32_t head_len; /* bytes in front of the payload in each datagram */
	uint32_t part_len; /* payload of each datagram but the last */
};

/** Byte that a datagram for the engine has: (byte at `off`) & `mask` == `value`. */
struct dev_dgram_match {
	uint8_t off;
	uint8_t mask;
	uint8_t value;
};

#define DEV_DGRAM_MATCH_MAX 4u

struct dev_dgram_attr {
	/* IP devices: the local address without its port. Other devices take it from `dev`. */
	const struct sockaddr *local;
	uint16_t port;   /* IP devices: port in host order; 0: any free one */
	uint32_t rx_cnt; /* receive buffers, 1 to DEV_DGRAM_CNT_MAX */
	uint32_t tx_cnt; /* datagrams in flight, at least 8 */
	/*
	 * Bytes that all datagrams for the engine have. The device may drop others where that is
	 * cheap; the engine checks what it gets all the same.
	 */
	struct dev_dgram_match match[DEV_DGRAM_MATCH_MAX];
	uint32_t match_cnt;
};

/** Part that the engine reads. Devices embed it first. */
struct dev_dgram {
	const struct dev_dgram_ops *ops;
	uint32_t mtu; /* longest datagram, without headers of the device */
	uint32_t inline_max;
	uint32_t tx_posted; /* number of the next datagram */
	uint32_t tx_done; /* the device has read the buffers of all datagrams before this number */
	uint32_t rx_cnt;
	uint32_t rx_retained; /* received, not released */
	bool copies_ah;       /* an address handle may be forgotten right after send */
	/* bytes that wait for poll, with DEV_DGRAM_ROOM for each datagram; 0: unlimited */
	uint32_t rx_room;
	/*
	 * The last send found no room, and an armed endpoint wakes when there is some. Never set
	 * if only polling makes room.
	 */
	bool tx_full;
};

struct dev_dgram_ops {
	/*
	 * Opens an endpoint on an open device (UDP: NULL). Returns 0, or an error with a log line.
	 */
	int (*open)(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg);
	/* No address handle may be left. Frees the receive buffers, released or not. */
	void (*close)(struct dev_dgram *dg);

	int (*describe)(struct dev_dgram *dg, struct dev_desc *desc);
	/*
	 * Validates the description. Returns 0, -FI_EINVAL, -FI_EHOSTUNREACH or -FI_ENOMEM; logs
	 * errors.
	 */
	int (*resolve)(struct dev_dgram *dg, const struct dev_desc *peer, struct dev_dgram_ah **ah);
	/*
	 * Returns the longest datagram that reaches this IP address, as far as known; at most mtu.
	 * NULL: the address makes no difference.
	 */
	uint32_t (*route_mtu)(struct dev_dgram *dg, const struct sockaddr *peer);
	/*
	 * Frees the handle. All datagrams sent to it are done (tx_done), or the device copies_ah.
	 */
	void (*forget)(struct dev_dgram *dg, struct dev_dgram_ah *ah);

	/*
	 * Sends out[0..cnt) in order with one doorbell. Returns the number taken (less than cnt: no
	 * more room until the next poll), -FI_EAGAIN if none, or the error that ended the endpoint.
	 */
	int (*send)(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt);
	/*
	 * Fills in up to cnt received datagrams. cnt is 1 or more, because reports of sends are
	 * queued behind earlier arrivals. Returns their number, or the error that ended the
	 * endpoint.
	 */
	int (*poll)(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
	/*
	 * Returns true if poll would find nothing, in a few instructions. May return false wrongly.
	 * NULL: only poll finds out.
	 */
	bool (*is_idle)(struct dev_dgram *dg);
	/*
	 * Like poll, for expected datagrams: their payload is placed in the target, only their head
	 * is at in->data. Returns at most cnt, -FI_EAGAIN if nothing arrived, or 0 if poll has to
	 * take what arrived. NULL: unsupported.
	 */
	int (*poll_into)(struct dev_dgram *dg, const struct dev_dgram_target *place,
			 struct dev_dgram_in *in, unsigned cnt);
	/*
	 * Undoes the last poll_into from datagram `first` on: the next polls return those datagrams
	 * again, whole. Restores their target and releases their buffers.
	 */
	void (*put_back)(struct dev_dgram *dg, const struct dev_dgram_target *place,
			 unsigned first);
	/* Gives the buffer of a received datagram back. */
	void (*release)(struct dev_dgram *dg, uint32_t slot);

	/* Like in dev_ops, for this endpoint alone. */
	int (*wait_fd)(struct dev_dgram *dg);
	int (*arm)(struct dev_dgram *dg);
	void (*disarm)(struct dev_dgram *dg);
};

/** Returns true if the datagram is from the endpoint with that identity. */
static inline bool dev_dgram_has_id(const struct dev_dgram_in *in, const struct dev_dgram_id *id)
{
	return id->word[0] == in->from.word[0] && id->word[1] == in->from.word[1] &&
	       id->word[2] == in->from.word[2];
}

static inline bool dev_dgram_is_from(const struct dev_dgram_ah *ah, const struct dev_dgram_in *in)
{
	return dev_dgram_has_id(in, &ah->id);
}

/**
 * Returns true if the device has read the buffers of datagram `number`, which was sent. That may
 * be 2^31 datagrams ago and more: all but those in flight are done.
 */
static inline bool dev_dgram_is_done(const struct dev_dgram *dg, uint32_t number)
{
	return number - dg->tx_done >= dg->tx_posted - dg->tx_done;
}

static inline uint32_t dev_dgram_out_len(const struct dev_dgram_out *out)
{
	return out->len[0] + out->len[1];
}

#endif
