/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists of tags: their operations, matching, and the phases of software and device.
 *
 * A shared receive queue of tag matching (XRQ) has a list of tagged buffers besides its WQEs. A
 * WQE of tag matching on any RC queue pair of the XRQ appends an entry, removes one or does
 * nothing. An APPEND fills the entry that the APPEND before it named, entry 0 at first.
 *
 * The device counts the unexpected messages that it delivered, software those that it handled. An
 * entry that is appended while the counts differ is stored, and matches nothing before a list
 * operation brings them together. So no message overtakes one that software has not seen yet.
 *
 * tm_lock orders all that happens to a list. What a message does to it is recorded with the CQE
 * that tells software (nic_tm_note), so that a process that dies in between has done nothing.
 */
#include "model/nic/nic_tm.h"

#include "model/nic/nic_be.h"
#include "model/nic/nic_cq.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm_recv.h"
#include "model/nic/nic_wqe.h"

struct mdl_srq *nic_tm_lock(struct mdl_qp *qp)
{
	struct mdl_srq *srq = mdl_srq_find(qp->srq);

	if (!srq || !srq->tm_cnt)
		return NULL;
	if (mdl_lock(&srq->tm_lock))
		nic_cq_settle(srq->cq);
	if (__atomic_load_n(&srq->number, __ATOMIC_ACQUIRE) == qp->srq)
		return srq;
	mdl_unlock(&srq->tm_lock);
	return NULL;
}

static uint32_t nic_tm_state(const struct nic_tag *tag)
{
	return __atomic_load_n(&tag->state, __ATOMIC_ACQUIRE);
}

static void nic_tm_set(struct nic_tag *tag, enum nic_tag_state state)
{
	__atomic_store_n(&tag->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static uint16_t nic_tm_hw_cnt(struct mdl_srq *srq)
{
	return (uint16_t)__atomic_load_n(&nic_srq_priv(srq)->tm_phase, __ATOMIC_ACQUIRE);
}

int nic_tm_find(const struct mdl_srq *srq, uint64_t tag)
{
	int found = -1;

	for (uint32_t i = 0; i < srq->tm_cnt; i++) {
		const struct nic_tag *entry = nic_tm_tag(srq, i);

		if (nic_tm_state(entry) == NIC_TAG_ACTIVE && (tag & entry->mask) == entry->tag &&
		    (found < 0 || entry->order < nic_tm_tag(srq, (uint32_t)found)->order))
			found = (int)i;
	}
	return found;
}

static void nic_tm_count_unexpected(struct mdl_srq *srq, uint32_t index)
{
	struct nic_srq_priv *priv = nic_srq_priv(srq);
	uint64_t phase = priv->tm_phase;

	if ((uint32_t)(phase >> 32) == index + 1)
		return;
	phase = (uint64_t)(index + 1) << 32 | (uint16_t)(phase + 1);
	__atomic_store_n(&priv->tm_phase, phase, __ATOMIC_RELEASE);
}

void nic_tm_note(const struct mdl_qp *qp, const uint8_t *cqe64, uint32_t index)
{
	struct mdl_srq *srq = mdl_srq_find(qp->srq);
	uint32_t entry = nic_be16_get(cqe64 + 42);

	if (!srq || entry >= srq->tm_cnt)
		return;
	switch (cqe64[41]) {
	case NIC_APP_CONSUMED:
		nic_tm_tag(srq, entry)->qpn = qp->number;
		nic_tm_set(nic_tm_tag(srq, entry), NIC_TAG_MATCHED);
		break;
	case NIC_APP_EXPECTED:
	case NIC_APP_CONSUMED_MSG:
	case NIC_APP_CONSUMED_RNDV:
	case NIC_APP_CANCELED: nic_tm_set(nic_tm_tag(srq, entry), NIC_TAG_FREE); break;
	case NIC_APP_UNEXPECTED: nic_tm_count_unexpected(srq, index); break;
	default: break;
	}
}

/* ---- list operations ------------------------------------------------------------------------- */
static void nic_tm_check_index(const struct mdl_qp *qp, const struct mdl_srq *srq, uint32_t index)
{
	if (index >= srq->tm_cnt)
		mdl_fatal("QP 0x%x: a list operation names entry %u, but the list of SRQ 0x%x has "
			  "%u.",
			  qp->number, index, srq->number, srq->tm_cnt);
}

static void nic_tm_append(struct mdl_qp *qp, struct mdl_srq *srq, const struct nic_wqe *wqe)
{
	struct nic_srq_priv *priv = nic_srq_priv(srq);
	struct nic_tag *tag = nic_tm_tag(srq, priv->tm_next);

	if (nic_tm_state(tag) != NIC_TAG_FREE)
		mdl_fatal("QP 0x%x: an APPEND fills entry %u of SRQ 0x%x, which is in use. Each "
			  "APPEND names the entry that the next one fills; it is free when its "
			  "removal, or the completion of its message, was reported.",
			  qp->number, priv->tm_next, srq->number);
	*tag = (struct nic_tag){ .order = priv->tm_order++,
				 .tag = wqe->tm.tag,
				 .mask = wqe->tm.mask,
				 .addr = wqe->piece_cnt ? wqe->piece[0].addr : 0,
				 .len = (uint32_t)wqe->len,
				 .lkey = wqe->piece_cnt ? wqe->piece[0].lkey : 0 };
	nic_tm_set(tag, NIC_TAG_STORED);
	priv->tm_next = wqe->tm.index;
}

/* Returns false if the entry is not in the list any more. */
static bool nic_tm_remove(struct mdl_srq *srq, uint32_t index)
{
	struct nic_tag *tag = nic_tm_tag(srq, index);
	uint32_t state = nic_tm_state(tag);

	if (state != NIC_TAG_STORED && state != NIC_TAG_ACTIVE)
		return false;
	nic_tm_set(tag, NIC_TAG_FREE);
	return true;
}

static void nic_tm_take_count(struct mdl_qp *qp, struct mdl_srq *srq, uint16_t sw_cnt)
{
	uint16_t hw_cnt = nic_tm_hw_cnt(srq);

	if ((int16_t)(hw_cnt - sw_cnt) < 0)
		mdl_fatal("QP 0x%x: a list operation says that %u unexpected messages were "
			  "handled, but SRQ 0x%x delivered %u (modulo 2^16). Messages without a "
			  "tag do not count.",
			  qp->number, sw_cnt, srq->number, hw_cnt);
	nic_srq_priv(srq)->tm_sw_cnt = sw_cnt;
}

/* Activates the entries that were stored, if software has handled all unexpected messages. */
static void nic_tm_activate(struct mdl_srq *srq)
{
	if (nic_srq_priv(srq)->tm_sw_cnt != nic_tm_hw_cnt(srq))
		return;
	for (uint32_t i = 0; i < srq->tm_cnt; i++)
		if (nic_tm_state(nic_tm_tag(srq, i)) == NIC_TAG_STORED)
			nic_tm_set(nic_tm_tag(srq, i), NIC_TAG_ACTIVE);
}

static void nic_tm_report(struct mdl_qp *qp, struct mdl_srq *srq, const struct nic_wqe *wqe,
			  bool success)
{
	static const uint8_t app_op[] = { NIC_APP_NOOP, NIC_APP_APPEND, NIC_APP_REMOVE };
	struct nic_cqe cqe = { .op = NIC_CQE_NO_PACKET,
			       .app_op = app_op[wqe->tm.op],
			       .app_info = wqe->tm.index,
			       .wqe_counter = wqe->index,
			       .qpn = qp->number,
			       .user_index = srq->uidx,
			       .timestamp = mdl_now_ns() };

	nic_be32_put(cqe.head, (uint32_t)success << 31);
	nic_be16_put(cqe.head + 4, nic_tm_hw_cnt(srq));
	nic_qp_priv(qp)->retired = wqe->index + wqe->blocks;
	nic_cq_write(qp, srq->cq, &cqe);
}

static void nic_tm_apply(struct mdl_qp *qp, struct mdl_srq *srq, const struct nic_wqe *wqe)
{
	bool success = true;

	if (wqe->tm.op != NIC_TM_NOP)
		nic_tm_check_index(qp, srq, wqe->tm.index);
	if (wqe->tm.op == NIC_TM_APPEND)
		nic_tm_append(qp, srq, wqe);
	if (wqe->tm.op == NIC_TM_REMOVE)
		success = nic_tm_remove(srq, wqe->tm.index);
	if (wqe->tm.flags & NIC_TM_HAS_COUNT)
		nic_tm_take_count(qp, srq, wqe->tm.sw_cnt);
	nic_tm_activate(srq);
	if (wqe->tm.flags & NIC_TM_WANTS_CQE)
		nic_tm_report(qp, srq, wqe, success);
}

void nic_tm_execute(struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	struct mdl_srq *srq = nic_tm_lock(qp);

	if (!srq)
		mdl_fatal("QP 0x%x: a list operation was posted, but the QP does not receive from "
			  "an SRQ of tag matching.",
			  qp->number);
	nic_tm_apply(qp, srq, wqe);
	mdl_unlock(&srq->tm_lock);
	nic_count(qp, MDL_CNT_TM_LIST_OPS, 1);
}

bool nic_tm_cancel(struct mdl_qp *qp)
{
	struct mdl_srq *srq = qp->tagged ? nic_tm_lock(qp) : NULL;
	bool room = true;

	for (uint32_t i = 0; srq && i < srq->tm_cnt && room; i++) {
		struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND, .app_op = NIC_APP_CANCELED };

		if (nic_tm_state(nic_tm_tag(srq, i)) != NIC_TAG_MATCHED ||
		    nic_tm_tag(srq, i)->qpn != qp->number)
			continue;
		room = nic_cq_has_room(srq->cq);
		if (room)
			nic_tm_complete(qp, srq, i, &cqe);
	}
	if (srq)
		mdl_unlock(&srq->tm_lock);
	return room;
}
