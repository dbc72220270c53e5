/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rare cases of poll (vb_poll.h). */
#include "dev/verbs/vb_poll.h"

#include <endian.h>
#include <rdma/fi_errno.h>

#include "dev/ib/ib_wc.h"
#include "util/log.h"

static bool vb_poll_down(struct vb_link *link, int err, struct dev_event *ev)
{
	vb_link_kill(link);
	ev->link = &link->ib.base;
	ev->kind = DEV_EV_DOWN;
	ev->status = err;
	return true;
}

bool vb_poll_early(struct vb_dev *dev, struct dev_event *ev)
{
	struct vb_link *link = UTIL_CONTAINER_OF(dev->early.next, struct vb_link, ib.cold);

	if (ib_early_take(&link->ib.early, &ev->imm)) {
		ev->link = &link->ib.base;
		ev->kind = DEV_EV_IMM;
		return true;
	}
	util_list_remove(&link->ib.cold);
	ib_early_fini(&link->ib.early);
	if (link->ib.err)
		util_list_push_back(&dev->failing, &link->ib.cold);
	return false;
}

bool vb_poll_failing(struct vb_dev *dev, struct dev_event *ev)
{
	struct vb_link *link = UTIL_CONTAINER_OF(dev->failing.next, struct vb_link, ib.cold);

	return vb_poll_down(link, link->ib.err, ev);
}

void vb_poll_stray(struct vb_dev *dev, const struct ibv_wc *wc)
{
	struct ib_link *link;

	pthread_mutex_lock(&dev->lock);
	link = ib_link_find(&dev->waiting, wc->qp_num);
	if (!link)
		dev->stray_cnt++;
	else if (!ib_early_put(&link->early, link->base.rx_len, ntohl(wc->imm_data)))
		link->err = -FI_EIO;
	pthread_mutex_unlock(&dev->lock);
}

/* Records a failed completion of a link not attached yet, or counts one of a detached link. */
static void vb_poll_fail_stray(struct vb_dev *dev, const struct ibv_wc *wc)
{
	struct ib_link *link;

	pthread_mutex_lock(&dev->lock);
	link = ib_link_find(&dev->waiting, wc->qp_num);
	if (link)
		link->err = ib_wc_errno(wc->status);
	else
		dev->stray_cnt++;
	pthread_mutex_unlock(&dev->lock);
}

static bool vb_poll_failed(struct vb_dev *dev, const struct ibv_wc *wc, struct dev_event *ev)
{
	struct vb_link *link = ib_qpns_get(&dev->qpns, wc->qp_num);

	if ((wc->wr_id & UINT8_MAX) == VB_KIND_RECV) {
		dev->srq_posted--;
		vb_dev_refill(dev);
	}
	if (!link) {
		vb_poll_fail_stray(dev, wc);
		return false;
	}
	ib_wc_log(ib_dev_name(&dev->ib), wc->qp_num, link->ib.peer_qpn, wc->status, wc->vendor_err);
	return vb_poll_down(link, ib_wc_errno(wc->status), ev);
}

/* Ends the link after an arrival that is not a write. */
static bool vb_poll_foreign(struct vb_dev *dev, struct vb_link *link, struct dev_event *ev)
{
	dev->srq_posted--;
	vb_dev_refill(dev);
	if (!link)
		return false;
	UTIL_WARN(EP_DATA, "%s: qp 0x%06x: the peer sent an illegal operation: connection ended\n",
		  ib_dev_name(&dev->ib), link->ib.qp->qp_num);
	return vb_poll_down(link, -FI_EIO, ev);
}

bool vb_poll_other(struct vb_dev *dev, const struct ibv_wc *wc, struct dev_event *ev)
{
	struct vb_link *link;

	if (wc->status != IBV_WC_SUCCESS)
		return vb_poll_failed(dev, wc, ev);
	link = ib_qpns_get(&dev->qpns, wc->qp_num);
	if ((wc->wr_id & UINT8_MAX) == VB_KIND_RECV)
		return vb_poll_foreign(dev, link, ev);
	if (!link) {
		dev->stray_cnt++;
		return false;
	}
	ev->link = &link->ib.base;
	vb_link_retire(link, (uint32_t)(wc->wr_id >> VB_KIND_BITS));
	switch ((enum vb_kind)(wc->wr_id & UINT8_MAX)) {
	case VB_KIND_WORD:
		link->ib.reading = false;
		link->ib.reads_out--;
		ev->kind = DEV_EV_READ;
		ev->value =
			le64toh(__atomic_load_n((uint64_t *)link->ib.tx.addr, __ATOMIC_ACQUIRE));
		vb_bulk_push(link);
		return true;
	case VB_KIND_BULK:
		ev->kind = DEV_EV_GET;
		ev->get = vb_bulk_done(link);
		vb_bulk_push(link);
		return ev->get;
	case VB_KIND_WRITE: vb_bulk_push(link); break;
	case VB_KIND_ACK:
		vb_bulk_push(link);
		ev->kind = DEV_EV_ACK;
		return true;
	case VB_KIND_RECV: break;
	}
	return false;
}

static void vb_poll_fail(void *link, int err)
{
	vb_link_fail(link, err);
}

void vb_dev_event_cold(struct vb_dev *dev)
{
	ib_async_run(&dev->async, &dev->qpns, &dev->uds, vb_poll_fail);
}

void vb_poll_broken(struct vb_dev *dev)
{
	static bool logged;

	if (!__atomic_exchange_n(&logged, true, __ATOMIC_RELAXED))
		UTIL_WARN(CQ, "%s: the completion queue is broken: was the device reset?\n",
			  ib_dev_name(&dev->ib));
}
