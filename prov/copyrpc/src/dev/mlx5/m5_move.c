/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Moves of links between a queue pair and DC (m5_move.h). */
#include "dev/mlx5/m5_move.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/ib/ib_qp.h"
#include "dev/mlx5/m5_dlink.h"
#include "dev/mlx5/m5_link.h"
#include "util/log.h"
#include "util/param.h"

#define M5_MOVE_FAR 0x4000u /* beyond all blocks that are in flight */

/** Messages, by their first byte. */
enum m5_move_msg {
	M5_MSG_OFFER = 1, /* number and first packet number of a queue pair, 3 bytes each */
	M5_MSG_ACCEPT,    /* likewise; the queue pair is connected */
	M5_MSG_READY,     /* the queue pair is connected */
	M5_MSG_REFUSE,    /* there is none for this link */
	M5_MSG_LEFT,      /* nothing more comes by the queue pair */
};

void m5_move_park(struct m5_link *link)
{
	struct m5_sq *sq = &link->sq;
	/* Two blocks that the device will never take, with numbers that none in flight has */
	uint16_t next = (uint16_t)(sq->pi + M5_MOVE_FAR);

	link->move.sq = *sq;
	link->move.is_parked = true;
	*sq = (struct m5_sq){ .ci = next,
			      .pi = (uint16_t)(next + 2),
			      .rung = (uint16_t)(next + 2) };
}

void m5_move_unpark(struct m5_link *link)
{
	if (!link->move.is_parked || !link->ib.qp)
		return;
	link->sq = link->move.sq;
	link->move.is_parked = false;
}

bool m5_move_retire(struct m5_link *link, const struct m5_cqe *cqe)
{
	return link->move.is_parked && m5_sq_retire(&link->move.sq, m5_cqe_counter(cqe));
}

static void m5_move_schedule(struct m5_link *link)
{
	if (util_list_is_empty(&link->ib.cold))
		util_list_push_back(&link->dev->early, &link->ib.cold);
}

static void m5_move_violated(struct m5_link *link, const char *why)
{
	UTIL_WARN(EP_CTRL, "%s: a peer breaks the rules of moves: %s: connection ended\n",
		  ib_dev_name(&link->dev->ib), why);
	m5_link_fail(link, -FI_EIO);
}

/* ---- messages ---- */

static void m5_move_send(struct m5_link *link, enum m5_move_msg msg)
{
	struct m5_move *move = &link->move;
	bool has_qp = msg == M5_MSG_OFFER || msg == M5_MSG_ACCEPT;

	if (move->tx_cnt + (has_qp ? M5_MOVE_MSG_MAX : 1u) > M5_MOVE_BYTES) {
		m5_move_violated(link, "offers that do not wait");
		return;
	}
	move->tx[move->tx_cnt++] = (uint8_t)msg;
	for (unsigned i = 0; has_qp && i < 6; i++)
		move->tx[move->tx_cnt++] =
			(uint8_t)((i < 3 ? link->ib.qpn : link->ib.psn) >> 8 * (i % 3));
	m5_move_schedule(link);
}

static void m5_move_post(struct m5_link *link)
{
	struct m5_move *move = &link->move;
	uint8_t cnt = 0;

	while (cnt < move->tx_cnt && m5_dlink_post_byte(link, move->tx[cnt]))
		cnt++;
	move->tx_cnt -= cnt;
	memmove(move->tx, move->tx + cnt, move->tx_cnt);
}

/* ---- the queue pair ---- */

/* Makes a queue pair beside the send queue that is in use. dev->lock held. */
static int m5_move_make_qp_locked(struct m5_link *link)
{
	struct m5_sq blocked = link->sq;
	int ret;

	link->ib.psn = ib_qp_psn();
	link->move.is_parked = false;
	ret = m5_link_make_qp(link);
	if (!ret)
		ret = m5_scq_activate(link->dev, link->scq);
	link->move.is_polled = !ret;
	if (ret)
		m5_link_drop_qp(link);
	link->move.sq = link->sq;
	link->move.is_parked = true;
	link->sq = blocked;
	return ret;
}

/* Likewise, if the limit allows another. Returns 0 or an error. */
static int m5_move_make_qp(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;
	int ret = -FI_ENOSPC;

	pthread_mutex_lock(&dev->lock);
	if (dev->rc_cnt < (uint32_t)util_params.rc_max)
		ret = m5_move_make_qp_locked(link);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

/* Destroys the queue pair: neither end has anything in flight on it, unless the peer lies. */
static void m5_move_drop_qp(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;

	assert(link->move.is_parked);
	m5_link_stop(link);
	if (link->ib.qpn) {
		ib_qpns_clear(&dev->qpns, link->ib.qpn);
		m5_cq_forget(&dev->rx, link->ib.qpn);
	}
	pthread_mutex_lock(&dev->lock);
	if (link->move.is_polled)
		m5_scq_deactivate(dev, link->scq);
	m5_link_drop_qp(link);
	pthread_mutex_unlock(&dev->lock);
	link->move.is_polled = false;
	link->move.peer_left = false;
	link->move.state = M5_MOVE_ON_DC;
}

/* Connects the queue pair to that of an OFFER or ACCEPT. Returns 0 or an error. */
static int m5_move_connect(struct m5_link *link)
{
	const uint8_t *b = link->move.rx + 1;
	struct ib_desc *peer = &link->move.peer;

	peer->qpn = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16;
	peer->psn = (uint32_t)b[3] | (uint32_t)b[4] << 8 | (uint32_t)b[5] << 16;
	return ib_qp_connect(link->ib.qp, &link->dev->ib, link->ib.psn, peer,
			     link->ib.base.caps & DEV_CAP_BRIEF, &link->ib.reads_max);
}

/* ---- to the queue pair ---- */

static void m5_move_begin_rc(struct m5_link *link)
{
	link->move.state = M5_MOVE_TO_RC;
	link->dc.is_on = false;
	m5_move_schedule(link);
}

static void m5_move_end_rc(struct m5_link *link)
{
	m5_dlink_leave(link);
	m5_move_unpark(link);
	link->ib.peer_qpn = link->move.peer.qpn;
	link->ib.base.caps &= ~(uint32_t)DEV_CAP_DC;
	link->ib.base.inline_max = M5_INLINE_MAX;
	link->move.state = M5_MOVE_ON_RC;
	link->move.cnt++;
}

static void m5_move_work_rc(struct m5_link *link)
{
	const struct m5_dci *dci = link->dc.pool.dci;

	if (!dci || m5_dci_is_idle(dci))
		m5_move_end_rc(link);
	else
		m5_dcis_report(link->dc.pool.dci);
}

/* Makes a queue pair and lets its arrivals be the link's. Returns 0 or an error. */
static int m5_move_prepare(struct m5_link *link)
{
	int ret = m5_move_make_qp(link);

	if (ret)
		return ret;
	ret = ib_qpns_set(&link->dev->qpns, link->ib.qpn, link);
	if (ret)
		m5_move_drop_qp(link);
	return ret;
}

static int m5_move_offer(struct m5_link *link)
{
	int ret = m5_move_prepare(link);

	if (ret)
		return ret;
	link->move.state = M5_MOVE_OFFERED;
	m5_move_send(link, M5_MSG_OFFER);
	return 0;
}

/* The peer offers a queue pair, and this end has not: it may refuse. */
static void m5_move_accept(struct m5_link *link)
{
	enum m5_offer_verdict verdict = m5_offers_see(&link->move.offers, util_clock_ns(),
						      (uint32_t)util_params.rc_interval_ms);

	if (verdict == M5_OFFER_END) {
		m5_move_violated(link, "offers at more than 1000 a second");
	} else if (verdict == M5_OFFER_REFUSE || m5_move_prepare(link)) {
		m5_move_send(link, M5_MSG_REFUSE);
	} else if (m5_move_connect(link)) {
		m5_move_drop_qp(link);
		m5_move_send(link, M5_MSG_REFUSE);
	} else {
		link->move.state = M5_MOVE_CONNECTED;
		m5_move_send(link, M5_MSG_ACCEPT);
	}
}

/* The peer has a queue pair, and this end has offered its own. */
static void m5_move_matched(struct m5_link *link, bool is_connected)
{
	if (m5_move_connect(link)) {
		link->move.is_response_due = !is_connected;
		m5_move_drop_qp(link);
		m5_move_send(link, M5_MSG_REFUSE);
		return;
	}
	link->move.state = M5_MOVE_CONNECTED;
	m5_move_send(link, M5_MSG_READY);
	if (is_connected)
		m5_move_begin_rc(link);
}

/* ---- to DC ---- */

static void m5_move_begin_dc(struct m5_link *link)
{
	m5_link_ring(link);
	link->move.is_marked = !link->sq.since_wqes && !link->access_quiet;
	m5_move_park(link);
	link->move.state = M5_MOVE_TO_DC;
	m5_move_schedule(link);
}

/* Lets the last of what is posted report, also the ends of simple accesses. */
static void m5_move_mark(struct m5_link *link)
{
	uint64_t user =
		link->access_quiet ? m5_user_access(link->ib.base.access_cnt) : M5_USER_NONE;
	struct m5_sq *sq = &link->move.sq;
	struct m5_wqe wqe;

	if (!m5_sq_has_room(sq, 1))
		return;
	m5_wqe_begin(&wqe, m5_sq_reserve(sq, 1));
	wqe.end = (uint8_t *)wqe.ctrl + M5_BB;
	m5_wqe_end(&wqe, sq->pi, M5_OP_NOP, sq->qpn, M5_CTRL_SIGNAL, 0);
	m5_sparse_put(&link->users, sq->pi, user);
	m5_sq_commit(sq, 1, M5_CTRL_SIGNAL);
	m5_sq_ring(sq);
	link->access_quiet = false;
	link->move.is_marked = true;
}

static void m5_move_use_dc(struct m5_link *link)
{
	link->dc.is_on = true;
	link->ib.peer_qpn = link->move.peer.dctn;
	link->ib.base.caps |= DEV_CAP_DC;
	link->ib.base.inline_max = link->dc.inline_max;
	link->move.state = M5_MOVE_LEFT;
	m5_move_send(link, M5_MSG_LEFT);
	if (link->move.peer_left)
		m5_move_drop_qp(link);
}

static void m5_move_end_dc(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;
	int ret;

	pthread_mutex_lock(&dev->lock);
	ret = m5_dct_make_pool(dev);
	pthread_mutex_unlock(&dev->lock);
	if (!ret)
		ret = m5_dlink_enter(link);
	if (!ret) {
		link->move.cnt++;
		m5_move_use_dc(link);
	} else if (link->move.peer_left) {
		m5_link_fail(link, ret);
	} else {
		m5_move_unpark(link);
		link->move.state = M5_MOVE_ON_RC;
	}
}

static void m5_move_work_dc(struct m5_link *link)
{
	if (!link->move.is_marked && (m5_sq_in_flight(&link->move.sq) || link->access_quiet))
		m5_move_mark(link);
	if (!m5_sq_in_flight(&link->move.sq))
		m5_move_end_dc(link);
}

/* ---- messages that arrive ---- */

static void m5_move_offered(struct m5_link *link, bool is_connected)
{
	if (link->move.state == M5_MOVE_ON_DC && !is_connected)
		m5_move_accept(link);
	else if (link->move.state == M5_MOVE_OFFERED)
		m5_move_matched(link, is_connected);
	else
		m5_move_violated(link, "an offer without need");
}

/* Returns true for the response to an offer whose queue pair is gone: it means nothing. */
static bool m5_move_is_late(struct m5_link *link)
{
	bool is_late = link->move.is_response_due;

	link->move.is_response_due = false;
	return is_late;
}

static void m5_move_ready(struct m5_link *link)
{
	if (m5_move_is_late(link))
		return;
	if (link->move.state == M5_MOVE_CONNECTED)
		m5_move_begin_rc(link);
	else
		m5_move_violated(link, "it is ready for nothing");
}

static void m5_move_refused(struct m5_link *link)
{
	if (m5_move_is_late(link))
		return;
	if (link->move.state == M5_MOVE_OFFERED || link->move.state == M5_MOVE_CONNECTED)
		m5_move_drop_qp(link);
	else
		m5_move_violated(link, "a refusal without an offer");
}

static void m5_move_peer_left(struct m5_link *link)
{
	enum m5_move_state state = link->move.state;

	if (link->move.peer_left || state < M5_MOVE_TO_RC) {
		m5_move_violated(link, "it leaves a queue pair that it does not use");
		return;
	}
	link->move.peer_left = true;
	switch (state) {
	case M5_MOVE_TO_RC: m5_move_use_dc(link); break;
	case M5_MOVE_ON_RC: m5_move_begin_dc(link); break;
	case M5_MOVE_LEFT: m5_move_drop_qp(link); break;
	default: break;
	}
}

static void m5_move_take(struct m5_link *link)
{
	switch (link->move.rx[0]) {
	case M5_MSG_OFFER: m5_move_offered(link, false); break;
	case M5_MSG_ACCEPT: m5_move_offered(link, true); break;
	case M5_MSG_READY: m5_move_ready(link); break;
	case M5_MSG_REFUSE: m5_move_refused(link); break;
	case M5_MSG_LEFT: m5_move_peer_left(link); break;
	default: m5_move_violated(link, "an unknown message"); break;
	}
}

void m5_move_receive(struct m5_link *link, uint8_t byte)
{
	struct m5_move *move = &link->move;
	bool has_qp;

	if (link->ib.dead)
		return;
	if (move->state == M5_MOVE_NEVER) {
		m5_move_violated(link, "a message on a link that does not move");
		return;
	}
	move->rx[move->rx_cnt++] = byte;
	has_qp = move->rx[0] == M5_MSG_OFFER || move->rx[0] == M5_MSG_ACCEPT;
	if (has_qp && move->rx_cnt < M5_MOVE_MSG_MAX)
		return;
	move->rx_cnt = 0;
	m5_move_take(link);
}

/* ---- interface ---- */

int m5_link_move(struct dev_link *base, bool own)
{
	struct m5_link *link = (struct m5_link *)base;

	if (link->ib.dead)
		return -FI_EIO;
	switch (link->move.state) {
	case M5_MOVE_NEVER: return -FI_ENOSYS;
	case M5_MOVE_ON_DC: return own ? m5_move_offer(link) : -FI_EALREADY;
	case M5_MOVE_ON_RC:
		if (own)
			return -FI_EALREADY;
		m5_move_begin_dc(link);
		return 0;
	default: return -FI_EAGAIN;
	}
}

bool m5_move_is_due(const struct m5_link *link)
{
	return link->move.tx_cnt || link->move.state == M5_MOVE_TO_RC ||
	       link->move.state == M5_MOVE_TO_DC;
}

bool m5_move_may_sleep(const struct m5_link *link)
{
	const struct m5_dci *dci = link->dc.pool.dci;

	if (link->move.tx_cnt)
		return false;
	if (link->move.state == M5_MOVE_TO_DC)
		return link->move.is_marked && m5_sq_in_flight(&link->move.sq);
	return link->move.state == M5_MOVE_TO_RC && dci && !m5_dci_is_idle(dci) &&
	       !dci->sq.since_wqes;
}

void m5_move_work(struct m5_link *link)
{
	if (link->ib.dead)
		return;
	if (link->move.state == M5_MOVE_TO_DC)
		m5_move_work_dc(link);
	if (link->move.tx_cnt)
		m5_move_post(link);
	if (link->move.state == M5_MOVE_TO_RC && !link->move.tx_cnt)
		m5_move_work_rc(link);
}
