/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload gathered ahead of a READ: what a driver risks that sends the result of a READ without a
 * fence.
 *
 * An adapter may gather the payload of a WQE before the response of an earlier READ or atomic
 * operation has arrived; only a fence makes it wait. In poll mode half of the messages that
 * directly follow a READ without a fence are gathered ahead: their bytes are copied before the READ
 * is executed, and sent after it. Completions stay in order.
 *
 * A process gathers one message at a time; it belongs to the QP whose number claimed it.
 */
#include "model/nic/nic_ahead.h"

#include "model/nic/nic_fault.h"
#include "model/nic/nic_mem.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

enum { NIC_AHEAD_BYTES = 8192 };

static struct {
	uint32_t qpn; /* 0: free */
	uint16_t index;
	uint32_t len;
	uint8_t bytes[NIC_AHEAD_BYTES];
} nic_ahead;

static bool nic_ahead_is_fetch(const struct nic_wqe *wqe)
{
	return wqe->opcode == NIC_OP_READ || wqe->opcode == NIC_OP_CAS ||
	       wqe->opcode == NIC_OP_FETCH_ADD;
}

static bool nic_ahead_may(const struct nic_wqe *next)
{
	return next->fence <= NIC_FENCE_SMALL && !next->inline_len && next->len &&
	       next->len <= NIC_AHEAD_BYTES && next->opcode != NIC_OP_NOP &&
	       !nic_ahead_is_fetch(next);
}

bool nic_ahead_wanted(const struct nic_wqe *wqe)
{
	return mdl_self.config.mode == MDL_MODE_POLL && nic_ahead_is_fetch(wqe) &&
	       (nic_random() & 1);
}

void nic_ahead_take(struct mdl_qp *qp, const struct nic_wqe *next)
{
	struct nic_spans from;
	struct nic_spans to = { .cnt = 1,
				.span[0] = { .bytes = nic_ahead.bytes, .len = next->len } };
	uint32_t none = 0, writes = 0;

	if (!nic_ahead_may(next) || !nic_mem_pieces(qp, next, 0, &from) ||
	    !__atomic_compare_exchange_n(&nic_ahead.qpn, &none, qp->number, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	nic_ahead.index = next->index;
	nic_ahead.len = next->len;
	if (nic_mem_copy(&to, &from, next->len, &writes))
		nic_ahead_drop(qp);
}

bool nic_ahead_use(struct mdl_qp *qp, struct nic_wqe *wqe)
{
	if (__atomic_load_n(&nic_ahead.qpn, __ATOMIC_ACQUIRE) != qp->number)
		return false;
	if (nic_ahead.index != wqe->index || nic_ahead.len != wqe->len)
		return false;
	wqe->piece_cnt = 1;
	wqe->piece[0] = (struct nic_piece){ .inl = nic_ahead.bytes, .len = nic_ahead.len };
	return true;
}

void nic_ahead_drop(const struct mdl_qp *qp)
{
	uint32_t own = qp->number;

	if (own)
		__atomic_compare_exchange_n(&nic_ahead.qpn, &own, 0, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}
