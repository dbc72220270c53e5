/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Long accesses, the target's side: fetches under way and loans. See core_rma_bulk.h. */
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/rma/core_rma_bulk.h"

static struct core_rma_held *core_rma_held_new(const struct core_rma_in *in)
{
	struct core_rma_held *held = calloc(1, sizeof(*held));

	if (!held)
		return NULL;
	held->ep = in->chan->peer->ep;
	held->in = *in;
	util_list_push_back(&in->chan->peer->rma_held, &held->peer_link);
	util_list_init(&held->mr_link);
	return held;
}

/** A fetch has ended, or a loan: nobody uses the region for it any more. */
static void core_rma_held_free(struct core_rma_held *held)
{
	if (held->loan.chan) {
		util_idmap_release(&held->ep->loan_ids, held->loan_id);
		held->loan.chan->ops->unlend(held->loan.chan, &held->loan);
	}
	core_mr_unuse(held->ep->dom, held->in.mr, held->counted, &held->mr_link);
	util_list_remove(&held->peer_link);
	free(held);
}

/** What could not be fetched is asked for by calls: the initiator knows what to send. */
static void core_rma_fetched(struct core_get *get)
{
	struct core_rma_held *held = UTIL_CONTAINER_OF(get, struct core_rma_held, get);

	if (!get->status)
		core_rma_notify(&held->in, true);
	core_rma_reply(&held->in, get->status ? WIRE_RMA_REFUSED : 0);
	core_rma_held_free(held);
}

static int core_rma_fetch(struct core_rma_held *held, const struct wire_rma_source *source)
{
	struct core_chan *chan = held->in.chan;

	held->counted = true;
	core_mr_use(held->ep->dom, held->in.mr, true, NULL);
	held->get.remote_addr = source->addr;
	held->get.remote_key = source->key;
	held->get.iov = held->in.iov;
	held->get.iov_cnt = held->in.iov_cnt;
	held->get.len = held->in.rma.len;
	held->get.done = core_rma_fetched;
	return chan->ops->get(chan, &held->get);
}

enum core_rx_verdict core_rma_fetch_in(struct core_rma_in *in)
{
	struct wire_rma_source source;
	struct core_rma_held *held = NULL;
	int ret;

	if (in->head.body_len != sizeof(source) || !in->rma.len)
		return CORE_RX_BAD;
	memcpy(&source, in->head.body, sizeof(source));
	ret = core_rma_reach(in, FI_REMOTE_WRITE);
	if (ret) {
		core_rma_reply(in, (uint32_t)-ret);
		return CORE_RX_DONE;
	}
	if (in->chan->caps & CORE_CHAN_GET)
		held = core_rma_held_new(in);
	if (!held) {
		core_rma_reply(in, WIRE_RMA_REFUSED);
		return CORE_RX_DONE;
	}
	ret = core_rma_fetch(held, &source);
	if (ret < 0)
		held->get.status = ret;
	if (ret)
		core_rma_fetched(&held->get);
	return CORE_RX_DONE;
}

static bool core_rma_lend(struct core_rma_held *held)
{
	struct core_chan *chan = held->in.chan;

	if (util_idmap_alloc(&held->ep->loan_ids, held, &held->loan_id))
		return false;
	if (chan->ops->lend(chan, held->in.iov[0].iov_base, held->in.rma.len, &held->loan)) {
		util_idmap_release(&held->ep->loan_ids, held->loan_id);
		return false;
	}
	held->loan.chan = chan;
	held->counted = !(chan->caps & CORE_CHAN_REVOKE);
	core_mr_use(held->ep->dom, held->in.mr, held->counted, &held->mr_link);
	return true;
}

static void core_rma_lent(const struct core_rma_held *held)
{
	const struct core_rma_in *in = &held->in;
	struct {
		struct wire_rma_reply head;
		struct wire_rma_loan loan;
	} reply = {
		.head = { .status = WIRE_RMA_LENT, .offset = in->rma.offset },
		.loan = { .addr = (uintptr_t)in->iov[0].iov_base,
			  .key = held->loan.key,
			  .loan_id = held->loan_id },
	};

	in->chan->ops->reply(in->chan, in->ref, &reply, sizeof(reply));
}

enum core_rx_verdict core_rma_lend_in(struct core_rma_in *in)
{
	struct core_rma_held *held = NULL;
	int ret;

	if (in->head.body_len || in->head.has_data || !in->rma.len ||
	    in->ref.allowance < sizeof(struct wire_rma_reply) + sizeof(struct wire_rma_loan))
		return CORE_RX_BAD;
	ret = core_rma_reach(in, FI_REMOTE_READ);
	if (ret) {
		core_rma_reply(in, (uint32_t)-ret);
		return CORE_RX_DONE;
	}
	if (in->iov_cnt == 1 && (in->chan->caps & CORE_CHAN_GET))
		held = core_rma_held_new(in);
	if (held && !core_rma_lend(held)) {
		util_list_remove(&held->peer_link);
		free(held);
		held = NULL;
	}
	if (held)
		core_rma_lent(held);
	else
		core_rma_reply(in, WIRE_RMA_REFUSED);
	return CORE_RX_DONE;
}

enum core_rx_verdict core_rma_on_msg(struct core_chan *chan, const struct core_head *head)
{
	struct core_rma_held *held;
	struct wire_rma_return back;

	if (head->tagged || head->has_data || head->body_len != sizeof(back))
		return CORE_RX_BAD;
	memcpy(&back, head->body, sizeof(back));
	held = util_idmap_lookup(&chan->peer->ep->loan_ids, back.loan_id);
	if (!held || held->in.chan != chan)
		return CORE_RX_DONE; /* it was revoked */
	if (!back.status)
		core_rma_notify(&held->in, false);
	core_rma_held_free(held);
	return CORE_RX_DONE;
}

void core_rma_revoke(struct core_mr *mr, bool all)
{
	struct util_list *it, *tmp;
	struct core_rma_held *held;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &mr->loans) {
		held = UTIL_CONTAINER_OF(it, struct core_rma_held, mr_link);
		if (all || !held->counted)
			core_rma_held_free(held);
	}
}

/** `loans`: only them. */
static void core_rma_drop_if(struct core_peer *peer, bool loans)
{
	struct util_list *it, *tmp;
	struct core_rma_held *held;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->rma_held) {
		held = UTIL_CONTAINER_OF(it, struct core_rma_held, peer_link);
		if (held->loan.chan || !loans)
			core_rma_held_free(held);
	}
}

void core_rma_drop_loans(struct core_peer *peer)
{
	core_rma_drop_if(peer, true);
}

void core_rma_drop_fetches(struct core_peer *peer)
{
	core_rma_drop_if(peer, false);
}
