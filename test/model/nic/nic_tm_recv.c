/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery of a SEND to a queue pair that receives from an XRQ. Called by nic_rc.c.
 *
 * The message begins with a header: an opcode and, unless that says "no tag" or "finished", a tag.
 * The oldest active entry of the list that matches gets what follows the header, in one completion
 * if the message is one packet, otherwise in two: the match, and the data. A request for a
 * rendezvous is matched here and finished by nic_rndv.c; one that is longer than the entry's buffer
 * is left to software, with the headers in that buffer. All else takes a WQE of the XRQ, headers
 * included.
 *
 * Adapters do not publish what follows a message that is too long for its entry, or a buffer that
 * may not be written. The model reports the entry as canceled and ends the connection as RC does.
 */
#include "model/nic/nic_tm_recv.h"

#include <string.h>

#include "model/nic/nic_be.h"
#include "model/nic/nic_cq.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_mem.h"
#include "model/nic/nic_rc.h"
#include "model/nic/nic_recv.h"
#include "model/nic/nic_rndv.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm.h"
#include "model/nic/nic_wire.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_XRQ_MIN = 33, /* WQEs that an XRQ needs before it delivers anything */
	NIC_TM_EVENT_REQ_ERR = 2,
	NIC_TM_VENDOR_HEADER = 0x8b,
	NIC_TM_VENDOR_LENGTH = 0x68,
};

/* Message under delivery. */
struct nic_tm_job {
	struct mdl_qp *qp, *peer;
	struct mdl_srq *srq;
	const struct nic_wqe *wqe;
	const struct nic_spans *from;
	struct nic_tm_msg msg;
	struct nic_result *result;
};

static int nic_tm_peek(struct nic_tm_job *job)
{
	struct nic_tm_msg *msg = &job->msg;
	struct nic_spans to = { .cnt = 1, .span[0] = { .bytes = msg->head } };
	uint32_t writes = 0;

	memset(msg, 0, sizeof(*msg));
	msg->head_len =
		job->wqe->len < sizeof(msg->head) ? (uint32_t)job->wqe->len : sizeof(msg->head);
	to.span[0].len = msg->head_len;
	return nic_mem_copy(&to, job->from, msg->head_len, &writes);
}

/* Decodes the headers. Returns false if the message is none that tag matching knows. */
static bool nic_tm_decode(struct nic_tm_msg *msg, uint64_t len)
{
	msg->op = msg->head[0];
	if (msg->op == NIC_TMH_NO_TAG || msg->op == NIC_TMH_FIN)
		return true;
	if (len < NIC_TMH_BYTES || msg->op > NIC_TMH_EAGER)
		return false;
	memcpy(&msg->tag, msg->head + 8, sizeof(msg->tag));
	if (msg->op == NIC_TMH_EAGER)
		return true;
	msg->va = nic_be64_get(msg->head + NIC_TMH_BYTES);
	msg->rkey = nic_be32_get(msg->head + NIC_TMH_BYTES + 8);
	msg->len = nic_be32_get(msg->head + NIC_TMH_BYTES + 12);
	return len >= NIC_TMH_BYTES + NIC_RVH_BYTES && len <= MDL_TM_REQUEST_MAX;
}

static bool nic_tm_is_match(uint8_t app_op)
{
	return app_op == NIC_APP_CONSUMED || app_op == NIC_APP_CONSUMED_MSG ||
	       app_op == NIC_APP_CONSUMED_RNDV;
}

void nic_tm_complete(struct mdl_qp *peer, const struct mdl_srq *srq, uint32_t entry,
		     struct nic_cqe *cqe)
{
	cqe->app_info = entry;
	cqe->qpn = peer->number;
	cqe->user_index = srq->uidx;
	cqe->timestamp = mdl_now_ns();
	nic_count(peer, MDL_CNT_TM_MATCHES, nic_tm_is_match(cqe->app_op));
	nic_cq_write(peer, srq->cq, cqe);
}

/* Prepares the completion that reports the end of a message. */
static struct nic_cqe nic_tm_cqe(const struct nic_tm_job *job, uint8_t app_op, uint32_t byte_cnt)
{
	bool imm = job->wqe->opcode == NIC_OP_SEND_IMM;
	struct nic_cqe cqe = { .op = imm ? NIC_CQE_RESP_SEND_IMM : NIC_CQE_RESP_SEND,
			       .app_op = app_op,
			       .solicited = job->wqe->solicited,
			       .imm = imm ? job->wqe->imm : 0,
			       .byte_cnt = byte_cnt };

	if (nic_tm_is_match(app_op))
		memcpy(cqe.head, job->msg.head, sizeof(cqe.head));
	return cqe;
}

/* Reports a match whose data follow. */
static void nic_tm_consumed(const struct nic_tm_job *job, uint32_t entry)
{
	struct nic_cqe cqe = { .op = NIC_CQE_NO_PACKET, .app_op = NIC_APP_CONSUMED };

	memcpy(cqe.head, job->msg.head, sizeof(cqe.head));
	nic_tm_complete(job->peer, job->srq, entry, &cqe);
}

static void nic_tm_canceled(const struct nic_tm_job *job, uint32_t entry)
{
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND, .app_op = NIC_APP_CANCELED };

	nic_tm_complete(job->peer, job->srq, entry, &cqe);
}

/* Ends a message that its entry cannot hold. */
static enum nic_outcome nic_tm_misfit(const struct nic_tm_job *job, uint32_t entry)
{
	nic_tm_canceled(job, entry);
	return nic_rc_refuse(job->peer, job->result, NIC_SYN_REMOTE_INVALID, NIC_TM_VENDOR_LENGTH,
			     NIC_TM_EVENT_REQ_ERR);
}

/* Resolves the first LEN bytes of an entry's buffer. */
static bool nic_tm_buffer(const struct nic_tm_job *job, uint32_t entry, uint64_t len,
			  struct nic_spans *to)
{
	const struct nic_tag *tag = nic_tm_tag(job->srq, entry);

	to->cnt = len != 0;
	if (!len)
		return true;
	if (len > tag->len)
		return false;
	to->span[0] = (struct nic_span){ .addr = tag->addr, .len = len };
	to->span[0].mr = nic_mem_find(tag->lkey, job->srq->proc, job->srq->pd, tag->addr, len,
				      MDL_ACCESS_LOCAL_WRITE);
	return to->span[0].mr;
}

/* Copies a list without its first SKIP bytes. */
static void nic_tm_skip(struct nic_spans *to, const struct nic_spans *from, uint64_t skip)
{
	to->cnt = 0;
	for (uint32_t i = 0; i < from->cnt; i++) {
		struct nic_span span = from->span[i];
		uint64_t off = skip < span.len ? skip : span.len;

		skip -= off;
		span.addr += off;
		span.len -= off;
		if (span.bytes)
			span.bytes += off;
		if (span.len)
			to->span[to->cnt++] = span;
	}
}

/* Returns whether matched data go into the CQE, which only one of 128 bytes can take. */
static bool nic_tm_fits_cqe(const struct nic_tm_job *job, uint64_t len)
{
	const struct mdl_cq *cq = mdl_cq_find(job->srq->cq);

	return cq && cq->cqe_size == 128 && nic_rc_fits_cqe(job->peer, len);
}

static enum nic_outcome nic_tm_eager(const struct nic_tm_job *job, uint32_t entry)
{
	bool one = nic_wire_packets(job->wqe->len, nic_wire_mtu(job->qp)) == 1;
	uint64_t len = job->wqe->len - NIC_TMH_BYTES;
	uint8_t app_op = one ? NIC_APP_CONSUMED_MSG : NIC_APP_EXPECTED;
	struct nic_cqe cqe = nic_tm_cqe(job, app_op, (uint32_t)len);
	struct nic_spans payload, to;
	int rc;

	nic_tm_skip(&payload, job->from, NIC_TMH_BYTES);
	if (!nic_tm_buffer(job, entry, len, &to))
		return nic_tm_misfit(job, entry);
	if (!one)
		nic_tm_consumed(job, entry);
	rc = nic_tm_fits_cqe(job, len) ? nic_rc_fill_cqe(job->qp, &payload, len, &cqe)
				       : nic_rc_fill(job->qp, job->peer, &to, &payload, len);
	if (rc) {
		nic_tm_canceled(job, entry);
		return nic_rc_copy_failed(job->peer, job->result, rc);
	}
	nic_wire_count(job->qp, job->peer, NIC_WIRE_SEND, job->wqe->len,
		       job->wqe->opcode == NIC_OP_SEND_IMM, nic_rc_sgid(job->qp, job->wqe));
	nic_tm_complete(job->peer, job->srq, entry, &cqe);
	return NIC_DONE;
}

/* Leaves a matched request to software: its headers go into the buffer, as far as they fit. */
static enum nic_outcome nic_tm_too_long(const struct nic_tm_job *job, uint32_t entry)
{
	uint32_t room = nic_tm_tag(job->srq, entry)->len;
	uint32_t len = job->wqe->len < room ? (uint32_t)job->wqe->len : room;
	struct nic_cqe cqe = nic_tm_cqe(job, NIC_APP_CONSUMED_RNDV, len);
	struct nic_spans to;
	int rc;

	if (!nic_tm_buffer(job, entry, len, &to))
		return nic_tm_misfit(job, entry);
	rc = nic_rc_fill(job->qp, job->peer, &to, job->from, len);
	if (rc)
		return nic_rc_copy_failed(job->peer, job->result, rc);
	nic_tm_complete(job->peer, job->srq, entry, &cqe);
	return NIC_DONE;
}

static enum nic_outcome nic_tm_rndv(const struct nic_tm_job *job, uint32_t entry)
{
	struct nic_rndv *rndv;
	enum nic_outcome outcome;

	if (job->msg.len > nic_tm_tag(job->srq, entry)->len) {
		outcome = nic_tm_too_long(job, entry);
	} else {
		rndv = nic_rndv_claim(job->qp);
		if (!rndv)
			return nic_rc_not_ready(job->peer, job->result);
		nic_tm_consumed(job, entry);
		nic_rndv_begin(rndv, job->qp, job->peer, entry, &job->msg);
		outcome = NIC_DONE;
	}
	if (outcome == NIC_DONE)
		nic_wire_count(job->qp, job->peer, NIC_WIRE_SEND, job->wqe->len,
			       job->wqe->opcode == NIC_OP_SEND_IMM, nic_rc_sgid(job->qp, job->wqe));
	return outcome;
}

/* Delivers the whole message to a WQE of the XRQ. */
static enum nic_outcome nic_tm_unmatched(const struct nic_tm_job *job, bool tagged)
{
	enum nic_outcome outcome;
	struct nic_taken taken;

	if (nic_recv_take(job->peer, &taken) == NIC_NONE)
		return nic_rc_not_ready(job->peer, job->result);
	taken.app_op = tagged ? NIC_APP_UNEXPECTED : NIC_APP_NO_TAG;
	outcome = nic_rc_deliver(job->qp, job->peer, job->wqe, job->from, &taken, job->result);
	nic_count(job->peer, MDL_CNT_TM_UNEXPECTED, tagged && outcome == NIC_DONE);
	return outcome;
}

static enum nic_outcome nic_tm_decide(const struct nic_tm_job *job)
{
	bool tagged = job->msg.op == NIC_TMH_EAGER || job->msg.op == NIC_TMH_RNDV;
	int entry = tagged ? nic_tm_find(job->srq, job->msg.tag) : -1;

	if (!nic_recv_has_had(job->srq, NIC_XRQ_MIN))
		return nic_rc_not_ready(job->peer, job->result);
	if (entry < 0)
		return nic_tm_unmatched(job, tagged);
	return job->msg.op == NIC_TMH_EAGER ? nic_tm_eager(job, (uint32_t)entry)
					    : nic_tm_rndv(job, (uint32_t)entry);
}

enum nic_outcome nic_tm_send(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_wqe *wqe,
			     const struct nic_spans *from, struct nic_result *result)
{
	struct nic_tm_job job = {
		.qp = qp, .peer = peer, .wqe = wqe, .from = from, .result = result
	};
	enum nic_outcome outcome;
	int rc = nic_tm_peek(&job);

	if (rc)
		return nic_rc_copy_failed(peer, result, rc);
	if (!nic_tm_decode(&job.msg, wqe->len))
		return nic_rc_refuse(peer, result, NIC_SYN_REMOTE_INVALID, NIC_TM_VENDOR_HEADER,
				     NIC_TM_EVENT_REQ_ERR);
	job.srq = nic_tm_lock(peer);
	if (!job.srq)
		return nic_rc_not_ready(peer, result);
	outcome = nic_tm_decide(&job);
	mdl_unlock(&job.srq->tm_lock);
	return outcome;
}
