/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmit burst: packets to be posted with the next doorbell, in one call to the device. Called by
 * tx/ and bulk/ to add packets and by the endpoint to flush.
 *
 * Packets that the device does not accept remain, in order. Each packet names an owner that counts
 * its packets in the burst. While that count is not 0 the referenced bytes must stay, and the owner
 * retransmits nothing.
 *
 * Headers that are not stored before their bytes are in a ring, longer than the device's queue and
 * the burst together: an entry is reused long after its packet has left. For a device that copies
 * everything the burst alone counts: then each burst begins with the first entry.
 *
 * Owner: the endpoint. Tested in test/unit/erpc/buf/test_erpc_out.c.
 */
#ifndef ERPC_BUF_ERPC_OUT_H
#define ERPC_BUF_ERPC_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dgram.h"
#include "erpc/buf/erpc_buf.h"
#include "util/bits.h"
#include "wire/wire_erpc.h"

/* Over UDP with packets of Ethernet's MTU, GSO makes two messages of these. */
#define ERPC_BURST 88u

/** Owner of packets: a slot. */
struct erpc_out_owner {
	uint16_t unsent; /* packets in the burst */
};

struct erpc_out {
	struct dev_dgram *dg;
	unsigned cnt;
	struct dev_dgram_out pkt[ERPC_BURST];
	struct erpc_out_owner *owner[ERPC_BURST]; /* NULL: no owner */
	uint32_t
		*last_tx[ERPC_BURST]; /* gets the device's number when the packet leaves, or NULL */
	uint8_t (*hdrs)[WIRE_ERPC_HDR_LEN];
	struct dev_mem *hdrs_mem;
	uint32_t hdr_mask;
	uint32_t hdr_next;
	uint32_t hdr_kept; /* bits of hdr_next that an empty burst keeps: 0 if the device copies */
	struct dev *dev;
	const struct dev_ops *dev_ops;
};

/** Takes the device's limit of posted datagrams in tx_cnt. Returns 0 or -FI_E*. */
int erpc_out_init(struct erpc_out *out, struct dev_dgram *dg, struct dev *dev,
		  const struct dev_ops *dev_ops, uint32_t tx_cnt);
void erpc_out_fini(struct erpc_out *out);

/** Flushes the full burst. Returns true if there is room now. */
bool erpc_out_room_cold(struct erpc_out *out);

/** Returns true if there is room for a packet, after a flush if necessary. */
static inline bool erpc_out_room(struct erpc_out *out)
{
	return UTIL_LIKELY(out->cnt < ERPC_BURST) || erpc_out_room_cold(out);
}

/** Adds a packet and fills in all but its pieces and flags. Requires erpc_out_room. */
static inline struct dev_dgram_out *erpc_out_next(struct erpc_out *out,
						  const struct dev_dgram_ah *to, uint32_t *last_tx,
						  struct erpc_out_owner *owner)
{
	struct dev_dgram_out *pkt = &out->pkt[out->cnt];

	out->owner[out->cnt] = owner;
	out->last_tx[out->cnt] = last_tx;
	out->cnt++;
	if (owner)
		owner->unsent++;
	pkt->to = to;
	return pkt;
}

/** Notes that a packet of the buffer is added. Returns its flags. */
static inline uint32_t erpc_out_flags(struct erpc_buf *buf)
{
	uint32_t flags = UTIL_UNLIKELY(buf->sent && buf->resent) ? DEV_DGRAM_REPORT : 0;

	buf->sent = true;
	return flags;
}

/** Adds packet 0 of a message buffer: header and `len` bytes behind it. Requires erpc_out_room. */
static inline void erpc_out_put_first(struct erpc_out *out, const struct dev_dgram_ah *to,
				      struct erpc_buf *buf, uint32_t len,
				      const struct wire_erpc_hdr *h, struct erpc_out_owner *owner)
{
	struct dev_dgram_out *pkt = erpc_out_next(out, to, &buf->last_tx, owner);

	pkt->flags = erpc_out_flags(buf);
	wire_erpc_put(buf->hdr, h);
	pkt->base[0] = buf->hdr;
	pkt->len[0] = WIRE_ERPC_HDR_LEN + len;
	pkt->mem[0] = buf->mem;
	pkt->len[1] = 0;
}

/** Bytes of a packet that its header, which is in the ring, is not stored before. */
struct erpc_out_bytes {
	const void *data;
	uint32_t len;
	uint32_t flags;
	const struct dev_mem *mem; /* covers them */
	uint32_t *last_tx;
};

/** Adds a packet with such bytes. Requires erpc_out_room. */
static inline void erpc_out_put_bytes(struct erpc_out *out, const struct dev_dgram_ah *to,
				      const struct wire_erpc_hdr *h,
				      const struct erpc_out_bytes *bytes,
				      struct erpc_out_owner *owner)
{
	struct dev_dgram_out *pkt = erpc_out_next(out, to, bytes->last_tx, owner);
	uint8_t *hdr = out->hdrs[out->hdr_next++ & out->hdr_mask];

	pkt->flags = bytes->flags;
	wire_erpc_put(hdr, h);
	pkt->base[0] = hdr;
	pkt->len[0] = WIRE_ERPC_HDR_LEN;
	pkt->mem[0] = out->hdrs_mem;
	pkt->base[1] = bytes->data;
	pkt->len[1] = bytes->len;
	pkt->mem[1] = bytes->mem;
}

/**
 * Adds another packet, with bytes outside the header's buffer; `buf` is NULL if no buffer has them.
 * Requires erpc_out_room.
 */
void erpc_out_put(struct erpc_out *out, const struct dev_dgram_ah *to,
		  const struct wire_erpc_hdr *h, const void *data, uint32_t len,
		  const struct dev_mem *mem, struct erpc_buf *buf, struct erpc_out_owner *owner);

/** Flushes a burst that is not empty. Returns 0 or the error that broke the device. */
int erpc_out_flush_some(struct erpc_out *out);

/** Flushes the burst, if it has packets. Returns 0 or the error that broke the device. */
static inline int erpc_out_flush(struct erpc_out *out)
{
	return out->cnt ? erpc_out_flush_some(out) : 0;
}

/** Drops the packets of `owner` that are in the burst. */
void erpc_out_forget(struct erpc_out *out, struct erpc_out_owner *owner);

/** Drops the packets to `to` that are in the burst. */
void erpc_out_forget_peer(struct erpc_out *out, const struct dev_dgram_ah *to);

#endif
