/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device in memory that checks its user: see fake_link.h. */
#include "support/fake_link.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/guard.h"
#include "util/bits.h"
#include "util/copy.h"
#include "wire/wire_ring.h"

#define FAKE_MAGIC 0x66616B65u

struct fake_desc {
	uint32_t magic;
	struct fake_link *link;
};

/* A description may be of a link that is gone; it was made and closed by another thread, perhaps. */
static pthread_mutex_t fake_open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct util_list fake_open = { .next = &fake_open, .prev = &fake_open };

static bool fake_is_open_locked(const struct fake_link *f)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &fake_open)
		if (UTIL_CONTAINER_OF(it, struct fake_link, open_link) == f)
			return true;
	return false;
}

/** No link has it for its peer any more. */
static void fake_forget(struct fake_link *f)
{
	struct util_list *it, *tmp;

	pthread_mutex_lock(&fake_open_lock);
	util_list_remove(&f->open_link);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &fake_open) {
		struct fake_link *other = UTIL_CONTAINER_OF(it, struct fake_link, open_link);

		if (other->peer == f)
			other->peer = NULL;
	}
	pthread_mutex_unlock(&fake_open_lock);
}

/** `link` may be anything. */
static int fake_meet(struct fake_link *f, struct fake_link *link)
{
	int ret = -FI_ECONNREFUSED;

	pthread_mutex_lock(&fake_open_lock);
	if (fake_is_open_locked(link)) {
		f->peer = link;
		f->base.tx_len = link->base.rx_len;
		if (f->dev->direct)
			f->base.tx_base = link->base.rx_base;
		ret = 0;
	}
	pthread_mutex_unlock(&fake_open_lock);
	return ret;
}

void fake_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("fake device: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

static struct fake_dev *fake_dev_from(struct dev *dev)
{
	return (struct fake_dev *)dev;
}

static uint64_t *fake_word(uint8_t *ring, uint64_t off)
{
	return (uint64_t *)(void *)(ring + off + DEV_LINK_WORD_OFF);
}

void fake_dev_init(struct fake_dev *fake, bool direct, uint64_t seed)
{
	memset(fake, 0, sizeof(*fake));
	fake->direct = direct;
	fake->sq_len = 4;
	fake->fd = -1;
	fake->rng.state = seed;
}

/* ---- writes ---- */

/**
 * Where the head of a write is and how far from the next one, in bytes. Of links without in-band arrival the
 * immediate is their user's, whose rules are known here (wire_ring.h): a head need not travel.
 */
static uint64_t fake_head(const struct fake_link *f, uint64_t off, uint32_t imm)
{
	return !f->dev->direct && (imm & WIRE_IMM_SHORT) ? off - WIRE_META_LEN : off;
}

static uint64_t fake_span(const struct fake_link *f, uint32_t imm)
{
	return (uint64_t)(f->dev->direct ? imm : wire_imm_units(imm)) * DEV_IMM_UNIT;
}

static void fake_check_write(const struct fake_link *f, uint64_t off, uint32_t len, uint32_t imm)
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
	if (head != (f->tx_pos & (link->tx_len - 1)))
		fake_fail("write at %#lx is out of order: %#lx is next", off, f->tx_pos);
	if (f->tx_pos + span + link->inband_len - f->peer->consumer > link->tx_len)
		fake_fail("write of %lu at %#lx into bytes not released (consumer %#lx, ring %lu)",
			  span, f->tx_pos, f->peer->consumer, link->tx_len);
}

static void fake_enqueue(struct fake_link *f, uint64_t off, uint32_t len, uint32_t imm)
{
	if (f->wire_tail - f->wire_head > f->wire_mask)
		fake_fail("more writes on the wire than fit into the ring");
	memcpy(f->image + off, f->base.tx_base + off, len);
	f->wire[f->wire_tail++ & f->wire_mask] = (struct fake_write){ off, len, imm, false };
	f->tx_pos += fake_span(f, imm);
	f->dev->write_cnt++;
}

/** Words of heads that are clear must stay so: the user writes neither them nor bytes behind a write. */
static void fake_check_words(const struct fake_link *f, uint64_t off, uint32_t imm)
{
	uint64_t mask = f->base.tx_len - 1, at;

	if (*fake_word(f->base.tx_base, off))
		fake_fail("the link word at %#lx was written by somebody else", off);
	for (at = (uint64_t)imm * DEV_IMM_UNIT; at <= f->dev->ahead; at += DEV_IMM_UNIT)
		if (*fake_word(f->base.tx_base, (off + at) & mask))
			fake_fail("bytes behind the write at %#lx were written before it", off);
}

static int fake_direct_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm)
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

static int fake_staged_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm)
{
	struct fake_link *f = fake_link_of(link);

	fake_check_write(f, off, len, imm);
	if (f->dev->sink)
		return f->dev->sq_len ? 0 : -FI_EAGAIN;
	if (f->wire_tail - f->wire_sent >= f->dev->sq_len)
		return -FI_EAGAIN;
	fake_enqueue(f, off, len, imm);
	return 0;
}

static int fake_late_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm)
{
	struct fake_link *f = fake_link_of(link);
	int ret = fake_staged_write(link, off, len, imm);

	if (!ret && !f->dev->sink)
		f->wire[(f->wire_tail - 1) & f->wire_mask].ack = true;
	return ret;
}

/** The oldest write arrives: are its bytes still what they were? */
static struct fake_write fake_arrive(struct fake_link *from, uint64_t at)
{
	struct fake_write w = from->wire[at & from->wire_mask];
	const uint8_t *now = from->base.tx_base + w.off;
	const uint8_t *then = from->image + w.off;
	uint32_t head = from->base.inband_len ? DEV_LINK_WORD_OFF : DEV_IMM_UNIT;

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

	if (f->dev->direct || f->wire_sent == f->wire_tail)
		return false;
	w = fake_arrive(f, f->wire_sent++);
	memcpy(f->peer->base.rx_base + w.off, link->tx_base + w.off, w.len);
	f->acks += w.ack;
	return true;
}

/* ---- reads and gets ---- */

static int fake_direct_read(struct dev_link *link, uint64_t *value)
{
	struct fake_link *f = fake_link_of(link);

	if (f->dev->no_read)
		return -FI_EAGAIN;
	*value = f->dev->sink ? f->read_value : f->peer->consumer;
	return 1;
}

static int fake_staged_read(struct dev_link *link, uint64_t *value)
{
	struct fake_link *f = fake_link_of(link);

	(void)value;
	if (f->read_busy && !f->dev->sink)
		fake_fail("a second read_consumer while one is outstanding");
	if (f->dev->no_read)
		return -FI_EAGAIN;
	f->read_busy = true;
	f->read_taken = f->dev->sink;
	return 0;
}

/** Is [addr, addr + len) registered for `access`? */
static void fake_check_mem(const struct fake_mem *mem, const void *addr, size_t len,
			   unsigned access)
{
	if (!mem || mem->magic != FAKE_MAGIC)
		fake_fail("memory at %p is not registered", addr);
	if (!(mem->access & access) || (const uint8_t *)addr < mem->addr ||
	    (const uint8_t *)addr + len > mem->addr + mem->len)
		fake_fail("memory at %p is not registered for this (%#x)", addr, access);
}

static void fake_get_copy(struct fake_link *f, struct dev_get *get)
{
	const void *from = (const void *)(uintptr_t)get->remote_addr;
	size_t i;

	if (f->dev->registers) {
		fake_check_mem((const struct fake_mem *)(uintptr_t)get->remote_key, from, get->len,
			       DEV_MEM_REMOTE_READ);
		for (i = 0; i < get->iov_cnt; i++)
			if (get->iov[i].iov_len)
				fake_check_mem((const struct fake_mem *)get->mem[i],
					       get->iov[i].iov_base, get->iov[i].iov_len,
					       DEV_MEM_LOCAL);
	}
	util_iov_scatter(get->iov, get->iov_cnt, 0, from, get->len);
	get->status = 0;
}

static int fake_get(struct dev_link *link, struct dev_get *get)
{
	struct fake_link *f = fake_link_of(link);

	if (f->dev->get_later && f->get)
		return -FI_EAGAIN;
	if (f->dev->get_later) {
		f->get = get;
		return 0;
	}
	fake_get_copy(f, get);
	return 1;
}

static int fake_mem_reg(struct dev *dev, const void *addr, size_t len, unsigned access,
			struct dev_mem **out)
{
	struct fake_dev *fake = fake_dev_from(dev);
	struct fake_mem *mem = calloc(1, sizeof(*mem));

	if (!mem || fake->fail_reg) {
		free(mem);
		return fake->fail_reg;
	}
	if (!len)
		fake_fail("nothing at %p is registered", addr);
	*mem = (struct fake_mem){ .base.remote_key = (uintptr_t)mem,
				  .magic = FAKE_MAGIC,
				  .addr = addr,
				  .len = len,
				  .access = access };
	fake->mem_cnt++;
	*out = &mem->base;
	return 0;
}

static void fake_mem_dereg(struct dev *dev, struct dev_mem *mem)
{
	fake_dev_from(dev)->mem_cnt--;
	((struct fake_mem *)mem)->magic = 0;
	free(mem);
}

/* ---- events ---- */

static bool fake_ev(struct fake_link *f, struct dev_event *ev, struct dev_event value)
{
	value.link = &f->base;
	*ev = value;
	return true;
}

static bool fake_poll_imm(struct fake_link *f, struct dev_event *ev)
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

/** The two halves of a READ come at different times: load there, answer here. */
static bool fake_poll_read(struct fake_link *f, struct dev_event *ev)
{
	if (!f->read_busy || (!f->dev->eager && rng_chance(&f->dev->rng, 3, 4)))
		return false;
	if (!f->read_taken) {
		f->read_value = f->peer->consumer;
		f->read_taken = true;
		if (!f->dev->eager)
			return false;
	}
	f->read_busy = false;
	return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_READ, .value = f->read_value });
}

static bool fake_poll_link(struct dev_link *link, struct dev_event *ev)
{
	struct fake_link *f = fake_link_of(link);
	struct dev_get *get = f->get;
	int down = f->down;

	if (fake_poll_imm(f, ev) || fake_poll_read(f, ev))
		return true;
	if (f->acks) {
		f->acks--;
		return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_ACK });
	}
	if (get) {
		f->get = NULL;
		fake_get_copy(f, get);
		return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_GET, .get = get });
	}
	f->down = 0;
	return down && fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_DOWN, .status = down });
}

/** What a write of the peer's needs to arrive here: some of it, or all. */
static void fake_pump(struct fake_dev *fake, struct fake_link *f)
{
	if (!f->peer)
		return;
	while (fake->eager || rng_chance(&fake->rng, 1, 2))
		if (!fake_link_deliver(&f->peer->base))
			return;
}

static bool fake_dev_poll(struct dev *dev, struct dev_event *ev)
{
	struct fake_dev *fake = fake_dev_from(dev);
	unsigned first, i;

	if (!fake->link_cnt || (!fake->eager && rng_chance(&fake->rng, 1, 4)))
		return false;
	first = (unsigned)rng_below(&fake->rng, fake->link_cnt);
	for (i = 0; i < fake->link_cnt; i++) {
		struct fake_link *f = fake->links[(first + i) % fake->link_cnt];

		fake_pump(fake, f);
		if (fake_poll_link(&f->base, ev))
			return true;
	}
	return false;
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

/* ---- life ---- */

static int fake_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **out)
{
	struct fake_dev *fake = fake_dev_from(dev);
	struct fake_link *f;

	if (fake->fail_create)
		return fake->fail_create;
	if (rx_len < 1024 || !util_is_pow2(rx_len))
		return -FI_EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->dev = fake;
	f->base.ops = fake->direct ? &fake_link_direct_ops
		      : fake->late ? &fake_link_late_ops
				   : &fake_link_staged_ops;
	f->base.rx_base = guard_alloc(rx_len);
	f->base.rx_len = rx_len;
	f->base.caps = DEV_CAP_GET | (fake->direct ? DEV_CAP_DIRECT : 0);
	f->base.consumer_word = &f->consumer;
	pthread_mutex_lock(&fake_open_lock);
	util_list_push_back(&fake_open, &f->open_link);
	pthread_mutex_unlock(&fake_open_lock);
	*out = &f->base;
	return 0;
}

static int fake_link_describe(struct dev_link *link, struct dev_desc *desc)
{
	struct fake_desc own = { .magic = FAKE_MAGIC, .link = fake_link_of(link) };

	memset(desc, 0, sizeof(*desc));
	memcpy(desc->bytes, &own, sizeof(own));
	desc->len = sizeof(own);
	return 0;
}

static int fake_link_connect(struct dev_link *link, const struct dev_desc *peer)
{
	struct fake_link *f = fake_link_of(link);
	struct fake_desc theirs;
	int ret;

	memcpy(&theirs, peer->bytes, sizeof(theirs));
	if (peer->len != sizeof(theirs) || theirs.magic != FAKE_MAGIC)
		return -FI_EINVAL;
	if (f->dev->fail_connect)
		return f->dev->fail_connect;
	ret = fake_meet(f, theirs.link);
	if (ret)
		return ret;
	link->inband_len = f->dev->direct ? DEV_IMM_UNIT + f->dev->ahead : 0;
	if (!f->dev->direct)
		link->tx_base = guard_alloc(link->tx_len);
	f->image = calloc(1, link->tx_len);
	f->wire_mask = link->tx_len / DEV_IMM_UNIT - 1;
	f->wire = calloc(f->wire_mask + 1, sizeof(*f->wire));
	if (!f->image || !f->wire)
		abort();
	return 0;
}

static int fake_link_attach(struct dev_link *link)
{
	struct fake_link *f = fake_link_of(link);
	struct fake_dev *fake = f->dev;

	if (fake->fail_attach || fake->link_cnt == FAKE_LINKS_MAX)
		return fake->fail_attach ? fake->fail_attach : -FI_ENOMEM;
	fake->links[fake->link_cnt++] = f;
	f->attached = true;
	return 0;
}

static void fake_link_detach(struct dev_link *link)
{
	struct fake_link *f = fake_link_of(link);
	struct fake_dev *fake = f->dev;
	unsigned i = 0;

	while (fake->links[i] != f)
		i++;
	fake->links[i] = fake->links[--fake->link_cnt];
	f->attached = false;
	f->get = NULL;
}

static void fake_link_close(struct dev_link *link)
{
	struct fake_link *f = fake_link_of(link);

	if (f->attached)
		fake_fail("a link is closed while it is attached");
	fake_forget(f);
	if (f->image && !f->dev->direct)
		guard_free(link->tx_base, link->tx_len);
	guard_free(link->rx_base, link->rx_len);
	free(f->image);
	free(f->wire);
	free(f);
}

static int fake_dev_open(struct dev **dev)
{
	struct fake_dev *fake = malloc(sizeof(*fake));

	if (!fake)
		return -FI_ENOMEM;
	fake_dev_init(fake, true, 1);
	fake->fd = eventfd(0, EFD_CLOEXEC);
	*dev = fake_dev_of(fake);
	return 0;
}

static void fake_dev_close(struct dev *dev)
{
	struct fake_dev *fake = fake_dev_from(dev);

	if (fake->link_cnt)
		fake_fail("a device is closed while %u links are attached", fake->link_cnt);
	if (fake->mem_cnt)
		fake_fail("a device is closed while %u pieces of memory are registered",
			  fake->mem_cnt);
	close(fake->fd);
	free(fake);
}

static int fake_dev_wait_fd(struct dev *dev)
{
	return fake_dev_from(dev)->fd;
}

static int fake_dev_arm(struct dev *dev)
{
	(void)dev;
	return 0;
}

static void fake_dev_disarm(struct dev *dev)
{
	(void)dev;
}

void fake_link_pair(struct fake_dev *a, uint64_t a_rx_len, struct fake_dev *b, uint64_t b_rx_len,
		    struct dev_link *out[2])
{
	struct dev_desc desc[2];

	if (fake_link_create(fake_dev_of(a), a_rx_len, &out[0]) ||
	    fake_link_create(fake_dev_of(b), b_rx_len, &out[1]) ||
	    fake_link_describe(out[0], &desc[0]) || fake_link_describe(out[1], &desc[1]) ||
	    fake_link_connect(out[0], &desc[1]) || fake_link_connect(out[1], &desc[0]) ||
	    fake_link_attach(out[0]) || fake_link_attach(out[1]))
		fake_fail("no pair of %lu and %lu bytes", a_rx_len, b_rx_len);
}

void fake_link_start(struct dev_link *link, uint64_t tx_pos, uint64_t rx_pos)
{
	struct fake_link *f = fake_link_of(link);

	f->tx_pos = tx_pos;
	f->rx_pos = rx_pos;
	f->consumer = rx_pos;
}

#define FAKE_LINK_OPS(write, ack, read)                                                            \
	{                                                                                          \
		.write_imm = (write), .write_imm_ack = (ack), .read_consumer = (read),             \
		.get = fake_get, .describe = fake_link_describe, .connect = fake_link_connect,     \
		.poll = fake_poll_link, .attach = fake_link_attach, .detach = fake_link_detach,    \
		.close = fake_link_close,                                                          \
	}

const struct dev_link_ops fake_link_direct_ops =
	FAKE_LINK_OPS(fake_direct_write, NULL, fake_direct_read);
const struct dev_link_ops fake_link_staged_ops =
	FAKE_LINK_OPS(fake_staged_write, NULL, fake_staged_read);
const struct dev_link_ops fake_link_late_ops =
	FAKE_LINK_OPS(fake_staged_write, fake_late_write, fake_staged_read);

static int fake_nic_probe(struct dev_about *about)
{
	*about = (struct dev_about){ .name = "fake0", .link = "Ethernet" };
	return fake_nic_absent ? -FI_ENODEV : 0;
}

static int fake_nic_open(struct dev **dev)
{
	int ret = fake_nic_absent ? -FI_ENODEV : fake_dev_open(dev);

	if (ret)
		return ret;
	fake_dev_from(*dev)->direct = false;
	fake_dev_from(*dev)->registers = true;
	fake_dev_from(*dev)->get_later = true;
	return 0;
}

bool fake_nic_absent;

const struct dev_ops fake_nic_ops = {
	.name = "fake nic",
	.probe = fake_nic_probe,
	.open = fake_nic_open,
	.close = fake_dev_close,
	.link_create = fake_link_create,
	.mem_reg = fake_mem_reg,
	.mem_dereg = fake_mem_dereg,
	.poll = fake_dev_poll,
	.wait_fd = fake_dev_wait_fd,
	.arm = fake_dev_arm,
	.disarm = fake_dev_disarm,
};

const struct dev_ops fake_dev_ops = {
	.name = "fake",
	.open = fake_dev_open,
	.close = fake_dev_close,
	.link_create = fake_link_create,
	.poll = fake_dev_poll,
	.wait_fd = fake_dev_wait_fd,
	.arm = fake_dev_arm,
	.disarm = fake_dev_disarm,
};
