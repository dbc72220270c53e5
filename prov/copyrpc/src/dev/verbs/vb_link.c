/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life of a verbs link, from create to close. The hot part is inline in vb_link.h. */
#include "dev/verbs/vb_link.h"

#include <assert.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_qp.h"
#include "dev/verbs/vb_poll.h"
#include "util/log.h"

#define VB_PAGE 4096u

const struct dev_link_ops vb_link_ops = VB_LINK_OPS_INIT;

static struct ibv_qp *vb_link_try_qp(struct vb_dev *dev, uint32_t inline_max, uint32_t *got)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = dev->cq,
		.recv_cq = dev->cq,
		.srq = dev->srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = dev->tune.sq_depth,
			 .max_send_sge = 1,
			 .max_inline_data = inline_max },
	};
	struct ibv_qp *qp = ibv_create_qp(dev->ib.pd, &attr);

	*got = attr.cap.max_inline_data;
	return qp;
}

/* Requests inline room for the largest inline batch, or less if the device refuses. */
static int vb_link_make_qp(struct vb_link *link)
{
	static const uint32_t sizes[] = { 220, 92, 28, 0 };
	struct vb_dev *dev = link->dev;

	for (size_t i = 0; !link->qp && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		link->qp = vb_link_try_qp(dev, sizes[i], &link->inline_max);
		if (!link->qp && errno != EINVAL)
			break;
	}
	if (!link->qp) {
		UTIL_WARN(EP_CTRL, "%s: no queue pair: %s\n", ib_dev_name(&dev->ib),
			  strerror(errno));
		return -FI_ENOMEM;
	}
	return ib_qp_init(link->qp, &dev->ib);
}

static int vb_link_make_rx(struct vb_link *link, uint64_t rx_len)
{
	struct ib_dev *ib = &link->dev->ib;
	int ret = ib_mem_init(&link->rx, ib, rx_len,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ib->relaxed);

	if (ret)
		return ret;
	link->base.rx_base = link->rx.addr;
	link->base.rx_len = rx_len;
	ret = ib_mem_init(&link->word, ib, VB_PAGE, IBV_ACCESS_REMOTE_READ);
	if (!ret)
		link->base.consumer_word = link->word.addr;
	return ret;
}

static void vb_link_free(struct vb_link *link)
{
	if (link->qp)
		ibv_destroy_qp(link->qp);
	ib_mem_fini(&link->tx);
	ib_mem_fini(&link->word);
	ib_mem_fini(&link->rx);
	ib_early_fini(&link->early);
	free(link);
}

static struct vb_link *vb_link_alloc(struct vb_dev *dev)
{
	struct vb_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->base.ops = &vb_link_ops;
	link->dev = dev;
	link->sq_depth = dev->tune.sq_depth;
	link->signal_interval = dev->tune.signal_interval;
	util_list_init(&link->ops);
	util_list_init(&link->cold);
	util_list_init(&link->waiting);
	return link;
}

int vb_link_create(struct dev *base, uint64_t rx_len, struct dev_link **out)
{
	struct vb_dev *dev = (struct vb_dev *)base;
	struct vb_link *link;
	int ret;

	if (!util_is_pow2(rx_len) || rx_len < IB_RING_MIN || rx_len > IB_RING_MAX)
		return -FI_EINVAL;
	link = vb_link_alloc(dev);
	if (!link)
		return -FI_ENOMEM;
	ret = vb_dev_add_link(dev);
	if (ret)
		goto err_free;
	ret = vb_link_make_rx(link, rx_len);
	if (!ret)
		ret = vb_link_make_qp(link);
	if (ret)
		goto err_remove;
	link->psn = ib_qp_psn();
	*out = &link->base;
	return 0;

err_remove:
	vb_dev_remove_link(dev);
err_free:
	vb_link_free(link);
	return ret;
}

int vb_link_describe(struct dev_link *base, struct dev_desc *desc)
{
	struct vb_link *link = (struct vb_link *)base;

	ib_qp_describe(link->qp, &link->dev->ib, link->psn, &link->rx, &link->word, desc);
	return 0;
}

static int vb_link_make_tx(struct vb_link *link, const struct ib_desc *d)
{
	int ret = ib_mem_init(&link->tx, &link->dev->ib, VB_PAGE + d->ring_len,
			      IBV_ACCESS_LOCAL_WRITE | link->dev->ib.relaxed);

	if (ret)
		return ret;
	link->base.tx_base = (uint8_t *)link->tx.addr + VB_PAGE;
	link->base.tx_len = d->ring_len;
	link->tx_lkey = link->tx.mr->lkey;
	link->peer_ring = d->ring_addr;
	link->peer_rkey = d->ring_rkey;
	link->peer_word = d->word_addr;
	link->peer_word_rkey = d->word_rkey;
	link->peer_qpn = d->qpn;
	return 0;
}

static void vb_link_wait(struct vb_link *link)
{
	pthread_mutex_lock(&link->dev->lock);
	util_list_push_back(&link->dev->waiting, &link->waiting);
	pthread_mutex_unlock(&link->dev->lock);
}

static void vb_link_wait_end(struct vb_link *link)
{
	pthread_mutex_lock(&link->dev->lock);
	util_list_remove(&link->waiting);
	pthread_mutex_unlock(&link->dev->lock);
}

int vb_link_connect(struct dev_link *base, const struct dev_desc *peer)
{
	struct vb_link *link = (struct vb_link *)base;
	struct ib_desc d;
	int ret;

	assert(!link->tx.addr);
	ret = ib_desc_decode(peer, &d);
	if (ret)
		return ret;
	ret = vb_link_make_tx(link, &d);
	if (ret)
		return ret;
	vb_link_wait(link); /* the peer may write from here on */
	ret = ib_qp_connect(link->qp, &link->dev->ib, link->psn, &d, &link->reads_max);
	if (ret) {
		vb_link_wait_end(link);
		ib_mem_fini(&link->tx);
		base->tx_base = NULL;
		base->tx_len = 0;
		return ret;
	}
	base->inband_len = 0;
	base->caps |= DEV_CAP_GET | DEV_CAP_PUT;
	return 0;
}

int vb_link_attach(struct dev_link *base)
{
	struct vb_link *link = (struct vb_link *)base;
	struct vb_dev *dev = link->dev;
	int ret;

	assert(!link->attached && link->tx.addr);
	ret = ib_qpns_set(&dev->qpns, link->qp->qp_num, link);
	if (ret)
		return ret;
	vb_link_wait_end(link);
	link->attached = true;
	if (!ib_early_is_empty(&link->early) || link->err)
		util_list_push_back(&dev->early, &link->cold);
	return 0;
}

void vb_link_fail_cold(struct vb_link *link, int err)
{
	UTIL_INFO(EP_DATA, "%s: qp 0x%06x takes no more work: %s\n", ib_dev_name(&link->dev->ib),
		  link->qp->qp_num, strerror(err));
	vb_link_fail(link, -FI_EIO);
}

void vb_link_fail(struct vb_link *link, int status)
{
	link->dead = true;
	link->err = status;
	if (!ib_early_is_empty(&link->early))
		return; /* early arrivals come first */
	util_list_remove(&link->cold);
	util_list_push_back(&link->dev->failing, &link->cold);
}

void vb_link_kill(struct vb_link *link)
{
	link->dead = true;
	ib_qpns_clear(&link->dev->qpns, link->qp->qp_num);
	util_list_remove(&link->cold);
	ib_qp_stop(link->qp);
	/* Only without a queue pair is it certain that the device touches no buffer. */
	if (!util_list_is_empty(&link->ops)) {
		ibv_destroy_qp(link->qp);
		link->qp = NULL;
		vb_bulk_drop(link);
	}
}

void vb_link_detach(struct dev_link *base)
{
	struct vb_link *link = (struct vb_link *)base;

	if (!link->attached)
		return;
	if (link->qp)
		vb_link_kill(link);
	link->attached = false;
}

void vb_link_close(struct dev_link *base)
{
	struct vb_link *link = (struct vb_link *)base;
	struct vb_dev *dev = link->dev;

	assert(!link->attached);
	vb_link_wait_end(link);
	vb_link_free(link);
	vb_dev_remove_link(dev);
}

int vb_link_read_consumer(struct dev_link *base, uint64_t *value)
{
	struct vb_link *link = (struct vb_link *)base;
	struct ibv_sge sge = {
		.addr = (uintptr_t)link->tx.addr,
		.length = sizeof(*value),
		.lkey = link->tx_lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = link->peer_word, .rkey = link->peer_word_rkey },
	};

	assert(!link->reading);
	if (link->dead || !vb_link_sq_room(link) || link->reads_out >= link->reads_max)
		return -FI_EAGAIN;
	if (!vb_link_post(link, &wr, VB_KIND_WORD))
		return -FI_EAGAIN;
	link->reading = true;
	link->reads_out++;
	return 0;
}
