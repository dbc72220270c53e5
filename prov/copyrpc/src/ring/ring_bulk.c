/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transfers beside the ring: see ring_bulk.h. */
#include "ring/ring_bulk.h"

#include "engine/eng_stats.h"
#include "ring/ring_rail.h"
#include "ring/ring_takeover.h"
#include "ring/ring_transport.h"
#include "util/copy.h"
#include "util/stats.h"

/** Returns the device that moves the bytes of `rget`. */
static struct dev *ring_bulk_dev(const struct ring_conn *conn, const struct ring_get *rget)
{
	return UTIL_UNLIKELY(rget->on_rail) ? ring_conn_transport(conn)->rails->dev : conn->dev;
}

/** Deregisters the buffers of `rget`. */
static void ring_bulk_dereg(struct ring_conn *conn, struct ring_get *rget)
{
	struct ring_transport *transport = ring_conn_transport(conn);
	struct dev_get *get = &rget->dev;
	size_t i;

	for (i = 0; i < DEV_GET_IOV_MAX; i++) {
		if (get->mem[i])
			transport->dev_ops->mem_dereg(ring_bulk_dev(conn, rget), get->mem[i]);
		get->mem[i] = NULL;
	}
	rget->registered = false;
}

int ring_bulk_reg(struct ring_conn *conn, struct ring_get *rget, unsigned access)
{
	struct ring_transport *transport = ring_conn_transport(conn);
	struct dev_get *get = &rget->dev;
	int ret = 0;
	size_t i;

	if (!ring_transport_registers(transport))
		return 0;
	for (i = 0; i < get->iov_cnt && !ret; i++)
		if (get->iov[i].iov_len)
			ret = transport->dev_ops->mem_reg(ring_bulk_dev(conn, rget),
							  get->iov[i].iov_base, get->iov[i].iov_len,
							  access, &get->mem[i]);
	if (ret)
		ring_bulk_dereg(conn, rget);
	return ret;
}

void ring_bulk_release(struct ring_conn *conn, struct ring_get *rget)
{
	const struct core_get *get = rget->dev.user;

	if (rget->registered)
		ring_bulk_dereg(conn, rget);
	if (!rget->slot)
		return;
	if (rget->reads && !rget->dev.status)
		util_iov_scatter(get->iov, get->iov_cnt, 0, rget->slot->bytes, get->len);
	ring_bounce_put(&ring_conn_transport(conn)->bounce, rget->slot);
	rget->slot = NULL;
}

int ring_bulk_get(struct core_chan *chan, struct core_get *get)
{
	struct ring_conn *conn = ring_conn_of(chan);
	struct ring_get *rget = (struct ring_get *)get->engine;
	struct dev_get *dget = &rget->dev;
	int ret;

	if (conn->eng.err)
		return conn->eng.err;
	if (UTIL_UNLIKELY(conn->rail != NULL) && ring_rail_takes(conn, get))
		return ring_rail_get(conn, get);
	*dget = (struct dev_get){
		.remote_addr = get->remote_addr,
		.remote_key =
			conn->rail ? ring_takeover_key(conn, get->remote_key) : get->remote_key,
		.iov = get->iov,
		.iov_cnt = get->iov_cnt,
		.len = get->len,
		.user = get,
	};
	assert(get->iov_cnt <= DEV_GET_IOV_MAX);
	rget->slot = NULL;
	rget->direct = false;
	rget->stripe = NULL;
	rget->on_rail = false;
	rget->waits = false;
	rget->registered = false;
	util_list_init(&rget->link);
	if (UTIL_UNLIKELY(ring_takeover_is_on(conn))) {
		util_list_push_back(&conn->gets, &rget->link);
		ring_takeover_hold(rget);
		return 0;
	}
	ret = ring_bulk_reg(conn, rget, DEV_MEM_LOCAL);
	if (ret)
		return ret;
	rget->registered = true;
	util_list_push_back(&conn->gets, &rget->link);
	ret = conn->link->ops->get(conn->link, dget);
	if (!ret)
		return 0;
	util_list_remove(&rget->link);
	ring_bulk_dereg(conn, rget);
	get->status = dget->status;
	if (ret > 0)
		eng_stats_get(&conn->eng.chan, get);
	return ret;
}

int ring_bulk_post_held(struct ring_conn *conn, struct ring_get *rget)
{
	const struct core_get *get = rget->dev.user;
	int ret = 0;

	if (rget->stripe)
		return ring_rail_post(conn, rget);
	rget->dev.remote_key = ring_takeover_key(conn, get->remote_key);
	if (!rget->registered)
		ret = ring_bulk_reg(conn, rget, DEV_MEM_LOCAL);
	if (ret)
		return ret;
	rget->registered = true;
	return conn->link->ops->get(conn->link, &rget->dev);
}

struct core_get *ring_bulk_part_done(struct ring_conn *conn, struct ring_get *rget)
{
	struct core_get *get = rget->dev.user;

	util_list_remove(&rget->link);
	if (UTIL_UNLIKELY(rget->waits))
		util_list_remove(&rget->dev.dev_link);
	ring_bulk_release(conn, rget);
	if (UTIL_UNLIKELY(rget->stripe != NULL))
		return ring_rail_join(rget);
	get->status = rget->dev.status;
	return get;
}

void ring_bulk_get_done(struct ring_conn *conn, struct dev_get *dget)
{
	struct ring_get *rget = (struct ring_get *)dget;
	bool direct = rget->direct;
	struct core_get *get = ring_bulk_part_done(conn, rget);

	if (!get)
		return;
	if (direct)
		eng_stats_access(&conn->eng.chan, get);
	else
		eng_stats_get(&conn->eng.chan, get);
	conn->eng.up->on_get_done(&conn->eng.chan, get);
}

void ring_bulk_fail(struct ring_conn *conn, int err)
{
	struct util_list *first;

	conn->eng.chan.stats->access_errors += conn->link->access_cnt - conn->accessed;
	conn->accessed = conn->link->access_cnt;
	while ((first = util_list_first(&conn->gets))) {
		struct ring_get *rget = UTIL_CONTAINER_OF(first, struct ring_get, link);

		rget->dev.status = err;
		ring_bulk_get_done(conn, &rget->dev);
	}
}

void ring_bulk_abandon(struct ring_conn *conn)
{
	struct util_list *first;

	while ((first = util_list_first(&conn->gets))) {
		struct ring_get *rget = UTIL_CONTAINER_OF(first, struct ring_get, link);

		rget->dev.status = -FI_ESHUTDOWN;
		ring_bulk_part_done(conn, rget);
	}
}

int ring_bulk_expose(struct core_chan *chan, const void *addr, size_t len,
		     struct core_exposure *exposure)
{
	struct ring_conn *conn = ring_conn_of(chan);
	struct ring_transport *transport = ring_conn_transport(conn);
	struct dev_mem *mem = NULL;
	int ret;

	if (conn->eng.err)
		return conn->eng.err;
	if (ring_transport_registers(transport)) {
		ret = transport->dev_ops->mem_reg(conn->dev, addr, len, DEV_MEM_REMOTE_READ, &mem);
		if (ret)
			return ret;
	}
	if (conn->link->ops->expose) {
		ret = conn->link->ops->expose(conn->link, addr, len, &mem);
		if (ret)
			return ret;
	}
	exposure->key = mem ? mem->remote_key : 0;
	exposure->engine = mem;
	if (UTIL_LIKELY(!conn->rail))
		return 0;
	ret = ring_rail_expose(conn, addr, len, exposure);
	if (ret)
		transport->dev_ops->mem_dereg(conn->dev, mem);
	return ret;
}

void ring_bulk_unexpose(struct core_chan *chan, struct core_exposure *exposure)
{
	struct ring_conn *conn = ring_conn_of(chan);
	struct ring_transport *transport = ring_conn_transport(conn);

	if (UTIL_UNLIKELY(conn->rail != NULL))
		ring_rail_unexpose(conn, exposure);
	if (exposure->engine && conn->link->ops->unexpose)
		conn->link->ops->unexpose(conn->link, exposure->engine);
	else if (exposure->engine)
		transport->dev_ops->mem_dereg(conn->dev, exposure->engine);
	exposure->engine = NULL;
}
