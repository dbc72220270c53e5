/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does our memory get to the peer? core_chan_ops.lend and unexpose, and what answers GET.
 *
 * A loan is a piece of memory of one session with a key that cannot be guessed. Who asks for bytes of it
 * gets them from where they are, packet by packet as it asks for them. Once unexpose has returned, no
 * packet with them leaves: what is asked for then is refused. Each packet of them reports, so unexpose
 * waits for a device that reads late no longer than that takes. A broken one keeps the registration.
 *
 * Shown by test/unit/erpc/bulk/test_erpc_expose.c.
 */
#ifndef ERPC_EXPOSE_H
#define ERPC_EXPOSE_H

#include "erpc/erpc_session.h"

/** Memory that is lent. */
struct erpc_exposure {
	struct util_list link; /* ep->returned: the device may still read it */
	struct erpc_session *session;
	const uint8_t *addr;
	size_t len;
	struct dev_mem *mem;
	uint32_t id; /* in ep->loans; the low half of the key */
	uint32_t secret;
	uint32_t last_tx;
	bool sent;
};

/** core_chan_ops.lend and unexpose. */
int erpc_expose(struct core_chan *chan, const void *addr, size_t len,
		struct core_exposure *exposure);
void erpc_unexpose(struct core_chan *chan, struct core_exposure *exposure);

/** A whole GET in rx[slot]: answers it. */
void erpc_expose_reply(struct erpc_session *s, uint32_t slot, const uint8_t *data, uint32_t len);

/** Loans that were returned, and that the device is done with; `all`: the device is no more. */
void erpc_expose_reap(struct erpc_ep *ep, bool all);

#endif
