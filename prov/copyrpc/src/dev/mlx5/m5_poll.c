/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rare completions: ends of WQEs, early arrivals, errors (m5_poll.h). */
#include "dev/mlx5/m5_poll.h"

#include "dev/mlx5/m5_cqe_err.h"
#include "dev/mlx5/m5_dlink.h"
#include "dev/mlx5/m5_imm.h"
#include "util/log.h"

const struct dev_ops m5_dev_ops = M5_DEV_OPS_INIT;

static bool m5_poll_early_imm(struct m5_link *link, struct dev_event *ev)
{
	uint32_t kept;

	while (ib_early_take(&link->ib.early, &kept))
		if (m5_dlink_take_kept(link, kept, &ev->imm)) {
			ev->kind = DEV_EV_IMM;
			return true;
		}
	return false;
}

/*
 * Returns true while completions are unread that may be arrivals of the link, which has failed.
 * Each of these polls reads one, so that as many as the queue holds are enough.
 */
static bool m5_poll_has_arrivals(struct m5_link *link)
{
	const struct m5_cq *cq = &link->dev->rx;

	return !m5_cq_is_empty(cq) && link->down_polls++ < cq->size;
}

/* Returns true with an event of a link in m5_dev.early. Without one it does what else is due. */
static bool m5_poll_early_link(struct m5_link *link, struct dev_event *ev)
{
	ev->link = &link->ib.base;
	if (m5_poll_early_imm(link, ev))
		return true;
	if (link->ib.err && m5_poll_has_arrivals(link))
		return false;
	if (link->ib.err) {
		util_list_remove(&link->ib.cold);
		m5_link_unlist(link);
		m5_dlink_leave(link); /* no end of what it posted follows */
		ev->kind = DEV_EV_DOWN;
		ev->status = link->ib.err;
		return true;
	}
	m5_move_work(link);
	if (!m5_move_is_due(link) && !link->ib.err)
		util_list_remove(&link->ib.cold);
	return false;
}

bool m5_poll_early(struct m5_dev *dev, struct dev_event *ev)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->early)
		if (m5_poll_early_link(UTIL_CONTAINER_OF(it, struct m5_link, ib.cold), ev))
			return true;
	return false;
}

static void m5_poll_fail(void *link, int err)
{
	m5_link_fail(link, err);
}

/* Keeps an immediate for attach, or halts the link. */
static void m5_poll_keep(struct m5_link *link, uint32_t imm)
{
	if (ib_early_put(&link->ib.early, link->ib.base.rx_len, imm))
		return;
	UTIL_WARN(EP_CTRL, "%s: qp 0x%06x: no room for early arrivals: connection ended\n",
		  ib_dev_name(&link->dev->ib), link->ib.qpn);
	m5_link_halt(link);
}

static void m5_poll_stray(struct m5_dev *dev, uint32_t qpn, uint32_t imm)
{
	struct m5_link *link;

	pthread_mutex_lock(&dev->lock);
	link = qpn == dev->dc.dctn ? m5_dlink_find_early(dev, imm)
				   : (struct m5_link *)ib_link_find(&dev->waiting, qpn);
	if (link)
		m5_poll_keep(link, qpn == dev->dc.dctn ? m5_imm_unpack(imm & IB_DC_ID_MAX) : imm);
	else
		dev->stray_cnt++;
	pthread_mutex_unlock(&dev->lock);
}

bool m5_poll_other(struct m5_dev *dev, uint32_t qpn, uint32_t imm, struct dev_event *ev)
{
	struct m5_link *link = qpn == dev->dc.dctn ? m5_dlink_find(dev, imm) : NULL;

	if (UTIL_UNLIKELY(!link)) {
		m5_poll_stray(dev, qpn, imm);
		return false;
	}
	ev->link = &link->ib.base;
	ev->kind = DEV_EV_IMM;
	return m5_dlink_take(link, imm & IB_DC_ID_MAX, &ev->imm);
}

static void m5_poll_log_error(const struct m5_dev *dev, const struct m5_link *link,
			      const struct m5_err *err)
{
	UTIL_WARN(EP_DATA,
		  "%s: link 0x%06x to 0x%06x failed: %s (syndrome 0x%02x, vendor 0x%02x): %s\n",
		  ib_dev_name(&dev->ib), err->qpn, link->ib.peer_qpn, err->name, err->syndrome,
		  err->vendor, err->advice);
}

/* Returns true with an event if simple accesses ended before the WQE that failed. */
static bool m5_poll_succeeded(const struct m5_link *link, const struct m5_cqe *cqe,
			      struct dev_event *ev)
{
	uint32_t cnt = 0;

	if (link->ib.dead || !m5_sq_is_open(&link->sq, m5_cqe_counter(cqe)) ||
	    !m5_link_accessed(link, m5_cqe_counter(cqe), &cnt))
		return false;
	ev->link = (struct dev_link *)&link->ib.base;
	ev->kind = DEV_EV_ACCESS;
	ev->value = cnt;
	return true;
}

/* Returns the link that a DCI belongs to, or NULL. */
static struct m5_link *m5_poll_owner(const struct m5_dci *dci)
{
	return dci->owner ? UTIL_CONTAINER_OF(dci->owner, struct m5_link, dc.pool) : NULL;
}

void m5_poll_dci_failed(struct m5_dev *dev, uint32_t qpn, int err)
{
	struct m5_dci *dci = m5_dcis_find(&dev->dc.pool, qpn);
	struct m5_link *link = dci ? m5_poll_owner(dci) : NULL;

	if (!dci)
		return;
	m5_dct_reset(dev, dci);
	if (!link)
		return;
	m5_link_fail(link, err);
	m5_dlink_leave(link);
}

void m5_dev_event_cold(struct m5_dev *dev)
{
	struct ib_async_event event;

	while (ib_async_next(&dev->async, &event)) {
		ib_async_end(&event, &dev->qpns, &dev->uds, m5_poll_fail);
		if (event.what == IB_ASYNC_QP)
			m5_poll_dci_failed(dev, event.qpn, event.err);
	}
}

/* Ends the link with its first error. Later ones are counted as strays. */
static bool m5_poll_error(struct m5_dev *dev, const struct m5_cqe *cqe, bool is_send,
			  struct dev_event *ev)
{
	struct m5_link *link = ib_qpns_get(&dev->qpns, m5_cqe_qpn(cqe));
	struct m5_dci *dci = NULL;
	struct m5_err err;

	if (!link) {
		dci = m5_dcis_find(&dev->dc.pool, m5_cqe_qpn(cqe));
		link = dci ? m5_poll_owner(dci) : NULL;
	}
	if (!link || link->ib.dead) {
		dev->stray_cnt++;
		return false;
	}
	if (!dci)
		m5_move_unpark(link);
	m5_cqe_err_decode(cqe, &err);
	m5_poll_log_error(dev, link, &err);
	if (dci)
		m5_dlink_leave(link);
	if (is_send && !dci && m5_poll_succeeded(link, cqe, ev)) {
		m5_link_fail(link, err.status);
		return true;
	}
	/* Lets arrivals from before the failure come first: the receive queue was read earlier. */
	if (is_send && !m5_cq_is_empty(&dev->rx)) {
		m5_link_fail(link, err.status);
		return false;
	}
	link->ib.dead = true;
	util_list_remove(&link->ib.cold); /* in case an asynchronous event has failed it too */
	m5_link_unlist(link);
	m5_dlink_leave(link);
	ev->link = &link->ib.base;
	ev->kind = DEV_EV_DOWN;
	ev->status = err.status;
	return true;
}

bool m5_poll_rx_other(struct m5_dev *dev, const struct m5_cqe *cqe, struct dev_event *ev)
{
	bool is_event = m5_cqe_is_error(cqe) && m5_poll_error(dev, cqe, false, ev);

	/* An error has used up a receive WQE, too. */
	m5_poll_refill(dev, cqe);
	return is_event;
}

static bool m5_poll_ended(struct m5_link *link, const struct m5_cqe *cqe, uint64_t user,
			  struct dev_event *ev)
{
	if (user == M5_USER_NONE)
		return false;
	ev->link = &link->ib.base;
	if (m5_user_is_access(user)) {
		ev->kind = DEV_EV_ACCESS;
		ev->value = m5_user_access_cnt(user);
		return true;
	}
	if (user == M5_USER_ACK) {
		ev->kind = DEV_EV_ACK;
		return true;
	}
	if (user == M5_USER_WORD) {
		link->ib.reading = false;
		ev->kind = DEV_EV_READ;
		ev->value = *m5_link_landing(link);
		return true;
	}
	ev->kind = DEV_EV_GET;
	ev->get = (struct dev_get *)(uintptr_t)user;
	ev->get->status = 0;
	if (m5_cqe_wqe_opcode(cqe) == M5_OP_READ)
		link->ib.reads_out--;
	return true;
}

/* Handles the end of a WQE of a DC initiator. */
static __attribute__((noinline)) bool m5_poll_dci(struct m5_dev *dev, const struct m5_cqe *cqe,
						  struct dev_event *ev)
{
	struct m5_dci *dci = m5_dcis_find(&dev->dc.pool, m5_cqe_qpn(cqe));
	struct m5_link *link;
	bool is_event;

	if (!dci || !m5_sq_retire(&dci->sq, m5_cqe_counter(cqe))) {
		dev->stray_cnt++;
		return false;
	}
	link = m5_poll_owner(dci);
	is_event = m5_poll_ended(link, cqe, m5_sparse_take(&dci->users, m5_cqe_counter(cqe)), ev);
	if (m5_dci_is_idle(dci))
		m5_dcis_pass_on(&dev->dc.pool, dci);
	return is_event;
}

bool m5_poll_send(struct m5_dev *dev, struct m5_scq *scq, const struct m5_cqe *cqe,
		  struct dev_event *ev)
{
	struct m5_link *link;
	bool is_event;

	if (m5_cqe_is_error(cqe)) {
		is_event = m5_poll_error(dev, cqe, true, ev);
		m5_cq_publish(&scq->cq);
		return is_event;
	}
	link = ib_qpns_get(&dev->qpns, m5_cqe_qpn(cqe));
	if (!link) {
		is_event = m5_poll_dci(dev, cqe, ev);
		m5_cq_publish(&scq->cq);
		return is_event;
	}
	if (!m5_sq_retire(&link->sq, m5_cqe_counter(cqe)) && !m5_move_retire(link, cqe)) {
		dev->stray_cnt++;
		m5_cq_publish(&scq->cq);
		return false;
	}
	is_event = m5_poll_ended(link, cqe, m5_sparse_take(&link->users, m5_cqe_counter(cqe)), ev);
	m5_cq_publish(&scq->cq);
	return is_event;
}
