/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hot paths of core_tx_send and core_rx_post, inlined into the calls of ofi/.
 *
 * The send path covers one buffer, a connected peer and room in the ring. The receive path covers
 * one buffer while no message is unexpected. All other cases go through a core_send or core_recv
 * to core_tx.c and core_rx_post.c, with the same results.
 *
 * fabtests/scripts/cost counts the instructions.
 */
#ifndef CORE_MSG_CORE_POST_H
#define CORE_MSG_CORE_POST_H

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/msg/core_req.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_tx.h"
#include "util/bits.h"
#include "util/probe.h"
#include "wire/wire_op.h"

/* Flags that send a message to the cold half. */
#define CORE_POST_COLD_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_INJECT)

/**
 * Arguments for the cold half, in memory during the call of the channel. In callee-saved registers
 * each would cost every message a save, a move and a restore.
 */
struct core_post_spill {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	union {
		uint64_t tag;
		void *context; /* of a send that is silent and not tagged */
	};
};

#define CORE_POST_SPILL(kept) __asm__("" : "+m"(kept)) /* hides the values from the optimizer */

/** How a send of one buffer ends. */
enum core_post_end {
	CORE_POST_COMPLETES, /* with a completion, if one is requested */
	CORE_POST_LEAVES,    /* injected, without a completion; the message leaves now */
	CORE_POST_DEFERS,    /* injected, without a completion; the message may leave later */
};

/** Records a send that the channel has accepted. Returns false where core_pending_add must. */
UTIL_INLINE bool core_post_push_pending(const struct core_ep *ep, struct core_peer *peer,
					void *context, bool tagged, bool silent)
{
	if (silent)
		return core_pending_push_quiet(&peer->pending, peer->chan, context, tagged);
	return ep->tx.plain && core_pending_push(&peer->pending, peer->chan, context, tagged);
}

/**
 * Sends one buffer, as core_tx_send. FI_REMOTE_CQ_DATA and FI_MORE in flags should be constants
 * where the send is not by message.
 */
UTIL_INLINE ssize_t core_tx_send_buf(struct core_ep *ep, const void *buf, size_t len,
				     fi_addr_t dest, uint64_t tag, uint64_t data, void *context,
				     uint64_t flags, bool tagged, enum core_post_end end)
{
	const bool silent = end != CORE_POST_COMPLETES, keeps_ctx = silent && !tagged;
	const uint64_t cold_flags = end == CORE_POST_LEAVES ? flags | FI_INJECT : flags;
	struct core_peer *peer = core_peer_lookup(ep, dest);
	struct core_post_spill kept;
	uint64_t packed;
	struct core_cq *cq;
	uint64_t ext[2];
	int ret;

	UTIL_PROBE_OP(send, ep, dest, context, len);
	if (UTIL_UNLIKELY(!peer || len >= peer->eager_end || (flags & CORE_POST_COLD_FLAGS)))
		goto cold;
	packed = core_packed(core_tx_ext(ext, tag, data, flags, tagged),
			     end == CORE_POST_LEAVES ? CORE_SEND_NOW : 0);
	kept = (struct core_post_spill){ .buf = buf, .len = len, .dest = dest };
	if (keeps_ctx)
		kept.context = context;
	else
		kept.tag = tag;
	CORE_POST_SPILL(kept);
	ret = (flags & FI_MORE ? peer->chan->ops->send_more : peer->chan->ops->send_buf)(
		peer->chan, packed, ext[0], ext[1], buf, len);
	cq = ep->tx.plain;
	if (UTIL_UNLIKELY(ret)) {
		if (keeps_ctx)
			context = kept.context;
		if (UTIL_UNLIKELY(ret != 1)) {
			if (ret < 0)
				return core_tx_send_buf_cold(peer->ep, kept.buf, kept.len,
							     kept.dest, keeps_ctx ? tag : kept.tag,
							     data, context, cold_flags, tagged,
							     silent);
			if (flags & FI_INJECT_COMPLETE)
				core_tx_copied_cold(peer, kept.len, tagged, ret);
		}
		if (!(flags & FI_INJECT_COMPLETE)) {
			if (!core_post_push_pending(ep, peer, context, tagged, silent))
				core_pending_add(peer, context, flags, tagged, silent);
			if (end == CORE_POST_LEAVES && (ret & CORE_SEND_STAYS))
				core_tx_stays_cold(peer);
			return 0;
		}
	}
	if (silent) {
		if (UTIL_UNLIKELY(peer->ep->tx.cntr)) /* `ep` would have to survive the call */
			core_tx_complete_cold(peer->ep, NULL, flags, tagged, silent);
		return 0;
	}
	if (UTIL_UNLIKELY(!cq) && (flags & FI_COMPLETION))
		cq = ep->tx.requested;
	if (UTIL_LIKELY(cq && core_cq_has_room(cq)))
		core_cqe_fill(core_cq_take(cq), context, core_tx_comp_flags(tagged), 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
	else
		core_tx_complete_cold(ep, context, flags, tagged, silent);
	return 0;

cold:
	return core_tx_send_buf_cold(ep, buf, len, dest, tag, data, context, cold_flags, tagged,
				     silent);
}

/** Posts a receive into one buffer, as core_rx_post. */
UTIL_INLINE ssize_t core_rx_post_buf(struct core_ep *ep, void *buf, size_t len, fi_addr_t src,
				     uint64_t tag, uint64_t ignore, void *context, uint64_t flags,
				     bool tagged)
{
	struct core_match *m = tagged ? ep->tagged : ep->msg;
	struct core_rx_req *req = util_pool_first(&ep->rx_reqs);
	uint64_t source = CORE_MATCH_ANY;

	if (ep->post_checks) {
		struct core_peer *peer;

		if (UTIL_UNLIKELY(ep->lists))
			goto cold;
		peer = core_peer_lookup(ep, src); /* FI_ADDR_UNSPEC: NULL */
		if (UTIL_LIKELY(peer && peer->state != CORE_PEER_DEAD))
			source = peer->id;
		else if (UTIL_UNLIKELY(src != FI_ADDR_UNSPEC))
			goto cold;
	}
	if (UTIL_UNLIKELY(!req || !core_match_has_no_unexp(m)))
		goto cold;
	if (!tagged && UTIL_UNLIKELY(flags & FI_MULTI_RECV))
		goto cold;
	util_pool_take(&ep->rx_reqs, req);
	req->match.tag = tag;
	req->match.ignore = ignore;
	req->match.src = source;
	if (!tagged)
		req->is_multi = false;
	core_rx_dest_init(&req->dest, context, flags, buf, len);
	core_match_queue(m, &req->match);
	return 0;

cold:
	return core_rx_post_buf_cold(ep, buf, len, src, tag, ignore, context, flags, tagged);
}

#endif
