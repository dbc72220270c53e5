/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bulk accesses, target side: gets in progress and exposures. See core_rma_bulk.h. */
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_dom.h"
#include "core/core_peer.h"
#include "core/rma/core_rma_bulk.h"
#include "core/rma/core_rma_lease.h"
#include "core/rma/core_rma_simple.h"
#include "util/log.h"
#include "util/stats.h"

static struct core_rma_deferred *core_rma_deferred_new(const struct core_rma_in *in)
{
	struct core_rma_deferred *deferred = calloc(1, sizeof(*deferred));

	if (!deferred)
		return NULL;
	deferred->ep = in->chan->peer->ep;
	deferred->in = *in;
	util_list_push_back(&in->chan->peer->rma_deferred, &deferred->peer_link);
	util_list_init(&deferred->mr_link);
	return deferred;
}

/** Ends a get or an exposure, and its use of the region. */
static void core_rma_deferred_free(struct core_rma_deferred *deferred)
{
	if (deferred->exposure.chan) {
		util_idmap_release(&deferred->ep->exposure_ids, deferred->exposure_id);
		deferred->exposure.chan->ops->unexpose(deferred->exposure.chan,
						       &deferred->exposure);
	}
	core_mr_unuse(deferred->ep->dom, deferred->in.target.mr, deferred->counted,
		      &deferred->mr_link);
	util_list_remove(&deferred->peer_link);
	free(deferred);
}

/** Ends a get. On failure the reply REFUSED makes the initiator send the bytes in calls. */
static void core_rma_deferred_got(struct core_get *get)
{
	struct core_rma_deferred *deferred = UTIL_CONTAINER_OF(get, struct core_rma_deferred, get);

	if (!get->status)
		core_rma_notify(&deferred->in, true);
	core_rma_reply(&deferred->in, get->status ? WIRE_RMA_REFUSED : 0);
	core_rma_deferred_free(deferred);
}

static int core_rma_deferred_get(struct core_rma_deferred *deferred,
				 const struct wire_rma_source *source)
{
	struct core_chan *chan = deferred->in.chan;

	deferred->counted = true;
	core_mr_use(deferred->ep->dom, deferred->in.target.mr, true, &deferred->mr_link);
	deferred->get.remote_addr = source->addr;
	deferred->get.remote_key = source->key;
	deferred->get.iov = deferred->in.target.iov;
	deferred->get.iov_cnt = deferred->in.target.iov_cnt;
	deferred->get.len = deferred->in.rma.len;
	deferred->get.done = core_rma_deferred_got;
	return chan->ops->get(chan, &deferred->get);
}

enum core_rx_verdict core_rma_get_in(struct core_rma_in *in)
{
	struct wire_rma_source source;
	struct core_rma_deferred *deferred = NULL;
	int ret;

	if (in->head.body_len != sizeof(source) || !in->rma.len)
		return CORE_RX_BAD;
	memcpy(&source, in->head.body, sizeof(source));
	if (!core_rma_reach(in, FI_REMOTE_WRITE))
		return CORE_RX_DONE;
	if (in->chan->caps & CORE_CHAN_GET)
		deferred = core_rma_deferred_new(in);
	if (!deferred) {
		core_rma_reply(in, WIRE_RMA_REFUSED);
		return CORE_RX_DONE;
	}
	ret = core_rma_deferred_get(deferred, &source);
	if (ret < 0)
		deferred->get.status = ret;
	if (ret)
		core_rma_deferred_got(&deferred->get);
	return CORE_RX_DONE;
}

static bool core_rma_deferred_expose(struct core_rma_deferred *deferred)
{
	struct core_chan *chan = deferred->in.chan;

	if (util_idmap_alloc(&deferred->ep->exposure_ids, deferred, &deferred->exposure_id))
		return false;
	if (chan->ops->expose(chan, deferred->in.target.iov[0].iov_base, deferred->in.rma.len,
			      &deferred->exposure)) {
		util_idmap_release(&deferred->ep->exposure_ids, deferred->exposure_id);
		return false;
	}
	deferred->exposure.chan = chan;
	deferred->counted = !(chan->caps & CORE_CHAN_REVOKE);
	core_mr_use(deferred->ep->dom, deferred->in.target.mr, deferred->counted,
		    &deferred->mr_link);
	return true;
}

static void core_rma_reply_exposed(const struct core_rma_deferred *deferred)
{
	const struct core_rma_in *in = &deferred->in;
	struct {
		struct wire_rma_reply head;
		struct wire_rma_exposure exposure;
	} reply = {
		.head = { .status = WIRE_RMA_EXPOSED, .offset = in->rma.offset },
		.exposure = { .addr = (uintptr_t)in->target.iov[0].iov_base,
			      .key = deferred->exposure.key,
			      .exposure_id = deferred->exposure_id },
	};

	core_chan_reply(in->chan, in->ref, &reply, sizeof(reply));
}

enum core_rx_verdict core_rma_expose_in(struct core_rma_in *in)
{
	struct core_rma_deferred *deferred = NULL;

	if (in->head.body_len || in->head.has_data || !in->rma.len ||
	    in->ref.resp_max < sizeof(struct wire_rma_reply) + sizeof(struct wire_rma_exposure))
		return CORE_RX_BAD;
	if (!core_rma_reach(in, FI_REMOTE_READ))
		return CORE_RX_DONE;
	if (in->target.iov_cnt == 1 && (in->chan->caps & CORE_CHAN_GET))
		deferred = core_rma_deferred_new(in);
	if (deferred && !core_rma_deferred_expose(deferred)) {
		util_list_remove(&deferred->peer_link);
		free(deferred);
		deferred = NULL;
	}
	if (deferred)
		core_rma_reply_exposed(deferred);
	else
		core_rma_reply(in, WIRE_RMA_REFUSED);
	return CORE_RX_DONE;
}

enum core_rx_verdict core_rma_on_msg(struct core_chan *chan, struct core_head *head,
				     core_retain_t retain)
{
	struct core_rma_deferred *deferred;
	struct wire_rma_return back;

	if (head->tagged || head->has_data || head->body_len != sizeof(back))
		return CORE_RX_BAD;
	memcpy(&back, head->body, sizeof(back));
	deferred = util_idmap_lookup(&chan->peer->ep->exposure_ids, back.exposure_id);
	if (!deferred || deferred->in.chan != chan)
		return CORE_RX_DONE; /* revoked */
	if (!back.status) {
		util_stats_given(chan->stats, deferred->in.rma.len);
		core_rma_notify(&deferred->in, false);
	}
	core_rma_deferred_free(deferred);
	return CORE_RX_DONE;
}

/** Ends a get that lasts too long, by the end of its channel. */
static void core_rma_deferred_fail(const struct core_rma_deferred *deferred)
{
	UTIL_WARN_SELDOM(EP_DATA, "a peer does not send the bytes of its write to a memory region "
				  "within FI_COPYRPC_PEER_TIMEOUT: the connection ends; raise "
				  "the time if the peer is slow\n");
	deferred->in.chan->ops->fail(deferred->in.chan, -FI_ETIMEDOUT);
}

void core_rma_revoke(struct core_mr *mr, bool all)
{
	struct util_list *it, *tmp;
	struct core_rma_deferred *deferred;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &mr->deferred) {
		deferred = UTIL_CONTAINER_OF(it, struct core_rma_deferred, mr_link);
		if (!all && deferred->counted)
			continue;
		if (deferred->exposure.chan)
			core_rma_deferred_free(deferred);
		else
			core_rma_deferred_fail(deferred);
	}
}

void core_rma_mr_revoke(struct core_mr *mr, bool all)
{
	core_rma_revoke(mr, all);
	core_rma_lessee_revoke(mr);
}

static void core_rma_drop_if(struct core_peer *peer, bool exposures)
{
	struct util_list *it, *tmp;
	struct core_rma_deferred *deferred;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &peer->rma_deferred) {
		deferred = UTIL_CONTAINER_OF(it, struct core_rma_deferred, peer_link);
		if (deferred->exposure.chan || !exposures)
			core_rma_deferred_free(deferred);
	}
}

void core_rma_peer_failed(struct core_peer *peer, int err)
{
	core_rma_drop_if(peer, true);
	core_rma_simple_fail(peer, err);
	core_rma_lease_drop_all(peer);
	core_rma_lessee_drop_all(peer);
}

void core_rma_peer_closed(struct core_peer *peer)
{
	core_rma_drop_if(peer, false);
}
