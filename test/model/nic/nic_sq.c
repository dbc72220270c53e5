/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Execution of a send queue.
 *
 * WQEs from nic_sq_ci to nic_sq_pi are fetched and executed one after the other, each completely. A
 * WQE is done, breaks the QP, or waits (its responder is not ready or does not reply) and is
 * retried by nic_service(). Its figures are counted when it is done. nic_stream.c does this for a
 * DCI with streams.
 *
 * The rules of a send queue are checked here for each WQE: index continuity, QP number, and that
 * the record covers all of it. A process that breaks one ends with a message.
 */
#include "model/nic/nic_sq.h"

#include <string.h>

#include "model/nic/nic_ahead.h"
#include "model/nic/nic_cq.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_dc.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_qp.h"
#include "model/nic/nic_rc.h"
#include "model/nic/nic_rndv.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_stream.h"
#include "model/nic/nic_tm.h"
#include "model/nic/nic_ud.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_VENDOR_RETRY = 0x81,
	NIC_VENDOR_RNR = 0x87,
	NIC_RNR_FOR_EVER = 7,
};

static const uint64_t nic_retry_look_ns = 1000000;
static const uint64_t nic_pause_ns = 20000;

/* Timer codes of RNR NAKs, in units of 10 us. */
static const uint32_t nic_rnr_10us[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static void nic_sq_wait(struct mdl_qp *qp, uint32_t why, uint64_t due_ns)
{
	nic_qp_priv(qp)->due_ns = due_ns;
	__atomic_fetch_or(&qp->nic_stalled, why, __ATOMIC_RELEASE);
	krn_service_wake(qp->proc);
}

void nic_sq_touch(struct mdl_qp *qp, uint32_t cqn)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);

	if (priv->touched_cq && priv->touched_cq != cqn)
		nic_cq_release(priv->touched_cq);
	priv->touched_cq = cqn;
}

static void nic_sq_release(struct mdl_qp *qp)
{
	nic_cq_release(qp->send_cq);
	nic_sq_touch(qp, 0);
}

/* Counts the fetches of a WQE. Blocks that came with a BlueFlame write are not read from memory. */
static uint32_t nic_sq_fetched(const struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	const struct nic_qp_priv *priv = nic_qp_priv((struct mdl_qp *)qp);
	uint16_t off = wqe->index - priv->bf_first;

	return off < priv->bf_blocks ? 0 : wqe->blocks;
}

void nic_sq_account(struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	nic_qp_priv(qp)->wqes++;
	nic_count(qp, MDL_CNT_WQES, 1);
	nic_count(qp, MDL_CNT_WQE_BLOCKS, wqe->blocks);
	nic_count(qp, MDL_CNT_WQE_FETCHES, nic_sq_fetched(qp, wqe));
	nic_count(qp, MDL_CNT_NOPS, wqe->opcode == NIC_OP_NOP);
	nic_count(qp, MDL_CNT_INLINE_BYTES, wqe->inline_len);
}

void nic_sq_complete(struct mdl_qp *qp, const struct nic_wqe *wqe, const struct nic_result *result)
{
	bool error = result->syndrome != NIC_SYN_OK;
	struct nic_cqe cqe = { .op = error ? NIC_CQE_REQ_ERR : NIC_CQE_REQ,
			       .syndrome = result->syndrome,
			       .vendor_syndrome = result->vendor,
			       .wqe_op = wqe->opcode,
			       .wqe_counter = wqe->index,
			       .qpn = qp->number,
			       .user_index = qp->uidx,
			       .byte_cnt = result->byte_cnt,
			       .timestamp = mdl_now_ns(),
			       .scatter_len = result->scatter_len };

	memcpy(cqe.scatter, result->scatter, result->scatter_len);
	nic_qp_priv(qp)->retired = wqe->index + wqe->blocks;
	nic_cq_write(qp, qp->send_cq, &cqe);
}

static void nic_sq_advance(struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	nic_sq_account(qp, wqe);
	nic_qp_priv(qp)->attempts.tried = 0;
	qp->nic_sq_ci += wqe->blocks;
}

/* Checks the WQE at block AT of the queue, counted since creation. */
static void nic_sq_check(const struct mdl_qp *qp, uint32_t at, const struct nic_wqe *wqe)
{
	uint32_t left = qp->nic_sq_pi - at;

	if (wqe->ds == 0)
		mdl_fatal("QP 0x%x, send block %u: DS is 0. Either the WQE was not written "
			  "before its doorbell record, or the record counts blocks that hold no "
			  "WQE.",
			  qp->number, at & 0xffff);
	if (wqe->index != (at & 0xffff))
		mdl_fatal("QP 0x%x: the WQE in send block %u has index %u. Its control segment "
			  "holds the 16-bit count of blocks posted before it; a WQE of more than "
			  "64 bytes counts all of its blocks.",
			  qp->number, at & 0xffff, wqe->index);
	if (wqe->qpn != qp->number)
		mdl_fatal("QP 0x%x: the WQE in send block %u names QP 0x%x in its control segment.",
			  qp->number, wqe->index, wqe->qpn);
	if (wqe->blocks > left)
		mdl_fatal("QP 0x%x: the WQE in send block %u has %u blocks, but the doorbell "
			  "record ends after %u. The record counts 64-byte blocks, not WQEs.",
			  qp->number, wqe->index, wqe->blocks, left);
}

static void nic_sq_fail(struct mdl_qp *qp, const struct nic_wqe *wqe, struct nic_result *result)
{
	nic_dc_failed(qp, wqe);
	nic_sq_complete(qp, wqe, result);
	nic_sq_advance(qp, wqe);
	nic_qp_break(qp, 0);
}

static bool nic_sq_not_ready(const struct mdl_qp *qp, struct nic_attempts *attempts,
			     struct nic_result *result, uint64_t *due_ns)
{
	if (qp->rnr_retry != NIC_RNR_FOR_EVER && attempts->rnr_left == 0) {
		result->syndrome = NIC_SYN_RNR_EXCEEDED;
		result->vendor = NIC_VENDOR_RNR;
		return false;
	}
	attempts->rnr_left--;
	*due_ns = mdl_now_ns() + nic_rnr_10us[result->rnr_timer & 31] * 10000ull;
	return true;
}

/* Waits for the last timeout. Single retries are not modelled, only the time at which they end. */
static bool nic_sq_lost(const struct mdl_qp *qp, struct nic_attempts *attempts,
			struct nic_result *result, uint64_t *due_ns)
{
	uint64_t timeout = qp->timeout ? 4096ull << (qp->timeout & 31) : 0;
	uint64_t now = mdl_now_ns();

	if (timeout && !attempts->deadline_ns)
		attempts->deadline_ns = now + timeout * (qp->retry_cnt + 1);
	if (timeout && now >= attempts->deadline_ns) {
		result->syndrome = NIC_SYN_RETRY_EXCEEDED;
		result->vendor = NIC_VENDOR_RETRY;
		return false;
	}
	*due_ns = now + nic_retry_look_ns;
	return true;
}

bool nic_sq_retry(const struct mdl_qp *qp, struct nic_attempts *attempts, enum nic_outcome outcome,
		  struct nic_result *result, uint64_t *due_ns)
{
	return outcome == NIC_RNR ? nic_sq_not_ready(qp, attempts, result, due_ns)
				  : nic_sq_lost(qp, attempts, result, due_ns);
}

static void nic_sq_again(struct mdl_qp *qp, const struct nic_wqe *wqe, enum nic_outcome outcome,
			 struct nic_result *result)
{
	uint64_t due_ns;

	if (nic_sq_retry(qp, &nic_qp_priv(qp)->attempts, outcome, result, &due_ns))
		nic_sq_wait(qp, outcome == NIC_RNR ? NIC_WAIT_RNR : NIC_WAIT_RETRY, due_ns);
	else
		nic_sq_fail(qp, wqe, result);
}

enum nic_outcome nic_sq_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result)
{
	if (wqe->opcode == NIC_OP_NOP)
		return NIC_DONE;
	if (nic_fault_breaks(qp, nic_qp_priv(qp)->wqes)) {
		result->syndrome = NIC_SYN_LOCAL_QP_OP;
		return NIC_FAILED;
	}
	if (wqe->opcode == NIC_OP_TAG_MATCHING) {
		nic_tm_execute(qp, wqe);
		return NIC_DONE;
	}
	return qp->type == MDL_QPT_UD ? nic_ud_execute(qp, wqe, result)
				      : nic_rc_execute(qp, wqe, result);
}

void nic_sq_begin(const struct mdl_qp *qp, struct nic_attempts *attempts)
{
	if (attempts->tried)
		return;
	attempts->tried = 1;
	attempts->rnr_left = qp->rnr_retry;
	attempts->deadline_ns = 0;
}

void nic_sq_decode(struct mdl_qp *qp, uint32_t at, uint8_t *bytes, struct nic_wqe *wqe)
{
	const char *wrong;

	nic_wqe_copy(bytes, mdl_at(qp->sq), qp->sq_cnt, at);
	nic_wqe_ctrl(wqe, bytes);
	nic_sq_check(qp, at, wqe);
	wrong = nic_wqe_decode(wqe, bytes, nic_qp_transport(qp));
	if (wrong)
		mdl_fatal("QP 0x%x: the WQE in send block %u (opcode 0x%02x %s, %u segments): %s.",
			  qp->number, wqe->index, wqe->opcode, nic_wqe_name(wqe->opcode), wqe->ds,
			  wrong);
}

/* Gathers the payload of the WQE behind this READ, if there is one, as a missing fence permits. */
static void nic_sq_look_ahead(struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	uint8_t bytes[NIC_SQ_BYTES];
	uint32_t at = qp->nic_sq_ci + wqe->blocks;
	struct nic_wqe next;

	if (at == qp->nic_sq_pi || !nic_ahead_wanted(wqe))
		return;
	nic_sq_decode(qp, at, bytes, &next);
	nic_ahead_take(qp, &next);
}

static void nic_sq_one(struct mdl_qp *qp)
{
	uint8_t bytes[NIC_SQ_BYTES];
	struct nic_result result = { 0 };
	enum nic_outcome outcome;
	struct nic_wqe wqe;
	bool gathered;

	nic_sq_decode(qp, qp->nic_sq_ci, bytes, &wqe);
	nic_sq_begin(qp, &nic_qp_priv(qp)->attempts);
	nic_sq_look_ahead(qp, &wqe);
	gathered = nic_ahead_use(qp, &wqe);
	outcome = nic_sq_execute(qp, &wqe, &result);
	if (gathered)
		nic_ahead_drop(qp);
	switch (outcome) {
	case NIC_DONE:
		if (wqe.signalled)
			nic_sq_complete(qp, &wqe, &result);
		nic_sq_advance(qp, &wqe);
		break;
	case NIC_FAILED: nic_sq_fail(qp, &wqe, &result); break;
	case NIC_RNR:
	case NIC_LOST: nic_sq_again(qp, &wqe, outcome, &result); break;
	}
}

/*
 * Suspends a queue in the middle of a list now and then in poll mode, as an adapter that serves
 * other queues does.
 */
static void nic_sq_pause(struct mdl_qp *qp)
{
	if (mdl_self.config.mode == MDL_MODE_POLL && (nic_random() & 31) == 0)
		nic_sq_wait(qp, NIC_WAIT_LATE, mdl_now_ns() + nic_random() % nic_pause_ns);
}

/* Executes one WQE after the other, as all queues but those with streams do. */
static void nic_sq_run_in_order(struct mdl_qp *qp)
{
	while ((uint16_t)(qp->nic_sq_pi - qp->nic_sq_ci) && !nic_qp_has_failed(qp) &&
	       !(__atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE) & NIC_WAIT_SQ) &&
	       nic_qp_state(qp) == MDL_QPS_RTS) {
		nic_sq_one(qp);
		nic_sq_pause(qp);
	}
}

void nic_sq_run(struct mdl_qp *qp)
{
	if (!nic_stream_run(qp))
		nic_sq_run_in_order(qp);
	nic_rndv_run(qp);
	if (nic_qp_state(qp) == MDL_QPS_ERR || nic_qp_state(qp) == MDL_QPS_SQE)
		nic_qp_flush(qp);
	nic_sq_release(qp);
}
