/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks of received packets and handlers per packet kind (erpc_req.c and others). Called by
 * erpc_rx.c.
 *
 * A handler gets packets that passed erpc_check and applies the rules of the slot. Handlers return
 * true if they kept the device's buffer.
 *
 * Tested in test/unit/erpc/rx/.
 */
#ifndef ERPC_RX_ERPC_PKT_H
#define ERPC_RX_ERPC_PKT_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "util/bits.h"

/** Counts a refused packet. Returns NULL. */
struct erpc_session *erpc_check_no_cold(uint64_t *counter);

/**
 * Makes the checks of docs/datagram-protocol.md, section 7, up to the slot's, in their order.
 * Returns the session, or NULL after counting the refusal.
 */
static inline struct erpc_session *erpc_check(struct erpc_ep *ep, const struct dev_dgram_in *in,
					      struct wire_erpc_hdr *h)
{
	struct erpc_session *s;

	if (UTIL_UNLIKELY(!wire_erpc_get(h, in->data, in->len)))
		return erpc_check_no_cold(&ep->stats->rx_malformed);
	s = __atomic_load_n(&ep->sessions[h->session], __ATOMIC_ACQUIRE);
	if (UTIL_UNLIKELY(!s))
		return erpc_check_no_cold(&ep->stats->rx_no_session);
	if (UTIL_UNLIKELY(h->tag != s->tag))
		return erpc_check_no_cold(&ep->stats->rx_bad_token);
	if (UTIL_UNLIKELY(!dev_dgram_has_id(in, erpc_session_peer_id(s))))
		return erpc_check_no_cold(&ep->stats->rx_bad_source);
	if (UTIL_UNLIKELY(s->err))
		return erpc_check_no_cold(&ep->stats->rx_bad_state);
	return s;
}

bool erpc_req_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in);
bool erpc_rfr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		 const struct dev_dgram_in *in);
bool erpc_cr_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		const struct dev_dgram_in *in);
bool erpc_resp_on(struct erpc_session *s, const struct wire_erpc_hdr *h,
		  const struct dev_dgram_in *in);

/**
 * Notes a request packet that arrived before one that is missing. Reports the gap to the client
 * after ERPC_EARLY_MAX in a row.
 */
void erpc_req_early(struct erpc_session *s, uint32_t slot, const struct wire_erpc_hdr *h);

#endif
