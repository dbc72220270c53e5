/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions of tag matching (m5_tm.h). All queue pairs and the list report in one CQ, in the
 * order of the device's decisions.
 *
 * The CQ has twice the room of what can complete. The device learns of read CQEs when a poll finds
 * nothing, or once a quarter of the CQ was read. So what is posted again always finds room.
 */
#include "dev/mlx5/m5_tm_poll.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/mlx5/m5_cqe_err.h"
#include "dev/mlx5/m5_dev.h"
#include "util/log.h"

static void m5_tm_fail(struct m5_tm *tm, const char *why)
{
	if (tm->err)
		return;
	UTIL_WARN(EP_DATA, "%s: tag matching of the device ends: %s\n", ib_dev_name(&tm->dev->ib),
		  why);
	tm->err = -FI_EIO;
}

static void m5_tm_violated(struct m5_tm_peer *peer, const char *why)
{
	if (!peer || peer->err)
		return;
	UTIL_WARN(EP_DATA, "%s: a peer breaks the rules of tag matching: %s: connection ended\n",
		  ib_dev_name(&peer->tm->dev->ib), why);
	m5_tm_peer_fail(peer, -FI_EIO);
}

/* ---- messages that take a receive WQE ---- */

/* Decodes the headers. Returns false if they are not those of a request. */
static bool m5_tm_decode(const uint8_t *bytes, uint32_t len, struct m5_tm_request *request)
{
	struct m5_tmh tmh;
	struct m5_rvh rvh;

	if (len < M5_TM_REQUEST || len > M5_TM_BUF)
		return false;
	memcpy(&tmh, bytes, sizeof(tmh));
	memcpy(&rvh, bytes + sizeof(tmh), sizeof(rvh));
	request->tag = be64toh(tmh.tag);
	request->id = m5_tm_note(&tmh) & M5_TM_ID_MASK;
	request->has_data = m5_tm_data(&tmh, &request->data);
	request->addr = be64toh(rvh.addr);
	request->rkey = be32toh(rvh.rkey);
	request->len = be32toh(rvh.len);
	return tmh.op == M5_TMH_REQUEST && request->len && request->len <= M5_TM_LEN_MAX;
}

/* Copies the first bytes of a message, and frees its WQE. Returns their number. */
static uint32_t m5_tm_take_bytes(struct m5_tm *tm, const struct m5_cqe *cqe, uint8_t *bytes)
{
	uint16_t idx = m5_cqe_counter(cqe);
	uint32_t len = be32toh(cqe->len);
	const uint8_t *from = m5_cqe_scattered(cqe);

	if (len > M5_TM_BUF || idx > tm->srq.mask) {
		m5_tm_fail(tm, "a completion that no receive can have");
		return 0;
	}
	if (!from)
		from = (const uint8_t *)tm->mem.addr + (size_t)idx * M5_TM_BUF;
	memcpy(bytes, from, len);
	if (!m5_srq_give(&tm->srq, idx))
		m5_tm_fail(tm, "a completion of a receive that was not posted");
	return len;
}

/* Each counts as handled when it is returned: the caller's next operation says so. */
static bool m5_tm_unexpected(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_peer *peer,
			     struct m5_tm_event *ev)
{
	uint8_t bytes[M5_TM_BUF];
	uint32_t len = m5_tm_take_bytes(tm, cqe, bytes);

	tm->handled++;
	if (!peer || peer->err)
		return false;
	if (!m5_tm_decode(bytes, len, &ev->request)) {
		m5_tm_violated(peer, "a tagged message that is no request");
		return false;
	}
	ev->kind = M5_TM_UNEXPECTED;
	ev->peer = ev->request.peer = peer;
	return true;
}

/* A notice to a send of this end, FIN or KEPT. */
static bool m5_tm_notified(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_peer *peer,
			   struct m5_tm_event *ev)
{
	uint8_t bytes[M5_TM_BUF];
	uint32_t len = m5_tm_take_bytes(tm, cqe, bytes);
	struct m5_tm_send *send = NULL;
	struct m5_tmh tmh = { .op = M5_TMH_EAGER };

	if (!peer || peer->err)
		return false;
	if (len >= sizeof(tmh))
		memcpy(&tmh, bytes, sizeof(tmh));
	if (tmh.op == M5_TMH_FIN || tmh.op == M5_TMH_NO_TAG)
		send = m5_tm_find(peer, m5_tm_note(&tmh) & M5_TM_ID_MASK);
	if (!send) {
		m5_tm_violated(peer, "a notice to a send that is not open");
		return false;
	}
	if (tmh.op == M5_TMH_FIN)
		m5_tm_send_end(send);
	ev->kind = tmh.op == M5_TMH_FIN ? M5_TM_SENT : M5_TM_KEPT;
	ev->send = send;
	ev->peer = peer;
	return true;
}

/* ---- entries of the list ---- */

static bool m5_tm_matched(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_peer *peer,
			  struct m5_tm_event *ev)
{
	struct m5_tmh tmh;

	ev->recv = m5_tags_matched(&tm->tags, be16toh(cqe->app_info), m5_cqe_qpn(cqe));
	if (!ev->recv) {
		m5_tm_fail(tm, "a match of an entry that is not in the list");
		return false;
	}
	memcpy(&tmh, cqe, sizeof(tmh));
	ev->recv->tag = be64toh(tmh.tag);
	ev->has_data = m5_tm_data(&tmh, &ev->data);
	ev->peer = peer && !peer->is_closed ? peer : NULL;
	ev->kind = M5_TM_MATCHED;
	return true;
}

static bool m5_tm_ended(struct m5_tm *tm, const struct m5_cqe *cqe, int status,
			struct m5_tm_event *ev)
{
	ev->recv = m5_tags_ended(&tm->tags, be16toh(cqe->app_info));
	if (!ev->recv) {
		m5_tm_fail(tm, "the end of an entry that had no match");
		return false;
	}
	ev->kind = M5_TM_RECEIVED;
	ev->status = status;
	ev->len = status ? 0 : be32toh(cqe->len);
	return true;
}

/* A request is longer than its receive. The device has put it into the receive's buffer. */
static bool m5_tm_too_long(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_peer *peer,
			   struct m5_tm_event *ev)
{
	uint32_t len = be32toh(cqe->len);

	if (!m5_tm_matched(tm, cqe, peer, ev) || !m5_tm_ended(tm, cqe, 0, ev))
		return false;
	if (!peer || peer->err || !m5_tm_decode(ev->recv->buf, len, &ev->request)) {
		m5_tm_violated(peer, "a request that cannot be read");
		ev->status = -FI_EIO;
		ev->len = 0;
		return true;
	}
	ev->kind = M5_TM_TOO_LONG;
	ev->peer = ev->request.peer = peer;
	return true;
}

static bool m5_tm_removed(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_event *ev)
{
	bool success = ((const struct m5_tag_cqe *)cqe)->success & htobe32(M5_APP_SUCCESS);
	void *recv;

	if (!m5_tags_removed(&tm->tags, be16toh(cqe->app_info), success, &recv))
		m5_tm_fail(tm, "the end of a removal that was not posted");
	ev->kind = M5_TM_REMOVED;
	ev->recv = recv;
	return recv;
}

static bool m5_tm_take_tag(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_event *ev)
{
	struct m5_tm_peer *peer = ib_qpns_get(&tm->peers, m5_cqe_qpn(cqe));
	enum m5_app_op op = cqe->app == M5_APP_TAG ? (enum m5_app_op)cqe->app_op : 0;

	switch (op) {
	case M5_APP_APPEND:
	case M5_APP_REMOVE:
	case M5_APP_NOP:
		if (!m5_sq_retire(&tm->sq, m5_cqe_counter(cqe)))
			m5_tm_fail(tm, "the end of an operation that was not posted");
		return op == M5_APP_REMOVE && m5_tm_removed(tm, cqe, ev);
	case M5_APP_CONSUMED: return m5_tm_matched(tm, cqe, peer, ev);
	case M5_APP_CONSUMED_MSG:
		return m5_tm_matched(tm, cqe, peer, ev) && m5_tm_ended(tm, cqe, 0, ev);
	case M5_APP_EXPECTED: return m5_tm_ended(tm, cqe, 0, ev);
	case M5_APP_CANCELED: return m5_tm_ended(tm, cqe, -FI_EIO, ev);
	case M5_APP_TOO_LONG: return m5_tm_too_long(tm, cqe, peer, ev);
	case M5_APP_UNEXPECTED: return m5_tm_unexpected(tm, cqe, peer, ev);
	case M5_APP_NO_TAG: return m5_tm_notified(tm, cqe, peer, ev);
	default: m5_tm_fail(tm, "a completion of unknown kind"); return false;
	}
}

/* ---- queue pairs ---- */

/* Retires WQEs of a peer's tx. One with a word ends a fetch. */
static bool m5_tm_take_end(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_event *ev)
{
	struct m5_tm_peer *peer = ib_qpns_get(&tm->peers, m5_cqe_qpn(cqe));
	struct m5_tm_recv *recv;

	if (!peer || !m5_sq_retire(&peer->sq, m5_cqe_counter(cqe)))
		return false;
	recv = (void *)(uintptr_t)m5_sparse_take(&peer->users, m5_cqe_counter(cqe));
	if (!recv || peer->err)
		return false;
	ev->kind = M5_TM_RECEIVED;
	ev->recv = recv;
	ev->len = recv->len;
	ev->peer = peer;
	return true;
}

static void m5_tm_take_error(struct m5_tm *tm, const struct m5_cqe *cqe)
{
	struct m5_tm_peer *peer = ib_qpns_get(&tm->peers, m5_cqe_qpn(cqe));
	struct m5_err err;

	m5_cqe_err_decode(cqe, &err);
	if (err.qpn == tm->sq.qpn)
		m5_tm_fail(tm, err.name);
	if (!peer || peer->err)
		return;
	if (!err.flushed)
		UTIL_WARN(EP_DATA,
			  "%s: tag matching, qp 0x%06x: %s (syndrome 0x%02x, vendor 0x%02x): %s\n",
			  ib_dev_name(&tm->dev->ib), err.qpn, err.name, err.syndrome, err.vendor,
			  err.advice);
	m5_tm_peer_fail(peer, err.status);
}

static bool m5_tm_take(struct m5_tm *tm, const struct m5_cqe *cqe, struct m5_tm_event *ev)
{
	switch (m5_cqe_opcode(cqe)) {
	case M5_CQE_NO_PACKET:
	case M5_CQE_RESP_SEND:
	case M5_CQE_RESP_SEND_IMM: return m5_tm_take_tag(tm, cqe, ev);
	case M5_CQE_REQ: return m5_tm_take_end(tm, cqe, ev);
	case M5_CQE_REQ_ERR:
	case M5_CQE_RESP_ERR: m5_tm_take_error(tm, cqe); return false;
	default: m5_tm_fail(tm, "a completion of unknown kind"); return false;
	}
}

/* ---- when nothing has completed ---- */

static bool m5_tm_notify_down(struct m5_tm *tm, struct m5_tm_event *ev)
{
	struct util_list *it;

	ev->kind = M5_TM_DOWN;
	if (tm->err && !tm->is_down_notified) {
		tm->is_down_notified = true;
		ev->status = tm->err;
		return true;
	}
	it = util_list_pop(&tm->failed);
	if (!it)
		return false;
	ev->peer = UTIL_CONTAINER_OF(it, struct m5_tm_peer, in_tm);
	ev->status = ev->peer->err;
	return true;
}

/* Ends what the messages of closed peers have matched, then the peers. */
static bool m5_tm_end_closed(struct m5_tm *tm, struct m5_tm_event *ev)
{
	struct util_list *it;

	while ((it = util_list_first(&tm->closing))) {
		struct m5_tm_peer *peer = UTIL_CONTAINER_OF(it, struct m5_tm_peer, in_tm);

		ev->recv = m5_tags_abandon(&tm->tags, peer->rx->qp_num);
		if (ev->recv) {
			ev->kind = M5_TM_RECEIVED;
			ev->status = -FI_ECONNABORTED;
			return true;
		}
		m5_tm_peer_free(peer);
	}
	return false;
}

/* Gives CQEs and receive WQEs back to the device, in this order (m5_srq.h). */
static void m5_tm_give_back(struct m5_tm *tm)
{
	tm->published = tm->cq.ci;
	m5_cq_publish(&tm->cq);
	if (m5_srq_is_due(&tm->srq))
		m5_srq_post(&tm->srq);
}

/* Returns true if stored entries wait; without entries, the device need not know soon. */
static bool m5_tm_is_behind(const struct m5_tm *tm)
{
	uint16_t behind = (uint16_t)(tm->handled - tm->advertised);

	return behind && (tm->tags.listed_cnt || behind >= M5_TM_UNSYNCED);
}

static bool m5_tm_idle(struct m5_tm *tm, struct m5_tm_event *ev)
{
	if (tm->published != tm->cq.ci)
		m5_tm_give_back(tm);
	if (UTIL_UNLIKELY(m5_tm_is_behind(tm)))
		m5_tm_sync(tm);
	m5_sq_ring(&tm->sq);
	if (UTIL_LIKELY(util_list_is_empty(&tm->failed) && util_list_is_empty(&tm->closing) &&
			!tm->err))
		return false;
	return m5_tm_notify_down(tm, ev) || m5_tm_end_closed(tm, ev);
}

bool m5_tm_poll(struct m5_tm *tm, struct m5_tm_event *ev)
{
	const struct m5_cqe *cqe;

	memset(ev, 0, sizeof(*ev));
	while ((cqe = m5_cq_poll(&tm->cq))) {
		bool has_event = m5_tm_take(tm, cqe, ev);

		if (tm->cq.ci - tm->published >= tm->cq.size / 4 || m5_srq_is_due(&tm->srq))
			m5_tm_give_back(tm);
		if (has_event)
			return true;
	}
	return m5_tm_idle(tm, ev);
}

/* Returns true if m5_tm_idle has something to do that no completion announces. */
static bool m5_tm_is_due(const struct m5_tm *tm)
{
	if (tm->published != tm->cq.ci || tm->sq.pi != tm->sq.rung ||
	    !util_list_is_empty(&tm->failed) || !util_list_is_empty(&tm->closing))
		return true;
	return tm->err ? !tm->is_down_notified : m5_tm_is_behind(tm);
}

bool m5_tm_arm(struct m5_tm *tm)
{
	m5_cq_arm(&tm->cq);
	return m5_cq_is_empty(&tm->cq) && !m5_tm_is_due(tm);
}
