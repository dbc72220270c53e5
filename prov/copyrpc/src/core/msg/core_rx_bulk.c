/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive side of messages of several frames and of those that get a reply: see core_rx_bulk.h. */
#include "core/msg/core_rx_bulk.h"

#include <string.h>

#include "core/core_ep.h"
#include "core/core_peer.h"
#include "wire/wire_op.h"

/** Matches or keeps a message after its first frame: PART, RNDV, DLVR or SYNC. */
static enum core_rx_verdict core_rx_begin(struct core_unexp *in, struct core_head *head,
					  core_retain_t retain)
{
	enum core_rx_verdict verdict = CORE_RX_DONE;
	struct core_peer *peer = in->peer;
	struct core_dest dest;

	core_tx_selector_received(&peer->selector, in->total);
	if (core_rx_take(peer, head, in->total, &dest)) {
		core_unexp_match(in, &dest);
		/* A rendezvous message has no bytes here, and may be freed by now. */
		return head->body_len ? core_unexp_bytes(in, head->body, head->body_len, retain)
				      : CORE_RX_DONE;
	}
	if (head->body_len)
		verdict = core_unexp_bytes(in, head->body, head->body_len, retain);
	if (verdict == CORE_RX_BAD) {
		core_unexp_free(in);
		return verdict;
	}
	core_rx_keep(peer->ep, in, head->tagged);
	core_unexp_confirm(in);
	return verdict;
}

enum core_rx_verdict core_rx_on_part(struct core_chan *chan, struct core_head *head,
				     core_retain_t retain)
{
	struct wire_part part;
	struct core_unexp *in;

	if (head->body_len <= sizeof(part))
		return CORE_RX_BAD;
	memcpy(&part, head->body, sizeof(part));
	head->body += sizeof(part);
	head->body_len -= (uint32_t)sizeof(part);
	if (part.zero || part.total_len <= head->body_len)
		return CORE_RX_BAD;
	in = core_unexp_new(chan->peer, head, part.total_len);
	if (!in)
		return CORE_RX_BAD;
	in->send_id = part.send_id;
	return core_rx_begin(in, head, retain);
}

/** Returns the incomplete pipelined message with the sender's id. Few are open at a time. */
static struct core_unexp *core_rx_find_pipelined(struct core_peer *peer, uint32_t send_id)
{
	struct util_list *it;
	struct core_unexp *in;

	for (it = peer->rx.prev; it != &peer->rx; it = it->prev) {
		in = UTIL_CONTAINER_OF(it, struct core_unexp, peer_link);
		if ((in->op & WIRE_OP_MASK) == WIRE_OP_PART && in->send_id == send_id &&
		    in->received < in->total)
			return in;
	}
	return NULL;
}

/** Returns the message that a CONT continues; NULL if there is none or the offset is wrong. */
static struct core_unexp *core_rx_cont_target(struct core_peer *peer, struct core_head *head)
{
	struct wire_cont cont;
	struct core_unexp *in;

	if (head->body_len <= sizeof(cont) || head->tagged || head->has_data)
		return NULL;
	memcpy(&cont, head->body, sizeof(cont));
	head->body += sizeof(cont);
	head->body_len -= (uint32_t)sizeof(cont);
	if (cont.kind == WIRE_CONT_SENT)
		in = core_rx_find_pipelined(peer, cont.id);
	else
		in = util_idmap_lookup(&peer->ep->rx_ids, cont.id);
	if (!in || in->peer != peer || cont.offset != in->received)
		return NULL;
	return in;
}

enum core_rx_verdict core_rx_on_cont(struct core_chan *chan, struct core_head *head,
				     core_retain_t retain)
{
	struct core_unexp *in = core_rx_cont_target(chan->peer, head);

	return in ? core_unexp_bytes(in, head->body, head->body_len, retain) : CORE_RX_BAD;
}

enum core_rx_verdict core_rx_on_rndv(struct core_chan *chan, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain)
{
	struct wire_rndv rndv;
	struct core_unexp *in;

	(void)retain; /* no bytes */
	if (head->body_len != sizeof(rndv))
		return CORE_RX_BAD;
	memcpy(&rndv, head->body, sizeof(rndv));
	head->body_len = 0;
	if (rndv.zero)
		return CORE_RX_BAD;
	in = core_unexp_new(chan->peer, head, rndv.total_len);
	if (!in)
		return CORE_RX_BAD;
	in->addr = rndv.addr;
	in->key = rndv.key;
	in->send_id = rndv.send_id;
	in->reply_due = true;
	in->ref = ref;
	return core_rx_begin(in, head, 0);
}

/** Begins a whole message that is a call. `send_id`: of SYNC. */
static enum core_rx_verdict core_rx_begin_call(struct core_chan *chan, struct core_call_ref ref,
					       struct core_head *head, core_retain_t retain,
					       uint32_t send_id)
{
	struct core_unexp *in = core_unexp_new(chan->peer, head, head->body_len);

	if (!in)
		return CORE_RX_BAD;
	in->send_id = send_id;
	in->reply_due = true;
	in->ref = ref;
	return core_rx_begin(in, head, retain);
}

enum core_rx_verdict core_rx_on_dlvr(struct core_chan *chan, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain)
{
	return core_rx_begin_call(chan, ref, head, retain, 0);
}

enum core_rx_verdict core_rx_on_sync(struct core_chan *chan, struct core_call_ref ref,
				     struct core_head *head, core_retain_t retain)
{
	struct wire_sync sync;

	if (head->body_len < sizeof(sync))
		return CORE_RX_BAD;
	memcpy(&sync, head->body, sizeof(sync));
	head->body += sizeof(sync);
	head->body_len -= (uint32_t)sizeof(sync);
	return core_rx_begin_call(chan, ref, head, retain, sync.send_id);
}

enum core_rx_verdict core_rx_on_last_cont(struct core_chan *chan, struct core_call_ref ref,
					  struct core_head *head, core_retain_t retain)
{
	struct core_unexp *in = core_rx_cont_target(chan->peer, head);

	if (!in || in->reply_due || head->body_len != in->total - in->received)
		return CORE_RX_BAD;
	in->reply_due = true;
	in->ref = ref;
	return core_unexp_bytes(in, head->body, head->body_len, retain);
}
