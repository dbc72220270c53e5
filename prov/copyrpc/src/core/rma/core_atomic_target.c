/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations, target side: see core_atomic.h. Called through core_handlers.
 *
 * A call is checked as a whole against the region with its key, then executed in the up-call that
 * brought it. A malformed call ends the connection. A call that the region does not permit, or that
 * is not aligned, gets a reply with an error, and changes nothing.
 */
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <string.h>

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
	struct core_access_target target;
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
	int ret = core_access_reach(in->chan->peer, in->atomic.key, in->atomic.addr, in->len,
				    core_atomic_access(&in->atomic), &in->target);

	for (size_t i = 0; !ret && i < in->target.iov_cnt; i++) {
		if (in->target.iov[i].iov_len % in->size ||
		    !core_atomic_is_aligned(in->atomic.type, in->target.iov[i].iov_base))
			ret = -FI_EINVAL;
	}
	return ret;
}

/** Executes the call on each range of the target. result: receives the old values, or NULL. */
static void core_atomic_execute(const struct core_atomic_in *in, uint8_t *result)
{
	size_t off = 0;

	for (size_t i = 0; i < in->target.iov_cnt; i++) {
		core_atomic_exec(in->atomic.type, in->atomic.op, in->target.iov[i].iov_base,
				 in->operand ? in->operand + off : NULL,
				 in->compare ? in->compare + off : NULL,
				 result ? result + off : NULL,
				 in->target.iov[i].iov_len / in->size);
		off += in->target.iov[i].iov_len;
	}
}

/** Reports an operation after its last call. */
static void core_atomic_notify(const struct core_atomic_in *in, const struct core_head *head)
{
	const struct wire_atomic *a = &in->atomic;

	if (a->first + a->count == a->total)
		core_access_notify(in->chan->peer, in->target.mr, FI_ATOMIC, core_atomic_access(a),
				   a->total * in->size, head);
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
