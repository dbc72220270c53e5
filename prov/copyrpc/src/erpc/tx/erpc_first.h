/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * First transmission of a request of one packet, the common case, without the loop of erpc_kick.
 * Called by erpc_batch.h and erpc_kick.c. All other requests begin with erpc_kick_begin.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c, and against erpc_kick in test_erpc_first.c.
 */
#ifndef ERPC_TX_ERPC_FIRST_H
#define ERPC_TX_ERPC_FIRST_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "erpc/tx/erpc_loss.h"
#include "util/bits.h"

/** Sets the state of a new request in a free slot, without its packets. */
static inline void erpc_first_begin(struct erpc_session *s, uint32_t slot, uint8_t type,
				    struct erpc_buf *buf)
{
	struct erpc_tx *tx = &s->tx[slot];

	tx->buf = buf;
	tx->sent_ns = s->ep->now_ns;
	tx->window = ERPC_CREDITS_MAX;
	s->send.free_mask &= ~(1u << slot);
	tx->tries = 0;
	tx->went_back = false;
	tx->overtaken = false;
	tx->kept = false;
	tx->early = 0;
	tx->type = type;
	tx->prompt = type == WIRE_ERPC_REPLIES;
}

/**
 * Adds the only packet of a request to the burst, for the first time. The caller took the credit.
 */
static inline void erpc_first_packet(struct erpc_session *s, struct erpc_tx *tx, uint8_t type,
				     struct erpc_buf *buf)
{
	struct erpc_ep *ep = s->ep;
	uint32_t len = buf->len;
	struct wire_erpc_hdr h = {
		.req_type = type,
		.msg_size = len,
		.session = s->peer_num,
		.kind = WIRE_ERPC_REQ,
		.req_num = tx->c.req_num,
		.tag = s->peer_tag,
	};

	erpc_client_first(&tx->c);
	tx->sent_ns = ep->now_ns;
	tx->pkt_seq = ++s->send.pkts_sent;
	tx->rtt_pkt = 0;
	tx->rtt_start_ns = ep->running ? ep->now_ns : 0;
	tx->rtt_pending = true;
	ep->stats.tx_pkts++;
	erpc_out_put_first(&ep->out, s->ah, buf, len, &h, &tx->out);
	erpc_loss_watch(s);
}

/** Returns true if a request of `len` bytes with a response of one packet may leave at once. */
static inline bool erpc_first_may(const struct erpc_session *s, uint32_t len)
{
	const struct erpc_ep *ep = s->ep;

	return len <= s->payload && s->credit.avail && !s->send.pending_mask &&
	       ep->out.cnt < ERPC_BURST && (!ep->paces || erpc_timely_is_open(&s->time.timely));
}

/** Notes that a packet needs the time of the next progress, if sent between two calls. */
static inline void erpc_first_note(struct erpc_session *s)
{
	if (!s->ep->running && util_list_is_empty(&s->fresh_link))
		util_list_push_back(&s->ep->fresh, &s->fresh_link);
}

/** Begins a request in a free slot with its packet in the burst. Requires erpc_first_may. */
UTIL_INLINE void erpc_first_go(struct erpc_session *s, uint32_t slot, uint8_t type,
			       struct erpc_buf *buf, uint32_t resp_max)
{
	struct erpc_tx *tx = &s->tx[slot];

	s->credit.avail--;
	erpc_client_begin_single(&tx->c, resp_max);
	erpc_first_begin(s, slot, type, buf);
	erpc_first_note(s);
	erpc_first_packet(s, tx, type, buf);
}

#endif
