/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_expose.h. */
#include "erpc/bulk/erpc_expose.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/tx/erpc_respond.h"

static uint32_t erpc_expose_secret(struct erpc_ep *ep)
{
	uint64_t z = ep->exposure_random += 0x9E3779B97F4A7C15ull;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return (uint32_t)(z >> 32);
}

static int erpc_expose_register(struct erpc_ep *ep, struct erpc_exposure *l)
{
	l->mem = NULL;
	if (!ep->dev_ops || !ep->dev_ops->mem_reg)
		return 0;
	return ep->dev_ops->mem_reg(ep->dev, l->addr, l->len, DEV_MEM_LOCAL, &l->mem);
}

int erpc_expose(struct core_chan *chan, const void *addr, size_t len,
		struct core_exposure *exposure)
{
	struct erpc_session *s = erpc_session_of(chan);
	struct erpc_ep *ep = s->ep;
	struct erpc_exposure *l;
	int ret;

	if (s->err)
		return s->err;
	l = util_pool_alloc(&ep->exposure_pool);
	if (!l)
		return -FI_ENOMEM;
	*l = (struct erpc_exposure){ .session = s, .addr = addr, .len = len };
	l->secret = erpc_expose_secret(ep);
	ret = erpc_expose_register(ep, l);
	if (ret)
		goto err_free;
	ret = util_idmap_alloc(&ep->exposures, l, &l->id);
	if (ret)
		goto err_dereg;
	exposure->key = l->id | (uint64_t)l->secret << 32;
	exposure->engine = l;
	return 0;

err_dereg:
	if (l->mem)
		ep->dev_ops->mem_dereg(ep->dev, l->mem);
err_free:
	util_pool_release(&ep->exposure_pool, l);
	return ret;
}

/** Notes the last packet of a response, unless one that was sent later is noted. */
static void erpc_exposure_note(struct erpc_exposure *l, uint32_t last_tx)
{
	uint32_t posted = l->session->ep->dg->tx_posted;

	if (!l->sent || posted - last_tx < posted - l->last_tx)
		l->last_tx = last_tx;
	l->sent = true;
}

void erpc_expose_leave(struct erpc_rx *rx)
{
	if (rx->exposure)
		erpc_exposure_note(rx->exposure, rx->last_tx);
	rx->exposure = NULL;
	rx->get_src = NULL;
	rx->exposure_mem = NULL;
}

/** Ends responses that read from memory that is no longer exposed. */
static void erpc_expose_revoke(struct erpc_session *s, struct erpc_exposure *l)
{
	uint32_t slot;

	for (slot = ERPC_GET_SLOT; slot < ERPC_GET_SLOT + ERPC_GET_SLOTS; slot++) {
		struct erpc_rx *rx = &s->rx[slot];

		if (rx->exposure != l)
			continue;
		erpc_out_forget(&s->ep->out, &rx->out);
		erpc_expose_leave(rx);
		rx->resp_type = WIRE_ERPC_REFUSED;
	}
}

static void erpc_exposure_free(struct erpc_ep *ep, struct erpc_exposure *l)
{
	if (l->mem)
		ep->dev_ops->mem_dereg(ep->dev, l->mem);
	util_pool_release(&ep->exposure_pool, l);
}

void erpc_unexpose(struct core_chan *chan, struct core_exposure *exposure)
{
	struct erpc_session *s = erpc_session_of(chan);
	struct erpc_exposure *l = exposure->engine;

	if (!l)
		return;
	exposure->engine = NULL;
	util_idmap_release(&s->ep->exposures, l->id);
	erpc_expose_revoke(s, l);
	if (l->sent)
		erpc_ep_await(s->ep, l->last_tx);
	if (l->mem)
		erpc_ep_defer_dereg(s->ep, &l->link);
	else
		erpc_exposure_free(s->ep, l);
}

void erpc_expose_reap(struct erpc_ep *ep, bool all)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->dereg_list) {
		struct erpc_exposure *l = UTIL_CONTAINER_OF(it, struct erpc_exposure, link);

		if (!all && l->sent && !dev_dgram_is_done(ep->dg, l->last_tx))
			continue;
		util_list_remove(it);
		erpc_exposure_free(ep, l);
	}
}

/** Returns the exposure that a GET names, or NULL unless it contains the requested range. */
static struct erpc_exposure *erpc_expose_find(struct erpc_session *s,
					      const struct wire_erpc_get *req)
{
	struct erpc_exposure *l = util_idmap_lookup(&s->ep->exposures, (uint32_t)req->key);
	uint64_t off;

	if (!l || l->session != s || l->secret != req->key >> 32)
		return NULL;
	off = req->addr - (uintptr_t)l->addr;
	return off <= l->len && req->len <= l->len - off ? l : NULL;
}

void erpc_expose_reply(struct erpc_session *s, uint32_t slot, const uint8_t *data, uint32_t len)
{
	struct erpc_rx *rx = &s->rx[slot];
	struct erpc_exposure *l = NULL;
	struct wire_erpc_get req = { 0 };
	uint32_t parts;

	if (len == sizeof(req)) {
		memcpy(&req, data, sizeof(req));
		l = erpc_expose_find(s, &req);
	}
	if (l && req.more < WIRE_ERPC_RUN_MAX && erpc_server_respond(&rx->s, req.len)) {
		rx->exposure = l;
		rx->get_src = l->addr + (req.addr - (uintptr_t)l->addr);
		rx->exposure_mem = l->mem;
	} else {
		s->ep->stats->rx_bad++;
		rx->resp_type = WIRE_ERPC_REFUSED;
		erpc_server_respond(&rx->s, 0);
	}
	parts = wire_erpc_pkts(rx->s.resp_size, s->payload);
	erpc_respond_run(s, slot, rx->s.req_pkts - 1u, req.more < parts ? req.more + 1 : parts);
}
