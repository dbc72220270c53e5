/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive side of datagram endpoints: see dgram_ep.h. */
#include <rdma/fi_errno.h>

#include "dgram/dgram_ep.h"
#include "dgram/dgram_outage.h"
#include "util/copy.h"

static struct dgram_recv *dgram_rx_first(struct dgram_ep *ep)
{
	struct util_list *first = util_list_first(&ep->posted);

	return first ? UTIL_CONTAINER_OF(first, struct dgram_recv, link) : NULL;
}

static void dgram_rx_drop(struct dgram_ep *ep, struct dgram_recv *recv)
{
	util_list_remove(&recv->link);
	util_pool_release(&ep->recvs, recv);
}

static void dgram_rx_error(const struct dgram_ep *ep, const struct fi_cq_err_entry *e, uint64_t src)
{
	if (ep->rx->cntr)
		core_cntr_add_err(ep->rx->cntr, 1);
	if (ep->rx->cq)
		core_cq_write_err(ep->rx->cq, e, src);
}

static void dgram_rx_complete(const struct dgram_ep *ep, const struct dgram_recv *recv,
			      uint64_t flags, void *buf, size_t len, size_t cut, uint64_t src)
{
	const struct core_comp *rx = ep->rx;
	bool asked = !rx->selective || recv->flags & FI_COMPLETION || flags & FI_MULTI_RECV;

	if (UTIL_UNLIKELY(cut)) {
		struct fi_cq_err_entry e = {
			.op_context = recv->context,
			.flags = flags,
			.len = len,
			.buf = buf,
			.olen = cut,
			.err = FI_ETRUNC,
			.prov_errno = FI_ETRUNC,
		};

		dgram_rx_error(ep, &e, src);
		return;
	}
	if (rx->cntr)
		core_cntr_add(rx->cntr, 1);
	if (rx->cq && asked)
		core_cq_write(rx->cq, recv->context, flags, len, buf, 0, 0, src);
}

/*
 * Completes a part of a multi-receive buffer; the buffer stays while its rest fits another message.
 */
static void dgram_rx_take_multi(struct dgram_ep *ep, struct dgram_recv *recv, size_t len,
				size_t cut, uint64_t src)
{
	uint64_t flags = FI_RECV | FI_MSG;
	uint8_t *buf = recv->iov[0].iov_base;

	recv->used = true;
	recv->iov[0].iov_base = buf + len;
	recv->iov[0].iov_len -= len;
	recv->len -= len;
	if (recv->len && recv->len >= *ep->min_multi_recv) {
		dgram_rx_complete(ep, recv, flags, buf, len, cut, src);
		return;
	}
	dgram_rx_complete(ep, recv, flags | FI_MULTI_RECV, buf, len, cut, src);
	dgram_rx_drop(ep, recv);
}

/* Completes a multi-receive buffer without a message: the next one does not fit its rest. */
static void dgram_rx_retire(struct dgram_ep *ep, struct dgram_recv *recv)
{
	if (ep->rx->cq)
		core_cq_write(ep->rx->cq, recv->context, FI_MULTI_RECV, 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
	dgram_rx_drop(ep, recv);
}

/* Delivers one datagram. Returns false if no receive is posted. */
static bool dgram_rx_deliver(struct dgram_ep *ep, const struct dev_dgram_in *in)
{
	struct dgram_recv *recv = dgram_rx_first(ep);
	size_t all = in->len + ep->prefix, len;
	uint64_t src;

	while (recv && recv->is_multi && recv->used && all > recv->len) {
		dgram_rx_retire(ep, recv);
		recv = dgram_rx_first(ep);
	}
	if (!recv)
		return false;
	src = dgram_ep_sender(ep, in);
	len = all < recv->len ? all : recv->len;
	util_iov_scatter(recv->iov, recv->iov_cnt, ep->prefix, in->data, len - ep->prefix);
	ep->ops->release(ep->dg, in->slot);
	if (recv->is_multi) {
		dgram_rx_take_multi(ep, recv, len, all - len, src);
		return true;
	}
	dgram_rx_complete(ep, recv, FI_RECV | FI_MSG, NULL, len, all - len, src);
	dgram_rx_drop(ep, recv);
	return true;
}

static void dgram_rx_queue(struct dgram_ep *ep, const struct dev_dgram_in *in)
{
	ep->queued[(ep->queued_head + ep->queued_cnt++) & ep->queued_mask] = *in;
}

/* Delivers queued datagrams to posted receives. */
static void dgram_rx_deliver_queued(struct dgram_ep *ep)
{
	while (ep->queued_cnt &&
	       dgram_rx_deliver(ep, &ep->queued[ep->queued_head & ep->queued_mask])) {
		ep->queued_head++;
		ep->queued_cnt--;
	}
}

void dgram_rx_poll(struct dgram_ep *ep)
{
	struct dev_dgram_in in[DGRAM_BURST];
	int cnt;

	/* Needs space for a burst; without it the device queues, and drops, datagrams. */
	if (UTIL_UNLIKELY(ep->err || ep->queued_cnt + DGRAM_BURST > ep->queued_mask + 1)) {
		if (ep->err)
			dgram_outage_look(ep->engine);
		return;
	}
	cnt = ep->ops->poll(ep->dg, in, DGRAM_BURST);
	if (UTIL_UNLIKELY(cnt < 0)) {
		dgram_ep_fail(ep, cnt);
		return;
	}
	for (int i = 0; i < cnt; i++)
		if (UTIL_UNLIKELY(ep->closing))
			ep->ops->release(ep->dg, in[i].slot);
		else if (ep->queued_cnt || !dgram_rx_deliver(ep, &in[i]))
			dgram_rx_queue(ep, &in[i]);
}

int dgram_rx_post(struct dgram_ep *ep, const struct dgram_post *p)
{
	struct dgram_recv *recv;
	size_t len;

	if (UTIL_UNLIKELY(ep->err))
		return ep->err;
	if (UTIL_UNLIKELY(!util_iov_sum(p->iov, p->iov_cnt, SIZE_MAX, &len)))
		return -FI_EMSGSIZE;
	if (UTIL_UNLIKELY(ep->prefix && (!p->iov_cnt || p->iov[0].iov_len < ep->prefix)))
		return -FI_EINVAL;
	recv = util_pool_alloc(&ep->recvs);
	if (UTIL_UNLIKELY(!recv))
		return -FI_ENOMEM;
	recv->context = p->context;
	recv->flags = p->flags;
	recv->is_multi = p->flags & FI_MULTI_RECV;
	recv->used = false;
	recv->len = len;
	recv->iov_cnt = p->iov_cnt;
	for (size_t i = 0; i < p->iov_cnt; i++)
		recv->iov[i] = p->iov[i];
	util_list_push_back(&ep->posted, &recv->link);
	if (UTIL_UNLIKELY(ep->queued_cnt))
		dgram_rx_deliver_queued(ep);
	return 0;
}

static void dgram_rx_end(struct dgram_ep *ep, struct dgram_recv *recv, int err)
{
	struct fi_cq_err_entry e = {
		.op_context = recv->context,
		.flags = FI_RECV | FI_MSG | (recv->is_multi ? FI_MULTI_RECV : 0),
		.err = err,
		.prov_errno = err,
	};

	dgram_rx_error(ep, &e, FI_ADDR_NOTAVAIL);
	dgram_rx_drop(ep, recv);
}

int dgram_rx_cancel(struct dgram_ep *ep, void *context)
{
	struct util_list *it;

	for (it = ep->posted.next; it != &ep->posted; it = it->next) {
		struct dgram_recv *recv = UTIL_CONTAINER_OF(it, struct dgram_recv, link);

		if (recv->context != context)
			continue;
		dgram_rx_end(ep, recv, FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}

void dgram_rx_fail(struct dgram_ep *ep, int err)
{
	struct dgram_recv *recv;

	while ((recv = dgram_rx_first(ep)))
		dgram_rx_end(ep, recv, -err);
}
