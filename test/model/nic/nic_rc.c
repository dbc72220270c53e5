/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Execution of a WQE of a connected queue pair or of a DC initiator.
 *
 * The requester's side is checked, the responder is found and locked, its side is checked, bytes
 * are copied, then the completion is written. A refused operation has no effect. RC reports the
 * responder's error and both ends break; UC drops the message and continues.
 *
 * A responder that is not ready (RNR) is detected before bytes are written, also for WRITE_IMM.
 */
#include "model/nic/nic_rc.h"

#include <errno.h>
#include <string.h>

#include "model/nic/nic_cqe.h"
#include "model/nic/nic_dc.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_mem.h"
#include "model/nic/nic_peer.h"
#include "model/nic/nic_recv.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm_recv.h"
#include "model/nic/nic_ud.h"
#include "model/nic/nic_wire.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_EVENT_QP_REQ_ERR = 2,
	NIC_EVENT_QP_ACCESS_ERR = 3,
	NIC_FLAG_SCATTER_CQE = 1 << 1, /* flag of CREATE_QP */
	NIC_FLAG_ALLOW_SCATTER_CQE = 1 << 8,
	NIC_VENDOR_LOCAL_PROT = 0x52,
	NIC_VENDOR_LENGTH = 0x68,
	NIC_VENDOR_QP_OP = 0x6b,
	NIC_VENDOR_ACCESS = 0x88,
	NIC_VENDOR_REMOTE_OP = 0x89,
	NIC_VENDOR_INVALID = 0x8a,
};

static const uint64_t nic_max_message = 1ull << 31;

static enum nic_outcome nic_rc_fail(struct nic_result *result, uint8_t syndrome, uint8_t vendor)
{
	result->syndrome = syndrome;
	result->vendor = vendor;
	return NIC_FAILED;
}

enum nic_outcome nic_rc_refuse(struct mdl_qp *peer, struct nic_result *result, uint8_t syndrome,
			       uint8_t vendor, uint32_t event)
{
	if (peer->type == MDL_QPT_UC) {
		nic_count(peer, MDL_CNT_DROPPED, 1);
		return NIC_DONE;
	}
	if (peer->type != MDL_QPT_DCT)
		nic_peer_break(peer, event);
	return nic_rc_fail(result, syndrome, vendor);
}

/* Handles a failed copy: the owner of the memory died, or unmapped it after registration. */
enum nic_outcome nic_rc_copy_failed(struct mdl_qp *peer, struct nic_result *result, int rc)
{
	nic_recv_repair(peer);
	if (rc == -ESRCH)
		return NIC_LOST;
	return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_OP, NIC_VENDOR_REMOTE_OP,
			     NIC_EVENT_QP_REQ_ERR);
}

enum nic_outcome nic_rc_not_ready(struct mdl_qp *peer, struct nic_result *result)
{
	if (peer->type == MDL_QPT_UC) {
		nic_count(peer, MDL_CNT_DROPPED, 1);
		return NIC_DONE;
	}
	nic_count(peer, MDL_CNT_RNR_NAKS, 1);
	result->rnr_timer = peer->min_rnr_timer;
	return NIC_RNR;
}

static uint32_t nic_rc_cqe_room(uint32_t cqn)
{
	const struct mdl_cq *cq = mdl_cq_find(cqn);

	return cq && cq->cqe_size == 128 ? 64 : 32;
}

/* Handles a failed receive: the receiver and the sender get different errors. */
static enum nic_outcome nic_rc_bad_receive(struct mdl_qp *peer, const struct nic_taken *taken,
					   struct nic_result *result, uint8_t syndrome,
					   uint8_t vendor, uint8_t sender_syndrome)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_ERR,
			       .syndrome = syndrome,
			       .vendor_syndrome = vendor };

	nic_recv_complete(peer, taken, &cqe);
	return nic_rc_refuse(peer, result, sender_syndrome, vendor, NIC_EVENT_QP_REQ_ERR);
}

bool nic_rc_fits_cqe(const struct mdl_qp *peer, uint64_t len)
{
	return len && (peer->flags & NIC_FLAG_SCATTER_CQE) && len <= nic_rc_cqe_room(peer->recv_cq);
}

static void nic_rc_count_gather(struct mdl_qp *qp, const struct nic_spans *from)
{
	for (uint32_t i = 0; i < from->cnt; i++) {
		if (!from->span[i].mr)
			continue;
		nic_count(qp, MDL_CNT_PAYLOAD_READS, 1);
		nic_count(qp, MDL_CNT_PAYLOAD_READ_BYTES, from->span[i].len);
	}
}

int nic_rc_fill(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_spans *to,
		const struct nic_spans *from, uint64_t len)
{
	uint32_t writes = 0;
	int rc = nic_mem_copy(to, from, len, &writes);

	if (rc)
		return rc;
	nic_rc_count_gather(qp, from);
	nic_count(peer, MDL_CNT_PAYLOAD_WRITES, writes);
	nic_count(peer, MDL_CNT_PAYLOAD_WRITE_BYTES, len);
	return 0;
}

int nic_rc_fill_cqe(struct mdl_qp *qp, const struct nic_spans *from, uint64_t len,
		    struct nic_cqe *cqe)
{
	struct nic_spans to = { .cnt = 1, .span[0] = { .bytes = cqe->scatter, .len = len } };
	uint32_t writes = 0;
	int rc = nic_mem_copy(&to, from, len, &writes);

	cqe->scatter_len = len;
	nic_rc_count_gather(qp, from);
	return rc;
}

/* Reads the index from the WQE of a DCI, which has an address vector. */
int nic_rc_sgid(const struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	if (qp->type == MDL_QPT_DCI)
		return wqe->av.grh || mdl_self.seg->link == MDL_LINK_ROCE ? wqe->av.sgid_index : -1;
	return qp->path.is_global ? qp->path.sgid_index : -1;
}

/* Fills in the source that the receiver of a DC message finds in its CQE. */
static void nic_rc_source(struct nic_cqe *cqe, const struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	if (qp->type == MDL_QPT_DCI)
		nic_ud_source(cqe, qp, &wqe->av);
}

enum nic_outcome nic_rc_deliver(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
				const struct nic_spans *from, const struct nic_taken *taken,
				struct nic_result *result)
{
	bool imm = wqe->opcode == NIC_OP_SEND_IMM;
	struct nic_cqe cqe = { .op = imm ? NIC_CQE_RESP_SEND_IMM : NIC_CQE_RESP_SEND,
			       .solicited = wqe->solicited,
			       .imm = imm ? wqe->imm : 0,
			       .byte_cnt = wqe->len };
	struct nic_spans to;
	int rc;

	if (wqe->len > taken->rwqe.len)
		return nic_rc_bad_receive(peer, taken, result, NIC_SYN_LOCAL_LENGTH,
					  NIC_VENDOR_LENGTH, NIC_SYN_REMOTE_INVALID);
	if (nic_rc_fits_cqe(peer, wqe->len)) {
		rc = nic_rc_fill_cqe(qp, from, wqe->len, &cqe);
	} else {
		if (!nic_mem_scatter(peer, &taken->rwqe, 0, wqe->len, &to))
			return nic_rc_bad_receive(peer, taken, result, NIC_SYN_LOCAL_PROT,
						  NIC_VENDOR_LOCAL_PROT, NIC_SYN_REMOTE_OP);
		rc = nic_rc_fill(qp, peer, &to, from, wqe->len);
	}
	if (rc)
		return nic_rc_copy_failed(peer, result, rc);
	nic_wire_count(qp, peer, NIC_WIRE_SEND, wqe->len, imm, nic_rc_sgid(qp, wqe));
	nic_rc_source(&cqe, qp, wqe);
	nic_recv_complete(peer, taken, &cqe);
	return NIC_DONE;
}

enum nic_outcome nic_rc_send(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
			     const struct nic_spans *from, struct nic_result *result)
{
	struct nic_taken taken;

	if (nic_fault_rnr(peer))
		return nic_rc_not_ready(peer, result);
	if (peer->tagged)
		return nic_tm_send(qp, peer, wqe, from, result);
	if (nic_recv_take(peer, &taken) == NIC_NONE)
		return nic_rc_not_ready(peer, result);
	return nic_rc_deliver(qp, peer, wqe, from, &taken, result);
}

/* Returns the region of the remote range, or null if access is refused. */
static const struct mdl_mr *nic_rc_remote(const struct mdl_qp *peer, const struct nic_wqe *wqe,
					  uint64_t len, uint32_t access)
{
	if (!(peer->access & access))
		return NULL;
	return nic_mem_find(wqe->rkey, peer->proc, peer->pd, wqe->raddr, len, access);
}

static enum nic_outcome nic_rc_no_access(struct mdl_qp *peer, struct nic_result *result)
{
	return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_ACCESS, NIC_VENDOR_ACCESS,
			     NIC_EVENT_QP_ACCESS_ERR);
}

static enum nic_outcome nic_rc_write(struct mdl_qp *qp, struct mdl_qp *peer,
				     const struct nic_wqe *wqe, const struct nic_spans *from,
				     struct nic_result *result)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_WRITE_IMM,
			       .solicited = wqe->solicited,
			       .imm = wqe->imm,
			       .byte_cnt = wqe->len };
	struct nic_spans to = { .cnt = 1, .span[0] = { .addr = wqe->raddr, .len = wqe->len } };
	bool imm = wqe->opcode == NIC_OP_WRITE_IMM;
	struct nic_taken taken;
	int rc;

	if (wqe->len) {
		to.span[0].mr = nic_rc_remote(peer, wqe, wqe->len, MDL_ACCESS_REMOTE_WRITE);
		if (!to.span[0].mr)
			return nic_rc_no_access(peer, result);
	}
	if (imm && (nic_fault_rnr(peer) || nic_recv_take(peer, &taken) == NIC_NONE))
		return nic_rc_not_ready(peer, result);
	rc = wqe->len ? nic_rc_fill(qp, peer, &to, from, wqe->len) : 0;
	if (rc)
		return nic_rc_copy_failed(peer, result, rc);
	nic_wire_count(qp, peer, NIC_WIRE_WRITE, wqe->len, imm, nic_rc_sgid(qp, wqe));
	if (imm) {
		nic_rc_source(&cqe, qp, wqe);
		nic_recv_complete(peer, &taken, &cqe);
	}
	return NIC_DONE;
}

/*
 * Selects the target of the response of a READ or an atomic operation: memory, or the CQE if the QP
 * requires that.
 */
static bool nic_rc_response_in_cqe(const struct mdl_qp *qp, const struct nic_wqe *wqe)
{
	uint32_t flags = NIC_FLAG_SCATTER_CQE | NIC_FLAG_ALLOW_SCATTER_CQE;

	return wqe->signalled && wqe->len && (qp->flags & flags) == flags &&
	       wqe->len <= nic_rc_cqe_room(qp->send_cq);
}

static int nic_rc_put_response(struct mdl_qp *qp, const struct nic_wqe *wqe,
			       const struct nic_spans *to, const struct nic_spans *from,
			       struct nic_result *result)
{
	struct nic_spans cqe = { .cnt = 1,
				 .span[0] = { .bytes = result->scatter, .len = wqe->len } };
	bool in_cqe = nic_rc_response_in_cqe(qp, wqe);
	uint32_t writes = 0;
	int rc = nic_mem_copy(in_cqe ? &cqe : to, from, wqe->len, &writes);

	if (rc)
		return rc;
	result->byte_cnt = wqe->len;
	if (in_cqe) {
		result->scatter_len = wqe->len;
		return 0;
	}
	nic_count(qp, MDL_CNT_PAYLOAD_WRITES, writes);
	nic_count(qp, MDL_CNT_PAYLOAD_WRITE_BYTES, wqe->len);
	return 0;
}

static enum nic_outcome nic_rc_read(struct mdl_qp *qp, struct mdl_qp *peer,
				    const struct nic_wqe *wqe, const struct nic_spans *to,
				    struct nic_result *result)
{
	struct nic_spans from = { .cnt = 1, .span[0] = { .addr = wqe->raddr, .len = wqe->len } };
	int rc;

	if (!peer->max_dest_rd_atomic)
		return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_INVALID, NIC_VENDOR_INVALID,
				     NIC_EVENT_QP_REQ_ERR);
	if (wqe->len) {
		from.span[0].mr = nic_rc_remote(peer, wqe, wqe->len, MDL_ACCESS_REMOTE_READ);
		if (!from.span[0].mr)
			return nic_rc_no_access(peer, result);
	}
	rc = wqe->len ? nic_rc_put_response(qp, wqe, to, &from, result) : 0;
	if (rc)
		return nic_rc_copy_failed(peer, result, rc);
	nic_count(peer, MDL_CNT_PAYLOAD_READS, wqe->len != 0);
	nic_count(peer, MDL_CNT_PAYLOAD_READ_BYTES, wqe->len);
	nic_wire_count(qp, peer, NIC_WIRE_READ, wqe->len, false, nic_rc_sgid(qp, wqe));
	return NIC_DONE;
}

static enum nic_outcome nic_rc_atomic(struct mdl_qp *qp, struct mdl_qp *peer,
				      const struct nic_wqe *wqe, const struct nic_spans *to,
				      struct nic_result *result)
{
	const struct mdl_mr *mr = nic_rc_remote(peer, wqe, 8, MDL_ACCESS_REMOTE_ATOMIC);
	uint64_t old = 0;
	struct nic_spans from = { .cnt = 1,
				  .span[0] = { .bytes = (uint8_t *)&old, .len = sizeof(old) } };
	int rc;

	if (!peer->max_dest_rd_atomic || wqe->raddr & 7)
		return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_INVALID, NIC_VENDOR_INVALID,
				     NIC_EVENT_QP_REQ_ERR);
	if (!mr)
		return nic_rc_no_access(peer, result);
	rc = nic_mem_atomic(mr, wqe, &old);
	if (!rc)
		rc = nic_rc_put_response(qp, wqe, to, &from, result);
	if (rc)
		return nic_rc_copy_failed(peer, result, rc);
	nic_count(peer, MDL_CNT_PAYLOAD_READS, 1);
	nic_count(peer, MDL_CNT_PAYLOAD_READ_BYTES, 8);
	nic_wire_count(qp, peer, NIC_WIRE_ATOMIC, 8, false, nic_rc_sgid(qp, wqe));
	return NIC_DONE;
}

static enum nic_outcome nic_rc_respond(struct mdl_qp *qp, struct mdl_qp *peer,
				       const struct nic_wqe *wqe, const struct nic_spans *local,
				       struct nic_result *result)
{
	uint32_t mtu = nic_wire_mtu(peer);

	if (wqe->len > mtu && nic_wire_mtu(qp) > mtu)
		return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_INVALID, NIC_VENDOR_INVALID,
				     NIC_EVENT_QP_REQ_ERR);
	switch (wqe->opcode) {
	case NIC_OP_SEND:
	case NIC_OP_SEND_IMM: return nic_rc_send(qp, peer, wqe, local, result);
	case NIC_OP_WRITE:
	case NIC_OP_WRITE_IMM: return nic_rc_write(qp, peer, wqe, local, result);
	case NIC_OP_READ: return nic_rc_read(qp, peer, wqe, local, result);
	case NIC_OP_CAS:
	case NIC_OP_FETCH_ADD: return nic_rc_atomic(qp, peer, wqe, local, result);
	default: /* SEND_INVAL: the model has no region that can be invalidated */
		return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_INVALID, NIC_VENDOR_INVALID,
				     NIC_EVENT_QP_REQ_ERR);
	}
}

static bool nic_rc_is_fetch(uint8_t opcode)
{
	return opcode == NIC_OP_READ || opcode == NIC_OP_CAS || opcode == NIC_OP_FETCH_ADD;
}

enum nic_outcome nic_rc_execute(struct mdl_qp *qp, const struct nic_wqe *wqe,
				struct nic_result *result)
{
	bool fetch = nic_rc_is_fetch(wqe->opcode);
	enum nic_outcome outcome;
	struct nic_spans local;
	struct mdl_qp *peer;

	if (wqe->len > nic_max_message)
		return nic_rc_fail(result, NIC_SYN_LOCAL_LENGTH, NIC_VENDOR_LENGTH);
	if (fetch && !qp->max_rd_atomic)
		return nic_rc_fail(result, NIC_SYN_LOCAL_QP_OP, NIC_VENDOR_QP_OP);
	if (!nic_mem_pieces(qp, wqe, fetch ? MDL_ACCESS_LOCAL_WRITE : 0, &local))
		return nic_rc_fail(result, NIC_SYN_LOCAL_PROT, NIC_VENDOR_LOCAL_PROT);
	peer = qp->type == MDL_QPT_DCI ? nic_dc_lock(qp, wqe) : nic_peer_lock(qp);
	if (peer) {
		outcome = nic_dc_admits(peer, wqe) ? nic_rc_respond(qp, peer, wqe, &local, result)
						   : nic_rc_no_access(peer, result);
		nic_sq_touch(qp, peer->recv_cq);
		nic_peer_unlock(peer);
		return outcome;
	}
	if (qp->type != MDL_QPT_UC)
		return NIC_LOST;
	nic_wire_count(qp, NULL, NIC_WIRE_SEND, wqe->len, false, nic_rc_sgid(qp, wqe));
	nic_count(qp, MDL_CNT_DROPPED, 1);
	return NIC_DONE;
}
