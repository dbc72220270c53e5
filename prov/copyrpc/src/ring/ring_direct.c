/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct accesses: see ring_direct.h. */
#include "ring/ring_direct.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/core_reg.h"
#include "ring/ring_bulk.h"
#include "util/copy.h"
#include "util/log.h"

static unsigned ring_direct_dev_flags(const struct core_get *get, const struct dev_link *link,
				      unsigned flags)
{
	unsigned dev = DEV_GET_NOW;

	if ((flags & CORE_DIRECT_WRITE) && get->len <= link->inline_max)
		dev |= DEV_GET_INLINE;
	if (flags & CORE_DIRECT_PLACED)
		dev |= DEV_GET_PLACED;
	if (flags & CORE_DIRECT_MORE)
		dev |= DEV_GET_MORE;
	return dev;
}

/** Replaces the buffers by a slot. Returns 0 or -FI_E*. */
static int ring_direct_bounce(struct ring_conn *conn, struct ring_get *rget, bool write)
{
	struct ring_transport *transport = ring_conn_transport(conn);
	struct dev_get *dget = &rget->dev;
	int err;

	rget->slot = ring_bounce_get(&transport->bounce, transport->dev_ops, transport->dev, &err);
	if (!rget->slot)
		return err;
	if (write)
		util_iov_gather(rget->slot->bytes, dget->iov, dget->iov_cnt, 0, dget->len);
	rget->slot_iov = (struct iovec){ rget->slot->bytes, dget->len };
	dget->iov = &rget->slot_iov;
	dget->iov_cnt = 1;
	dget->mem[0] = rget->slot->mem;
	return 0;
}

/** Provides registered memory for the buffers. Returns 0 or -FI_E*. */
static int ring_direct_prepare(struct ring_conn *conn, struct ring_get *rget,
			       const struct core_get *get, bool write)
{
	struct dev_get *dget = &rget->dev;
	size_t i;

	if (dget->flags & DEV_GET_INLINE)
		return 0;
	if (get->reg) {
		for (i = 0; i < dget->iov_cnt; i++)
			dget->mem[i] = get->reg->mem;
		return 0;
	}
	if (dget->len <= RING_BOUNCE_LEN)
		return ring_direct_bounce(conn, rget, write);
	rget->registered = true;
	return ring_bulk_reg(conn, rget, write ? 0 : DEV_MEM_LOCAL);
}

/** Returns 0 if nothing that was accepted before would leave later. */
static int ring_direct_flush(struct ring_conn *conn, unsigned flags)
{
	struct core_chan *chan = &conn->eng.chan;

	if (conn->eng.err)
		return conn->eng.err;
	if ((flags & CORE_DIRECT_ORDERED) && conn->tx.open)
		chan->ops->flush(chan);
	if ((flags & CORE_DIRECT_ORDERED) && (conn->tx.open || conn->tx.post_cnt))
		return -FI_EAGAIN;
	return conn->eng.err;
}

int ring_direct(struct core_chan *chan, struct core_get *get, unsigned flags)
{
	struct ring_conn *conn = ring_conn_of(chan);
	struct ring_get *rget = (struct ring_get *)get->engine;
	struct dev_get *dget = &rget->dev;
	bool write = flags & CORE_DIRECT_WRITE;
	int ret = ring_direct_flush(conn, flags);

	if (ret)
		return ret;
	*dget = (struct dev_get){
		.remote_addr = get->remote_addr,
		.remote_key = get->remote_key,
		.iov = get->iov,
		.iov_cnt = get->iov_cnt,
		.len = get->len,
		.flags = ring_direct_dev_flags(get, conn->link, flags),
		.user = get,
	};
	rget->slot = NULL;
	rget->direct = true;
	rget->registered = false;
	rget->stripe = NULL;
	rget->on_rail = false;
	rget->waits = false;
	rget->reads = !write;
	util_list_init(&rget->link);
	ret = ring_direct_prepare(conn, rget, get, write);
	if (ret)
		return ret;
	util_list_push_back(&conn->gets, &rget->link);
	ret = write ? conn->link->ops->put(conn->link, dget)
		    : conn->link->ops->get(conn->link, dget);
	if (ret)
		ring_direct_drop(chan, get);
	else if (flags & CORE_DIRECT_MORE)
		ring_conn_mark_dirty(conn);
	return ret;
}

void ring_direct_drop(struct core_chan *chan, struct core_get *get)
{
	struct ring_get *rget = (struct ring_get *)get->engine;

	util_list_remove(&rget->link);
	rget->reads = false;
	ring_bulk_release(ring_conn_of(chan), rget);
}

/** Registration of a region. Implements core_reg.close. */
struct ring_reg {
	/*
	 * First member. `mem` is NULL while the transport has no device, and if it could not be
	 * registered again: then `dev` is the record itself, which is no channel's device.
	 */
	struct core_reg reg;
	struct ring_transport *transport;
	struct util_list link; /* ring_transport.regs */
	const void *dev;       /* reg.dev while it is registered */
	const void *addr;
	size_t len;
	unsigned access; /* enum dev_mem_access */
};

static int ring_direct_reg_begin(struct ring_reg *reg)
{
	struct ring_transport *transport = reg->transport;
	struct dev_mem *mem;
	int ret =
		transport->dev_ops->mem_reg(transport->dev, reg->addr, reg->len, reg->access, &mem);

	if (ret)
		return ret;
	reg->reg.mem = mem;
	reg->reg.key = mem->remote_key;
	return 0;
}

static void ring_direct_reg_end(struct ring_reg *reg)
{
	if (reg->reg.mem)
		reg->transport->dev_ops->mem_dereg(reg->transport->dev, reg->reg.mem);
	reg->reg.mem = NULL;
}

static void ring_direct_reg_close(struct core_reg *base)
{
	struct ring_reg *reg = (struct ring_reg *)base;

	util_list_remove(&reg->link);
	ring_direct_reg_end(reg);
	free(reg);
}

void ring_direct_regs_end(struct ring_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->regs)
		ring_direct_reg_end(UTIL_CONTAINER_OF(it, struct ring_reg, link));
}

static void ring_direct_reg_renew(struct ring_reg *reg)
{
	int ret = ring_direct_reg_begin(reg);

	if (ret)
		UTIL_WARN_SELDOM(MR, "a region of %zu bytes is not registered again: %s\n",
				 reg->len, fi_strerror(-ret));
	/* Threads of other progress domains compare it. */
	__atomic_store_n(&reg->reg.dev, ret ? reg : reg->dev, __ATOMIC_RELAXED);
}

void ring_direct_regs_renew(struct ring_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->regs)
		ring_direct_reg_renew(UTIL_CONTAINER_OF(it, struct ring_reg, link));
}

int ring_direct_reg(struct core_chan *chan, const void *addr, size_t len, unsigned access,
		    struct core_reg **out)
{
	struct ring_transport *transport = ring_conn_transport(ring_conn_of(chan));
	unsigned dev = (access & FI_REMOTE_READ ? DEV_MEM_REMOTE_READ : 0) |
		       (access & FI_REMOTE_WRITE ? DEV_MEM_REMOTE_WRITE : 0);
	struct ring_reg *reg = calloc(1, sizeof(*reg));
	int ret;

	if (!reg)
		return -FI_ENOMEM;
	reg->transport = transport;
	reg->dev = chan->reg_dev;
	reg->addr = addr;
	reg->len = len;
	reg->access = dev ? dev : DEV_MEM_LOCAL;
	reg->reg = (struct core_reg){
		.dev = chan->reg_dev,
		.access = access,
		.close = ring_direct_reg_close,
	};
	ret = ring_direct_reg_begin(reg);
	if (ret) {
		free(reg);
		return ret;
	}
	util_list_push_back(&transport->regs, &reg->link);
	*out = &reg->reg;
	return 0;
}
