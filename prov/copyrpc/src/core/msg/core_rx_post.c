/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives are posted, cancelled, peeked at and claimed here: see core_rx.h. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_srx.h"
#include "core/msg/core_unexp.h"
#include "util/copy.h"
#include "wire/wire_op.h"

/** Sets *id to the source for matching. Returns 0, or why there is no peer or it is unreachable. */
static inline int core_rx_source(struct core_ep *ep, fi_addr_t src, uint64_t *id)
{
	struct core_peer *peer;

	*id = CORE_MATCH_ANY;
	if (!ep->directed || src == FI_ADDR_UNSPEC)
		return 0;
	if (UTIL_UNLIKELY(core_ep_is_srx(ep))) {
		*id = src;
		return 0;
	}
	peer = core_peer_get(ep, src);
	if (UTIL_UNLIKELY(!peer))
		return core_peer_missing(ep, src);
	*id = peer->id;
	/* Only a new incarnation of a dead peer can complete this receive, or fail it. */
	if (UTIL_UNLIKELY(peer->state == CORE_PEER_DEAD))
		return core_peer_connect(peer);
	return 0;
}

static inline void core_rx_fill_dest(struct core_dest *dest, const struct core_recv *r)
{
	core_rx_dest_init(dest, r->context, r->flags, r->iov[0].iov_base, r->iov[0].iov_len);
	if (UTIL_LIKELY(r->iov_cnt == 1))
		return;
	dest->iov_cnt = r->iov_cnt;
	memcpy(dest->iov, r->iov, r->iov_cnt * sizeof(dest->iov[0]));
	dest->len = util_iov_len(r->iov, r->iov_cnt);
}

/** Moves an unexpected message, already out of the matcher, to `dest`. */
static void core_rx_take_unexpected(struct core_match_msg *msg, const struct core_dest *dest)
{
	struct core_unexp *in = UTIL_CONTAINER_OF(msg, struct core_unexp, match);

	in->queued = false;
	core_unexp_match(in, dest);
}

/** Posts a multi-receive buffer: fills it with unexpected messages, then queues it if not full. */
static void core_rx_post_multi(struct core_ep *ep, struct core_rx_req *req)
{
	struct core_ep *last = ep; /* endpoint of the last message, gets FI_MULTI_RECV */
	struct core_match_msg *msg;
	struct core_unexp *in;
	struct core_dest dest;

	req->match.seq = CORE_RX_UNPOSTED;
	req->pending++; /* keeps `req` while it is not in the matcher */
	while (!req->retired && (msg = core_match_peek(ep->msg, 0, 0, req->match.src))) {
		in = UTIL_CONTAINER_OF(msg, struct core_unexp, match);
		if (in->total > req->dest.len && req->dest.len != req->multi_len) {
			req->retired = true;
			break;
		}
		last = in->ep;
		core_match_take(ep->msg, msg);
		core_rx_multi_take(ep, req, in->total, &dest);
		core_rx_take_unexpected(msg, &dest);
	}
	req->pending--;
	if (!req->retired)
		core_match_post(ep->msg, &req->match);
	else if (!req->pending)
		core_rx_multi_end(ep, last, req);
}

ssize_t core_rx_post(struct core_ep *ep, const struct core_recv *r)
{
	struct core_match_msg *msg;
	struct core_rx_req *req;
	struct core_dest dest;
	int ret;

	req = util_pool_alloc(&ep->rx_reqs);
	if (UTIL_UNLIKELY(!req))
		return -FI_EAGAIN;
	ret = core_rx_source(ep, r->src, &req->match.src);
	if (UTIL_UNLIKELY(ret != 0)) {
		util_pool_release(&ep->rx_reqs, req);
		return ret;
	}
	req->match.tag = r->tag;
	req->match.ignore = r->ignore;
	req->is_multi = !r->tagged && (r->flags & FI_MULTI_RECV);
	core_rx_fill_dest(&req->dest, r);
	if (UTIL_UNLIKELY(req->is_multi)) {
		req->retired = false;
		req->pending = 0;
		req->multi_len = req->dest.len;
		core_rx_post_multi(ep, req);
		return 0;
	}
	msg = core_match_post(r->tagged ? ep->tagged : ep->msg, &req->match);
	if (UTIL_LIKELY(!msg)) {
		if (UTIL_UNLIKELY(ep->offload != NULL) && r->tagged)
			core_offload_list(ep->offload, r->flags & FI_MORE);
		return 0;
	}
	dest = req->dest;
	util_pool_release(&ep->rx_reqs, req);
	core_rx_take_unexpected(msg, &dest);
	return 0;
}

ssize_t core_rx_post_buf_cold(struct core_ep *ep, void *buf, size_t len, fi_addr_t src,
			      uint64_t tag, uint64_t ignore, void *context, uint64_t flags,
			      bool tagged)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct core_recv recv = { .src = src,
				  .iov = &iov,
				  .iov_cnt = 1,
				  .tag = tag,
				  .ignore = ignore,
				  .context = context,
				  .flags = flags,
				  .tagged = tagged };

	return core_rx_post(ep, &recv);
}

static void core_rx_write_enomsg(struct core_ep *ep, const struct core_recv *r)
{
	struct fi_cq_err_entry entry = {
		.op_context = r->context,
		.flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG),
		.tag = r->tag,
		.err = FI_ENOMSG,
		.prov_errno = FI_ENOMSG,
	};

	if (ep->rx.cq)
		core_cq_write_err(ep->rx.cq, &entry, FI_ADDR_NOTAVAIL);
}

static struct core_unexp *core_rx_find(struct core_ep *ep, const struct core_recv *r, uint64_t src)
{
	struct core_match_msg *msg =
		core_match_peek(r->tagged ? ep->tagged : ep->msg, r->tag, r->ignore, src);

	return msg ? UTIL_CONTAINER_OF(msg, struct core_unexp, match) : NULL;
}

/** Writes a completion that describes a message without its bytes. */
static void core_rx_write_found(struct core_ep *ep, const struct core_recv *r,
				const struct core_unexp *in)
{
	uint64_t flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG);

	if (in->op & WIRE_F_DATA64)
		flags |= FI_REMOTE_CQ_DATA;
	if (ep->rx.cq)
		core_cq_write(ep->rx.cq, r->context, flags, in->total, NULL, in->data, in->tag,
			      in->peer ? in->peer->fi_addr : FI_ADDR_NOTAVAIL);
}

ssize_t core_rx_peek(struct core_ep *ep, const struct core_recv *r)
{
	struct core_unexp *in;
	uint64_t src;
	int ret = core_rx_source(ep, r->src, &src);

	if (ret)
		return ret;
	in = core_rx_find(ep, r, src);
	if (!in) {
		core_dom_progress(ep->dom);
		in = core_rx_find(ep, r, src);
	}
	if (!in) {
		core_rx_write_enomsg(ep, r);
		return 0;
	}
	core_rx_write_found(ep, r, in);
	if (r->flags & FI_DISCARD) {
		core_unexp_discard(in);
	} else if (r->flags & FI_CLAIM) {
		core_match_take(r->tagged ? ep->tagged : ep->msg, &in->match);
		in->queued = false;
		in->claim = r->context;
		util_list_push_back(&ep->claimed, &in->claim_link);
	}
	return 0;
}

ssize_t core_rx_claim(struct core_ep *ep, const struct core_recv *r)
{
	struct util_list *it;
	struct core_unexp *in;
	struct core_dest dest;

	for (it = ep->claimed.next; it != &ep->claimed; it = it->next) {
		in = UTIL_CONTAINER_OF(it, struct core_unexp, claim_link);
		if (in->claim != r->context)
			continue;
		util_list_remove(&in->claim_link);
		core_rx_fill_dest(&dest, r);
		if (r->flags & FI_DISCARD) {
			if (!ep->rx.selective || (r->flags & FI_COMPLETION))
				core_rx_write_found(ep, r, in);
			core_unexp_discard(in);
		} else {
			core_unexp_match(in, &dest);
		}
		return 0;
	}
	return -FI_EINVAL;
}

/**
 * Ends a posted receive with an error completion. A multi-receive buffer into which messages are
 * being written is not the application's before the last of them has ended. Returns false if a
 * device has given the receive a message.
 */
static bool core_rx_fail_recv(struct core_ep *ep, struct core_match *m,
			      struct core_match_recv *recv, int err)
{
	struct core_rx_req *req = UTIL_CONTAINER_OF(recv, struct core_rx_req, match);
	bool tagged = m == ep->tagged, multi = !tagged && req->is_multi;
	struct fi_cq_err_entry entry = {
		.op_context = req->dest.context,
		.flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG) |
			 (multi && !req->pending ? FI_MULTI_RECV : 0),
		.tag = recv->tag,
		.err = -err,
		.prov_errno = -err,
	};

	if (!recv->listed)
		core_match_cancel(m, recv);
	else if (!core_offload_unlist(ep, recv))
		return false;
	if (ep->rx.cntr)
		core_cntr_add_err(ep->rx.cntr, 1);
	if (ep->rx.cq)
		core_cq_write_err(ep->rx.cq, &entry, FI_ADDR_NOTAVAIL);
	if (multi && req->pending)
		req->retired = true; /* the last message in it frees it */
	else
		util_pool_release(&ep->rx_reqs, req);
	return true;
}

/**
 * Ends posted receives with an error: all, or those from one source. One in a device's list takes
 * events with it, which may remove others.
 */
static void core_rx_fail_recvs(struct core_ep *ep, struct core_match *m, bool all, uint64_t src,
			       int err)
{
	struct util_list *head = core_match_posted(m), *it = head->next;

	while (it != head) {
		struct core_match_recv *recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);
		bool listed = recv->listed;

		it = it->next;
		if (!all && recv->src != src)
			continue;
		core_rx_fail_recv(ep, m, recv, err);
		if (listed)
			it = head->next;
	}
}

static bool core_rx_cancel_in(struct core_ep *ep, struct core_match *m, void *context)
{
	struct util_list *head = core_match_posted(m);
	struct util_list *it = head->next;
	struct core_match_recv *recv;

	while (it != head) {
		recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);
		it = it->next;
		if (UTIL_CONTAINER_OF(recv, struct core_rx_req, match)->dest.context != context)
			continue;
		if (core_rx_fail_recv(ep, m, recv, -FI_ECANCELED))
			return true;
		it = head->next;
	}
	return false;
}

int core_rx_cancel(struct core_ep *ep, void *context)
{
	if (core_rx_cancel_in(ep, ep->tagged, context) || core_rx_cancel_in(ep, ep->msg, context))
		return 0;
	return -FI_ENOENT;
}

void core_rx_flush(struct core_ep *ep)
{
	core_rx_fail_recvs(ep, ep->tagged, true, 0, -FI_ECANCELED);
	core_rx_fail_recvs(ep, ep->msg, true, 0, -FI_ECANCELED);
}

void core_rx_fail_directed(struct core_peer *peer, int err)
{
	core_rx_fail_recvs(peer->ep, peer->ep->tagged, false, peer->id, err);
	core_rx_fail_recvs(peer->ep, peer->ep->msg, false, peer->id, err);
}

/** Lets a posted receive take unexpected messages that it accepts. Returns false if it cannot. */
static bool core_rx_try_again(struct core_ep *ep, struct core_match *m, struct core_rx_req *req)
{
	struct core_match_msg *msg =
		core_match_peek(m, req->match.tag, req->match.ignore, req->match.src);
	struct core_dest dest = req->dest;

	if (!msg || req->match.listed)
		return false;
	core_match_cancel(m, &req->match);
	if (req->is_multi) {
		core_rx_post_multi(ep, req);
		return true;
	}
	core_match_take(m, msg);
	util_pool_release(&ep->rx_reqs, req);
	core_rx_take_unexpected(msg, &dest);
	return true;
}

/** Makes two sources one: receives that were directed at the first may find messages now. */
static void core_rx_merge_in(struct core_ep *ep, struct core_match *m, uint64_t from, uint64_t to)
{
	struct util_list *head = core_match_posted(m), *it = head->next;
	struct core_match_recv *recv;

	core_match_rename(m, from, to);
	while (it != head) {
		recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);
		it = it->next;
		if (recv->src == to &&
		    core_rx_try_again(ep, m, UTIL_CONTAINER_OF(recv, struct core_rx_req, match)))
			it = head->next;
	}
}

void core_rx_merge_peers(struct core_peer *alias, struct core_peer *peer)
{
	struct core_ep *ep = peer->ep;

	core_rx_merge_in(ep, ep->tagged, alias->id, peer->id);
	core_rx_merge_in(ep, ep->msg, alias->id, peer->id);
	if (ep->offload)
		core_offload_list_again(ep->offload);
}

static void core_rx_fail_lost_in(struct core_ep *ep, struct core_match *m, int err)
{
	struct util_list *head = core_match_posted(m), *it = head->next;
	struct core_match_recv *recv;

	while (it != head) {
		recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);
		it = it->next;
		if (recv->src != CORE_MATCH_ANY)
			continue;
		if (core_rx_fail_recv(ep, m, recv, err))
			return;
		it = head->next;
	}
}

void core_rx_fail_lost(struct core_ep *ep, int err)
{
	struct core_ep *rx = core_ep_rx(ep);

	core_rx_fail_lost_in(rx, rx->tagged, err);
	core_rx_fail_lost_in(rx, rx->msg, err);
}

static void core_rx_drop_queues(struct core_ep *ep, struct core_match *m)
{
	struct util_list *it, *tmp;
	struct core_match_recv *recv;
	struct core_match_msg *msg;

	UTIL_LIST_FOREACH_SAFE (it, tmp, core_match_posted(m)) {
		recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);
		core_match_cancel(m, recv);
		util_pool_release(&ep->rx_reqs, UTIL_CONTAINER_OF(recv, struct core_rx_req, match));
	}
	UTIL_LIST_FOREACH_SAFE (it, tmp, core_match_unexpected(m)) {
		msg = UTIL_CONTAINER_OF(it, struct core_match_msg, order);
		core_unexp_free(UTIL_CONTAINER_OF(msg, struct core_unexp, match));
	}
}

void core_rx_drop_all(struct core_ep *ep)
{
	struct util_list *first;
	struct core_unexp *in;

	while ((first = util_list_pop(&ep->claimed))) {
		in = UTIL_CONTAINER_OF(first, struct core_unexp, claim_link);
		core_unexp_free(in);
	}
	core_rx_drop_queues(ep, ep->tagged);
	core_rx_drop_queues(ep, ep->msg);
}
