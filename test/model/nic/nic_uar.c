/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decoding and checking of writes to a UAR page.
 *
 * A doorbell names its QP by its control segment, but the doorbell record alone gives the end of
 * the work. In the modes that see each doorbell as it happens, all of it is checked. The register
 * belongs to the QP. The record was written first and ends at the end of the doorbell's WQE. The
 * bytes are those in the send queue. A BlueFlame copy is whole WQEs within half a register. No WQE
 * without a reported completion was overwritten.
 *
 * In poll mode doorbells merge, and the queue may have advanced by the time one is seen: only the
 * record is read, perhaps late.
 */
#include "model/nic/nic_be.h"
#include "model/nic/nic_cq.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_own.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

#include <string.h>

enum {
	NIC_UAR_ARM = 0x20,
	NIC_UAR_REGISTERS = 0x800,
	NIC_UAR_HALF = 0x100,
	NIC_POLL_LATE_IN_8 = 3, /* of 8 doorbells, the number processed late */
	NIC_POLL_LATE_NS = 60000,
};

static uint16_t nic_uar_record(struct mdl_qp *qp)
{
	uint32_t record = nic_record_get((uint32_t *)mdl_at(qp->dbrec) + 1);

	if (record >> 16)
		mdl_fatal("QP 0x%x: its send record is 0x%08x. The count has 16 bits, most "
			  "significant byte first; the others are 0.",
			  qp->number, record);
	return record;
}

static bool nic_uar_sees_all(void)
{
	return mdl_self.config.mode != MDL_MODE_POLL;
}

static void nic_uar_check_state(const struct mdl_qp *qp)
{
	static const char *const names[] = { "RESET", "INIT", "RTR" };
	uint32_t state = nic_qp_state(qp);

	if (state <= MDL_QPS_RTR)
		mdl_fatal("QP 0x%x: its doorbell was rung in state %s. Send WQEs may be posted "
			  "from RTS on.",
			  qp->number, names[state]);
}

static void nic_uar_check_record(struct mdl_qp *qp, const struct nic_wqe *last, uint16_t record)
{
	uint16_t end = last->index + last->blocks;

	if (record == (uint16_t)qp->nic_sq_pi && end != record)
		mdl_fatal("QP 0x%x: the doorbell was rung for the WQE in send block %u, but its "
			  "record still is %u. First the record (most significant byte first), "
			  "then a barrier, then the register.",
			  qp->number, last->index, record);
	if (record == (uint16_t)qp->nic_sq_pi)
		mdl_fatal("QP 0x%x: the doorbell was rung a second time for the WQE in send "
			  "block %u; its record is %u as before.",
			  qp->number, last->index, record);
	if (end != record)
		mdl_fatal("QP 0x%x: the record is %u, but the doorbell carries the control "
			  "segment of the WQE in block %u, which ends at %u. A doorbell carries "
			  "the control segment of the last WQE, and the record counts 64-byte "
			  "blocks.",
			  qp->number, record, last->index, end);
}

static void nic_uar_check_reuse(struct mdl_qp *qp, uint16_t record)
{
	uint16_t used = record - nic_qp_priv(qp)->retired;

	if (used > qp->sq_cnt)
		mdl_fatal("QP 0x%x: the record is %u, but completions reach only to block %u and "
			  "the queue has %u blocks: WQEs that may still be needed were "
			  "overwritten. A block is free when a completion of its WQE or of a "
			  "later one was read.",
			  qp->number, record, nic_qp_priv(qp)->retired, qp->sq_cnt);
}

static void nic_uar_check_bytes(struct mdl_qp *qp, const uint8_t *bytes, uint32_t len,
				uint16_t first)
{
	const uint8_t *ring = mdl_at(qp->sq);

	for (uint32_t at = 0; at < len; at += NIC_WQE_BLOCK) {
		uint32_t block = (first + at / NIC_WQE_BLOCK) & (qp->sq_cnt - 1);
		uint32_t part = len - at < NIC_WQE_BLOCK ? len - at : NIC_WQE_BLOCK;

		if (memcmp(ring + (uint64_t)block * NIC_WQE_BLOCK, bytes + at, part) != 0)
			mdl_fatal("QP 0x%x: what was written to the register differs from send "
				  "block %u of the queue. A WQE always stands in the queue too: "
				  "the adapter may read it there.",
				  qp->number, (uint16_t)(first + at / NIC_WQE_BLOCK));
	}
}

/* Finds the last WQE of a BlueFlame copy. The WQEs must fill the copy. */
static void nic_uar_walk(const struct mdl_qp *qp, const uint8_t *bytes, uint32_t len,
			 struct nic_wqe *last)
{
	uint32_t at = 0;

	while (at < len) {
		nic_wqe_ctrl(last, bytes + at);
		if (!last->ds)
			mdl_fatal("QP 0x%x: a BlueFlame copy of %u bytes holds no WQE at byte %u "
				  "(DS is 0).",
				  qp->number, len, at);
		at += last->blocks * NIC_WQE_BLOCK;
		if (last->qpn != qp->number)
			mdl_fatal("QP 0x%x: a BlueFlame copy holds a WQE of QP 0x%x.", qp->number,
				  last->qpn);
	}
	if (at != len)
		mdl_fatal("QP 0x%x: a BlueFlame copy of %u bytes ends inside the WQE of block "
			  "%u, which has %u blocks. Copy whole WQEs, in units of 64 bytes.",
			  qp->number, len, last->index, last->blocks);
}

static void nic_uar_check_register(const struct mdl_qp *qp, uint32_t ctx, uint32_t page,
				   uint32_t off, uint32_t len)
{
	uint32_t in_half = off & (NIC_UAR_HALF - 1);

	if (qp->type == MDL_QPT_DCT)
		mdl_fatal("QP 0x%x: a doorbell was rung for a DC target. It has no send queue; "
			  "post to a DC initiator.",
			  qp->number);
	if (qp->ctx != ctx || qp->uar_page != page)
		mdl_fatal("QP 0x%x: its doorbell was rung on UAR page %u of context %u; the QP "
			  "was created on page %u of context %u.",
			  qp->number, page, ctx, qp->uar_page, qp->ctx);
	if (in_half + len > NIC_UAR_HALF)
		mdl_fatal("QP 0x%x: %u bytes were written to the register half at 0x%x, which "
			  "has %u. A longer WQE is posted by its 8-byte doorbell.",
			  qp->number, len, off - in_half, NIC_UAR_HALF);
	if (in_half)
		mdl_fatal("QP 0x%x: a doorbell was written to 0x%x, which is no start of a "
			  "register half.",
			  qp->number, off);
	if (len > 8 && len % NIC_WQE_BLOCK)
		mdl_fatal("QP 0x%x: a BlueFlame copy has %u bytes. It is made of whole 64-byte "
			  "blocks.",
			  qp->number, len);
}

static void nic_uar_check(struct mdl_qp *qp, const uint8_t *bytes, uint32_t len, uint16_t record)
{
	struct nic_wqe first, last;

	nic_wqe_ctrl(&first, bytes);
	last = first;
	if (len > 8)
		nic_uar_walk(qp, bytes, len, &last);
	nic_uar_check_record(qp, &last, record);
	nic_uar_check_reuse(qp, record);
	nic_uar_check_bytes(qp, bytes, len, first.index);
}

static void nic_uar_count(struct mdl_qp *qp, const uint8_t *bytes, uint32_t len)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);

	nic_count(qp, MDL_CNT_DOORBELLS, 1);
	priv->bf_blocks = 0;
	if (len <= 8)
		return;
	nic_count(qp, MDL_CNT_BF_WRITES, 1);
	nic_count(qp, MDL_CNT_BF_BYTES, len);
	priv->bf_first = nic_be32_get(bytes) >> 8;
	priv->bf_blocks = len / NIC_WQE_BLOCK;
}

/* Extends the queue up to a new value of the record. */
static bool nic_uar_extend(struct mdl_qp *qp, uint16_t record)
{
	uint16_t more = record - (uint16_t)qp->nic_sq_pi;

	if (!more)
		return false;
	qp->nic_sq_pi += more;
	nic_count(qp, MDL_CNT_DBREC_SEND, 1);
	return true;
}

static void nic_uar_late(struct mdl_qp *qp)
{
	nic_qp_priv(qp)->due_ns = mdl_now_ns() + nic_random() % NIC_POLL_LATE_NS;
	__atomic_fetch_or(&qp->nic_stalled, NIC_WAIT_LATE, __ATOMIC_RELEASE);
	krn_service_wake(qp->proc);
}

static void nic_uar_polled(struct mdl_qp *qp)
{
	uint32_t waits = __atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE) & NIC_WAIT_SQ;

	if (nic_qp_state(qp) <= MDL_QPS_RTR || !nic_uar_extend(qp, nic_uar_record(qp)))
		return;
	nic_uar_check_reuse(qp, nic_uar_record(qp));
	if (!waits && (nic_random() & 7) < NIC_POLL_LATE_IN_8)
		nic_uar_late(qp);
	nic_sq_run(qp);
}

static void nic_uar_seen(struct mdl_qp *qp, const uint8_t *bytes, uint32_t len)
{
	uint16_t record = nic_uar_record(qp);

	nic_uar_check_state(qp);
	nic_uar_check(qp, bytes, len, record);
	nic_uar_extend(qp, record);
	nic_sq_run(qp);
}

static void nic_uar_lock(struct mdl_qp *qp)
{
	mdl_lock(&qp->sq_lock);
}

static void nic_uar_doorbell(uint32_t ctx, uint32_t page, uint32_t off, const uint8_t *bytes,
			     uint32_t len)
{
	uint32_t qpn = nic_be32_get(bytes + 4) >> 8;
	struct mdl_qp *qp = mdl_qp_find(qpn);

	if (!qp || !mdl_table_is_own(qp)) {
		if (nic_uar_sees_all())
			mdl_fatal("UAR page %u, offset 0x%x: a doorbell names QP 0x%x, but this "
				  "process has no such QP. A doorbell carries the control "
				  "segment of a WQE.",
				  page, off, qpn);
		return;
	}
	nic_uar_lock(qp);
	if (nic_uar_sees_all())
		nic_uar_check_register(qp, ctx, page, off, len);
	nic_uar_count(qp, bytes, len);
	if (nic_uar_sees_all())
		nic_uar_seen(qp, bytes, len);
	else
		nic_uar_polled(qp);
	mdl_unlock(&qp->sq_lock);
}

void nic_uar_write(uint32_t ctx, uint32_t page, uint32_t off, const void *bytes, uint32_t len)
{
	if (off == NIC_UAR_ARM && len == 8)
		nic_cq_arm(bytes);
	else if (off >= NIC_UAR_REGISTERS && len >= 8)
		nic_uar_doorbell(ctx, page, off, bytes, len);
	else
		mdl_fatal("%u bytes were written to offset 0x%x of UAR page %u. The arm register "
			  "is 8 bytes at 0x20, doorbells begin at 0x800.",
			  len, off, page);
}

/* Without BlueFlame drivers ring any QP by the page's first register. */
static void nic_uar_recheck_qp(struct mdl_qp *qp, const struct nic_register *which)
{
	nic_uar_lock(qp);
	if (mdl_table_is_own(qp) && qp->ctx == which->ctx && qp->uar_page == which->page &&
	    (qp->uar_off == which->off || nic_fault_without_bf()))
		nic_uar_polled(qp);
	mdl_unlock(&qp->sq_lock);
}

void nic_recheck(uint32_t ctx, uint32_t page, uint32_t off)
{
	struct nic_register which = { ctx, page, off };

	if (off == NIC_UAR_ARM)
		nic_own_cqs(nic_cq_recheck);
	else
		nic_own_qps(nic_uar_recheck_qp, &which);
}
