/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does it take to post the common message? The hot halves of core_tx_send and core_rx_post.
 *
 * One buffer, a peer that is connected, room in the ring; a receive that nothing waits for: these
 * go straight on, inlined into libfabric's calls, without a struct in between. Everything else is
 * stated in a core_send or core_recv and takes the way of core_tx.c and core_rx_post.c, which do
 * the same and more: a caller cannot tell which way it went.
 *
 * What each line costs: fabtests/scripts/cost counts the instructions.
 * Shown by test/unit/core/msg/test_core_post.c.
 */
#ifndef CORE_POST_H
#define CORE_POST_H

#include <rdma/fi_errno.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/msg/core_req.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_tx.h"
#include "util/bits.h"
#include "wire/wire_op.h"

#define CORE_POST_INLINE static inline __attribute__((always_inline))

/* What a send may ask for that the hot half does not do. */
#define CORE_POST_COLD_FLAGS (FI_DELIVERY_COMPLETE | FI_MORE | FI_INJECT)

/**
 * What the cold half needs if the channel has no room lies in memory during the call: in registers that
 * survive it each would be saved, moved and restored, by every message.
 */
struct core_post_spill {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t tag;
};

#define CORE_POST_SPILL(kept) __asm__("" : "+m"(kept)) /* so that the compiler cannot know better */

/**
 * A send of one buffer: as core_tx_send of a core_send that says the same, but that a `silent` one is
 * injected. FI_REMOTE_CQ_DATA in flags should be a constant.
 */
CORE_POST_INLINE ssize_t core_tx_send_buf(struct core_ep *ep, const void *buf, size_t len,
					  fi_addr_t dest, uint64_t tag, uint64_t data,
					  void *context, uint64_t flags, bool tagged, bool silent)
{
	const uint64_t cold_flags = silent ? flags | FI_INJECT : flags;
	struct core_peer *peer = core_peer_lookup(ep, dest);
	struct core_post_spill kept;
	struct core_cq *cq;
	uint64_t ext[2];
	uint32_t op;
	int ret;

	if (UTIL_UNLIKELY(!peer || (ssize_t)len > peer->eager_lim ||
			  (flags & CORE_POST_COLD_FLAGS)))
		goto cold;
	op = core_tx_ext(ext, tag, data, flags, tagged);
	kept = (struct core_post_spill){ buf, len, dest, tag };
	CORE_POST_SPILL(kept);
	ret = peer->chan->ops->send_buf(peer->chan, core_packed(op, silent ? CORE_SEND_NOW : 0),
					ext[0], ext[1], buf, len);
	cq = ep->tx.plain;
	if (UTIL_UNLIKELY(ret)) {
		if (ret < 0) /* the cold half finds out why */
			return core_tx_send_buf_cold(ep, kept.buf, kept.len, kept.dest, kept.tag,
						     data, context, cold_flags, tagged, silent);
		if (!(flags & FI_INJECT_COMPLETE)) {
			if (silent || !cq ||
			    !core_pending_push(&peer->pending, peer->chan, context, tagged))
				core_pending_add(peer, context, flags, tagged, silent);
			return 0;
		}
	}
	if (!silent && UTIL_UNLIKELY(!cq) && (flags & FI_COMPLETION))
		cq = ep->tx.asked;
	if (!silent && UTIL_LIKELY(cq && core_cq_has_room(cq)))
		core_cqe_fill(core_cq_take(cq), context, core_tx_comp_flags(tagged), 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
	else
		core_tx_complete_cold(ep, context, flags, tagged, silent);
	return 0;

cold:
	return core_tx_send_buf_cold(ep, buf, len, dest, tag, data, context, cold_flags, tagged,
				     silent);
}

/** A receive into one buffer: as core_rx_post of a core_recv that says the same. */
CORE_POST_INLINE ssize_t core_rx_post_buf(struct core_ep *ep, void *buf, size_t len, fi_addr_t src,
					  uint64_t tag, uint64_t ignore, void *context,
					  uint64_t flags, bool tagged)
{
	struct core_match *m = tagged ? ep->tagged : ep->msg;
	struct core_rx_req *req = util_pool_first(&ep->rx_reqs);
	uint64_t source = CORE_MATCH_ANY;

	if (ep->directed && src != FI_ADDR_UNSPEC) {
		struct core_peer *peer = core_peer_lookup(ep, src);

		if (UTIL_UNLIKELY(!peer || peer->state == CORE_PEER_DEAD))
			goto cold;
		source = peer->id;
	}
	if (UTIL_UNLIKELY(!req || !core_match_has_no_unexp(m) || (flags & FI_MULTI_RECV)))
		goto cold;
	util_pool_take(&ep->rx_reqs, req);
	req->match.tag = tag;
	req->match.ignore = ignore;
	req->match.src = source;
	req->tagged = tagged;
	req->is_multi = false;
	core_rx_dest_init(&req->dest, context, flags, buf, len);
	core_match_queue(m, &req->match);
	return 0;

cold:
	return core_rx_post_buf_cold(ep, buf, len, src, tag, ignore, context, flags, tagged);
}

#endif
