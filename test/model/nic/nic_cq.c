/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery of completions.
 *
 * Under cq->lock the CQE is written to the slot of the producer index, its last byte with release,
 * then the index is advanced. A writer that dies between the two leaves a published CQE behind the
 * index. The next process to get the lock recognises it by its owner bit, records the completion
 * for its queue and advances the index (nic_cq_repair).
 *
 * A CQ created for compressed CQEs keeps completions that fit into a run until one does not fit, or
 * until the run of the send queue that caused them ends.
 *
 * The consumer index is read from the doorbell record only to detect overruns, as in the adapter.
 */
#include "model/nic/nic_cq.h"

#include "model/nic/nic_be.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_own.h"
#include "model/nic/nic_service.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm.h"

enum { NIC_ARM_NONE, NIC_ARM_NEXT, NIC_ARM_SOLICITED };
enum { NIC_CQ_INDEX = 0xffffff, NIC_CQ_HELD_MAX = 24, NIC_CQ_LINGER_NS = 3000 };

static uint8_t *nic_cq_slot(const struct mdl_cq *cq, uint32_t index)
{
	return (uint8_t *)mdl_at(cq->buf) + (uint64_t)(index & (cq->cqe_cnt - 1)) * cq->cqe_size;
}

static uint8_t *nic_cq_slot64(const struct mdl_cq *cq, uint32_t index)
{
	return nic_cq_slot(cq, index) + cq->cqe_size - NIC_CQE_BYTES;
}

static bool nic_cq_owner(const struct mdl_cq *cq, uint32_t index)
{
	return index & cq->cqe_cnt;
}

/*
 * Records that the receive WQE of the CQE at INDEX is complete, and what it did to a list of tags,
 * even if a process dies from here on.
 */
static void nic_cq_note_completion(const struct mdl_cq *cq, uint32_t index, uint8_t op)
{
	const uint8_t *cqe64 = nic_cq_slot64(cq, index);
	struct mdl_qp *qp;

	if (op == NIC_CQE_REQ || op == NIC_CQE_REQ_ERR)
		return;
	qp = mdl_qp_find(nic_be32_get(cqe64 + 56) & 0xffffff);
	if (qp && cqe64[40] == NIC_CQE_APP_TM)
		nic_tm_note(qp, cqe64, index);
	if (qp && nic_qp_priv(qp)->completing == NIC_COMPLETING_WRITES)
		__atomic_store_n(&nic_qp_priv(qp)->completing, NIC_COMPLETING_WRITTEN,
				 __ATOMIC_RELEASE);
}

static void nic_cq_repair(struct mdl_cq *cq)
{
	uint8_t last = nic_cq_slot(cq, cq->nic_pi)[cq->cqe_size - 1];

	if (nic_cq_priv(cq)->held || last >> 4 == NIC_CQE_INVALID ||
	    (last & 1) != nic_cq_owner(cq, cq->nic_pi))
		return;
	nic_cq_note_completion(cq, cq->nic_pi, last >> 4);
	cq->nic_pi++;
}

static void nic_cq_lock(struct mdl_cq *cq)
{
	if (mdl_lock(&cq->lock))
		nic_cq_repair(cq);
}

/* Returns the CQ with its lock held, or null if it is gone, perhaps only since the lookup. */
static struct mdl_cq *nic_cq_take(uint32_t cqn)
{
	struct mdl_cq *cq = mdl_cq_find(cqn);

	if (!cq)
		return NULL;
	nic_cq_lock(cq);
	if (__atomic_load_n(&cq->number, __ATOMIC_ACQUIRE) == cqn)
		return cq;
	mdl_unlock(&cq->lock);
	return NULL;
}

/* Returns the number of CQEs written that the program has not recorded as read. */
static uint32_t nic_cq_unread(const struct mdl_cq *cq)
{
	return (cq->nic_pi - nic_record_get(mdl_at(cq->dbrec))) & NIC_CQ_INDEX;
}

static bool nic_cq_overruns(struct mdl_cq *cq)
{
	uint32_t unread;

	if (cq->ignore_overrun)
		return false;
	unread = nic_cq_unread(cq);
	if (unread < cq->cqe_cnt)
		return false;
	cq->nic_error = 1;
	krn_cq_async(cq, 0 /* IBV_EVENT_CQ_ERR */);
	if (unread == cq->cqe_cnt)
		nic_blame(cq->proc,
			  "CQ 0x%x overrun: %u completions written, consumer index record %u, "
			  "room for %u. Size a CQ for all WQEs that can complete into it, and "
			  "write the record as you poll.",
			  cq->number, cq->nic_pi, nic_record_get(mdl_at(cq->dbrec)), cq->cqe_cnt);
	else
		nic_blame(cq->proc,
			  "CQ 0x%x: the consumer index record is %u, but only %u completions "
			  "were written (modulo 2^24). The record counts CQEs read, most "
			  "significant byte first.",
			  cq->number, nic_record_get(mdl_at(cq->dbrec)), cq->nic_pi);
	return true;
}

static void nic_cq_event(struct mdl_cq *cq, bool solicited)
{
	if (solicited)
		nic_cq_priv(cq)->solicited_end = cq->nic_pi;
	if (cq->nic_armed == NIC_ARM_NONE || (cq->nic_armed == NIC_ARM_SOLICITED && !solicited))
		return;
	cq->nic_armed = NIC_ARM_NONE;
	mdl_count_add(&mdl_self.seg->proc[cq->proc].count, MDL_CNT_CQ_EVENTS, 1);
	krn_cq_event(cq);
}

/*
 * Compresses a run. The mini CQEs are computed from all slots before an array overwrites one of
 * them.
 */
static void nic_cq_compress(struct mdl_cq *cq, uint32_t first, uint32_t cnt, bool requester)
{
	uint8_t mini[NIC_CQ_HELD_MAX][NIC_MINI_BYTES];

	for (uint32_t k = 0; k < cnt; k++)
		nic_mini_encode(mini[k], nic_cq_slot64(cq, first + k), requester);
	for (uint32_t k = 1; k < cnt; k++) /* holes: their contents are undefined for software */
		memset(nic_cq_slot64(cq, first + k), 0xa5, NIC_CQE_BYTES - 1);
	for (uint32_t k = 0; k < cnt; k++) {
		uint32_t byte, slot = nic_mini_place(k, &byte);

		memcpy(nic_cq_slot64(cq, first + slot) + byte, mini[k], NIC_MINI_BYTES);
	}
}

static void nic_cq_release_locked(struct mdl_cq *cq)
{
	struct nic_cq_priv *priv = nic_cq_priv(cq);
	uint32_t first = cq->nic_pi - priv->held;
	uint8_t op_own = priv->held_op_own;

	if (!priv->held)
		return;
	if (priv->held > 1) {
		nic_cq_compress(cq, first, priv->held, op_own >> 4 == NIC_CQE_REQ);
		op_own = nic_mini_title(nic_cq_slot64(cq, first), op_own, priv->held);
		mdl_count_add(&mdl_self.seg->proc[cq->proc].count, MDL_CNT_CQES_MINI, priv->held);
	}
	priv->held = 0;
	nic_cqe_publish(nic_cq_slot(cq, first), cq->cqe_size, op_own);
	nic_cq_event(cq, op_own >> 1 & 1);
}

void nic_cq_release(uint32_t cqn)
{
	struct mdl_cq *cq = mdl_cq_find(cqn);

	if (!cq || !cq->comp_en || !(cq = nic_cq_take(cqn)))
		return;
	nic_cq_release_locked(cq);
	mdl_unlock(&cq->lock);
}

static void nic_cq_hold(struct mdl_cq *cq, uint8_t op_own)
{
	struct nic_cq_priv *priv = nic_cq_priv(cq);
	uint32_t title = cq->nic_pi - priv->held;

	if (priv->held && (priv->held == NIC_CQ_HELD_MAX || priv->held + 1 >= cq->cqe_cnt ||
			   !nic_cqe_joins(nic_cq_slot64(cq, title), priv->held_op_own,
					  nic_cq_slot64(cq, cq->nic_pi), op_own, priv->held)))
		nic_cq_release_locked(cq);
	if (!priv->held)
		priv->held_op_own = op_own;
	priv->held++;
	cq->nic_pi++;
}

/* Poll mode: delays the last byte of a CQE after the rest of it. */
static void nic_cq_linger(void)
{
	uint64_t until;

	if (mdl_self.config.mode != MDL_MODE_POLL || nic_random() & 15)
		return;
	for (until = mdl_now_ns() + nic_random() % NIC_CQ_LINGER_NS; mdl_now_ns() < until;)
		;
}

static void nic_cq_put(struct mdl_cq *cq, const struct nic_cqe *cqe)
{
	bool error = cqe->op == NIC_CQE_REQ_ERR || cqe->op == NIC_CQE_RESP_ERR;
	uint8_t *slot = nic_cq_slot(cq, cq->nic_pi);
	uint8_t op_own = nic_cqe_encode(slot, cq->cqe_size, cqe, nic_cq_owner(cq, cq->nic_pi));

	if (cq->comp_en) {
		nic_cq_hold(cq, op_own);
		nic_cq_note_completion(cq, cq->nic_pi - 1, op_own >> 4);
		if (error || cqe->scatter_len || cqe->app_op)
			nic_cq_release_locked(cq);
		return;
	}
	nic_cq_linger();
	nic_cqe_publish(slot, cq->cqe_size, op_own);
	nic_cq_note_completion(cq, cq->nic_pi, op_own >> 4);
	cq->nic_pi++;
	nic_cq_event(cq, cqe->solicited || error);
}

static void nic_cq_account(struct mdl_qp *qp, const struct nic_cqe *cqe)
{
	bool error = cqe->op == NIC_CQE_REQ_ERR || cqe->op == NIC_CQE_RESP_ERR;
	bool requester = cqe->op == NIC_CQE_REQ || cqe->op == NIC_CQE_REQ_ERR;

	nic_count(qp, requester ? MDL_CNT_CQES_REQ : MDL_CNT_CQES_RESP, 1);
	nic_count(qp, MDL_CNT_CQES_ERR, error);
}

bool nic_cq_write(struct mdl_qp *qp, uint32_t cqn, const struct nic_cqe *cqe)
{
	struct mdl_cq *cq = nic_cq_take(cqn);
	bool refused;

	if (!cq)
		return false;
	refused = cq->nic_error || nic_cq_overruns(cq);
	if (!refused)
		nic_cq_put(cq, cqe);
	mdl_unlock(&cq->lock);
	if (!refused)
		nic_cq_account(qp, cqe);
	return !refused;
}

void nic_cq_settle(uint32_t cqn)
{
	struct mdl_cq *cq = nic_cq_take(cqn);

	if (cq)
		mdl_unlock(&cq->lock);
}

bool nic_cq_has_room(uint32_t cqn)
{
	struct mdl_cq *cq = mdl_cq_find(cqn);

	return !cq || cq->ignore_overrun || nic_cq_unread(cq) < cq->cqe_cnt;
}

static void nic_cq_arm_check(const struct mdl_cq *cq, uint32_t word)
{
	uint32_t record = nic_record_get((uint32_t *)mdl_at(cq->dbrec) + 1);

	if (record != word)
		nic_blame(cq->proc,
			  "CQ 0x%x was armed with 0x%08x, but its arm record is 0x%08x. Write "
			  "the record first, then a barrier, then the register.",
			  cq->number, word, record);
}

static void nic_cq_arm_word(uint32_t cqn, uint32_t word)
{
	uint32_t ci = word & NIC_CQ_INDEX, unread, unread_solicited;
	struct mdl_cq *cq = nic_cq_take(cqn);
	bool solicited = word >> 24 & 1;

	if (!cq)
		return;
	nic_cq_priv(cq)->arm_word = word;
	cq->nic_armed = solicited ? NIC_ARM_SOLICITED : NIC_ARM_NEXT;
	cq->nic_arm_ci = ci;
	unread = (cq->nic_pi - ci) & NIC_CQ_INDEX;
	unread_solicited = (nic_cq_priv(cq)->solicited_end - ci) & NIC_CQ_INDEX;
	if (solicited ? unread_solicited && unread_solicited <= unread : unread)
		nic_cq_event(cq, unread_solicited && unread_solicited <= unread);
	mdl_unlock(&cq->lock);
}

void nic_cq_arm(const uint8_t *bytes)
{
	uint32_t word = nic_be32_get(bytes), cqn = nic_be32_get(bytes + 4) & NIC_CQ_INDEX;
	struct mdl_cq *cq = mdl_cq_find(cqn);

	if (!cq || !mdl_table_is_own(cq)) {
		/* poll mode: the CQ may be gone since the store */
		if (mdl_self.config.mode != MDL_MODE_POLL)
			nic_blame(mdl_self.slot,
				  "CQ 0x%x was armed, but this process has no such CQ.", cqn);
		return;
	}
	if (mdl_self.config.mode != MDL_MODE_POLL)
		nic_cq_arm_check(cq, word);
	mdl_count_add(&mdl_self.proc->count, MDL_CNT_CQ_ARMS, 1);
	nic_cq_arm_word(cqn, word);
}

/* Checks the arm record of a CQ whose arm write may have been overwritten by another CQ's. */
void nic_cq_recheck(struct mdl_cq *cq)
{
	uint32_t word = nic_record_get((uint32_t *)mdl_at(cq->dbrec) + 1);

	if (cq->chan && word != nic_cq_priv(cq)->arm_word)
		nic_cq_arm_word(cq->number, word);
}

/* Initialises the arm word to a value that no record has; 0 is a valid word. */
void nic_cq_create(struct mdl_cq *cq)
{
	nic_cq_priv(cq)->arm_word = ~0u;
	nic_own_add_cq(cq);
}

/*
 * Libraries copy the CQEs of the old buffer before the resize CQE into the new one, one slot
 * further on, as the resize CQE counts as a completion.
 */
void nic_cq_resize(struct mdl_cq *cq, uint64_t old_buf, uint32_t old_cnt, uint32_t old_size)
{
	struct mdl_cq old = { .buf = old_buf, .cqe_cnt = old_cnt, .cqe_size = old_size };
	struct nic_cqe cqe = { .op = NIC_CQE_RESIZE };
	uint8_t *slot = nic_cq_slot(&old, cq->nic_pi);

	nic_cqe_publish(slot, old_size,
			nic_cqe_encode(slot, old_size, &cqe, nic_cq_owner(&old, cq->nic_pi)));
	cq->nic_pi++;
}
