/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exposure of memory to the peer: core_chan_ops.expose and unexpose, and the response to a GET,
 * called by the handler of requests.
 *
 * An exposure is a range of memory of one session with a key that cannot be guessed. A GET reads it
 * in place, packet by packet as the peer requests. After unexpose no packet with its bytes leaves;
 * later requests are refused. Each such packet requests a report, so unexpose waits only until the
 * device has read it. A broken device keeps the registration.
 */
#ifndef ERPC_BULK_ERPC_EXPOSE_H
#define ERPC_BULK_ERPC_EXPOSE_H

#include "erpc/base/erpc_session.h"

/** Exposed memory. */
struct erpc_exposure {
	struct util_list link; /* ep->dereg_list: the device may still read it */
	struct erpc_session *session;
	const uint8_t *addr;
	size_t len;
	struct dev_mem *mem;
	uint32_t id; /* in ep->exposures; low half of the key */
	uint32_t secret;
	uint32_t last_tx; /* with `sent`: the last packet of responses that have ended */
	bool sent;
};

/** Implement core_chan_ops.expose and unexpose. */
int erpc_expose(struct core_chan *chan, const void *addr, size_t len,
		struct core_exposure *exposure);
void erpc_unexpose(struct core_chan *chan, struct core_exposure *exposure);

/**
 * Ends the use of exposed memory by rx[slot], none of whose packets is in the burst. Records the
 * last one that has left: the device may still read repeated ones, also after the get has ended.
 */
void erpc_expose_leave(struct erpc_rx *rx);

/** Responds to a complete GET in rx[slot]. */
void erpc_expose_reply(struct erpc_session *s, uint32_t slot, const uint8_t *data, uint32_t len);

/**
 * Deregisters unexposed memory that the device no longer reads; `all`: after the device's close.
 */
void erpc_expose_reap(struct erpc_ep *ep, bool all);

#endif
