/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Assignment of receive WQEs to messages, and recovery if the taker dies.
 *
 * A receive queue is counted: the record counts the WQEs posted, nic_rq_ci the WQEs completed. A
 * shared receive queue is a list: its head and count change in one store. The taker records in the
 * QP which WQE it has taken and that it begins to write the completion. The end of the write is
 * recorded under the lock of the CQ, by the process that takes the lock over if the writer died.
 * The next owner of a dead taker's rq_lock continues after the completion or gives the WQE to the
 * next message (nic_recv_repair). So no WQE is lost and none is completed twice, however late the
 * recovery.
 */
#include "model/nic/nic_recv.h"

#include "model/nic/nic_be.h"
#include "model/nic/nic_cq.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_rwqe.h"
#include "model/nic/nic_service.h"
#include "model/nic/nic_state.h"

enum {
	NIC_EVENT_SRQ_LIMIT = 15,
	NIC_EVENT_LAST_WQE = 16,
	NIC_VENDOR_FLUSH = 0xf9,
};

/* Checks a record of either kind of queue. Both count in 16 bits; the bits above are reserved. */
static void nic_recv_check_record(uint32_t proc, const char *what, uint32_t number, uint32_t record)
{
	if (record >> 16)
		nic_blame(proc,
			  "%s 0x%x: its receive record is 0x%08x. The count has 16 bits, most "
			  "significant byte first; the others are 0.",
			  what, number, record);
}

uint32_t nic_recv_posted(struct mdl_qp *qp)
{
	uint32_t posted;

	if (!qp->rq_cnt)
		return 0;
	nic_recv_check_record(qp->proc, "QP", qp->number, nic_record_get(mdl_at(qp->dbrec)));
	posted = (nic_record_get(mdl_at(qp->dbrec)) - qp->nic_rq_ci) & 0xffff;
	if (posted > qp->rq_cnt)
		nic_blame(qp->proc,
			  "QP 0x%x: its receive record is %u, but %u receives were completed and "
			  "the queue holds %u. A receive WQE may be reused once its completion "
			  "was read, not before.",
			  qp->number, nic_record_get(mdl_at(qp->dbrec)) & 0xffff,
			  qp->nic_rq_ci & 0xffff, qp->rq_cnt);
	return posted <= qp->rq_cnt ? posted : 0;
}

static enum nic_take nic_recv_take_own(struct mdl_qp *qp, struct nic_taken *taken)
{
	const uint8_t *queue = mdl_at(qp->rq);
	uint64_t index = qp->nic_rq_ci & (qp->rq_cnt - 1);

	if (!nic_recv_posted(qp))
		return NIC_NONE;
	nic_rwqe_decode(&taken->rwqe, queue + (index << qp->rq_shift), 1u << qp->rq_shift);
	taken->counter = qp->nic_rq_ci;
	return NIC_TAKEN;
}

static void nic_recv_limit(struct mdl_srq *srq, uint32_t left)
{
	if (!srq->limit || left >= srq->limit)
		return;
	srq->limit = 0;
	krn_srq_async(srq, NIC_EVENT_SRQ_LIMIT);
}

static uint32_t nic_recv_shared_left(struct mdl_srq *srq)
{
	struct nic_srq_priv *priv = nic_srq_priv(srq);
	uint32_t record = nic_record_get(mdl_at(srq->dbrec));
	uint32_t left = (record - (priv->position >> 32)) & 0xffff;

	nic_recv_check_record(srq->proc, "SRQ", srq->number, record);
	if (left > srq->wqe_cnt) {
		nic_blame(srq->proc,
			  "SRQ 0x%x: its record is %u, but %u WQEs were taken and the queue "
			  "holds %u. A WQE may be posted again once its completion was read, not "
			  "before.",
			  srq->number, record & 0xffff, (uint32_t)(priv->position >> 32) & 0xffff,
			  srq->wqe_cnt);
		return 0;
	}
	return left;
}

bool nic_recv_has_had(struct mdl_srq *srq, uint32_t cnt)
{
	uint64_t had;

	mdl_lock(&srq->lock);
	had = (nic_srq_priv(srq)->position >> 32) + nic_recv_shared_left(srq);
	mdl_unlock(&srq->lock);
	return had >= cnt;
}

static void nic_recv_advance(struct mdl_srq *srq, uint16_t next)
{
	struct nic_srq_priv *priv = nic_srq_priv(srq);
	uint64_t consumed = (priv->position >> 32) + 1;

	__atomic_store_n(&priv->position, consumed << 32 | next, __ATOMIC_RELEASE);
	srq->nic_head = next;
	srq->nic_consumed = (uint32_t)consumed;
}

static enum nic_take nic_recv_take_locked(struct mdl_qp *qp, struct mdl_srq *srq,
					  struct nic_taken *taken)
{
	struct nic_srq_priv *priv = nic_srq_priv(srq);
	uint32_t left = nic_recv_shared_left(srq);
	uint32_t index = priv->returned ? priv->returned - 1 : (uint32_t)priv->position;
	uint16_t next;

	if (!left && !priv->returned)
		return NIC_NONE;
	if (index >= srq->wqe_cnt) {
		nic_blame(srq->proc,
			  "SRQ 0x%x: the WQE taken last names %u as the next one, but there are "
			  "%u. Bytes 2 and 3 of each WQE link it to the next, most significant "
			  "byte first.",
			  srq->number, index, srq->wqe_cnt);
		return NIC_NONE;
	}
	next = nic_rwqe_decode_shared(&taken->rwqe,
				      (uint8_t *)mdl_at(srq->buf) + (uint64_t)index * srq->stride,
				      srq->stride);
	taken->counter = index;
	nic_qp_priv(qp)->taken_srq = srq->number;
	nic_qp_priv(qp)->taken_index = index;
	nic_qp_priv(qp)->taken = 1;
	if (priv->returned) {
		priv->returned = 0;
	} else {
		nic_recv_advance(srq, next);
		left--;
	}
	nic_recv_limit(srq, left);
	return NIC_TAKEN;
}

static enum nic_take nic_recv_take_shared(struct mdl_qp *qp, struct nic_taken *taken)
{
	struct mdl_srq *srq = mdl_srq_find(qp->srq);
	enum nic_take take = NIC_NONE;

	if (!srq)
		return NIC_NONE;
	mdl_lock(&srq->lock);
	if (__atomic_load_n(&srq->number, __ATOMIC_ACQUIRE) == qp->srq)
		take = nic_recv_take_locked(qp, srq, taken);
	mdl_unlock(&srq->lock);
	return take;
}

enum nic_take nic_recv_take(struct mdl_qp *qp, struct nic_taken *taken)
{
	enum nic_take take =
		qp->srq ? nic_recv_take_shared(qp, taken) : nic_recv_take_own(qp, taken);

	taken->app_op = NIC_APP_NONE;
	if (take == NIC_TAKEN)
		nic_count(qp, MDL_CNT_RECV_WQES, 1);
	return take;
}

static void nic_recv_finish(struct mdl_qp *qp)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);

	priv->taken = 0;
	__atomic_store_n(&priv->completing, NIC_COMPLETING_NOT, __ATOMIC_RELEASE);
	if (!qp->srq)
		qp->nic_rq_ci++;
}

void nic_recv_complete(struct mdl_qp *qp, const struct nic_taken *taken, struct nic_cqe *cqe)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);

	cqe->qpn = qp->number;
	cqe->user_index = qp->recv_uidx;
	cqe->app_op = taken->app_op;
	cqe->wqe_counter = taken->counter;
	cqe->timestamp = mdl_now_ns();
	__atomic_store_n(&priv->completing, NIC_COMPLETING_WRITES, __ATOMIC_RELEASE);
	nic_cq_write(qp, qp->recv_cq, cqe);
	nic_recv_finish(qp);
}

void nic_recv_repair(struct mdl_qp *qp)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);
	struct mdl_srq *srq = priv->taken ? mdl_srq_find(priv->taken_srq) : NULL;

	if (priv->completing)
		nic_cq_settle(qp->recv_cq);
	if (__atomic_load_n(&priv->completing, __ATOMIC_ACQUIRE) == NIC_COMPLETING_WRITTEN) {
		nic_recv_finish(qp);
		return;
	}
	priv->completing = NIC_COMPLETING_NOT;
	if (srq) {
		mdl_lock(&srq->lock);
		if (!nic_srq_priv(srq)->returned)
			nic_srq_priv(srq)->returned = priv->taken_index + 1;
		mdl_unlock(&srq->lock);
	}
	priv->taken = 0;
}

static void nic_recv_last_wqe(struct mdl_qp *qp)
{
	if (!qp->srq || nic_qp_priv(qp)->last_wqe_raised)
		return;
	nic_qp_priv(qp)->last_wqe_raised = 1;
	krn_qp_async(qp, NIC_EVENT_LAST_WQE);
}

bool nic_recv_flush(struct mdl_qp *qp)
{
	nic_recv_last_wqe(qp);
	while (!qp->srq && nic_recv_posted(qp)) {
		struct nic_cqe cqe = { .op = NIC_CQE_RESP_ERR,
				       .syndrome = NIC_SYN_FLUSH,
				       .vendor_syndrome = NIC_VENDOR_FLUSH };
		struct nic_taken taken = { .counter = qp->nic_rq_ci };

		if (!nic_cq_has_room(qp->recv_cq))
			return false;
		nic_recv_complete(qp, &taken, &cqe);
	}
	return true;
}

void nic_srq_create(struct mdl_srq *srq)
{
}

void nic_srq_limit(struct mdl_srq *srq, uint32_t limit)
{
	mdl_lock(&srq->lock);
	srq->limit = limit;
	nic_recv_limit(srq, nic_recv_shared_left(srq));
	mdl_unlock(&srq->lock);
}
