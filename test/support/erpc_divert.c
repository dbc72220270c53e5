/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_divert.h. */
#include "support/erpc_divert.h"

#include "erpc/base/erpc_ep.h"

static struct {
	const struct core_chan *chan;
	const struct core_upcalls *own, *others;
} divert;

static const struct core_upcalls *divert_pick(const struct core_chan *chan)
{
	return chan == divert.chan ? divert.own : divert.others;
}

static enum core_rx_verdict divert_on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
					  uint32_t len, core_retain_t retain)
{
	return divert_pick(chan)->on_msg(chan, op, data, len, retain);
}

static enum core_rx_verdict divert_on_call(struct core_chan *chan, struct core_call_ref ref,
					   const uint8_t *data, uint32_t len, core_retain_t retain)
{
	return divert_pick(chan)->on_call(chan, ref, data, len, retain);
}

static void divert_on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
			    uint32_t len)
{
	divert_pick(chan)->on_reply(chan, context, status, data, len);
}

static void divert_on_get_done(struct core_chan *chan, struct core_get *get)
{
	divert_pick(chan)->on_get_done(chan, get);
}

static void divert_on_acked(struct core_chan *chan, uint64_t pos)
{
	divert_pick(chan)->on_acked(chan, pos);
}

static const struct core_upcalls divert_upcalls = {
	.on_msg = divert_on_msg,
	.on_call = divert_on_call,
	.on_reply = divert_on_reply,
	.on_get_done = divert_on_get_done,
	.on_acked = divert_on_acked,
};

void erpc_divert(struct erpc_session *s, const struct core_upcalls *up)
{
	if (s->ep->up != &divert_upcalls)
		divert.others = s->ep->up;
	divert.own = up;
	divert.chan = &s->conn.chan;
	s->conn.up = up;
	s->ep->up = &divert_upcalls;
}
