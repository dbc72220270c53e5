/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection, reads, gets and events of fake links: see fake_link.h. */
#include "support/fake_link.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/guard.h"
#include "util/bits.h"
#include "util/copy.h"

#define FAKE_MAGIC 0x66616B65u

struct fake_desc {
	uint32_t magic;
	struct fake_link *link;
};

/*
 * Guards the list of open links: a description may name a link that another thread made and closed.
 */
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

/** Removes the link as peer of every other link. */
static void fake_forget(struct fake_link *f)
{
	struct util_list *it, *tmp;

	pthread_mutex_lock(&fake_open_lock);
	util_list_remove(&f->open_link);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &fake_open) {
		struct fake_link *other = UTIL_CONTAINER_OF(it, struct fake_link, open_link);

		if (other->peer != f)
			continue;
		other->peer = NULL;
		if (other->is_rail && other->wire_sent != other->wire_tail)
			other->down = -FI_ETIMEDOUT;
	}
	pthread_mutex_unlock(&fake_open_lock);
}

/** Connects to the link at `link`, which may be an invalid address. */
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

/* ---- reads and gets ---- */

static int fake_direct_read(struct dev_link *link, uint64_t *value)
{
	struct fake_link *f = fake_link_of(link);

	if (f->dev->no_read)
		return -FI_EAGAIN;
	*value = f->dev->sink ? f->read_value : *f->peer->base.consumer_word;
	return 1;
}

static int fake_staged_read(struct dev_link *link, uint64_t *value)
{
	struct fake_link *f = fake_link_of(link);

	if (f->read_busy && !f->dev->sink)
		fake_fail("a second read_consumer while one is outstanding");
	if (f->dev->no_read || f->dead)
		return -FI_EAGAIN;
	f->read_busy = true;
	f->read_behind = f->wire_tail;
	f->read_taken = f->dev->sink;
	return 0;
}

static void fake_get_copy(struct fake_link *f, struct dev_get *get)
{
	const void *from = (const void *)(uintptr_t)get->remote_addr;
	size_t i;

	if (f->dev->registers) {
		fake_check_mem(f->peer->dev, fake_key_find(get->remote_key), from, get->len,
			       DEV_MEM_REMOTE_READ);
		for (i = 0; i < get->iov_cnt; i++)
			if (get->iov[i].iov_len)
				fake_check_mem(f->dev, (const struct fake_mem *)get->mem[i],
					       get->iov[i].iov_base, get->iov[i].iov_len,
					       DEV_MEM_LOCAL);
	}
	util_iov_scatter(get->iov, get->iov_cnt, 0, from, get->len);
	get->status = 0;
}

static void fake_put_copy(struct fake_link *f, struct dev_get *get)
{
	void *to = (void *)(uintptr_t)get->remote_addr;
	size_t i;

	fake_check_mem(f->peer->dev, fake_key_find(get->remote_key), to, get->len,
		       DEV_MEM_REMOTE_WRITE);
	for (i = 0; i < get->iov_cnt && !(get->flags & DEV_GET_INLINE); i++)
		fake_check_mem(f->dev, (const struct fake_mem *)get->mem[i], get->iov[i].iov_base,
			       get->iov[i].iov_len, 0);
	util_iov_gather(to, get->iov, get->iov_cnt, 0, get->len);
	get->status = 0;
}

/** Moves the bytes at once, as the caller sees only the end. */
static int fake_put(struct dev_link *link, struct dev_get *get)
{
	struct fake_link *f = fake_link_of(link);

	if (f->get)
		return -FI_EAGAIN;
	fake_put_copy(f, get);
	f->put = true;
	f->get = get;
	f->shown = !(get->flags & DEV_GET_MORE);
	return 0;
}

static void fake_kick(struct dev_link *link)
{
	fake_link_of(link)->shown = true;
}

static int fake_get(struct dev_link *link, struct dev_get *get)
{
	struct fake_link *f = fake_link_of(link);

	if (f->dead || (f->dev->get_later && f->get))
		return -FI_EAGAIN;
	if (f->dev->get_later) {
		f->get = get;
		f->put = false;
		f->shown = !(get->flags & DEV_GET_MORE);
		return 0;
	}
	fake_get_copy(f, get);
	return 1;
}

/* ---- events ---- */

/** Returns true if memory with this key has the bytes: a key may be another one's by now. */
static bool fake_has(const struct fake_dev *fake, const struct dev_get *get)
{
	const struct fake_mem *mem = fake_key_find(get->remote_key);
	const uint8_t *from = (const uint8_t *)(uintptr_t)get->remote_addr;

	return mem && mem->dev == fake && mem->access & DEV_MEM_REMOTE_READ && from >= mem->addr &&
	       from + get->len <= mem->addr + mem->len;
}

/** Returns true if the link ends, as what it reads is gone. */
static bool fake_is_gone(const struct fake_link *f)
{
	const struct dev_get *get = f->shown ? f->get : NULL;

	if (!f->dev->frail || (!get && !f->read_busy))
		return false;
	return !f->peer || (get && !fake_has(f->peer->dev, get));
}

/** Completes a READ in two steps at different times: load at the peer, then the event here. */
static bool fake_poll_read(struct fake_link *f, struct dev_event *ev)
{
	if (!f->read_busy || f->dead || !f->peer || f->dev->lose_reads ||
	    (!f->dev->eager && rng_chance(&f->dev->rng, 3, 4)))
		return false;
	if (f->dev->late && (int64_t)(f->wire_sent - f->read_behind) < 0)
		return false;
	if (!f->read_taken) {
		f->read_value = *f->peer->base.consumer_word;
		f->read_taken = true;
		if (!f->dev->eager)
			return false;
	}
	f->read_busy = false;
	return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_READ, .value = f->read_value });
}

bool fake_poll_link(struct dev_link *link, struct dev_event *ev)
{
	struct fake_link *f = fake_link_of(link);
	struct dev_get *get;
	int down;

	if (fake_is_gone(f)) {
		f->get = NULL;
		f->read_busy = false;
		f->down = -FI_EIO;
	}
	get = f->get;
	down = f->down;
	if (fake_poll_imm(f, ev) || fake_poll_read(f, ev))
		return true;
	if (f->acks && !f->dead) {
		f->acks--;
		return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_ACK });
	}
	if (get && f->shown && !f->dead) {
		f->get = NULL;
		if (!f->put)
			fake_get_copy(f, get);
		return fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_GET, .get = get });
	}
	f->down = 0;
	return down && fake_ev(f, ev, (struct dev_event){ .kind = DEV_EV_DOWN, .status = down });
}

/* ---- open and close ---- */

/** Makes a link without a ring. Returns NULL and *ret if there is none. */
static struct fake_link *fake_link_new(struct fake_dev *fake, int *ret)
{
	struct fake_link *f = fake->fail_create ? NULL : calloc(1, sizeof(*f));

	*ret = fake->fail_create;
	if (!f)
		return NULL;
	f->dev = fake;
	f->base.ops = fake->direct ? &fake_link_direct_ops
		      : fake->late ? &fake_link_late_ops
				   : &fake_link_staged_ops;
	f->base.inline_max = FAKE_INLINE_MAX;
	f->base.caps = DEV_CAP_GET | (fake->direct ? DEV_CAP_DIRECT : 0);
	pthread_mutex_lock(&fake_open_lock);
	util_list_push_back(&fake_open, &f->open_link);
	pthread_mutex_unlock(&fake_open_lock);
	return f;
}

int fake_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **out)
{
	struct fake_link *f;
	int ret;

	if (rx_len < 1024 || !util_is_pow2(rx_len))
		return -FI_EINVAL;
	f = fake_link_new((struct fake_dev *)dev, &ret);
	if (!f)
		return ret;
	f->base.rx_base = guard_alloc(rx_len);
	f->base.rx_len = rx_len;
	f->base.consumer_word = malloc(sizeof(*f->base.consumer_word));
	*f->base.consumer_word = 0;
	*out = &f->base;
	return 0;
}

int fake_link_beside(struct dev *dev, struct dev_link *first, struct dev_link **out)
{
	int ret;
	struct fake_link *f = fake_link_new((struct fake_dev *)dev, &ret);

	if (!f)
		return ret;
	f->first = fake_link_of(first);
	f->is_rail = true;
	f->base.rx_base = first->rx_base;
	f->base.rx_len = first->rx_len;
	f->base.consumer_word = first->consumer_word;
	*out = &f->base;
	return 0;
}

static void fake_link_adopt(struct dev_link *link, struct dev_link *first)
{
	struct fake_link *f = fake_link_of(link);

	if (f->first != fake_link_of(first) || f->first->attached || f->first->first)
		fake_fail("adopts what is not its own, or attached");
	f->first->first = f;
	f->first = NULL;
	f->is_rail = false;
	f->is_fresh = true;
}

static int fake_link_describe(struct dev_link *link, struct dev_desc *desc)
{
	struct fake_desc own = { .magic = FAKE_MAGIC, .link = fake_link_of(link) };

	memset(desc->bytes, 0, sizeof(desc->bytes));
	memcpy(desc->bytes, &own, sizeof(own));
	desc->len = sizeof(own);
	desc->fd_cnt = 0;
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
	if (f->first)
		link->tx_base = f->first->base.tx_base;
	else if (!f->dev->direct)
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

	if (!f->attached)
		return;
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
	if (f->image && !f->dev->direct && !f->first)
		guard_free(link->tx_base, link->tx_len);
	if (!f->first) {
		guard_free(link->rx_base, link->rx_len);
		free(link->consumer_word);
	}
	free(f->image);
	free(f->wire);
	free(f);
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

void fake_link_pair_beside(struct fake_dev *a, struct fake_dev *b, struct dev_link *const first[2],
			   struct dev_link *out[2])
{
	struct dev_desc desc[2];

	if (fake_link_beside(fake_dev_of(a), first[0], &out[0]) ||
	    fake_link_beside(fake_dev_of(b), first[1], &out[1]) ||
	    fake_link_describe(out[0], &desc[0]) || fake_link_describe(out[1], &desc[1]) ||
	    fake_link_connect(out[0], &desc[1]) || fake_link_connect(out[1], &desc[0]) ||
	    fake_link_attach(out[0]) || fake_link_attach(out[1]))
		fake_fail("no pair beside another one");
}

void fake_link_kill(struct dev_link *link, int status)
{
	struct fake_link *f = fake_link_of(link);

	f->dead = true;
	f->down = status;
	f->wire_tail = f->wire_sent;
	f->get = NULL;
}

void fake_link_start(struct dev_link *link, uint64_t tx_pos, uint64_t rx_pos)
{
	struct fake_link *f = fake_link_of(link);

	f->tx_pos = tx_pos;
	f->rx_pos = rx_pos;
	*link->consumer_word = rx_pos;
}

static bool fake_acks_are_free(const struct dev_link *link)
{
	return ((const struct fake_link *)link)->dev->free_acks;
}

#define FAKE_LINK_OPS(write, ack, free, read)                                                      \
	{                                                                                          \
		.write_imm = (write), .write_imm_ack = (ack), .acks_are_free = (free),             \
		.read_consumer = (read), .get = fake_get, .put = fake_put, .kick = fake_kick,      \
		.describe = fake_link_describe, .connect = fake_link_connect,                      \
		.poll = fake_poll_link, .attach = fake_link_attach, .detach = fake_link_detach,    \
		.close = fake_link_close, .adopt = fake_link_adopt,                                \
	}

const struct dev_link_ops fake_link_direct_ops =
	FAKE_LINK_OPS(fake_direct_write, NULL, NULL, fake_direct_read);
const struct dev_link_ops fake_link_staged_ops =
	FAKE_LINK_OPS(fake_staged_write, NULL, NULL, fake_staged_read);
const struct dev_link_ops fake_link_late_ops =
	FAKE_LINK_OPS(fake_staged_write, fake_late_write, fake_acks_are_free, fake_staged_read);
