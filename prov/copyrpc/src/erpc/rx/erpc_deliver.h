/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery of requests and responses to core by up-calls, in order. Called by the handlers of
 * packets.
 *
 * Frames of the peer are checked: an invalid frame, a call beyond the grant or a reply without a
 * call fails the session. Messages that core retains keep the body.
 *
 * Tested in test/unit/erpc/rx/test_erpc_deliver.c and test_erpc_ep.c.
 */
#ifndef ERPC_RX_ERPC_DELIVER_H
#define ERPC_RX_ERPC_DELIVER_H

#include <string.h>

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"

/**
 * Returns true if bytes may stay in the device's buffer: at most half of its buffers are retained.
 */
static inline bool erpc_deliver_may_retain(const struct erpc_ep *ep)
{
	return ep->dg->rx_retained <= ep->dg->rx_cnt / 2;
}

/**
 * Returns true if the packet is the next batch and none waits behind it, so it needs no body first.
 */
static inline bool erpc_deliver_is_plain(const struct erpc_session *s,
					 const struct dev_dgram_in *in)
{
	struct wire_erpc_batch head;

	if (in->len < WIRE_ERPC_HDR_LEN + sizeof(head) || !erpc_deliver_may_retain(s->ep))
		return false;
	memcpy(&head, in->data + WIRE_ERPC_HDR_LEN, sizeof(head));
	return head.seq == s->order.next && !s->order.kept_cnt;
}

/** Delivers such a batch, the request in rx[slot]. Returns true if the buffer was kept. */
bool erpc_deliver_plain(struct erpc_session *s, uint32_t slot, const struct dev_dgram_in *in);

/** Delivers a complete BATCH in rx[slot] in its turn, then those that waited for it. */
void erpc_deliver_batch(struct erpc_session *s, uint32_t slot);

/** Delivers the replies of a response or of REPLIES. */
void erpc_deliver_replies(struct erpc_session *s, struct erpc_body *body);

/**
 * Delivers the replies of a response in place. Requires erpc_deliver_may_retain. Returns true if
 * the buffer was kept.
 */
bool erpc_deliver_response(struct erpc_session *s, const struct dev_dgram_in *in);

/** Implement core_chan_ops.retain and release. */
int erpc_retain(struct core_chan *chan, core_retain_t *retain);
void erpc_release(struct core_chan *chan, core_retain_t retain);

#endif
