/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_now.h. */
#include "erpc/tx/erpc_now.h"

void __attribute__((noinline)) erpc_now_learn_cold(struct erpc_ep *ep, uint64_t now_ns)
{
	struct erpc_now *now = &ep->now;

	if (now_ns <= ep->now_ns + ERPC_NOW_SOON_NS) {
		now->soon += now->soon < now->trust;
	} else {
		now->soon = 0;
		if (now->stays && now->trust < ERPC_NOW_MOST)
			now->trust *= 4;
	}
	now->posted = false;
	now->stays = false;
}

bool erpc_now_stays_cold(struct erpc_session *s)
{
	if (s->ep->running || erpc_now_is_trusted(s->ep))
		return false;
	s->send.waits |= ERPC_WAITS_NOW;
	return true;
}

void erpc_now_flushed_cold(struct erpc_session *s)
{
	if (s->batch.buf || (s->send.pending_mask & ERPC_BATCH_MASK))
		return;
	s->send.waits &= ~ERPC_WAITS_NOW;
	s->conn.chan.stays = false;
}
