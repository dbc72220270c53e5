/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posts of tag matching: operations on the list, requests, and what software finishes (m5_tm.h). */
#include "dev/mlx5/m5_tm.h"

#include <rdma/fi_errno.h>

#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_tm_poll.h"

/* ---- operations on the list ---- */

/* Posts an operation, of one block. The caller has checked that there is room. */
static void m5_tm_post_op(struct m5_tm *tm, const struct m5_tag *op, const struct m5_data *data)
{
	struct m5_sq *sq = &tm->sq;
	struct m5_tag *seg;
	struct m5_wqe wqe;
	uint8_t signal = op->flags & M5_TAG_SIGNAL || m5_sq_signal(sq, 1) ? M5_CTRL_SIGNAL : 0;

	m5_wqe_begin(&wqe, m5_sq_reserve(sq, 1));
	seg = (void *)wqe.end;
	*seg = *op;
	seg->flags = (uint8_t)(M5_TAG_HANDLED | (signal ? M5_TAG_SIGNAL : 0));
	seg->handled = htobe16(tm->handled);
	wqe.end += sizeof(*seg);
	if (data) {
		*(struct m5_data *)(void *)wqe.end = *data;
		wqe.end += sizeof(*data);
	}
	/* The segment requests the completion: the control segment has no flag. */
	m5_wqe_end(&wqe, sq->pi, M5_OP_TAG, sq->qpn, 0, 0);
	m5_sq_commit(sq, 1, signal);
	tm->advertised = tm->handled;
}

void m5_tm_sync(struct m5_tm *tm)
{
	const struct m5_tag op = { .op = M5_TAG_NOP };

	if (tm->err || !m5_tm_leaves_half(tm))
		return;
	m5_tm_post_op(tm, &op, NULL);
}

int m5_tm_append(struct m5_tm *tm, struct m5_tm_recv *recv, uint64_t tag, uint64_t mask, void *buf,
		 uint32_t len, uint32_t lkey, bool more)
{
	struct m5_tag op = { .op = M5_TAG_APPEND, .tag = htobe64(tag), .mask = htobe64(mask) };
	const struct m5_data data = { htobe32(len), htobe32(lkey), htobe64((uintptr_t)buf) };
	uint16_t next;

	if (tm->err)
		return tm->err;
	if (len < M5_TM_REQUEST || len > M5_TM_LEN_MAX)
		return -FI_EINVAL;
	if (!m5_tm_has_room(tm))
		return -FI_EAGAIN;
	recv->buf = buf;
	recv->entry = m5_tags_list(&tm->tags, recv, &next);
	op.index = htobe16(next);
	m5_tm_post_op(tm, &op, &data);
	if (!more)
		m5_sq_ring(&tm->sq);
	return 0;
}

/* A REMOVE that is sure reports only where the queue needs a report. */
int m5_tm_remove(struct m5_tm *tm, struct m5_tm_recv *recv, bool is_sure)
{
	struct m5_tag op = { .op = M5_TAG_REMOVE, .index = htobe16(recv->entry) };
	bool reports = !is_sure || m5_sq_signal(&tm->sq, 1);

	if (tm->err)
		return tm->err;
	if (!m5_sq_has_room(&tm->sq, 1))
		return -FI_EAGAIN;
	if (is_sure ? !m5_tags_drop(&tm->tags, recv->entry, reports)
		    : !m5_tags_ask(&tm->tags, recv->entry))
		return -FI_EALREADY;
	op.flags = reports ? M5_TAG_SIGNAL : 0;
	m5_tm_post_op(tm, &op, NULL);
	m5_sq_ring(&tm->sq);
	return 0;
}

/* ---- messages ---- */

/* Builds a SEND of the two headers, one block. A signalled one has a word. */
static void m5_tm_post_head(struct m5_tm_peer *peer, const struct m5_tmh *tmh,
			    const struct m5_rvh *rvh, uint8_t flags, uint64_t user)
{
	struct m5_sq *sq = &peer->sq;
	struct m5_wqe wqe;

	m5_wqe_begin(&wqe, m5_sq_reserve(sq, 1));
	m5_wqe_inline2(&wqe, tmh, sizeof(*tmh), rvh, sizeof(*rvh));
	m5_wqe_end(&wqe, sq->pi, M5_OP_SEND, sq->qpn, flags, 0);
	if (flags & M5_CTRL_SIGNAL)
		m5_sparse_put(&peer->users, sq->pi, user);
	m5_sq_commit(sq, 1, flags);
}

/* Enters a send. Its id is the slot, with as much of the generation as a header has room for. */
static int m5_tm_send_begin(struct m5_tm_peer *peer, struct m5_tm_send *send)
{
	int ret = util_idmap_alloc(&peer->tm->sends, send, &send->id);

	if (ret)
		return ret;
	send->id &= M5_TM_ID_MASK;
	send->peer = peer;
	util_list_push_back(&peer->sends, &send->in_peer);
	return 0;
}

void m5_tm_send_end(struct m5_tm_send *send)
{
	struct util_idmap *sends = &send->peer->tm->sends;
	uint32_t slot = send->id & (UTIL_IDMAP_MAX - 1);

	util_idmap_release(sends, slot | sends->slots[slot].gen << UTIL_IDMAP_SLOT_BITS);
	util_list_remove(&send->in_peer);
}

struct m5_tm_send *m5_tm_find(struct m5_tm_peer *peer, uint32_t id)
{
	const struct util_idmap *sends = &peer->tm->sends;
	uint32_t slot = id & (UTIL_IDMAP_MAX - 1);
	struct m5_tm_send *send = slot < sends->slot_cnt ? sends->slots[slot].ptr : NULL;

	return send && send->id == id && send->peer == peer ? send : NULL;
}

int m5_tm_send(struct m5_tm_peer *peer, struct m5_tm_send *send, uint64_t tag, bool has_data,
	       uint32_t data, uint64_t addr, uint32_t rkey, uint32_t len)
{
	const struct m5_rvh rvh = { htobe64(addr), htobe32(rkey), htobe32(len) };
	struct m5_tmh tmh;
	int ret;

	if (peer->err)
		return peer->err;
	if (!len || len > M5_TM_LEN_MAX)
		return -FI_EINVAL;
	if (!m5_sq_has_room(&peer->sq, 1))
		return -FI_EAGAIN;
	ret = m5_tm_send_begin(peer, send);
	if (ret)
		return ret;
	tmh = m5_tm_head(M5_TMH_REQUEST, tag, send->id, has_data, data);
	m5_tm_post_head(peer, &tmh, &rvh, m5_sq_signal(&peer->sq, 1), 0);
	m5_sq_ring(&peer->sq);
	return 0;
}

/* Posts a notice to a request, one block: its headers with another opcode. */
static void m5_tm_post_notice(const struct m5_tm_request *request, enum m5_tmh_op op, uint8_t flags,
			      uint64_t user)
{
	const struct m5_rvh rvh = { htobe64(request->addr), htobe32(request->rkey),
				    htobe32(request->len) };
	const struct m5_tmh tmh =
		m5_tm_head(op, request->tag, request->id, request->has_data, request->data);

	m5_tm_post_head(request->peer, &tmh, &rvh, flags, user);
	m5_sq_ring(&request->peer->sq);
}

int m5_tm_fetch(const struct m5_tm_request *request, struct m5_tm_recv *recv, void *buf,
		uint32_t len, uint32_t lkey)
{
	struct m5_tm_peer *peer = request->peer;
	struct m5_sq *sq = &peer->sq;
	struct m5_wqe wqe;

	if (peer->err)
		return peer->err;
	if (len > request->len)
		return -FI_EINVAL;
	if (!m5_sq_has_room(sq, 2))
		return -FI_EAGAIN;
	recv->tag = request->tag;
	recv->len = len;
	m5_wqe_begin(&wqe, m5_sq_reserve(sq, 1));
	m5_wqe_raddr(&wqe, request->addr, request->rkey);
	m5_wqe_data(&wqe, (uintptr_t)buf, len, lkey);
	m5_wqe_end(&wqe, sq->pi, M5_OP_READ, sq->qpn, 0, 0);
	m5_sq_commit(sq, 1, 0);
	/* The fence lets the sender know only once the bytes are here. */
	m5_tm_post_notice(request, M5_TMH_FIN, M5_CTRL_SIGNAL | M5_CTRL_FENCE, (uintptr_t)recv);
	return 0;
}

static int m5_tm_notify(const struct m5_tm_request *request, enum m5_tmh_op op)
{
	struct m5_tm_peer *peer = request->peer;

	if (peer->err)
		return peer->err;
	if (!m5_sq_has_room(&peer->sq, 1))
		return -FI_EAGAIN;
	m5_tm_post_notice(request, op, m5_sq_signal(&peer->sq, 1), 0);
	return 0;
}

int m5_tm_finish(const struct m5_tm_request *request)
{
	return m5_tm_notify(request, M5_TMH_FIN);
}

int m5_tm_keep(const struct m5_tm_request *request)
{
	return m5_tm_notify(request, M5_TMH_NO_TAG);
}

void m5_tm_peer_fail(struct m5_tm_peer *peer, int err)
{
	if (peer->err)
		return;
	peer->err = err;
	util_list_push_back(&peer->tm->failed, &peer->in_tm);
}
