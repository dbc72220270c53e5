/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous by the device: from the match of a request to the completion of its data.
 *
 * The adapter of the receiver reads the data from the sender's memory (an RDMA READ by the QP that
 * received the request), sends the headers back with the opcode "finished" over the same QP, and
 * reports the data to software. No processor of the receiver takes part. As all work of the model,
 * this is done by the process of the sender, after its SEND has completed; in poll mode some of it
 * later, while the sender's queue goes on.
 *
 * The requests of a QP are finished in order. If one fails, the entries whose data would have come
 * through the receiver's QP are canceled, and that QP ends in error, as one whose READ fails does.
 * The receiver's process does this if the sender died.
 */
#include "model/nic/nic_rndv.h"

#include <string.h>

#include "model/nic/nic_cqe.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_mem.h"
#include "model/nic/nic_peer.h"
#include "model/nic/nic_qp.h"
#include "model/nic/nic_rc.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_tm.h"
#include "model/nic/nic_tm_recv.h"
#include "model/nic/nic_wire.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_RNDV_MAX = 256,   /* requests under way from one process */
	NIC_RNDV_QP_MAX = 16, /* from one QP: further ones find the receiver not ready */
	NIC_RNDV_FIN_BYTES = NIC_TMH_BYTES + NIC_RVH_BYTES,
	NIC_RNDV_LATE_NS = 60000,
	NIC_RNDV_LATE_IN_8 = 3, /* poll mode: of 8 requests, the number finished late */
	NIC_RNDV_EVENT_FATAL = 1,
	NIC_RNDV_EVENT_ACCESS = 3,
};

enum nic_rndv_stage {
	NIC_RNDV_READ,
	NIC_RNDV_FIN,
	NIC_RNDV_END,
};

struct nic_rndv {
	uint32_t used; /* 1: claimed */
	uint32_t qpn;  /* of the sender; 0: not begun */
	uint32_t peer, entry;
	enum nic_rndv_stage stage;
	uint64_t order;
	uint64_t due_ns;
	uint64_t va;
	uint32_t rkey, len;
	struct nic_attempts attempts;
	uint8_t fin[NIC_RNDV_FIN_BYTES];
};

static struct nic_rndv nic_rndvs[NIC_RNDV_MAX];
static uint64_t nic_rndv_order;

void nic_rndv_attach(void)
{
	memset(nic_rndvs, 0, sizeof(nic_rndvs));
}

struct nic_rndv *nic_rndv_claim(const struct mdl_qp *qp)
{
	if (qp->nic_rndvs >= NIC_RNDV_QP_MAX)
		return NULL;
	for (uint32_t i = 0; i < NIC_RNDV_MAX; i++) {
		uint32_t none = 0;

		if (__atomic_compare_exchange_n(&nic_rndvs[i].used, &none, 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return &nic_rndvs[i];
	}
	return NULL;
}

static uint64_t nic_rndv_late(void)
{
	if (mdl_self.config.mode != MDL_MODE_POLL || (nic_random() & 7) >= NIC_RNDV_LATE_IN_8)
		return 0;
	return mdl_now_ns() + nic_random() % NIC_RNDV_LATE_NS;
}

void nic_rndv_begin(struct nic_rndv *rndv, struct mdl_qp *qp, const struct mdl_qp *peer,
		    uint32_t entry, const struct nic_tm_msg *msg)
{
	rndv->peer = peer->number;
	rndv->entry = entry;
	rndv->stage = NIC_RNDV_READ;
	rndv->order = __atomic_fetch_add(&nic_rndv_order, 1, __ATOMIC_RELAXED);
	rndv->due_ns = nic_rndv_late();
	rndv->va = msg->va;
	rndv->rkey = msg->rkey;
	rndv->len = msg->len;
	rndv->attempts.tried = 0;
	memcpy(rndv->fin, msg->head, sizeof(rndv->fin));
	rndv->fin[0] = NIC_TMH_FIN;
	qp->nic_rndvs++;
	__atomic_store_n(&rndv->qpn, qp->number, __ATOMIC_RELEASE);
}

static void nic_rndv_free(struct mdl_qp *qp, struct nic_rndv *rndv)
{
	qp->nic_rndvs--;
	__atomic_store_n(&rndv->qpn, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&rndv->used, 0, __ATOMIC_RELEASE);
}

static struct nic_rndv *nic_rndv_oldest(const struct mdl_qp *qp)
{
	struct nic_rndv *oldest = NULL;

	for (uint32_t i = 0; qp->nic_rndvs && i < NIC_RNDV_MAX; i++) {
		struct nic_rndv *rndv = &nic_rndvs[i];

		if (__atomic_load_n(&rndv->qpn, __ATOMIC_ACQUIRE) == qp->number &&
		    (!oldest || rndv->order < oldest->order))
			oldest = rndv;
	}
	return oldest;
}

/* Ends the receiver's QP and with it the matches whose data it would have read. */
static void nic_rndv_fail(struct mdl_qp *qp, struct nic_rndv *rndv)
{
	struct mdl_qp *peer = nic_peer_lock_number(rndv->peer);

	if (peer) {
		nic_tm_cancel(peer);
		nic_peer_break(peer, NIC_RNDV_EVENT_FATAL);
		nic_peer_unlock(peer);
	}
	nic_rndv_free(qp, rndv);
}

void nic_rndv_drop(struct mdl_qp *qp)
{
	struct nic_rndv *rndv;

	while ((rndv = nic_rndv_oldest(qp)))
		nic_rndv_fail(qp, rndv);
}

/* ---- the stages ------------------------------------------------------------------------------ */
static bool nic_rndv_link_is_down(const struct mdl_qp *qp, const struct mdl_qp *peer)
{
	return nic_link_is_down(qp) || mdl_self.seg->port[peer->port_index].link_down;
}

/* Returns whether the entry still waits for these data. tm_lock held. */
static bool nic_rndv_is_wanted(const struct nic_rndv *rndv, const struct mdl_srq *srq)
{
	const struct nic_tag *tag = nic_tm_tag(srq, rndv->entry);

	return __atomic_load_n(&tag->state, __ATOMIC_ACQUIRE) == NIC_TAG_MATCHED &&
	       tag->qpn == rndv->peer;
}

/* Resolves what is read, and the buffer that it goes into. Returns false if either is refused. */
static bool nic_rndv_resolve(const struct mdl_qp *qp, const struct mdl_qp *peer,
			     const struct mdl_srq *srq, const struct nic_rndv *rndv,
			     struct nic_spans *to, struct nic_spans *from)
{
	const struct nic_tag *tag = nic_tm_tag(srq, rndv->entry);

	*to = (struct nic_spans){ .cnt = 1, .span[0] = { .addr = tag->addr, .len = rndv->len } };
	*from = (struct nic_spans){ .cnt = 1, .span[0] = { .addr = rndv->va, .len = rndv->len } };
	if (!peer->max_rd_atomic || !qp->max_dest_rd_atomic)
		return false;
	if (!rndv->len)
		return true;
	if (!(qp->access & MDL_ACCESS_REMOTE_READ))
		return false;
	from->span[0].mr = nic_mem_find(rndv->rkey, qp->proc, qp->pd, rndv->va, rndv->len,
					MDL_ACCESS_REMOTE_READ);
	to->span[0].mr = nic_mem_find(tag->lkey, srq->proc, srq->pd, tag->addr, rndv->len,
				      MDL_ACCESS_LOCAL_WRITE);
	return from->span[0].mr && to->span[0].mr;
}

static bool nic_rndv_copy(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_spans *to,
			  const struct nic_spans *from, uint64_t len)
{
	if (len && nic_rc_fill(qp, peer, to, from, len))
		return false;
	nic_wire_count(peer, qp, NIC_WIRE_READ, len, false,
		       peer->path.is_global ? peer->path.sgid_index : -1);
	return true;
}

/* Reads the data, with the receiver locked. Returns false if the READ fails. */
static bool nic_rndv_read(struct mdl_qp *qp, struct mdl_qp *peer, const struct nic_rndv *rndv)
{
	struct mdl_srq *srq = nic_qp_state(peer) == MDL_QPS_RTS ? nic_tm_lock(peer) : NULL;
	struct nic_spans to, from;
	bool done;

	if (!srq)
		return false;
	done = nic_rndv_is_wanted(rndv, srq) && nic_rndv_resolve(qp, peer, srq, rndv, &to, &from);
	mdl_unlock(&srq->tm_lock);
	return done && nic_rndv_copy(qp, peer, &to, &from, rndv->len);
}

/* Refuses a READ as the sender's device does. */
static void nic_rndv_refuse(struct mdl_qp *qp)
{
	nic_qp_lock_rq(qp);
	nic_peer_break(qp, NIC_RNDV_EVENT_ACCESS);
	nic_peer_unlock(qp);
}

static enum nic_outcome nic_rndv_step_read(struct mdl_qp *qp, struct nic_rndv *rndv)
{
	struct mdl_qp *peer = nic_peer_lock_number(rndv->peer);
	bool done;

	if (!peer)
		return NIC_FAILED;
	done = nic_rndv_read(qp, peer, rndv);
	nic_peer_unlock(peer);
	if (done)
		return NIC_DONE;
	nic_rndv_refuse(qp);
	return NIC_FAILED;
}

/* Reports the end to the sender, by a SEND that takes a receive WQE there. */
static enum nic_outcome nic_rndv_step_fin(struct mdl_qp *qp, struct mdl_qp *peer,
					  struct nic_rndv *rndv, struct nic_result *result)
{
	struct nic_wqe wqe = { .opcode = NIC_OP_SEND, .len = sizeof(rndv->fin) };
	struct nic_spans from = { .cnt = 1,
				  .span[0] = { .bytes = rndv->fin, .len = sizeof(rndv->fin) } };
	enum nic_outcome outcome;

	nic_qp_lock_rq(qp);
	outcome = nic_rc_send(peer, qp, &wqe, &from, result);
	nic_peer_unlock(qp);
	nic_sq_touch(qp, qp->recv_cq);
	return outcome;
}

static enum nic_outcome nic_rndv_step_end(const struct nic_rndv *rndv)
{
	struct mdl_qp *peer = nic_peer_lock_number(rndv->peer);
	struct nic_cqe cqe = { .op = NIC_CQE_RESP_SEND,
			       .app_op = NIC_APP_EXPECTED,
			       .byte_cnt = rndv->len };
	struct mdl_srq *srq = peer ? nic_tm_lock(peer) : NULL;

	if (srq && nic_rndv_is_wanted(rndv, srq)) {
		nic_tm_complete(peer, srq, rndv->entry, &cqe);
		nic_count(peer, MDL_CNT_TM_RENDEZVOUS, 1);
	}
	if (srq)
		mdl_unlock(&srq->tm_lock);
	if (peer)
		nic_peer_unlock(peer);
	return NIC_DONE;
}

/* Executes a stage. Sets *DUE_NS to the time of the next try if its outcome is to wait. */
static enum nic_outcome nic_rndv_step(struct mdl_qp *qp, struct nic_rndv *rndv, uint64_t *due_ns)
{
	struct mdl_qp *peer = mdl_qp_find(rndv->peer);
	struct nic_result result = { 0 };
	enum nic_outcome outcome;

	if (!peer)
		return NIC_FAILED;
	nic_sq_begin(peer, &rndv->attempts);
	if (nic_rndv_link_is_down(qp, peer))
		outcome = NIC_LOST;
	else if (rndv->stage == NIC_RNDV_READ)
		outcome = nic_rndv_step_read(qp, rndv);
	else if (rndv->stage == NIC_RNDV_FIN)
		outcome = nic_rndv_step_fin(qp, peer, rndv, &result);
	else
		outcome = nic_rndv_step_end(rndv);
	if ((outcome == NIC_RNR || outcome == NIC_LOST) &&
	    !nic_sq_retry(peer, &rndv->attempts, outcome, &result, due_ns))
		outcome = NIC_FAILED;
	return outcome;
}

static bool nic_rndv_is_connected(const struct mdl_qp *qp)
{
	uint32_t state = nic_qp_state(qp);

	return state == MDL_QPS_RTS || state == MDL_QPS_SQD;
}

static void nic_rndv_sleep(struct mdl_qp *qp, uint64_t due_ns)
{
	nic_qp_priv(qp)->rndv_due_ns = due_ns;
	__atomic_fetch_or(&qp->nic_stalled, NIC_WAIT_RNDV, __ATOMIC_RELEASE);
	krn_service_wake(qp->proc);
}

/* Goes on with the oldest request. Returns false if it waits. */
static bool nic_rndv_advance(struct mdl_qp *qp, struct nic_rndv *rndv)
{
	if (rndv->due_ns <= mdl_now_ns()) {
		switch (nic_rndv_step(qp, rndv, &rndv->due_ns)) {
		case NIC_DONE:
			rndv->attempts.tried = 0;
			if (rndv->stage++ == NIC_RNDV_END)
				nic_rndv_free(qp, rndv);
			return true;
		case NIC_FAILED: nic_rndv_fail(qp, rndv); return true;
		case NIC_RNR:
		case NIC_LOST: break;
		}
	}
	nic_rndv_sleep(qp, rndv->due_ns);
	return false;
}

void nic_rndv_run(struct mdl_qp *qp)
{
	struct nic_rndv *rndv;

	if (!qp->nic_rndvs)
		return;
	__atomic_fetch_and(&qp->nic_stalled, ~(uint32_t)NIC_WAIT_RNDV, __ATOMIC_RELEASE);
	while (nic_rndv_is_connected(qp) && (rndv = nic_rndv_oldest(qp)))
		if (!nic_rndv_advance(qp, rndv))
			return;
	if (!nic_rndv_is_connected(qp))
		nic_rndv_drop(qp);
}

/* Returns whether a match waits for data that would come through the QP. */
static bool nic_rndv_has_match(struct mdl_qp *qp)
{
	struct mdl_srq *srq = nic_tm_lock(qp);
	bool has = false;

	for (uint32_t i = 0; srq && i < srq->tm_cnt && !has; i++)
		has = nic_tm_tag(srq, i)->qpn == qp->number &&
		      __atomic_load_n(&nic_tm_tag(srq, i)->state, __ATOMIC_ACQUIRE) ==
			      NIC_TAG_MATCHED;
	if (srq)
		mdl_unlock(&srq->tm_lock);
	return has;
}

void nic_rndv_check_sender(struct mdl_qp *qp)
{
	const struct mdl_qp *sender;

	if (!qp->tagged || nic_qp_state(qp) != MDL_QPS_RTS || !nic_rndv_has_match(qp))
		return;
	sender = mdl_qp_find(qp->dest_qpn);
	if (!sender || mdl_proc_is_dead(sender->proc))
		nic_qp_break(qp, NIC_RNDV_EVENT_FATAL);
}
