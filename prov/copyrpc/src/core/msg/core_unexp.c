/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Records of unfinished messages: see core_unexp.h. */
#include "core/msg/core_unexp.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/msg/core_done.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_srx.h"
#include "util/copy.h"
#include "util/log.h"
#include "util/stats.h"
#include "wire/wire_op.h"

struct core_unexp *core_unexp_new(struct core_peer *peer, const struct core_head *head,
				  uint64_t total)
{
	struct core_unexp *in = util_pool_alloc(&peer->ep->unexps);

	if (!in)
		return NULL;
	memset(in, 0, offsetof(struct core_unexp, inline_buf));
	in->ep = peer->ep;
	in->peer = peer;
	in->op = head->op | (head->tagged ? WIRE_F_TAG : 0) | (head->has_data ? WIRE_F_DATA64 : 0);
	in->recv_id = CORE_NO_ID;
	in->tag = head->tag;
	in->data = head->data;
	in->total = total;
	in->match.tag = head->tag;
	in->match.src = peer->id;
	util_list_init(&in->retained);
	util_list_init(&in->claim_link);
	util_list_push_back(&peer->rx, &in->peer_link);
	return in;
}

static struct core_head core_unexp_head(const struct core_unexp *in)
{
	struct core_head head = {
		.op = in->op & WIRE_OP_MASK,
		.tagged = in->op & WIRE_F_TAG,
		.has_data = in->op & WIRE_F_DATA64,
		.tag = in->tag,
		.data = in->data,
	};

	return head;
}

static struct core_match *core_unexp_matcher(const struct core_unexp *in)
{
	struct core_ep *rx = core_ep_rx(in->ep);

	return in->op & WIRE_F_TAG ? rx->tagged : rx->msg;
}

static void core_unexp_drop_buf(struct core_unexp *in)
{
	if (in->buf && in->buf != in->inline_buf)
		util_cache_free(&in->ep->dom->cache, in->buf, in->heap_len);
	in->ep->dom->unexpected_used -= in->heap_len;
	in->ep->stats->unexpected_now -= in->heap_len;
	in->heap_len = 0;
	in->buf = NULL;
}

static void core_unexp_drop_retained(struct core_unexp *in)
{
	struct util_list *first;
	struct core_retained *retained;

	while ((first = util_list_pop(&in->retained))) {
		retained = UTIL_CONTAINER_OF(first, struct core_retained, link);
		if (in->peer && in->peer->chan)
			in->peer->chan->ops->release(in->peer->chan, retained->retain);
		free(retained);
	}
}

static void core_unexp_unhold(struct core_unexp *in)
{
	if (in->held && in->peer)
		in->peer->held_cnt--;
	in->held = false;
}

void core_unexp_forget_sender(struct core_unexp *in)
{
	in->reply_due = false;
	core_unexp_unhold(in);
	if (in->done)
		core_done_free(in->ep, in->done);
	in->done = NULL;
}

void core_unexp_free(struct core_unexp *in)
{
	if (in->queued)
		core_match_take(core_unexp_matcher(in), &in->match);
	if (in->recv_id != CORE_NO_ID)
		util_idmap_release(&in->ep->rx_ids, in->recv_id);
	core_unexp_forget_sender(in);
	if (in->pulled && in->peer)
		in->peer->pulls--;
	core_unexp_drop_retained(in);
	core_unexp_drop_buf(in);
	util_list_remove(&in->peer_link);
	util_list_remove(&in->claim_link);
	util_pool_release(&in->ep->unexps, in);
}

/** Sets in->buf to memory for the whole message. Returns false if the budget is used up. */
static bool core_unexp_alloc(struct core_unexp *in, bool over_budget)
{
	struct core_dom *dom = in->ep->dom;

	if (in->total <= CORE_UNEXP_INLINE) {
		in->buf = in->inline_buf;
		return true;
	}
	if (!over_budget && in->total > core_dom_unexpected_left(dom)) {
		if (!dom->unexpected_warned)
			UTIL_INFO(EP_DATA,
				  "unexpected messages fill FI_COPYRPC_UNEXPECTED_MEM "
				  "(%zu bytes): senders wait from here on\n",
				  dom->limits.unexpected_mem);
		dom->unexpected_warned = true;
		return false;
	}
	in->buf = util_cache_alloc(&dom->cache, in->total);
	if (!in->buf)
		return false;
	in->heap_len = in->total;
	dom->unexpected_used += in->heap_len;
	in->ep->stats->unexpected_now += in->heap_len;
	return true;
}

/** Copies [skip, skip + len) of the message to the destination, as far as there is room. */
static void core_dest_put(const struct core_dest *dest, uint64_t skip, const uint8_t *data,
			  uint64_t len)
{
	if (skip >= dest->len)
		return;
	if (len > dest->len - skip)
		len = dest->len - skip;
	util_iov_scatter(dest->iov, dest->iov_cnt, skip, data, len);
}

static enum core_rx_verdict core_unexp_store(struct core_unexp *in, const uint8_t *data,
					     uint32_t len, core_retain_t retain)
{
	struct core_retained *retained;

	if (!len)
		return CORE_RX_DONE;
	if (util_list_is_empty(&in->retained) &&
	    (in->buf || core_unexp_alloc(in, in->peer->pulls != 0))) {
		memcpy(in->buf + in->received, data, len);
		return CORE_RX_DONE;
	}
	retained = malloc(sizeof(*retained));
	if (!retained)
		return CORE_RX_BAD;
	retained->retain = retain;
	retained->data = data;
	retained->len = len;
	util_list_push_back(&in->retained, &retained->link);
	return CORE_RX_RETAIN;
}

enum core_rx_verdict core_unexp_bytes(struct core_unexp *in, const uint8_t *data, uint32_t len,
				      core_retain_t retain)
{
	enum core_rx_verdict verdict = CORE_RX_DONE;

	if (len > in->total - in->received)
		return CORE_RX_BAD;
	if (in->matched)
		core_dest_put(&in->dest, in->received, data, len);
	else
		verdict = core_unexp_store(in, data, len, retain);
	if (verdict == CORE_RX_BAD)
		return verdict;
	in->received += len;
	if (in->matched && in->received == in->total)
		core_unexp_end(in, 0);
	else
		core_unexp_confirm(in);
	return verdict;
}

int core_unexp_save(struct core_unexp *in)
{
	struct util_list *it;
	struct core_retained *retained;
	uint64_t at = in->received;

	if (util_list_is_empty(&in->retained))
		return 0;
	if (!in->buf && !core_unexp_alloc(in, true))
		return -FI_ENOMEM;
	for (it = in->retained.prev; it != &in->retained; it = it->prev) {
		retained = UTIL_CONTAINER_OF(it, struct core_retained, link);
		at -= retained->len;
		memcpy(in->buf + at, retained->data, retained->len);
	}
	core_unexp_drop_retained(in);
	return 0;
}

/** Copies all stored and retained bytes to the destination and frees them. */
static void core_unexp_deliver(struct core_unexp *in)
{
	uint64_t at = in->received;
	struct util_list *it;
	struct core_retained *retained;

	for (it = in->retained.prev; it != &in->retained; it = it->prev) {
		retained = UTIL_CONTAINER_OF(it, struct core_retained, link);
		at -= retained->len;
		core_dest_put(&in->dest, at, retained->data, retained->len);
	}
	if (in->buf)
		core_dest_put(&in->dest, 0, in->buf, at);
	core_unexp_drop_retained(in);
	core_unexp_drop_buf(in);
}

/** Replies to the sender's call, or sends the notice that stands for the reply. */
static void core_unexp_reply(struct core_unexp *in, uint32_t code)
{
	struct core_chan *chan = in->peer ? in->peer->chan : NULL;
	struct core_done *done = in->done;
	struct wire_status status = {
		.status = code,
		.recv_id = in->late && code != WIRE_STATUS_PULL ? WIRE_HINT_LATE : in->recv_id,
		.len = in->total,
	};
	struct iovec iov = { .iov_base = &status, .iov_len = sizeof(status) };
	uint64_t begin;

	if (!chan)
		return;
	in->done = NULL;
	if (done)
		core_done_send(done, in->peer, status.status, status.recv_id);
	if (!in->reply_due)
		return;
	in->reply_due = false;
	core_unexp_unhold(in);
	if (in->offloaded) {
		core_offload_finish(in, code);
		return;
	}
	begin = in->peer->offload ? core_offload_reply_begins(in->peer) : 0;
	chan->ops->reply(chan, in->ref, &iov, 1, sizeof(status), code ? 0 : CORE_SEND_ENDS);
	if (in->peer->offload)
		core_offload_reply_ends(in->peer, begin);
}

/** Returns true for a message whose sender awaits its match. */
static bool core_unexp_is_awaited(const struct core_unexp *in)
{
	uint32_t op = in->op & WIRE_OP_MASK;

	return op == WIRE_OP_RNDV || op == WIRE_OP_SYNC;
}

/**
 * Holds the reply until the end, whose room it has. Replies that the message is kept if the peer
 * has many such calls, unless there is no memory for the notice.
 */
static void core_unexp_hold(struct core_unexp *in)
{
	struct core_done *done = NULL;

	if (in->peer->held_cnt >= in->peer->chan->held_max)
		done = core_done_new(in->ep, in->send_id);
	if (!done) {
		in->held = true;
		in->peer->held_cnt++;
		return;
	}
	core_unexp_reply(in, WIRE_STATUS_KEPT);
	in->done = done;
}

void core_unexp_confirm(struct core_unexp *in)
{
	if (core_unexp_is_awaited(in)) {
		if (in->queued && in->reply_due && in->offloaded)
			core_offload_keep(in);
		else if (in->queued && in->reply_due)
			core_unexp_hold(in);
	} else if (in->received == in->total) {
		core_unexp_reply(in, 0);
	}
}

/**
 * Makes room in the ring for the bytes of a message, though the memory for unexpected ones is used
 * up. What arrives before they do is what was in flight: the sender starts no message meanwhile.
 */
static void core_unexp_make_room(struct core_peer *peer)
{
	struct util_list *it, *tmp;

	peer->pulls++;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->rx)
		(void)core_unexp_save(UTIL_CONTAINER_OF(it, struct core_unexp, peer_link));
}

/** Requests the bytes from the sender in CONT frames, unless a device sent the message. */
static void core_unexp_pull(struct core_unexp *in)
{
	int ret = in->offloaded ? -FI_EIO : util_idmap_alloc(&in->ep->rx_ids, in, &in->recv_id);

	if (ret) {
		core_unexp_end(in, ret);
		return;
	}
	in->pulled = true;
	core_unexp_make_room(in->peer);
	core_unexp_reply(in, WIRE_STATUS_PULL);
}

static void core_unexp_got(struct core_get *get)
{
	core_unexp_end(UTIL_CONTAINER_OF(get, struct core_unexp, get), get->status);
}

void core_unexp_get(struct core_unexp *in)
{
	struct core_chan *chan = in->peer->chan;
	int ret;

	if (!in->addr || !(chan->caps & CORE_CHAN_GET)) {
		core_unexp_pull(in);
		return;
	}
	in->get.remote_addr = in->addr;
	in->get.remote_key = in->key;
	in->get.iov = in->dest.iov;
	in->get.iov_cnt = in->dest.iov_cnt;
	in->get.len = in->total < in->dest.len ? in->total : in->dest.len;
	in->get.done = core_unexp_got;
	ret = in->get.len ? chan->ops->get(chan, &in->get) : 1;
	if (ret == -FI_EAGAIN && in->offloaded)
		core_offload_get_later(in);
	else if (ret < 0)
		core_unexp_pull(in);
	else if (ret == 1)
		core_unexp_got(&in->get);
}

void core_unexp_lose(struct core_unexp *in, int err)
{
	if (util_list_is_empty(&in->claim_link)) {
		core_unexp_free(in);
		return;
	}
	core_unexp_drop_retained(in);
	core_unexp_drop_buf(in);
	util_list_remove(&in->peer_link);
	in->peer = NULL;
	in->err = err;
}

void core_unexp_match(struct core_unexp *in, const struct core_dest *dest)
{
	in->dest = *dest;
	in->matched = true;
	if (UTIL_UNLIKELY(in->err != 0)) {
		core_unexp_end(in, in->err);
		return;
	}
	if ((in->op & WIRE_OP_MASK) == WIRE_OP_RNDV) {
		if (in->peer && in->peer->chan)
			core_unexp_get(in);
		else
			core_unexp_end(in, -FI_ECONNRESET);
		return;
	}
	core_unexp_deliver(in);
	if (in->received == in->total)
		core_unexp_end(in, 0);
}

void core_unexp_end(struct core_unexp *in, int err)
{
	struct core_head head = core_unexp_head(in);
	struct core_dest dest = in->dest;
	struct core_ep *ep = in->ep;
	uint64_t total = in->total;
	fi_addr_t src = in->peer ? in->peer->fi_addr : FI_ADDR_NOTAVAIL;

	core_unexp_reply(in, (uint32_t)-err);
	core_unexp_free(in);
	core_dest_complete(ep, &dest, &head, total, src, err);
}

void core_unexp_discard(struct core_unexp *in)
{
	if (in->queued) {
		core_match_take(core_unexp_matcher(in), &in->match);
		in->queued = false;
	}
	core_unexp_drop_retained(in);
	core_unexp_drop_buf(in);
	in->dest = (struct core_dest){ .flags = FI_DISCARD };
	in->matched = true;
	if (!in->err && (in->op & WIRE_OP_MASK) == WIRE_OP_PART && in->received < in->total)
		return; /* core_unexp_bytes drops the rest, then calls core_unexp_end */
	core_unexp_reply(in, 0);
	core_unexp_free(in);
}
