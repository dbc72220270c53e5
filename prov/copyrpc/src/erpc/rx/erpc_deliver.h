/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is in a request, and who is told?
 *
 * Frames become up-calls in order. Nothing of a peer's is believed: a frame that is none, a call
 * beyond what we granted, an answer nobody waits for end the session. What core keeps keeps the
 * body.
 *
 * Shown by test/unit/erpc/rx/test_erpc_deliver.c and test_erpc_ep.c.
 */
#ifndef ERPC_DELIVER_H
#define ERPC_DELIVER_H

#include <string.h>

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"

/** May bytes stay where they are? When half of the device's buffers are held, what is to stay is copied. */
static inline bool erpc_deliver_may_retain(const struct erpc_ep *ep)
{
	return ep->dg->rx_retained <= ep->dg->rx_cnt / 2;
}

/** Is this packet a batch whose turn it is, with none waiting behind it? Then it is delivered where it lies. */
static inline bool erpc_deliver_is_plain(const struct erpc_session *s,
					 const struct dev_dgram_in *in)
{
	struct wire_erpc_batch head;

	if (in->len < WIRE_ERPC_HDR_LEN + sizeof(head) || !erpc_deliver_may_retain(s->ep))
		return false;
	memcpy(&head, in->data + WIRE_ERPC_HDR_LEN, sizeof(head));
	return head.seq == s->order.next && !s->order.kept_cnt;
}

/** Such a one, the request in rx[slot]: true: its buffer was kept. */
bool erpc_deliver_plain(struct erpc_session *s, uint32_t slot, const struct dev_dgram_in *in);

/** A whole BATCH in rx[slot]: delivered if it is its turn, and then those that waited for it. */
void erpc_deliver_batch(struct erpc_session *s, uint32_t slot);

/** Answers: of a response, or of REPLIES. */
void erpc_deliver_replies(struct erpc_session *s, struct erpc_body *body);

/** Answers in a response that is this packet, where they lie: true: its buffer was kept. Not when half are held. */
bool erpc_deliver_response(struct erpc_session *s, const struct dev_dgram_in *in);

/** core_chan_ops.retain and release. */
int erpc_keep(struct core_chan *chan, core_retain_t *retain);
void erpc_release(struct core_chan *chan, core_retain_t retain);

#endif
