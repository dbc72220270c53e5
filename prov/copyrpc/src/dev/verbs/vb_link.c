/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life of a verbs link, from create to close. The hot part is inline in vb_link.h. */
#include "dev/verbs/vb_link.h"

#include <assert.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/ib/ib_qp.h"
#include "dev/verbs/vb_poll.h"
#include "util/log.h"

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
	struct ibv_qp *qp = NULL;

	for (size_t i = 0; !qp && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		qp = vb_link_try_qp(dev, sizes[i], &link->inline_max);
		if (!qp && errno != EINVAL)
			break;
	}
	return qp ? ib_link_init_qp(&link->ib, qp) : ib_dev_refuse(&dev->ib, "queue pair");
}

/*
 * Destroys the queue pair. The device reuses its number, so completions that poll has fetched for
 * an attached link lose it. A link that never was one may be closed by the control thread.
 */
static void vb_link_drop_qp(struct vb_link *link)
{
	if (!link->ib.qp)
		return;
	ibv_destroy_qp(link->ib.qp);
	link->ib.qp = NULL;
	if (link->was_attached)
		vb_dev_forget(link->dev, link->ib.qpn);
}

static void vb_link_free(struct vb_link *link)
{
	vb_link_drop_qp(link);
	ib_link_fini(&link->ib);
	free(link);
}

static struct vb_link *vb_link_alloc(struct vb_dev *dev)
{
	struct vb_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->ib.base.ops = &vb_link_ops;
	link->dev = dev;
	link->sq_depth = dev->tune.sq_depth;
	link->signal_interval = dev->tune.signal_interval;
	util_list_init(&link->ops);
	util_list_init(&link->ib.cold);
	return link;
}

/* Makes a link with a ring of rx_len bytes, or over the rings of `first`. */
static int vb_link_new(struct vb_dev *dev, uint64_t rx_len, struct dev_link *first,
		       struct dev_link **out)
{
	struct vb_link *link;
	int ret;

	link = vb_link_alloc(dev);
	if (!link)
		return -FI_ENOMEM;
	ret = vb_dev_add_link(dev);
	if (ret)
		goto err_free;
	ret = first ? ib_link_share_memory(&link->ib, &dev->ib, (struct ib_link *)first)
		    : ib_link_make_memory(&link->ib, &dev->ib, rx_len);
	if (!ret)
		ret = vb_link_make_qp(link);
	if (ret)
		goto err_remove;
	*out = &link->ib.base;
	return 0;

err_remove:
	vb_dev_remove_link(dev);
err_free:
	vb_link_free(link);
	return ret;
}

int vb_link_create(struct dev *base, uint64_t rx_len, struct dev_link **out)
{
	return vb_link_new((struct vb_dev *)base, rx_len, NULL, out);
}

int vb_link_beside(struct dev *base, struct dev_link *first, struct dev_link **out)
{
	return vb_link_new((struct vb_dev *)base, 0, first, out);
}

int vb_link_connect(struct dev_link *base, const struct dev_desc *peer)
{
	struct vb_link *link = (struct vb_link *)base;
	struct ib_desc desc;
	int ret = ib_desc_decode(peer, &desc);

	if (ret)
		return ret;
	base->inline_max = link->inline_max;
	return ib_link_connect(&link->ib, &desc, &link->dev->lock, &link->dev->waiting);
}

int vb_link_attach(struct dev_link *base)
{
	struct vb_link *link = (struct vb_link *)base;
	struct vb_dev *dev = link->dev;
	int ret;

	assert(!link->ib.attached && link->ib.tx.addr);
	ret = ib_qpns_set(&dev->qpns, link->ib.qpn, link);
	if (ret)
		return ret;
	ib_link_attached(&link->ib, &dev->lock, &dev->early);
	link->was_attached = true;
	return 0;
}

void vb_link_fail_cold(struct vb_link *link, int err)
{
	UTIL_INFO(EP_DATA, "%s: qp 0x%06x takes no more work: %s\n", ib_dev_name(&link->dev->ib),
		  link->ib.qp->qp_num, strerror(err));
	vb_link_fail(link, -FI_EIO);
}

void vb_link_fail(struct vb_link *link, int status)
{
	link->ib.dead = true;
	link->ib.err = status;
	if (!ib_early_is_empty(&link->ib.early))
		return; /* early arrivals come first */
	util_list_remove(&link->ib.cold);
	util_list_push_back(&link->dev->failing, &link->ib.cold);
}

void vb_link_kill(struct vb_link *link)
{
	link->ib.dead = true;
	ib_qpns_clear(&link->dev->qpns, link->ib.qp->qp_num);
	util_list_remove(&link->ib.cold);
	ib_qp_stop(link->ib.qp);
	/* Only without a queue pair is it certain that the device touches no buffer. */
	if (!util_list_is_empty(&link->ops)) {
		vb_link_drop_qp(link);
		vb_bulk_drop(link);
	}
}

void vb_link_detach(struct dev_link *base)
{
	struct vb_link *link = (struct vb_link *)base;

	if (!link->ib.attached)
		return;
	if (link->ib.qp)
		vb_link_kill(link);
	link->ib.attached = false;
}

void vb_link_close(struct dev_link *base)
{
	struct vb_link *link = (struct vb_link *)base;
	struct vb_dev *dev = link->dev;

	assert(!link->ib.attached);
	pthread_mutex_lock(&dev->lock);
	util_list_remove(&link->ib.cold);
	pthread_mutex_unlock(&dev->lock);
	vb_link_free(link);
	vb_dev_remove_link(dev);
}

int vb_link_read_consumer(struct dev_link *base, uint64_t *value)
{
	struct vb_link *link = (struct vb_link *)base;
	struct ibv_sge sge = {
		.addr = (uintptr_t)link->ib.tx.addr,
		.length = sizeof(*value),
		.lkey = link->ib.tx_lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = link->ib.peer_word, .rkey = link->ib.peer_word_rkey },
	};

	assert(!link->ib.reading);
	if (link->ib.dead || !vb_link_sq_room(link) || link->ib.reads_out >= link->ib.reads_max)
		return -FI_EAGAIN;
	if (!vb_link_post(link, &wr, VB_KIND_WORD))
		return -FI_EAGAIN;
	link->ib.reading = true;
	link->ib.reads_out++;
	return 0;
}
