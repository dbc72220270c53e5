/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receives in the list of a device: see core_offload.h. */
#include <rdma/fi_errno.h>
#include <sched.h>

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_offload.h"
#include "core/msg/core_rx_bulk.h"
#include "core/msg/core_unexp.h"
#include "util/clock.h"
#include "util/log.h"
#include "wire/wire_op.h"

/* ---- the list ---- */

static struct core_listed *core_listed_of(struct core_offload *of, uint16_t listed)
{
	return &of->listed[listed - 1];
}

void core_offload_try_again(struct core_offload *of)
{
	if (!of->is_full)
		return;
	of->is_full = false;
	of->seen_cnt = SIZE_MAX;
}

static void core_listed_free(struct core_offload *of, struct core_listed *l)
{
	of->list->ops->drop(of->list, &l->dev);
	l->used = false;
	of->listed_cnt--;
	core_offload_try_again(of);
}

/** Takes the request of a listed receive, which leaves the matcher. */
static struct core_rx_req *core_listed_unqueue(struct core_offload *of, struct core_listed *l)
{
	struct core_rx_req *req = l->req;

	core_match_cancel(of->ep->tagged, &req->match);
	req->match.listed = 0;
	l->req = NULL;
	l->dest = req->dest;
	of->queued_cnt--;
	return req;
}

/** Returns a record, or NULL if all are in use. */
static struct core_listed *core_listed_new(struct core_offload *of)
{
	if (of->listed_cnt == CORE_OFFLOAD_TAGS)
		return NULL;
	for (uint32_t i = 0;; i++) {
		struct core_listed *l = &of->listed[(of->next_listed + i) % CORE_OFFLOAD_TAGS];

		if (l->used)
			continue;
		of->next_listed = (uint32_t)(l - of->listed) + 1;
		of->listed_cnt++;
		*l = (struct core_listed){ .used = true };
		return l;
	}
}

/** Returns the upper bits of a request's tag that the receive takes, or 0 if it takes none. */
static uint16_t core_offload_source(const struct core_offload *of,
				    const struct core_match_recv *recv)
{
	for (struct util_list *it = of->peers.next; it != &of->peers; it = it->next) {
		const struct core_offload_peer *op =
			UTIL_CONTAINER_OF(it, struct core_offload_peer, link);

		if (op->peer->id == recv->src)
			return op->is_connected ? op->id : 0;
	}
	return 0;
}

/** Returns true if a message of one request could be taken by both. */
static bool core_offload_overlaps(const struct core_match_recv *a, const struct core_match_recv *b)
{
	return !((a->tag ^ b->tag) & ~a->ignore & ~b->ignore) &&
	       (a->src == b->src || a->src == CORE_MATCH_ANY || b->src == CORE_MATCH_ANY);
}

/** Returns true if no posted receive but one is outside of the list. */
static bool core_offload_has_all_but_one(const struct core_offload *of)
{
	const struct core_match *m = of->ep->tagged;

	return core_match_posted_cnt(m) == of->queued_cnt + 1u;
}

/** Returns true if no older receive outside of the list could take a message of this one. */
static bool core_offload_is_first(struct core_offload *of, const struct core_match_recv *recv)
{
	const struct util_list *head = core_match_posted(of->ep->tagged);
	unsigned cnt = 0;

	if (core_offload_has_all_but_one(of))
		return true;
	for (const struct util_list *it = recv->order.prev; it != head; it = it->prev) {
		const struct core_match_recv *older =
			UTIL_CONTAINER_OF(it, struct core_match_recv, order);

		if (++cnt > CORE_OFFLOAD_OLDER ||
		    (!older->listed && core_offload_overlaps(older, recv)))
			return false;
	}
	return true;
}

static bool core_offload_can_list(const struct core_offload *of, const struct core_rx_req *req)
{
	const struct core_match_recv *recv = &req->match;

	return !recv->listed && req->dest.iov_cnt == 1 &&
	       req->dest.len >= of->ep->dom->limits.eager_max &&
	       req->dest.len <= CORE_TAGS_LEN_MAX &&
	       !((recv->tag & ~recv->ignore) >> CORE_OFFLOAD_TAG_BITS) &&
	       (recv->src == CORE_MATCH_ANY || core_offload_source(of, recv));
}

/** Appends a receive. Returns -FI_EAGAIN if it is to be tried again. */
static int core_offload_append(struct core_offload *of, struct core_rx_req *req, bool more)
{
	struct core_match_recv *recv = &req->match;
	uint64_t tag = recv->tag & ~recv->ignore & CORE_OFFLOAD_TAG_MASK;
	uint64_t mask = ~recv->ignore & CORE_OFFLOAD_TAG_MASK;
	struct core_listed *l = core_listed_new(of);
	int ret;

	if (!l) {
		of->is_full = true;
		return -FI_EAGAIN;
	}
	if (recv->src != CORE_MATCH_ANY) {
		tag |= (uint64_t)core_offload_source(of, recv) << CORE_OFFLOAD_TAG_BITS;
		mask |= ~CORE_OFFLOAD_TAG_MASK;
	}
	ret = of->list->ops->append(of->list, &l->dev, tag, mask, req->dest.iov[0].iov_base,
				    req->dest.len, more);
	if (ret) {
		l->used = false;
		of->listed_cnt--;
		if (ret != -FI_EAGAIN)
			return 0;
		of->is_full = true;
		return ret;
	}
	core_match_hash_all(of->ep->tagged);
	l->req = req;
	of->queued_cnt++;
	recv->listed = (uint16_t)(l - of->listed + 1);
	return 0;
}

/** Returns the oldest receive that may still be listed, or the head. */
static struct util_list *core_offload_fresh(struct core_offload *of)
{
	struct util_list *head = core_match_posted(of->ep->tagged), *it = head;

	while (it->prev != head &&
	       (int64_t)(UTIL_CONTAINER_OF(it->prev, struct core_match_recv, order)->seq -
			 of->next_seq) >= 0)
		it = it->prev;
	return it;
}

/** Lists a receive if it can be now. Returns -FI_EAGAIN if it is to be tried again. */
static int core_offload_try(struct core_offload *of, struct core_rx_req *req, bool more)
{
	if (!core_offload_can_list(of, req))
		return 0;
	return core_offload_is_first(of, &req->match) ? core_offload_append(of, req, more)
						      : -FI_EAGAIN;
}

/** Notes the state of the matcher. Returns false if it is that of the last call. */
static bool core_offload_has_changed(struct core_offload *of)
{
	const struct core_match *m = of->ep->tagged;
	size_t cnt = core_match_posted_cnt(m);
	bool changed = of->seen_seq != m->seq || of->seen_cnt != cnt;

	of->seen_seq = m->seq;
	of->seen_cnt = cnt;
	return changed;
}

void core_offload_list(struct core_offload *of, bool more)
{
	struct util_list *it, *head = core_match_posted(of->ep->tagged);
	unsigned behind = 0; /* from the first one on that can be listed later at best */

	if (of->is_down || of->is_full || !core_offload_has_changed(of))
		return;
	for (it = core_offload_fresh(of); it != head && behind < CORE_OFFLOAD_LOOK && !of->is_full;
	     it = it->next) {
		struct core_rx_req *req = UTIL_CONTAINER_OF(it, struct core_rx_req, match.order);

		if (core_offload_try(of, req, more) || behind)
			behind++;
		else
			of->next_seq = req->match.seq + 1;
	}
}

void core_offload_list_again(struct core_offload *of)
{
	of->next_seq = 0;
	of->seen_cnt = SIZE_MAX;
	of->is_full = false;
}

void core_offload_drop_list(struct core_offload *of, int err)
{
	of->is_down = true;
	for (uint32_t i = 0; i < CORE_OFFLOAD_TAGS; i++) {
		struct core_listed *l = &of->listed[i];

		if (!l->used)
			continue;
		if (l->req) {
			l->req->match.listed = 0;
			of->queued_cnt--;
		} else if (l->is_taken && err) {
			core_dest_complete(of->ep, &l->dest, &l->head, 0, l->src, err);
		}
		core_listed_free(of, l);
	}
}

/* ---- events ---- */

static struct core_head core_offload_head(const struct core_tags_request *request)
{
	return (struct core_head){ .op = WIRE_OP_RNDV,
				   .tagged = true,
				   .has_data = request->has_data,
				   .tag = request->tag & CORE_OFFLOAD_TAG_MASK,
				   .data = request->data };
}

/** Checks that a request names its sender. */
static bool core_offload_names_sender(struct core_offload_peer *op,
				      const struct core_tags_request *request)
{
	if (!op || request->tag >> CORE_OFFLOAD_TAG_BITS == op->id)
		return true;
	UTIL_WARN(EP_DATA,
		  "a peer states another one's number in a tagged message: connection ended; "
		  "use the same copyrpc in all processes, or FI_COPYRPC_TAG_OFFLOAD=0\n");
	core_offload_end_peer(op);
	return false;
}

/** Gives a listed receive, with its message, to the device for good. */
static void core_offload_take(struct core_offload *of, struct core_listed *l,
			      const struct core_tags_event *ev)
{
	struct core_offload_peer *op = ev->user;

	if (l->is_taken)
		return;
	if (l->req)
		util_pool_release(&of->ep->rx_reqs, core_listed_unqueue(of, l));
	l->is_taken = true;
	l->head = core_offload_head(&ev->request);
	l->src = op ? op->peer->fi_addr : FI_ADDR_NOTAVAIL;
	if (op && op->peer->chan)
		op->peer->chan->stats->tag_matches++;
	l->is_forged = !core_offload_names_sender(op, &ev->request);
}

static void core_offload_received(struct core_offload *of, struct core_listed *l,
				  const struct core_tags_event *ev)
{
	struct core_listed end;

	core_offload_take(of, l, ev);
	end = *l;
	core_listed_free(of, l);
	core_dest_complete(of->ep, &end.dest, &end.head, ev->len, end.src,
			   end.is_forged ? -FI_EIO : ev->status);
}

/** Returns a record of a message whose bytes this end reads, or NULL, with its peer given up. */
static struct core_unexp *core_offload_unexp(const struct core_tags_event *ev)
{
	struct core_offload_peer *op = ev->user;
	struct core_head head = core_offload_head(&ev->request);
	struct core_unexp *in = core_unexp_new(op->peer, &head, ev->request.len);

	if (!in) {
		core_offload_end_peer(op);
		return NULL;
	}
	in->offloaded = true;
	in->reply_due = true;
	in->send_id = ev->request.id;
	in->addr = ev->request.addr;
	in->key = ev->request.key;
	return in;
}

static void core_offload_too_long(struct core_offload *of, struct core_listed *l,
				  const struct core_tags_event *ev)
{
	struct core_offload_peer *op = ev->user;
	struct core_unexp *in;
	struct core_dest dest;
	bool is_forged;

	core_offload_take(of, l, ev);
	dest = l->dest;
	is_forged = l->is_forged;
	core_listed_free(of, l);
	in = op && op->peer->chan && !is_forged ? core_offload_unexp(ev) : NULL;
	if (in) {
		core_unexp_match(in, &dest);
		return;
	}
	core_dest_complete(of->ep, &dest, &(struct core_head){ .tagged = true }, 0,
			   FI_ADDR_NOTAVAIL, -FI_EIO);
}

/** Removes a receive that the device cannot match. Returns false if that fails. */
static bool core_offload_remove_surely(struct core_offload *of, struct core_match_recv *recv)
{
	struct core_listed *l = core_listed_of(of, recv->listed);

	if (of->list->ops->remove(of->list, &l->dev, true)) {
		core_offload_fail(of);
		return false;
	}
	recv->listed = 0;
	of->queued_cnt--;
	core_listed_free(of, l);
	return true;
}

/**
 * Finds the destination of a request that the device has not matched, among the receives of the
 * matcher. A listed one that accepts it became active too late, so its removal is sure.
 */
static bool core_offload_find(struct core_offload *of, uint64_t tag, uint64_t src,
			      struct core_dest *dest)
{
	struct core_match *m = of->ep->tagged;
	struct core_match_recv *recv = core_match_find(m, tag, src);
	struct core_rx_req *req;

	if (!recv)
		return false;
	req = UTIL_CONTAINER_OF(recv, struct core_rx_req, match);
	if (recv->listed && !core_offload_remove_surely(of, recv))
		return false;
	core_match_cancel(m, recv);
	*dest = req->dest;
	util_pool_release(&of->ep->rx_reqs, req);
	return true;
}

static void core_offload_unexpected(struct core_offload *of, const struct core_tags_event *ev)
{
	struct core_offload_peer *op = ev->user;
	struct core_unexp *in;
	struct core_dest dest;

	if (!op || !op->peer->chan || !core_offload_names_sender(op, &ev->request))
		return;
	op->peer->chan->stats->tag_unmatched++;
	in = core_offload_unexp(ev);
	if (!in)
		return;
	if (core_offload_find(of, in->tag, op->peer->id, &dest)) {
		core_unexp_match(in, &dest);
		return;
	}
	core_rx_keep(of->ep, in, true);
	core_unexp_confirm(in);
}

static void core_offload_down(struct core_offload *of, struct core_offload_peer *op)
{
	if (op)
		core_offload_end_peer(op);
	else
		core_offload_fail(of);
}

void core_offload_event(struct core_offload *of, const struct core_tags_event *ev)
{
	struct core_listed *l =
		ev->recv ? UTIL_CONTAINER_OF(ev->recv, struct core_listed, dev) : NULL;

	/* A list that has failed forgets its receives (core_offload_drop_list). */
	if (l && of->is_down)
		return;
	switch (ev->kind) {
	case CORE_TAGS_MATCHED: core_offload_take(of, l, ev); break;
	case CORE_TAGS_RECEIVED: core_offload_received(of, l, ev); break;
	case CORE_TAGS_TOO_LONG: core_offload_too_long(of, l, ev); break;
	case CORE_TAGS_REMOVED: l->is_removed = true; break;
	case CORE_TAGS_UNEXPECTED: core_offload_unexpected(of, ev); break;
	case CORE_TAGS_SENT: core_offload_sent(ev->send); break;
	case CORE_TAGS_KEPT: core_offload_kept(ev->send); break;
	case CORE_TAGS_DOWN: core_offload_down(of, ev->user); break;
	}
}

/* ---- removal ---- */

static void core_offload_shut_peer(struct core_offload *of, struct core_offload_peer *op)
{
	core_offload_end_peer(op);
	if (op->dev)
		of->list->ops->peer_close(op->dev);
	op->dev = NULL;
}

void core_offload_end_peer(struct core_offload_peer *op)
{
	op->is_down = true;
	op->peer->ep->offload->has_failed = true;
}

void core_offload_fail(struct core_offload *of)
{
	UTIL_WARN(EP_DATA,
		  "tag matching by the device has failed: connections that use it end; without "
		  "FI_COPYRPC_TAG_OFFLOAD none does\n");
	of->is_down = true;
	for (struct util_list *it = of->peers.next; it != &of->peers; it = it->next)
		core_offload_shut_peer(of, UTIL_CONTAINER_OF(it, struct core_offload_peer, link));
}

/** Handles an event, if there is one. Returns false if there is none and `end_ns` is over. */
static bool core_offload_wait(struct core_offload *of, uint64_t end_ns)
{
	bool is_over = util_clock_ns() > end_ns; /* then the device has had all of that time */
	struct core_tags_event ev;

	if (of->list->ops->poll(of->list, &ev)) {
		core_offload_event(of, &ev);
		return true;
	}
	if (is_over)
		return false;
	sched_yield();
	return true;
}

/** Lets the device remove a receive, unless it has matched it. */
static void core_offload_remove(struct core_offload *of, struct core_listed *l)
{
	uint64_t end_ns = util_clock_ns() + CORE_OFFLOAD_REMOVE_NS;
	int ret = -FI_EAGAIN;

	while (!l->is_taken && !l->is_removed && !of->is_down) {
		if (ret == -FI_EAGAIN)
			ret = of->list->ops->remove(of->list, &l->dev, false);
		if ((ret && ret != -FI_EAGAIN) || !core_offload_wait(of, end_ns))
			return;
	}
}

bool core_offload_unlist(struct core_ep *ep, struct core_match_recv *recv)
{
	struct core_offload *of = ep->offload;
	struct core_listed *l = core_listed_of(of, recv->listed);
	/* Out of the matcher: no other message may choose it meanwhile. */
	struct core_rx_req *req = core_listed_unqueue(of, l);

	if (!of->is_down)
		core_offload_remove(of, l);
	if (l->is_taken) {
		util_pool_release(&ep->rx_reqs, req);
		return false;
	}
	if (!l->is_removed && !of->is_down)
		core_offload_fail(of);
	core_listed_free(of, l);
	return true;
}
