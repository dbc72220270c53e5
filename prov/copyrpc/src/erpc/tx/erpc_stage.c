/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_stage.h. */
#include "erpc/tx/erpc_stage.h"

#include "erpc/tx/erpc_batch.h"

static void erpc_stage_leave_one(struct erpc_session *s, struct erpc_buf *buf)
{
	s->send.waits &= ~ERPC_WAITS_STAGED;
	if (UTIL_UNLIKELY(s->err))
		erpc_buf_free(&s->ep->bufs, buf);
	else
		erpc_batch_leave_single(s, buf, erpc_kick_may_now(s, buf->len));
}

void erpc_stage_leave(struct erpc_ep *ep)
{
	struct erpc_stage *stage = &ep->stage;

	for (uint32_t i = 0; i < stage->cnt; i++)
		erpc_stage_leave_one(stage->sessions[i], stage->bufs[i]);
	stage->cnt = 0;
	erpc_ep_doorbell(ep);
}

void erpc_stage_learn(struct erpc_ep *ep, uint64_t now_ns)
{
	struct erpc_stage *stage = &ep->stage;

	if (stage->jumps < ERPC_STAGE_FEW || now_ns > ep->now_ns + ERPC_STAGE_SOON_NS)
		stage->rounds = 0;
	else if (stage->rounds < ERPC_STAGE_TRUST)
		stage->rounds++;
	stage->singles = 0;
	stage->jumps = 0;
	if (stage->cnt)
		erpc_stage_leave(ep);
}
