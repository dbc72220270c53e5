/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA reads and writes, target side: see core_rma.h. Called through core_handlers.
 *
 * A call is checked against the region with its key, and executed in the up-call that brought it.
 * A malformed call ends the connection. A call that the region does not permit gets a reply with an
 * error and has no other effect.
 */
#include <string.h>

#include "core/core_peer.h"
#include "core/rma/core_rma_bulk.h"
#include "util/copy.h"
#include "wire/wire_rma.h"

static int core_rma_lookup(struct core_rma_in *in, uint64_t access)
{
	return core_access_reach(in->chan->peer, in->rma.key, in->rma.addr, in->rma.len, access,
				 &in->target);
}

/** Reports an access after its last call. */
void core_rma_notify(const struct core_rma_in *in, bool write)
{
	if (in->rma.offset + in->rma.len == in->rma.total)
		core_access_notify(in->chan->peer, in->target.mr, FI_RMA,
				   write ? FI_REMOTE_WRITE : FI_REMOTE_READ, in->rma.total,
				   &in->head);
}

void core_rma_reply(const struct core_rma_in *in, uint32_t status)
{
	struct wire_rma_reply reply = { .status = status, .offset = in->rma.offset };

	core_chan_reply(in->chan, in->ref, &reply, sizeof(reply));
}

bool core_rma_reach(struct core_rma_in *in, uint64_t access)
{
	int ret = core_rma_lookup(in, access);

	if (ret)
		core_rma_reply(in, (uint32_t)-ret);
	return !ret;
}

static enum core_rx_verdict core_rma_write_in(struct core_rma_in *in)
{
	if (in->head.body_len != in->rma.len)
		return CORE_RX_BAD;
	if (!core_rma_reach(in, FI_REMOTE_WRITE))
		return CORE_RX_DONE;
	if (in->rma.len)
		util_iov_scatter(in->target.iov, in->target.iov_cnt, 0, in->head.body, in->rma.len);
	core_rma_notify(in, true);
	core_rma_reply(in, 0);
	return CORE_RX_DONE;
}

static enum core_rx_verdict core_rma_read_in(struct core_rma_in *in)
{
	struct wire_rma_reply reply = { .offset = in->rma.offset };
	struct iovec iov[1 + CORE_MR_IOV_MAX] = { { &reply, sizeof(reply) } };

	if (in->head.body_len || in->head.has_data || in->rma.len > WIRE_RMA_READ_MAX ||
	    in->ref.resp_max < sizeof(reply) + in->rma.len)
		return CORE_RX_BAD;
	if (!core_rma_reach(in, FI_REMOTE_READ))
		return CORE_RX_DONE;
	memcpy(iov + 1, in->target.iov, in->target.iov_cnt * sizeof(iov[0]));
	in->chan->ops->reply(in->chan, in->ref, iov, 1 + in->target.iov_cnt,
			     sizeof(reply) + in->rma.len, 0);
	core_rma_notify(in, false);
	return CORE_RX_DONE;
}

enum core_rx_verdict core_rma_on_call(struct core_chan *chan, struct core_call_ref ref,
				      struct core_head *head, core_retain_t retain)
{
	struct core_rma_in in = { .chan = chan, .ref = ref, .head = *head };

	if (head->tagged || head->body_len < sizeof(in.rma))
		return CORE_RX_BAD;
	memcpy(&in.rma, head->body, sizeof(in.rma));
	in.head.body += sizeof(in.rma);
	in.head.body_len -= (uint32_t)sizeof(in.rma);
	/* The range lies within the access; the comparison cannot wrap. */
	if (in.rma.offset > in.rma.total || in.rma.len > in.rma.total - in.rma.offset)
		return CORE_RX_BAD;
	switch (head->op) {
	case WIRE_OP_WRITE: return core_rma_write_in(&in);
	case WIRE_OP_READ: return core_rma_read_in(&in);
	case WIRE_OP_FETCH: return core_rma_get_in(&in);
	case WIRE_OP_EXPOSE: return core_rma_expose_in(&in);
	default: return CORE_RX_BAD;
	}
}
