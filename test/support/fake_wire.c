/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writes in flight and at their arrival, with checks of each: see fake_link.h. */
#include "support/fake_link.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "wire/wire_ring.h"

static uint64_t *fake_word(uint8_t *ring, uint64_t off)
{
	return (uint64_t *)(void *)(ring + off + DEV_LINK_WORD_OFF);
}

/**
 * Returns the position of a write's head and its distance from the next one, in bytes. Without
 * in-band arrival the user defines the immediate; this function follows wire_ring.h, by which a
 * head need not travel.
 */
static uint64_t fake_head(const struct fake_link *f, uint64_t off, uint32_t imm)
{
	return !f->dev->direct && (imm & WIRE_IMM_SHORT) ? off - WIRE_META_LEN : off;
}

static uint64_t fake_span(const struct fake_link *f, uint32_t imm)
{
	return (uint64_t)(f->dev->direct ? imm : wire_imm_units(imm)) * DEV_IMM_UNIT;
}

/** Takes the offset of the first write over rings that others have written before. */
static void fake_begin_at(struct fake_link *f, uint64_t off)
{
	uint64_t consumer = *f->peer->base.consumer_word;

	f->tx_pos = consumer + ((off - consumer) & (f->base.tx_len - 1));
	f->is_fresh = false;
}

static void fake_check_write(struct fake_link *f, uint64_t off, uint32_t len, uint32_t imm)
{
	const struct dev_link *link = &f->base;
	uint64_t head = fake_head(f, off, imm), span = fake_span(f, imm);

	if (!len || head % DEV_IMM_UNIT || !span ||
	    (f->dev->direct && (len < DEV_IMM_UNIT || len % DEV_IMM_UNIT)))
		fake_fail("write of %u bytes at %#lx, immediate %#x", len, off, imm);
	if (off + len > link->tx_len || head + span > link->tx_len || off + len > head + span)
		fake_fail("write at %#lx crosses the end (%u bytes, immediate %#x)", off, len, imm);
	if (f->dev->sink)
		return;
	if (f->is_fresh)
		fake_begin_at(f, head);
	if (head != (f->tx_pos & (link->tx_len - 1)))
		fake_fail("write at %#lx is out of order: %#lx is next", off, f->tx_pos);
	if (f->tx_pos + span + link->inband_len - *f->peer->base.consumer_word > link->tx_len)
		fake_fail("write of %lu at %#lx into bytes not released (consumer %#lx, ring %lu)",
			  span, f->tx_pos, *f->peer->base.consumer_word, link->tx_len);
}

static void fake_enqueue(struct fake_link *f, uint64_t off, uint32_t len, uint32_t imm)
{
	if (f->wire_tail - f->wire_head > f->wire_mask)
		fake_fail("more writes on the wire than fit into the ring");
	memcpy(f->image + off, f->base.tx_base + off, len);
	f->wire[f->wire_tail++ & f->wire_mask] = (struct fake_write){ off, len, imm, false, false };
	f->tx_pos += fake_span(f, imm);
	f->dev->write_cnt++;
}

/**
 * Checks that cleared words of heads stay cleared: the user writes neither them nor bytes behind a
 * write.
 */
static void fake_check_words(const struct fake_link *f, uint64_t off, uint32_t imm)
{
	uint64_t mask = f->base.tx_len - 1, at;

	if (*fake_word(f->base.tx_base, off))
		fake_fail("the link word at %#lx was written by somebody else", off);
	for (at = (uint64_t)imm * DEV_IMM_UNIT; at <= f->dev->ahead; at += DEV_IMM_UNIT)
		if (*fake_word(f->base.tx_base, (off + at) & mask))
			fake_fail("bytes behind the write at %#lx were written before it", off);
}

int fake_direct_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm)
{
	struct fake_link *f = fake_link_of(link);
	uint64_t next = off + (uint64_t)imm * DEV_IMM_UNIT, at;

	fake_check_write(f, off, len, imm);
	if (!f->dev->sink)
		fake_check_words(f, off, imm);
	for (at = next; at <= next + f->dev->ahead; at += DEV_IMM_UNIT)
		*fake_word(link->tx_base, at & (link->tx_len - 1)) = 0;
	*fake_word(link->tx_base, off) = imm;
	if (!f->dev->sink)
		fake_enqueue(f, off, len, imm);
	f->wire_sent = f->wire_tail;
	return 0;
}

/** Writes a position: bytes that mean nothing, and 32 bits. */
static int fake_word_write(struct fake_link *f, uint64_t off, uint32_t len, uint32_t imm)
{
	if (off % DEV_IMM_UNIT || !len || off + len > f->base.tx_len)
		fake_fail("position with %u bytes at %#lx", len, off);
	if (f->wire_tail - f->wire_sent >= f->dev->sq_len)
		return -FI_EAGAIN;
	if (!f->peer) /* nothing acknowledges it */
		f->down = -FI_ETIMEDOUT;
	f->wire[f->wire_tail++ & f->wire_mask] =
		(struct fake_write){ .off = off, .len = len, .imm = imm, .is_word = true };
	f->dev->write_cnt++;
	return 0;
}

int fake_staged_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm)
{
	struct fake_link *f = fake_link_of(link);

	if (f->dead)
		return -FI_EAGAIN;
	if (f->is_rail)
		return fake_word_write(f, off, len, imm);
	if (!f->peer) /* closed, of which the writer may not know yet: the bytes go nowhere */
		return 0;
	fake_check_write(f, off, len, imm);
	if (f->dev->sink)
		return f->dev->sq_len ? 0 : -FI_EAGAIN;
	if (f->wire_tail - f->wire_sent >= f->dev->sq_len)
		return -FI_EAGAIN;
	fake_enqueue(f, off, len, imm);
	return 0;
}

int fake_late_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm)
{
	struct fake_link *f = fake_link_of(link);
	int ret = fake_staged_write(link, off, len, imm);

	if (!ret && !f->dev->sink)
		f->wire[(f->wire_tail - 1) & f->wire_mask].ack = true;
	return ret;
}

/** Delivers the oldest write and checks that its bytes have not changed. */
static struct fake_write fake_arrive(struct fake_link *from, uint64_t at)
{
	struct fake_write w = from->wire[at & from->wire_mask];
	const uint8_t *now = from->base.tx_base + w.off;
	const uint8_t *then = from->image + w.off;
	uint32_t head = from->base.inband_len ? DEV_LINK_WORD_OFF : DEV_IMM_UNIT;

	if (w.is_word)
		return w;
	if (w.len <= head
		    ? memcmp(now, then, w.len) != 0
		    : memcmp(now, then, head) ||
			      memcmp(now + DEV_IMM_UNIT, then + DEV_IMM_UNIT, w.len - DEV_IMM_UNIT))
		fake_fail("bytes of the write at %#lx changed before it arrived", w.off);
	return w;
}

bool fake_link_deliver(struct dev_link *link)
{
	struct fake_link *f = fake_link_of(link);
	struct fake_write w;

	if (f->dev->direct || !f->peer || f->wire_sent == f->wire_tail)
		return false;
	w = fake_arrive(f, f->wire_sent++);
	memcpy(f->peer->base.rx_base + w.off, link->tx_base + w.off, w.len);
	f->acks += w.ack;
	return true;
}

bool fake_poll_imm(struct fake_link *f, struct dev_event *ev)
{
	struct fake_link *from = f->peer;
	struct fake_write w;
	uint64_t *word;

	if (!from || from->dev->sink || from->wire_head == from->wire_sent)
		return false;
	if (f->dev->direct) {
		word = fake_word(f->base.rx_base, f->rx_pos & (f->base.rx_len - 1));
		w = fake_arrive(from, from->wire_head);
		if (*word != w.imm)
			fake_fail("link word %#lx where %u was stored", *word, w.imm);
		f->rx_pos += (uint64_t)w.imm * DEV_IMM_UNIT;
	} else {
		w = from->wire[from->wire_head & from->wire_mask];
	}
	from->wire_head++;
	return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_IMM, .imm = w.imm });
}

uint32_t fake_link_in_transit(const struct dev_link *link)
{
	const struct fake_link *f = (const struct fake_link *)link;

	return (uint32_t)(f->wire_tail - f->wire_head);
}

const uint8_t *fake_link_peek(const struct dev_link *link, uint32_t n, struct fake_write *w)
{
	const struct fake_link *f = (const struct fake_link *)link;

	*w = f->wire[(f->wire_head + n) & f->wire_mask];
	return f->image + w->off;
}
