/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * States of a queue pair.
 *
 * RESET discards its work. ERR completes it with flush errors, send and receive WQEs alike,
 * including those posted later: receive WQEs ring no doorbell, so nic_service() checks a QP in
 * error until it leaves that state. SQE (UC, UD) flushes the send queue only. SQD leaves WQEs that
 * were not begun.
 *
 * Flushing waits for room in the CQ instead of overrunning it.
 */
#include "model/nic/nic_qp.h"

#include <string.h>

#include "model/nic/nic_ahead.h"
#include "model/nic/nic_cq.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_own.h"
#include "model/nic/nic_recv.h"
#include "model/nic/nic_rndv.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_stream.h"
#include "model/nic/nic_tm.h"
#include "model/nic/nic_ud.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_VENDOR_FLUSHED = 0xf9,
	NIC_EVENT_SQ_DRAINED = 5,
};

enum nic_transport nic_qp_transport(const struct mdl_qp *qp)
{
	switch (qp->type) {
	case MDL_QPT_UD: return NIC_UD;
	case MDL_QPT_UC: return NIC_UC;
	case MDL_QPT_DCI: return NIC_DC;
	default: return NIC_RC;
	}
}

/* Repairs the state that the last owner of the lock left, if it died. */
static void nic_qp_repair(struct mdl_qp *qp)
{
	if (nic_qp_priv(qp)->taken || nic_qp_priv(qp)->completing)
		nic_recv_repair(qp);
}

void nic_qp_lock_rq(struct mdl_qp *qp)
{
	mdl_lock(&qp->rq_lock);
	nic_qp_repair(qp);
}

static bool nic_qp_flush_send(struct mdl_qp *qp)
{
	struct nic_result result = { .syndrome = NIC_SYN_FLUSH, .vendor = NIC_VENDOR_FLUSHED };
	uint8_t bytes[NIC_WQE_MAX_BYTES + 48];

	while ((uint16_t)(qp->nic_sq_pi - qp->nic_sq_ci)) {
		struct nic_wqe wqe;

		if (!nic_cq_has_room(qp->send_cq))
			return false;
		nic_wqe_copy(bytes, mdl_at(qp->sq), qp->sq_cnt, qp->nic_sq_ci);
		nic_wqe_ctrl(&wqe, bytes);
		if (!wqe.blocks || wqe.blocks > (uint16_t)(qp->nic_sq_pi - qp->nic_sq_ci))
			wqe.blocks = (uint16_t)(qp->nic_sq_pi - qp->nic_sq_ci);
		wqe.index = qp->nic_sq_ci;
		nic_sq_complete(qp, &wqe, &result);
		qp->nic_sq_ci += wqe.blocks;
	}
	return true;
}

/* An error ends all waits of the SQ. */
void nic_qp_flush(struct mdl_qp *qp)
{
	nic_ahead_drop(qp);
	__atomic_fetch_and(&qp->nic_stalled, ~(uint32_t)(NIC_WAIT_SQ | NIC_WAIT_STREAM),
			   __ATOMIC_RELEASE);
	if (nic_stream_flush(qp))
		nic_qp_flush_send(qp);
	if (nic_qp_state(qp) == MDL_QPS_ERR) {
		nic_qp_lock_rq(qp);
		nic_recv_flush(qp);
		nic_tm_cancel(qp);
		nic_qp_priv(qp)->broken = 0;
		mdl_unlock(&qp->rq_lock);
	}
	if (!(__atomic_fetch_or(&qp->nic_stalled, NIC_WAIT_FLUSH, __ATOMIC_RELEASE) &
	      NIC_WAIT_FLUSH))
		krn_service_wake(qp->proc);
}

void nic_qp_break(struct mdl_qp *qp, uint32_t event)
{
	bool sqe = qp->type == MDL_QPT_UD || qp->type == MDL_QPT_UC;
	uint32_t state = sqe ? MDL_QPS_SQE : MDL_QPS_ERR;

	nic_qp_lock_rq(qp);
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
	mdl_unlock(&qp->rq_lock);
	if (event)
		krn_qp_async(qp, event);
	nic_qp_flush(qp);
}

static void nic_qp_forget(struct mdl_qp *qp)
{
	nic_ahead_drop(qp);
	memset(qp->nic_private, 0, sizeof(qp->nic_private));
	qp->nic_sq_ci = qp->nic_sq_pi = qp->nic_rq_ci = 0;
	nic_stream_forget(qp);
	__atomic_store_n(&qp->nic_stalled, 0, __ATOMIC_RELEASE);
}

void nic_qp_modify(struct mdl_qp *qp, uint32_t from, uint32_t to)
{
	nic_qp_repair(qp);
	if (to != MDL_QPS_RESET)
		return;
	nic_tm_cancel(qp);
	nic_qp_forget(qp);
}

void nic_qp_modified(struct mdl_qp *qp)
{
	uint32_t state = nic_qp_state(qp);

	mdl_lock(&qp->sq_lock);
	if (state == MDL_QPS_ERR || state == MDL_QPS_RTS)
		nic_sq_run(qp);
	if (state == MDL_QPS_RESET)
		nic_rndv_drop(qp);
	if (state == MDL_QPS_SQD && qp->en_sqd_async)
		krn_qp_async(qp, NIC_EVENT_SQ_DRAINED);
	mdl_unlock(&qp->sq_lock);
}

int nic_qp_create(struct mdl_qp *qp)
{
	int err = nic_stream_create(qp);

	if (err)
		return err;
	nic_qp_forget(qp);
	nic_own_add_qp(qp);
	return 0;
}

void nic_qp_destroy(struct mdl_qp *qp)
{
	nic_own_remove_qp(qp);
	mdl_lock(&qp->sq_lock);
	nic_ud_late_flush(qp);
	nic_rndv_drop(qp);
	nic_qp_lock_rq(qp);
	nic_tm_cancel(qp);
	__atomic_store_n(&qp->state, MDL_QPS_RESET, __ATOMIC_RELEASE);
	nic_qp_forget(qp);
	nic_stream_destroy(qp);
	mdl_unlock(&qp->rq_lock);
	mdl_unlock(&qp->sq_lock);
}

void nic_attach(void)
{
	nic_stream_attach();
	nic_rndv_attach();
}

/* Does nothing: peers detect the death by their timeouts, as on a real wire. */
void nic_proc_died(uint32_t slot)
{
}
