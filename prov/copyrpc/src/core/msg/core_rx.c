/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrivals: a message completes a posted receive or becomes a core_unexp. See core_rx.h; receives
 * are posted in core_rx_post.c, and messages of several frames continue in core_rx_bulk.c.
 */
#include "core/msg/core_rx.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_handler.h"
#include "core/core_peer.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_rx_bulk.h"
#include "core/msg/core_srx.h"
#include "core/msg/core_unexp.h"
#include "util/bits.h"
#include "util/copy.h"
#include "util/log.h"
#include "util/stats.h"
#include "wire/wire_op.h"

static uint64_t core_rx_comp_flags(const struct core_head *head)
{
	return FI_RECV | (head->tagged ? FI_TAGGED : FI_MSG) |
	       (head->has_data ? FI_REMOTE_CQ_DATA : 0);
}

/** Ends a message in a multi-receive buffer. Returns true, with `req` freed, after the last one. */
static bool core_rx_multi_done(struct core_ep *ep, struct core_rx_req *req)
{
	if (--req->pending || !req->retired)
		return false;
	util_pool_release(&core_ep_rx(ep)->rx_reqs, req);
	return true;
}

/**
 * Completes a receive. A completion is written if FI_COMPLETION is in `asked`, the flags of the
 * operation, or FI_MULTI_RECV in `flags`, those of the completion.
 */
static inline void core_rx_complete(struct core_ep *ep, void *context, uint64_t flags,
				    uint64_t asked, size_t len, void *buf, uint64_t data,
				    uint64_t tag, fi_addr_t src)
{
	if (ep->rx.cntr)
		core_cntr_add(ep->rx.cntr, 1);
	if (ep->rx.cq && (!ep->rx.selective || (asked & FI_COMPLETION) || (flags & FI_MULTI_RECV)))
		core_cq_write(ep->rx.cq, context, flags, len, buf, data, tag, src);
}

void core_dest_complete(struct core_ep *ep, const struct core_dest *dest,
			const struct core_head *head, uint64_t total, fi_addr_t src, int err)
{
	uint64_t flags = core_rx_comp_flags(head);
	size_t len = total < dest->len ? total : dest->len;
	void *buf = dest->multi ? dest->iov[0].iov_base : NULL;

	if (dest->flags & FI_DISCARD)
		return;
	if (dest->multi && core_rx_multi_done(ep, dest->multi))
		flags |= FI_MULTI_RECV;
	if (UTIL_UNLIKELY(err || total > dest->len)) {
		struct fi_cq_err_entry entry = {
			.op_context = dest->context,
			.flags = flags,
			.len = err ? 0 : len,
			.buf = buf,
			.data = head->data,
			.tag = head->tag,
			.olen = err ? 0 : total - len,
			.err = err ? -err : FI_ETRUNC,
			.prov_errno = err ? -err : FI_ETRUNC,
		};

		if (ep->rx.cntr)
			core_cntr_add_err(ep->rx.cntr, 1);
		if (ep->rx.cq)
			core_cq_write_err(ep->rx.cq, &entry, src);
		return;
	}
	core_rx_complete(ep, dest->context, flags, dest->flags, len, buf, head->data, head->tag,
			 src);
}

void core_rx_multi_end(struct core_ep *rx, struct core_ep *ep, struct core_rx_req *req)
{
	if (ep->rx.cq)
		core_cq_write(ep->rx.cq, req->dest.context, FI_MULTI_RECV, 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
	util_pool_release(&rx->rx_reqs, req);
}

/** Ends a multi-receive buffer of `rx` without a message, because one for `ep` is too long. */
static __attribute__((noinline)) void core_rx_multi_retire(struct core_ep *rx, struct core_ep *ep,
							   struct core_rx_req *req)
{
	core_match_cancel(rx->msg, &req->match);
	req->retired = true;
	if (!req->pending)
		core_rx_multi_end(rx, ep, req);
}

void core_rx_multi_take(struct core_ep *ep, struct core_rx_req *req, uint64_t total,
			struct core_dest *dest)
{
	struct iovec *rest = &req->dest.iov[0];
	size_t take = total < req->dest.len ? total : req->dest.len;

	*dest = req->dest;
	dest->multi = req;
	dest->iov[0].iov_len = take;
	dest->len = take;
	req->pending++;
	rest->iov_base = (uint8_t *)rest->iov_base + take;
	rest->iov_len -= take;
	req->dest.len -= take;
	if (req->dest.len >= ep->min_multi_recv && req->dest.len)
		return;
	if (req->match.seq != CORE_RX_UNPOSTED)
		core_match_cancel(ep->msg, &req->match);
	req->retired = true;
}

/**
 * Finds the destination of an untagged message for `ep` among the receives of `rx`. Returns false
 * if none accepts it. A part of a multi-receive buffer is a destination too.
 */
UTIL_INLINE bool core_rx_match_msg(struct core_ep *rx, struct core_ep *ep, uint64_t src,
				   uint64_t total, struct core_dest *dest)
{
	struct core_match_recv *found;
	struct core_rx_req *req;

	while ((found = core_match_find(rx->msg, 0, src))) {
		req = UTIL_CONTAINER_OF(found, struct core_rx_req, match);
		if (!req->is_multi) {
			core_match_cancel(rx->msg, found);
			*dest = req->dest;
			util_pool_release(&rx->rx_reqs, req);
			return true;
		}
		/* Too little of a partly used buffer is left: try the next receive. */
		if (total > req->dest.len && req->dest.len != req->multi_len) {
			core_rx_multi_retire(rx, ep, req);
			continue;
		}
		core_rx_multi_take(rx, req, total, dest);
		return true;
	}
	return false;
}

/** Removes a tagged receive. Returns false if a device has given it another message. */
UTIL_INLINE bool core_rx_unqueue(struct core_ep *rx, struct core_match_recv *recv)
{
	if (UTIL_UNLIKELY(recv->listed))
		return core_offload_unlist(rx, recv);
	core_match_cancel(rx->tagged, recv);
	return true;
}

UTIL_INLINE bool core_rx_match_in(struct core_ep *rx, struct core_ep *ep, uint64_t src,
				  const struct core_head *head, uint64_t total,
				  struct core_dest *dest)
{
	struct core_match_recv *found;
	struct core_rx_req *req;

	if (!head->tagged)
		return core_rx_match_msg(rx, ep, src, total, dest);
	do {
		found = core_match_find(rx->tagged, head->tag, src);
		if (!found)
			return false;
	} while (!core_rx_unqueue(rx, found));
	req = UTIL_CONTAINER_OF(found, struct core_rx_req, match);
	*dest = req->dest;
	util_pool_release(&rx->rx_reqs, req);
	return true;
}

/** Finds the destination among the receives of the endpoint's shared receive context. */
static __attribute__((noinline)) bool core_rx_match_shared(struct core_peer *peer,
							   const struct core_head *head,
							   uint64_t total, struct core_dest *dest)
{
	struct core_ep *ep = peer->ep;

	return ep->srx && core_rx_match_in(ep->srx, ep, core_srx_source(peer), head, total, dest);
}

static inline bool core_rx_match(struct core_peer *peer, const struct core_head *head,
				 uint64_t total, struct core_dest *dest)
{
	return UTIL_LIKELY(core_rx_match_in(peer->ep, peer->ep, peer->id, head, total, dest)) ||
	       core_rx_match_shared(peer, head, total, dest);
}

bool core_rx_take(struct core_peer *peer, const struct core_head *head, uint64_t total,
		  struct core_dest *dest)
{
	return core_rx_match(peer, head, total, dest);
}

/** Counts a message that is kept: the queue has `queued` now. */
static void core_rx_count_kept(struct copyrpc_stats_endpoint *stats, uint64_t queued)
{
	stats->unexpected++;
	if (queued > stats->unexpected_queue_most)
		stats->unexpected_queue_most = queued;
}

void core_rx_keep(struct core_ep *ep, struct core_unexp *in, bool tagged)
{
	struct core_ep *rx = core_ep_rx(ep);

	if (rx != ep)
		in->match.src = core_srx_source(in->peer);
	core_match_keep(tagged ? rx->tagged : rx->msg, &in->match);
	in->queued = true;
	core_rx_count_kept(in->ep->stats, rx->tagged->unexpected_cnt + rx->msg->unexpected_cnt);
	in->late = true;
}

/** Delivers or keeps a message of one frame. */
static inline enum core_rx_verdict core_rx_whole(struct core_peer *peer,
						 const struct core_head *head, core_retain_t retain)
{
	struct core_ep *ep = peer->ep;
	struct core_unexp *in;
	struct core_dest dest;
	enum core_rx_verdict verdict;
	size_t len;

	if (UTIL_LIKELY(core_rx_match(peer, head, head->body_len, &dest))) {
		len = head->body_len < dest.len ? head->body_len : dest.len;
		if (UTIL_LIKELY(dest.iov_cnt == 1))
			util_copy(dest.iov[0].iov_base, head->body, len);
		else if (len)
			util_iov_scatter(dest.iov, dest.iov_cnt, 0, head->body, len);
		core_dest_complete(ep, &dest, head, head->body_len, peer->fi_addr, 0);
		return CORE_RX_DONE;
	}
	in = core_unexp_new(peer, head, head->body_len);
	if (!in)
		return CORE_RX_BAD;
	verdict = core_unexp_bytes(in, head->body, head->body_len, retain);
	if (verdict == CORE_RX_BAD)
		core_unexp_free(in);
	else
		core_rx_keep(ep, in, head->tagged);
	return verdict;
}

/* Operation words of the most common messages. */
#define CORE_RX_PLAIN  WIRE_OP_MSG
#define CORE_RX_TAGGED (WIRE_OP_MSG | WIRE_F_TAG)
#define CORE_RX_DATA   (CORE_RX_TAGGED | WIRE_F_DATA32)

/** Returns true for a message of one frame with at most a tag and 32 bits of remote CQ data. */
UTIL_INLINE bool core_rx_is_common(uint32_t op)
{
	return (op & ~(WIRE_F_TAG | WIRE_F_DATA32)) == WIRE_OP_MSG;
}

UTIL_INLINE struct core_match *core_rx_matcher(const struct core_ep *ep, uint32_t op)
{
	return op & WIRE_F_TAG ? ep->tagged : ep->msg;
}

/** Returns the remote CQ data of a common message, or 0 without data. */
UTIL_INLINE uint32_t core_rx_cq_data(uint32_t op, const uint8_t *data)
{
	uint32_t cq_data = 0;

	if (op & WIRE_F_DATA32)
		memcpy(&cq_data, data + (op & WIRE_F_TAG ? sizeof(uint64_t) : 0), sizeof(cq_data));
	return cq_data;
}

UTIL_INLINE uint64_t core_rx_flags(uint32_t op)
{
	return FI_RECV | (op & WIRE_F_TAG ? FI_TAGGED : FI_MSG) |
	       (op & WIRE_F_DATA32 ? FI_REMOTE_CQ_DATA : 0);
}

/**
 * Returns the oldest receive if it accepts the message and its first buffer has room, else NULL.
 * Sets *tag to the value compared, since the peer may still write the message.
 */
UTIL_INLINE struct core_rx_req *core_rx_oldest(struct core_peer *peer, uint32_t op,
					       const uint8_t *data, uint32_t len, uint64_t *tag)
{
	struct core_match_recv *recv;
	struct core_rx_req *req;

	if (UTIL_UNLIKELY(len < wire_ext_len(op)))
		return NULL;
	*tag = 0;
	if (op & WIRE_F_TAG)
		memcpy(tag, data, sizeof(*tag));
	recv = core_match_oldest(core_rx_matcher(peer->ep, op), *tag, peer->id);
	if (!recv)
		return NULL;
	req = UTIL_CONTAINER_OF(recv, struct core_rx_req, match);
	if (!(op & WIRE_F_TAG) && UTIL_UNLIKELY(req->is_multi))
		return NULL;
	return UTIL_LIKELY(len - wire_ext_len(op) <= req->dest.iov[0].iov_len) ? req : NULL;
}

/**
 * Delivers a whole message of at most UTIL_COPY_SHORT bytes to the oldest receive without a
 * function call. `op` is a constant. `asked`: the receive must have FI_COMPLETION. Returns false,
 * and does nothing, in all other cases: the receive does not match, no `cq`, no room in it.
 */
UTIL_INLINE bool core_rx_quick(struct core_chan *chan, bool asked, uint32_t op, const uint8_t *data,
			       uint32_t len)
{
	struct core_ep *ep = chan->peer->ep;
	struct core_cq *const *queue = asked ? &ep->rx.requested : &ep->rx.plain;
	struct core_cq *cq = *queue;
	struct core_rx_req *req;
	uint64_t tag;

	if (UTIL_UNLIKELY(!cq || !core_cq_has_room(cq)))
		return false;
	req = core_rx_oldest(chan->peer, op, data, len, &tag);
	if (UTIL_UNLIKELY(!req || req->match.shape != CORE_MATCH_UNHASHED))
		return false;
	if (asked && UTIL_UNLIKELY(!(req->dest.flags & FI_COMPLETION)))
		return false;
	core_match_unqueue(core_rx_matcher(ep, op), &req->match);
	len -= wire_ext_len(op);
	cq = UTIL_REREAD(*queue);
	core_cqe_fill(core_cq_take(cq), req->dest.context, core_rx_flags(op), len, NULL,
		      core_rx_cq_data(op, data), tag, UTIL_REREAD(chan->peer)->fi_addr);
	util_copy_short(req->dest.iov[0].iov_base, data + wire_ext_len(op), len);
	util_pool_release(&ep->rx_reqs, req);
	return true;
}

/** Delivers a common message of any length to the oldest receive, hashed or not. */
static bool core_rx_in_order(struct core_peer *peer, uint32_t op, const uint8_t *data, uint32_t len)
{
	struct core_ep *ep = peer->ep;
	struct core_rx_req *req;
	uint64_t tag;

	if (!core_rx_is_common(op))
		return false;
	req = core_rx_oldest(peer, op, data, len, &tag);
	if (!req || UTIL_UNLIKELY(req->match.listed))
		return false;
	len -= wire_ext_len(op);
	util_copy(req->dest.iov[0].iov_base, data + wire_ext_len(op), len);
	core_match_cancel(core_rx_matcher(ep, op), &req->match);
	core_rx_complete(ep, req->dest.context, core_rx_flags(op), req->dest.flags, len, NULL,
			 core_rx_cq_data(op, data), tag, peer->fi_addr);
	util_pool_release(&ep->rx_reqs, req);
	return true;
}

/* Handles every message that core_rx_quick does not. */
static __attribute__((noinline)) enum core_rx_verdict core_rx_on_msg_cold(struct core_chan *chan,
									  uint32_t op,
									  const uint8_t *data,
									  uint32_t len,
									  core_retain_t retain)
{
	struct core_peer *peer = chan->peer;
	struct core_head head;

	if (core_rx_in_order(peer, op, data, len))
		return CORE_RX_DONE;
	if (UTIL_UNLIKELY(!core_head_parse(&head, op, data, len)))
		return CORE_RX_BAD;
	if (UTIL_LIKELY(head.op == WIRE_OP_MSG))
		return core_rx_whole(peer, &head, retain);
	return core_handle_msg(chan, &head, retain);
}

/* Keeps a function out of line, and gcc from cloning it for a constant argument. */
#if defined(__clang__)
#define CORE_RX_OUT_OF_LINE __attribute__((noinline))
#else
#define CORE_RX_OUT_OF_LINE __attribute__((noinline, noclone))
#endif

/*
 * One function per common operation and kind of CQ binding: all receives write a completion, or
 * only those with FI_COMPLETION (_asked). Functions, so that each saves only the registers it uses.
 */
#define CORE_RX_ON(function, asked, common)                                                        \
	static CORE_RX_OUT_OF_LINE enum core_rx_verdict function(                                  \
		struct core_chan *chan, uint32_t op, const uint8_t *data, uint32_t len,            \
		core_retain_t retain)                                                              \
	{                                                                                          \
		if (core_rx_quick(chan, asked, common, data, len))                                 \
			return CORE_RX_DONE;                                                       \
		return core_rx_on_msg_cold(chan, op, data, len, retain);                           \
	}

CORE_RX_ON(core_rx_on_data, false, CORE_RX_DATA)
CORE_RX_ON(core_rx_on_plain, false, CORE_RX_PLAIN)
CORE_RX_ON(core_rx_on_tagged_asked, true, CORE_RX_TAGGED)
CORE_RX_ON(core_rx_on_data_asked, true, CORE_RX_DATA)
CORE_RX_ON(core_rx_on_plain_asked, true, CORE_RX_PLAIN)

static CORE_RX_OUT_OF_LINE enum core_rx_verdict core_rx_on_other(struct core_chan *chan,
								 uint32_t op, const uint8_t *data,
								 uint32_t len, core_retain_t retain)
{
	bool asked = chan->peer->ep->rx.selective;

	if (UTIL_UNLIKELY(len > UTIL_COPY_SHORT))
		return core_rx_on_msg_cold(chan, op, data, len, retain);
	if (op == CORE_RX_DATA)
		return asked ? core_rx_on_data_asked(chan, op, data, len, retain)
			     : core_rx_on_data(chan, op, data, len, retain);
	if (op == CORE_RX_PLAIN)
		return asked ? core_rx_on_plain_asked(chan, op, data, len, retain)
			     : core_rx_on_plain(chan, op, data, len, retain);
	return core_rx_on_msg_cold(chan, op, data, len, retain);
}

enum core_rx_verdict core_rx_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				    uint32_t len, core_retain_t retain)
{
	if (op != CORE_RX_TAGGED || UTIL_UNLIKELY(len > UTIL_COPY_SHORT))
		return core_rx_on_other(chan, op, data, len, retain);
	if (core_rx_quick(chan, false, CORE_RX_TAGGED, data, len))
		return CORE_RX_DONE;
	return chan->peer->ep->rx.selective ? core_rx_on_tagged_asked(chan, op, data, len, retain)
					    : core_rx_on_msg_cold(chan, op, data, len, retain);
}

static bool core_rx_is_unfinished(const struct core_unexp *in)
{
	return in->received < in->total;
}

void core_rx_fail_peer(struct core_peer *peer, int err)
{
	struct util_list *it, *tmp;
	struct core_unexp *in;
	bool whole, lost = false;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->rx) {
		in = UTIL_CONTAINER_OF(it, struct core_unexp, peer_link);
		core_unexp_forget_sender(in);
		if (in->matched) {
			core_unexp_end(in, err ? err : -FI_EIO);
			continue;
		}
		whole = !core_rx_is_unfinished(in);
		if (whole && !core_unexp_save(in))
			continue;
		lost |= whole;
		core_unexp_lose(in, err ? err : -FI_EIO);
	}
	if (lost && !err) /* the connection is replaced: no other error tells of this */
		core_rx_fail_lost(peer->ep, -FI_ENOMEM);
	if (err && err != -FI_ESHUTDOWN)
		core_rx_fail_directed(peer, err);
}

void core_rx_forget_peer(struct core_peer *peer)
{
	struct util_list *first;
	struct core_unexp *in;

	while ((first = util_list_pop(&peer->rx))) {
		in = UTIL_CONTAINER_OF(first, struct core_unexp, peer_link);
		in->peer = NULL;
	}
}
