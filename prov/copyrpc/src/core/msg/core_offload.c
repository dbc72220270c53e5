/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists of tagged receives and their peers: see core_offload.h. */
#include "core/msg/core_offload.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "core/msg/core_srx.h"
#include "util/log.h"
#include "util/param.h"

/* ---- list ---- */

/**
 * Closes a list without peers. Receives with a message of one that has gone end with `err`, unless
 * that is 0.
 */
static void core_offload_close(struct core_offload *of, int err)
{
	core_offload_drop_list(of, err);
	of->list->ops->close(of->list);
	util_list_remove(&of->work.link);
	of->ep->offload = NULL;
	of->ep->lists = false;
	free(of);
}

/** Ends all that the device does for a peer, and after the last one the list, with `err`. */
static void core_offload_close_peer(struct core_offload *of, struct core_offload_peer *op, int err)
{
	struct util_list *it;

	if (op->dev)
		of->list->ops->peer_close(op->dev);
	while (util_list_pop(&op->gets)) /* end with the peer */
		;
	while ((it = util_list_pop(&op->due)))
		free(UTIL_CONTAINER_OF(it, struct core_offload_due, link));
	of->by_id[op->id] = NULL;
	op->peer->offload = NULL;
	op->peer->offloads = 0;
	util_list_remove(&op->link);
	free(op);
	if (util_list_is_empty(&of->peers) && !of->looks)
		core_offload_close(of, err);
}

/** Ends the connections of peers that have failed, all if the list has. */
static void core_offload_give_up(struct core_offload *of)
{
	struct util_list *it, *tmp;

	of->has_failed = false;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &of->peers) {
		struct core_offload_peer *op =
			UTIL_CONTAINER_OF(it, struct core_offload_peer, link);

		if (op->is_down && op->peer->chan)
			core_peer_on_down(op->peer->chan, -FI_EIO);
	}
}

/** Sends a message of contact, with `len` bytes behind it. Returns false without room. */
static bool core_offload_send_contact(struct core_offload_peer *op, enum wire_tags_kind kind,
				      const uint8_t *desc, size_t len)
{
	struct core_chan *chan = op->peer->chan;
	const struct wire_tags tags = { .kind = (uint16_t)kind, .id = op->id };
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)desc, .iov_len = len };
	struct core_frame frame = {
		.op = WIRE_OP_TAGS, .ext_len = sizeof(tags), .iov = &iov, .iov_cnt = 1, .len = len
	};

	memcpy(frame.ext, &tags, sizeof(tags));
	return !chan->ops->send(chan, &frame, 0);
}

/** Sends HELLO, and READY after the peer's HELLO, once there is room. */
static void core_offload_contact(struct core_offload_peer *op)
{
	if (!op->is_greeted)
		op->is_greeted =
			core_offload_send_contact(op, WIRE_TAGS_HELLO, op->desc, sizeof(op->desc));
	if (op->is_greeted && op->is_connected && !op->has_replied)
		op->has_replied = core_offload_send_contact(op, WIRE_TAGS_READY, NULL, 0);
}

static void core_offload_look_at_peers(struct core_offload *of)
{
	for (struct util_list *it = of->peers.next; it != &of->peers; it = it->next) {
		struct core_offload_peer *op =
			UTIL_CONTAINER_OF(it, struct core_offload_peer, link);

		core_offload_contact(op);
		core_offload_retry(op);
	}
}

/** Handles the events that are there. Returns true if there were some. */
static bool core_offload_drain(struct core_offload *of)
{
	struct core_tags_event ev;
	unsigned cnt = 0;

	/* Other peers may go on: a limit, far above what one can have sent. */
	while (cnt < CORE_OFFLOAD_EVENTS && of->list->ops->poll(of->list, &ev)) {
		core_offload_event(of, &ev);
		cnt++;
	}
	return cnt > 0;
}

/** Lets the list and its peers progress. Returns true if an event came. */
static bool core_offload_look(struct core_offload *of)
{
	bool found;

	of->looks = true;
	core_offload_look_at_peers(of);
	core_offload_list(of, true);
	found = core_offload_drain(of);
	if (UTIL_UNLIKELY(of->is_full) && ++of->full_looks % CORE_OFFLOAD_PAUSE == 0)
		core_offload_try_again(of);
	if (UTIL_UNLIKELY(of->has_failed))
		core_offload_give_up(of);
	of->looks = false;
	if (util_list_is_empty(&of->peers))
		core_offload_close(of, -FI_ECONNABORTED);
	return found;
}

/** Implements core_work.retry. An armed engine wakes for events of the list. */
static bool core_offload_retry_work(struct core_work *work)
{
	struct core_offload *of = UTIL_CONTAINER_OF(work, struct core_offload, work);
	struct core_ep *ep = of->ep;
	bool found = core_offload_look(of);

	if (ep->offload)
		core_dom_work(ep->dom, &ep->offload->work);
	return found;
}

static void core_offload_run(struct core_work *work)
{
	core_offload_retry_work(work);
}

static struct core_offload *core_offload_new(struct core_ep *ep, struct core_chan *chan)
{
	struct core_offload *of = calloc(1, sizeof(*of));

	if (!of)
		return NULL;
	if (chan->ops->tags_open(chan, CORE_OFFLOAD_TAGS, &of->list)) {
		free(of);
		return NULL;
	}
	of->ep = ep;
	of->work.run = core_offload_run;
	of->work.retry = core_offload_retry_work;
	util_list_init(&of->work.link);
	util_list_init(&of->peers);
	core_dom_work(ep->dom, &of->work);
	return of;
}

/* ---- peers ---- */

/** Returns a free number for a peer, or 0. */
static uint16_t core_offload_id(const struct core_offload *of)
{
	for (uint16_t id = 1; id < CORE_OFFLOAD_PEERS; id++)
		if (!of->by_id[id])
			return id;
	return 0;
}

static bool core_offload_may(const struct core_ep *ep, const struct core_chan *chan)
{
	return util_params.tag_offload && chan->ops->tags_open && !ep->srx && !core_ep_is_srx(ep);
}

void core_offload_peer_up(struct core_peer *peer)
{
	struct core_ep *ep = peer->ep;
	struct core_offload_peer *op;
	uint16_t id;

	if (!core_offload_may(ep, peer->chan))
		return;
	if (!ep->offload)
		ep->offload = core_offload_new(ep, peer->chan);
	ep->lists = ep->offload;
	id = ep->offload && !ep->offload->is_down ? core_offload_id(ep->offload) : 0;
	op = id ? calloc(1, sizeof(*op)) : NULL;
	if (!op)
		return; /* the next look closes a list without peers */
	op->peer = peer;
	op->id = id;
	util_list_init(&op->due);
	util_list_init(&op->gets);
	if (ep->offload->list->ops->peer_open(ep->offload->list, op, op->desc, &op->dev)) {
		free(op);
		if (util_list_is_empty(&ep->offload->peers))
			core_offload_close(ep->offload, 0);
		return;
	}
	peer->chan->ops->positions(peer->chan, &op->seen, &op->tagged_end);
	op->tagged_end = op->seen;
	util_list_push_back(&ep->offload->peers, &op->link);
	ep->offload->by_id[id] = op;
	peer->offload = op;
}

/* Messages that the peer knows to be sent have arrived, and are delivered first. */
void core_offload_peer_failing(struct core_peer *peer, int err)
{
	(void)err;
	if (!peer->offload)
		return;
	core_offload_drain(peer->ep->offload);
	core_offload_close_peer(peer->ep->offload, peer->offload, -FI_ECONNABORTED);
}

void core_offload_ep_stop(struct core_ep *ep)
{
	struct core_offload *of = ep->offload;

	struct util_list *first;

	while (ep->offload && (first = util_list_first(&of->peers)))
		core_offload_close_peer(
			of, UTIL_CONTAINER_OF(first, struct core_offload_peer, link), 0);
	if (ep->offload)
		core_offload_close(of, 0);
}

/** Takes the peer's description. A failure leaves all messages to the ring. */
static enum core_rx_verdict core_offload_hello(struct core_offload_peer *op,
					       const struct wire_tags *tags, const uint8_t *desc,
					       uint32_t len)
{
	if (len != CORE_TAGS_DESC_LEN || !tags->id || op->own_id)
		return CORE_RX_BAD;
	op->own_id = tags->id;
	if (op->is_down || op->peer->ep->offload->list->ops->peer_connect(op->dev, desc))
		return CORE_RX_DONE;
	op->is_connected = true;
	core_offload_contact(op);
	core_offload_list_again(op->peer->ep->offload); /* receives from this peer */
	return CORE_RX_DONE;
}

enum core_rx_verdict core_offload_on_msg(struct core_chan *chan, struct core_head *head,
					 core_retain_t retain)
{
	struct core_offload_peer *op = chan->peer->offload;
	uint8_t desc[CORE_TAGS_DESC_LEN];
	struct wire_tags tags;
	uint32_t len = head->body_len - (uint32_t)sizeof(tags);

	(void)retain;
	if (head->body_len < sizeof(tags) || head->tagged || head->has_data)
		return CORE_RX_BAD;
	memcpy(&tags, head->body, sizeof(tags));
	if (tags.zero || len > sizeof(desc) ||
	    (tags.kind != WIRE_TAGS_HELLO && tags.kind != WIRE_TAGS_READY))
		return CORE_RX_BAD;
	memcpy(desc, head->body + sizeof(tags), len);
	if (!op)
		return CORE_RX_DONE;
	if (tags.kind == WIRE_TAGS_HELLO)
		return core_offload_hello(op, &tags, desc, len);
	if (len || !op->is_greeted || op->is_ready)
		return CORE_RX_BAD;
	op->is_ready = true;
	return CORE_RX_DONE;
}
