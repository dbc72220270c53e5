/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations, target side: see core_atomic.h. Called by core_rx.c.
 *
 * A call is checked as a whole against the region with its key, then executed in the up-call that
 * brought it. A malformed call ends the connection. A call that the region does not permit, or that
 * is not aligned, gets a reply with an error, and changes nothing.
 *
 * Shown by test/unit/core/rma/test_core_atomic_target.c.
 */
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_cntr.h"
#include "core/core_dom.h"
#include "core/core_mr.h"
#include "core/core_peer.h"
#include "core/rma/core_atomic.h"
#include "core/rma/core_atomic_exec.h"
#include "wire/wire_atomic.h"

/** Call in execution. */
struct core_atomic_in {
	struct core_chan *chan;
	struct wire_atomic atomic;
	size_t size;            /* bytes of an element */
	size_t len;             /* bytes of all elements */
	const uint8_t *operand; /* or NULL */
	const uint8_t *compare; /* or NULL */
	struct core_mr *mr;
	struct iovec iov[CORE_MR_IOV_MAX];
	size_t iov_cnt;
};

/** Returns the access rights that an operation needs. */
static uint64_t core_atomic_access(const struct wire_atomic *atomic)
{
	if (atomic->op == FI_ATOMIC_READ)
		return FI_REMOTE_READ;
	return atomic->kind == CORE_ATOMIC_BASE ? FI_REMOTE_WRITE
						: FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/** Decodes a call. Returns false if it is malformed. */
static bool core_atomic_parse(struct core_atomic_in *in, const struct core_head *head)
{
	static const uint8_t zero[sizeof(in->atomic.zero)];
	const struct wire_atomic *a = &in->atomic;
	uint32_t lists;

	if (head->tagged || head->body_len < sizeof(*a))
		return false;
	memcpy(&in->atomic, head->body, sizeof(*a));
	if (a->kind >= CORE_ATOMIC_KINDS || !core_atomic_is_valid(a->kind, a->type, a->op) ||
	    !a->count || a->first > a->total || a->count > a->total - a->first ||
	    (head->has_data && a->kind != CORE_ATOMIC_BASE) || memcmp(a->zero, zero, sizeof(zero)))
		return false;
	in->size = core_atomic_size(a->type);
	in->len = a->count * in->size;
	lists = core_atomic_has_operand(a->op) + (a->kind == CORE_ATOMIC_COMPARE);
	if (in->len > WIRE_ATOMIC_LEN_MAX || head->body_len - sizeof(*a) != lists * in->len)
		return false;
	in->operand = lists ? head->body + sizeof(*a) : NULL;
	in->compare = lists == 2 ? in->operand + in->len : NULL;
	return true;
}

/** Looks up the target in its region. Returns 0, with whole aligned elements, or -FI_E*. */
static int core_atomic_reach(struct core_atomic_in *in)
{
	struct core_ep *ep = in->chan->peer->ep;
	uint64_t access = core_atomic_access(&in->atomic);
	int ret;

	if ((ep->remote_access & access) != access)
		return -FI_EACCES;
	ret = core_mr_reach_iov(ep->dom, in->atomic.key, in->atomic.addr, in->len, access, in->iov,
				&in->iov_cnt, &in->mr);
	for (size_t i = 0; !ret && i < in->iov_cnt; i++) {
		if (in->iov[i].iov_len % in->size ||
		    !core_atomic_is_aligned(in->atomic.type, in->iov[i].iov_base))
			ret = -FI_EINVAL;
	}
	return ret;
}

/** Executes the call on each range of the target. result: receives the old values, or NULL. */
static void core_atomic_execute(const struct core_atomic_in *in, uint8_t *result)
{
	size_t off = 0;

	for (size_t i = 0; i < in->iov_cnt; i++) {
		core_atomic_exec(in->atomic.type, in->atomic.op, in->iov[i].iov_base,
				 in->operand ? in->operand + off : NULL,
				 in->compare ? in->compare + off : NULL,
				 result ? result + off : NULL, in->iov[i].iov_len / in->size);
		off += in->iov[i].iov_len;
	}
}

/** Counts an operation after its last call, and writes the completion of remote CQ data. */
static void core_atomic_notify(const struct core_atomic_in *in, const struct core_head *head)
{
	const struct wire_atomic *a = &in->atomic;
	bool write = a->kind == CORE_ATOMIC_BASE;
	struct core_peer *peer = in->chan->peer;
	struct core_ep *ep = peer->ep;

	if (a->first + a->count != a->total)
		return;
	core_cntr_count(ep->rma_cntr[write ? CORE_CNTR_REMOTE_WRITE : CORE_CNTR_REMOTE_READ], 0);
	core_cntr_count(write ? in->mr->remote_write : in->mr->remote_read, 0);
	if (head->has_data && ep->rx.cq)
		core_cq_write(ep->rx.cq, NULL, FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			      a->total * in->size, NULL, head->data, 0, peer->fi_addr);
}

enum core_rx_verdict core_atomic_on_call(struct core_chan *chan, struct core_call_ref ref,
					 struct core_head *head, core_retain_t retain)
{
	struct {
		struct wire_atomic_reply head;
		uint8_t values[WIRE_ATOMIC_LEN_MAX];
	} reply;
	struct core_atomic_in in = { .chan = chan };
	size_t len;
	int ret;

	(void)retain;
	if (!core_atomic_parse(&in, head))
		return CORE_RX_BAD;
	len = in.atomic.kind == CORE_ATOMIC_BASE ? 0 : in.len;
	if (ref.resp_max < sizeof(reply.head) + len)
		return CORE_RX_BAD;
	ret = core_atomic_reach(&in);
	if (!ret) {
		core_atomic_execute(&in, len ? reply.values : NULL);
		core_atomic_notify(&in, head);
	}
	reply.head = (struct wire_atomic_reply){
		.status = (uint32_t)-ret,
		.first = in.atomic.first,
	};
	core_chan_reply(chan, ref, &reply, sizeof(reply.head) + (ret ? 0 : len));
	return CORE_RX_DONE;
}
