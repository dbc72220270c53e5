/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What leaves with the next doorbell?
 *
 * Packets are put together here and leave in bursts, one call to the device for all of them. What
 * the device has no room for stays, in order. Who puts a packet in names a counter of its packets
 * that have not left: while it is not 0 what they refer to stays, and nothing is sent again.
 *
 * Headers that do not stand before their bytes live in a ring that is longer than all that the
 * device and the burst can hold: a header's place comes round when its packet has left for long.
 *
 * Owner: the ep. Shown by test/unit/erpc/buf/test_erpc_out.c.
 */
#ifndef ERPC_OUT_H
#define ERPC_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dgram.h"
#include "erpc/buf/erpc_buf.h"
#include "util/bits.h"
#include "wire/wire_erpc.h"

#define ERPC_BURST 32u

/** Whom a packet belongs to. */
struct erpc_out_owner {
	uint16_t unsent;  /* of its packets, those in a burst */
	uint32_t last_tx; /* the device's number of the last one that left */
};

struct erpc_out {
	struct dev_dgram *dg;
	unsigned cnt;
	struct dev_dgram_out pkt[ERPC_BURST];
	struct erpc_out_owner *owner[ERPC_BURST]; /* NULL: nobody */
	struct erpc_buf *buf[ERPC_BURST];         /* NULL: not from one */
	uint8_t (*hdrs)[WIRE_ERPC_HDR_LEN];
	struct dev_mem *hdrs_mem;
	uint32_t hdr_mask;
	uint32_t hdr_next;
	struct dev *dev;
	const struct dev_ops *dev_ops;
};

/** `tx_cnt` as the device was opened with. 0 or -FI_E*. */
int erpc_out_init(struct erpc_out *out, struct dev_dgram *dg, struct dev *dev,
		  const struct dev_ops *dev_ops, uint32_t tx_cnt);
void erpc_out_fini(struct erpc_out *out);

/** The burst is full: some leave, if they can. */
bool erpc_out_room_cold(struct erpc_out *out);

/** Is there room for one more? It may have to let some go for that. */
static inline bool erpc_out_room(struct erpc_out *out)
{
	return UTIL_LIKELY(out->cnt < ERPC_BURST) || erpc_out_room_cold(out);
}

/** A place in the burst, all but its pieces filled in. After room. */
static inline struct dev_dgram_out *erpc_out_next(struct erpc_out *out,
						  const struct dev_dgram_ah *to,
						  struct erpc_buf *buf,
						  struct erpc_out_owner *owner)
{
	struct dev_dgram_out *pkt = &out->pkt[out->cnt];

	out->owner[out->cnt] = owner;
	out->buf[out->cnt] = buf;
	out->cnt++;
	if (owner)
		owner->unsent++;
	pkt->to = to;
	pkt->flags = 0;
	if (buf) {
		pkt->flags = buf->sent && buf->resent ? DEV_DGRAM_REPORT : 0;
		buf->sent = true;
	}
	return pkt;
}

/** Packet 0 of a message buffer: its header, and `len` bytes behind it. After room. */
static inline void erpc_out_put_first(struct erpc_out *out, const struct dev_dgram_ah *to,
				      struct erpc_buf *buf, uint32_t len,
				      const struct wire_erpc_hdr *h, struct erpc_out_owner *owner)
{
	struct dev_dgram_out *pkt = erpc_out_next(out, to, buf, owner);

	wire_erpc_put(buf->hdr, h);
	pkt->base[0] = buf->hdr;
	pkt->len[0] = WIRE_ERPC_HDR_LEN + len;
	pkt->mem[0] = buf->mem;
	pkt->len[1] = 0;
}

/** Any other: bytes that lie elsewhere, `buf` NULL where no buffer has them. After room. */
void erpc_out_put(struct erpc_out *out, const struct dev_dgram_ah *to,
		  const struct wire_erpc_hdr *h, const void *data, uint32_t len,
		  const struct dev_mem *mem, struct erpc_buf *buf, struct erpc_out_owner *owner);

/** The last packet that was put in asks the device for a report. */
static inline void erpc_out_report(struct erpc_out *out)
{
	out->pkt[out->cnt - 1].flags |= DEV_DGRAM_REPORT;
}

/** What waits, a packet at least, leaves, as far as the device takes it: 0, or what ended the device. */
int erpc_out_flush_some(struct erpc_out *out);

/** The same, if anything waits. */
static inline int erpc_out_flush(struct erpc_out *out)
{
	return out->cnt ? erpc_out_flush_some(out) : 0;
}

/** Packets of `owner` that have not left never will. */
void erpc_out_forget(struct erpc_out *out, struct erpc_out_owner *owner);

/** Nothing goes to `to` any more. */
void erpc_out_forget_peer(struct erpc_out *out, const struct dev_dgram_ah *to);

#endif
