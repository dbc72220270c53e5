/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_out.h. */
#include "erpc/buf/erpc_out.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

/** Returns true if the device copies whole datagrams. */
static bool erpc_out_is_copied(const struct dev_dgram *dg)
{
	return dg->inline_max >= dg->mtu;
}

/** Returns the number of headers in the ring. A device that copies everything reads none later. */
static uint32_t erpc_out_hdr_cnt(const struct dev_dgram *dg, uint32_t tx_cnt)
{
	uint32_t most = erpc_out_is_copied(dg) ? ERPC_BURST : 2 * (tx_cnt + ERPC_BURST);
	uint32_t cnt = 64;

	while (cnt < most)
		cnt *= 2;
	return cnt;
}

int erpc_out_init(struct erpc_out *out, struct dev_dgram *dg, struct dev *dev,
		  const struct dev_ops *dev_ops, uint32_t tx_cnt)
{
	uint32_t cnt = erpc_out_hdr_cnt(dg, tx_cnt);
	size_t len;
	int ret;

	len = (size_t)cnt * WIRE_ERPC_HDR_LEN;
	*out = (struct erpc_out){ .dg = dg,
				  .dev = dev,
				  .dev_ops = dev_ops,
				  .hdr_mask = cnt - 1,
				  .hdr_kept = erpc_out_is_copied(dg) ? 0 : UINT32_MAX };
	out->hdrs = aligned_alloc(64, len);
	if (!out->hdrs)
		return -FI_ENOMEM;
	if (!dev_ops || !dev_ops->mem_reg)
		return 0;
	ret = dev_ops->mem_reg(dev, out->hdrs, len, DEV_MEM_LOCAL, &out->hdrs_mem);
	if (ret)
		erpc_out_fini(out);
	return ret;
}

void erpc_out_fini(struct erpc_out *out)
{
	if (out->hdrs_mem)
		out->dev_ops->mem_dereg(out->dev, out->hdrs_mem);
	free(out->hdrs);
	out->hdrs_mem = NULL;
	out->hdrs = NULL;
}

bool erpc_out_room_cold(struct erpc_out *out)
{
	erpc_out_flush(out);
	return out->cnt < ERPC_BURST;
}

void erpc_out_put(struct erpc_out *out, const struct dev_dgram_ah *to,
		  const struct wire_erpc_hdr *h, const void *data, uint32_t len,
		  const struct dev_mem *mem, struct erpc_buf *buf, struct erpc_out_owner *owner)
{
	struct erpc_out_bytes bytes = { .data = data, .len = len, .mem = mem };

	if (UTIL_UNLIKELY(buf != NULL)) {
		bytes.last_tx = &buf->last_tx;
		bytes.flags = erpc_out_flags(buf);
	}
	erpc_out_put_bytes(out, to, h, &bytes, owner);
}

/**
 * Records the numbers of the first `n` packets, which have left, and moves the rest to the front.
 */
static void erpc_out_left(struct erpc_out *out, unsigned n, uint32_t first)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		if (out->owner[i])
			out->owner[i]->unsent--;
		if (out->last_tx[i])
			*out->last_tx[i] = first + i;
	}
	out->cnt -= n;
	if (UTIL_LIKELY(!out->cnt)) {
		out->hdr_next &= out->hdr_kept;
		return;
	}
	memmove(out->pkt, out->pkt + n, out->cnt * sizeof(out->pkt[0]));
	memmove(out->owner, out->owner + n, out->cnt * sizeof(out->owner[0]));
	memmove(out->last_tx, out->last_tx + n, out->cnt * sizeof(out->last_tx[0]));
}

int erpc_out_flush_some(struct erpc_out *out)
{
	uint32_t first = out->dg->tx_posted;
	int n;

	n = out->dg->ops->send(out->dg, out->pkt, out->cnt);
	if (UTIL_UNLIKELY(n < 0))
		return n == -FI_EAGAIN ? 0 : n;
	erpc_out_left(out, (unsigned)n, first);
	return 0;
}

/** Returns true for an address in the header ring. */
static bool erpc_out_is_hdr(const struct erpc_out *out, const void *at)
{
	return (const uint8_t *)at >= out->hdrs[0] &&
	       (const uint8_t *)at <= out->hdrs[out->hdr_mask];
}

/**
 * Frees the ring entry of packet i's header. Later headers move down, so that the ring does not
 * wrap too soon.
 */
static void erpc_out_drop_hdr(struct erpc_out *out, unsigned i)
{
	void *place = (void *)(uintptr_t)out->pkt[i].base[0];

	if (!erpc_out_is_hdr(out, place))
		return;
	out->hdr_next--;
	while (++i < out->cnt) {
		void *next = (void *)(uintptr_t)out->pkt[i].base[0];

		if (!erpc_out_is_hdr(out, next))
			continue;
		memcpy(place, next, WIRE_ERPC_HDR_LEN);
		out->pkt[i].base[0] = place;
		place = next;
	}
}

static void erpc_out_drop(struct erpc_out *out, unsigned i)
{
	unsigned rest = out->cnt - i - 1;

	erpc_out_drop_hdr(out, i);
	if (out->owner[i])
		out->owner[i]->unsent--;
	memmove(out->pkt + i, out->pkt + i + 1, rest * sizeof(out->pkt[0]));
	memmove(out->owner + i, out->owner + i + 1, rest * sizeof(out->owner[0]));
	memmove(out->last_tx + i, out->last_tx + i + 1, rest * sizeof(out->last_tx[0]));
	out->cnt--;
}

void erpc_out_forget(struct erpc_out *out, struct erpc_out_owner *owner)
{
	unsigned i = out->cnt;

	while (owner->unsent && i--)
		if (out->owner[i] == owner)
			erpc_out_drop(out, i);
}

void erpc_out_forget_peer(struct erpc_out *out, const struct dev_dgram_ah *to)
{
	unsigned i = out->cnt;

	while (i--)
		if (out->pkt[i].to == to)
			erpc_out_drop(out, i);
}
