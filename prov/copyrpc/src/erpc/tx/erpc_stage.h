/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Staged messages: single messages to several sessions that leave with one call of the device.
 * Called by erpc_batch.h, erpc_send.c, the poll and the close of a session.
 *
 * Where there are thousands of sessions the lines of the next one are in no cache, and a message
 * that leaves waits for them, because it has more instructions than the processor looks ahead. A
 * staged message has its buffer and its position; so few instructions follow the first access to
 * its session that those of the next messages begin meanwhile. Staged messages leave when there are
 * ERPC_STAGE_MAX, with the next poll, and before anything else of their session.
 *
 * A process that computes before it polls must not keep messages back, and a processor fetches
 * sessions that lie one behind the other by itself. So messages are staged only if the last
 * ERPC_STAGE_TRUST polls with single messages before them had ERPC_STAGE_FEW that jumped to another
 * place, and were within ERPC_STAGE_SOON_NS of the poll before.
 *
 * Owner: the endpoint. Tested in test/unit/erpc/tx/test_erpc_stage.c.
 */
#ifndef ERPC_TX_ERPC_STAGE_H
#define ERPC_TX_ERPC_STAGE_H

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "util/bits.h"

#define ERPC_STAGE_FEW     4u
#define ERPC_STAGE_TRUST   2u
#define ERPC_STAGE_SOON_NS 20000u
#define ERPC_STAGE_NEXT    (2 * sizeof(struct erpc_session)) /* behind the last one: no jump */

/** Sends the staged messages of all sessions. */
void erpc_stage_leave(struct erpc_ep *ep);

/** Sends them if one is of this session. */
static inline void erpc_stage_end(struct erpc_session *s)
{
	if (UTIL_UNLIKELY(s->send.waits & ERPC_WAITS_STAGED))
		erpc_stage_leave(s->ep);
}

/** Notes a single message. Returns true if it is to be staged. */
static inline bool erpc_stage_note(struct erpc_session *s)
{
	struct erpc_stage *stage = &s->ep->stage;

	stage->singles++;
	stage->jumps += (uintptr_t)s - stage->last > ERPC_STAGE_NEXT;
	stage->last = (uintptr_t)s;
	return stage->rounds == ERPC_STAGE_TRUST;
}

/** Stages a message of a session that has none, where nothing of the session is in flight. */
static inline void erpc_stage_add(struct erpc_session *s, struct erpc_buf *buf)
{
	struct erpc_stage *stage = &s->ep->stage;

	s->send.waits |= ERPC_WAITS_STAGED;
	stage->sessions[stage->cnt] = s;
	stage->bufs[stage->cnt++] = buf;
	if (stage->cnt == ERPC_STAGE_MAX)
		erpc_stage_leave(s->ep);
}

/** Learns from a poll at now_ns that single messages preceded, and sends the staged ones. */
void erpc_stage_learn(struct erpc_ep *ep, uint64_t now_ns);

/** Notes a poll. Called before the endpoint's time is set. */
static inline void erpc_stage_polled(struct erpc_ep *ep, uint64_t now_ns)
{
	if (ep->stage.singles)
		erpc_stage_learn(ep, now_ns);
}

#endif
