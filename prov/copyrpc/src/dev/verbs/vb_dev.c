/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs device: open, close, shared queues, waiting (vb_dev.h).
 *
 * arm requests an event for the next completion and polls once more, to find completions that
 * arrived in between.
 */
#include <assert.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/verbs/vb.h"
#include "util/log.h"

#define VB_OPS_CHUNK      64u
#define VB_CQE_PLENTY     (1 << 20) /* devices with this many CQEs give every link a deep queue */
#define VB_SQ_DEPTH_SMALL 64u
#define VB_EVENTS_ACK     1024u

const struct dev_ops vb_dev_ops = VB_DEV_OPS_INIT;

static uint32_t vb_min(uint32_t a, uint64_t b)
{
	return a < b ? a : (uint32_t)b;
}

void vb_tune_default(const struct ib_dev *ib, struct vb_tune *tune)
{
	const struct ibv_device_attr *attr = &ib->attr.orig_attr;
	bool plenty = attr->max_cqe >= VB_CQE_PLENTY;
	uint32_t sq_depth =
		vb_min(plenty ? IB_SQ_DEPTH : VB_SQ_DEPTH_SMALL, (uint32_t)attr->max_qp_wr);

	*tune = (struct vb_tune){
		.srq_depth = vb_min(IB_SRQ_DEPTH, (uint32_t)attr->max_srq_wr),
		.sq_depth = sq_depth,
		.signal_interval = vb_min(IB_SIGNAL_INTERVAL, sq_depth / 4),
		.chunk_len = vb_min(VB_CHUNK_LEN, ib->port_attr.max_msg_sz),
	};
}

int vb_dev_add_link(struct vb_dev *dev)
{
	uint64_t need, depth;
	int ret = 0;

	pthread_mutex_lock(&dev->lock);
	need = dev->tune.srq_depth + (uint64_t)dev->tune.sq_depth * (dev->link_cnt + 1);
	depth = util_pow2_ceil(need);
	if ((uint64_t)dev->ib.attr.orig_attr.max_cqe < depth)
		depth = (uint64_t)dev->ib.attr.orig_attr.max_cqe;
	if (need > dev->cq_depth && (need > depth || ibv_resize_cq(dev->cq, (int)depth))) {
		UTIL_WARN(EP_CTRL,
			  "%s: no room for more than %u connections in one completion queue of "
			  "this device\n",
			  ib_dev_name(&dev->ib), dev->link_cnt);
		ret = -FI_ENOSPC;
	} else {
		dev->link_cnt++;
		if (need > dev->cq_depth)
			dev->cq_depth = (uint32_t)depth;
	}
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

void vb_dev_remove_link(struct vb_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->link_cnt--;
	pthread_mutex_unlock(&dev->lock);
}

/* No link has number 0: such a completion returns its receive WQE, and is counted as a stray. */
void vb_dev_forget(struct vb_dev *dev, uint32_t qpn)
{
	for (uint32_t i = dev->wc_at; i < dev->wc_cnt; i++)
		if (dev->wc[i].qp_num == qpn)
			dev->wc[i].qp_num = 0;
}

void vb_dev_refill_cold(struct vb_dev *dev)
{
	uint32_t cnt = dev->tune.srq_depth - dev->srq_posted;
	struct ibv_recv_wr *bad = NULL, *last = &dev->recv_wrs[cnt - 1], *next = last->next;
	int err;

	last->next = NULL;
	err = ibv_post_srq_recv(dev->srq, dev->recv_wrs, &bad);
	last->next = next;
	if (!err)
		dev->srq_posted += cnt;
	else if (bad) /* the WQEs before `bad` are posted; the next arrival tries again */
		dev->srq_posted += (uint32_t)(bad - dev->recv_wrs);
}

static int vb_dev_make_srq(struct vb_dev *dev)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = dev->tune.srq_depth, .max_sge = 1 },
	};

	dev->recv_wrs = calloc(dev->tune.srq_depth, sizeof(*dev->recv_wrs));
	if (!dev->recv_wrs)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < dev->tune.srq_depth; i++) {
		dev->recv_wrs[i].wr_id = VB_KIND_RECV;
		dev->recv_wrs[i].next = i + 1 < dev->tune.srq_depth ? &dev->recv_wrs[i + 1] : NULL;
	}
	dev->srq = ibv_create_srq(dev->ib.pd, &attr);
	if (!dev->srq)
		return ib_dev_refuse(&dev->ib, "shared receive queue");
	dev->srq_low = dev->tune.srq_depth - dev->tune.srq_depth / 3;
	vb_dev_refill_cold(dev);
	return dev->srq_posted == dev->tune.srq_depth ? 0 : -FI_EIO;
}

static int vb_dev_make_cq(struct vb_dev *dev)
{
	uint64_t depth = vb_min(IB_CQ_DEPTH, (uint64_t)dev->ib.attr.orig_attr.max_cqe);
	int ret = ib_dev_make_chan(&dev->ib, &dev->channel);

	if (ret)
		return ret;
	dev->cq = ibv_create_cq(dev->ib.ctx, (int)depth, NULL, dev->channel, 0);
	if (!dev->cq)
		return ib_dev_refuse(&dev->ib, "completion queue");
	dev->cq_depth = (uint32_t)dev->cq->cqe;
	return ib_async_init(&dev->async, &dev->ib, dev->channel->fd);
}

/* Frees the parts made so far. The device is open. */
static void vb_dev_free(struct vb_dev *dev)
{
	if (dev->srq)
		ibv_destroy_srq(dev->srq);
	if (dev->cq) {
		ibv_ack_cq_events(dev->cq, dev->event_cnt);
		ibv_destroy_cq(dev->cq);
	}
	ib_async_fini(&dev->async);
	if (dev->channel)
		ibv_destroy_comp_channel(dev->channel);
	free(dev->recv_wrs);
	ib_qpns_fini(&dev->qpns);
	util_pool_fini(&dev->ops);
	pthread_mutex_destroy(&dev->lock);
	ib_dev_fini(&dev->ib);
	free(dev);
}

static int vb_dev_open_at(const struct ib_dev *beside, const struct vb_tune *tune, struct dev **out)
{
	struct vb_dev *dev = calloc(1, sizeof(*dev));
	int ret;

	if (!dev)
		return -FI_ENOMEM;
	ret = ib_dev_init(&dev->ib, NULL, beside);
	if (ret) {
		free(dev);
		return ret;
	}
	pthread_mutex_init(&dev->lock, NULL);
	util_list_init(&dev->early);
	util_list_init(&dev->failing);
	util_list_init(&dev->uds);
	util_list_init(&dev->waiting);
	util_pool_init(&dev->ops, sizeof(struct vb_op), VB_OPS_CHUNK, 0);
	if (tune)
		dev->tune = *tune;
	else
		vb_tune_default(&dev->ib, &dev->tune);
	ret = vb_dev_make_cq(dev);
	if (!ret)
		ret = vb_dev_make_srq(dev);
	if (ret) {
		vb_dev_free(dev);
		return ret;
	}
	*out = (struct dev *)dev;
	return 0;
}

int vb_dev_open_tuned(const struct vb_tune *tune, struct dev **out)
{
	return vb_dev_open_at(NULL, tune, out);
}

int vb_dev_open(struct dev **out)
{
	return vb_dev_open_at(NULL, NULL, out);
}

int vb_dev_open_beside(struct dev *other, struct dev **out)
{
	return vb_dev_open_at(&((struct vb_dev *)other)->ib, NULL, out);
}

void vb_dev_close(struct dev *base)
{
	struct vb_dev *dev = (struct vb_dev *)base;

	assert(!dev->link_cnt);
	UTIL_INFO(DOMAIN, "%s closes: %llu completions came too late for their links\n",
		  ib_dev_name(&dev->ib), (unsigned long long)dev->stray_cnt);
	vb_dev_free(dev);
}

int vb_dev_probe(struct dev_about *about)
{
	return ib_dev_probe(NULL, about);
}

int vb_dev_mem_reg(struct dev *base, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem)
{
	return ib_user_reg(&((struct vb_dev *)base)->ib, addr, len, access, mem);
}

void vb_dev_mem_dereg(struct dev *base, struct dev_mem *mem)
{
	ib_user_dereg(mem);
}

int vb_dev_wait_fd(struct dev *base)
{
	return ((struct vb_dev *)base)->async.wait_fd;
}

/* Reads the events that have come, so that the descriptor is no longer readable. */
static void vb_dev_drain(struct vb_dev *dev)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(dev->channel, &cq, &context))
		if (++dev->event_cnt == VB_EVENTS_ACK) {
			ibv_ack_cq_events(dev->cq, dev->event_cnt);
			dev->event_cnt = 0;
		}
}

int vb_dev_arm(struct dev *base)
{
	struct vb_dev *dev = (struct vb_dev *)base;

	vb_dev_drain(dev);
	vb_dev_event_cold(dev);
	if (ibv_req_notify_cq(dev->cq, 0))
		return -FI_EAGAIN; /* the caller polls */
	if (!util_list_is_empty(&dev->early) || !util_list_is_empty(&dev->failing))
		return -FI_EAGAIN;
	if (dev->wc_at < dev->wc_cnt || vb_poll_fill(dev))
		return -FI_EAGAIN;
	return 0;
}

void vb_dev_disarm(struct dev *base)
{
	vb_dev_drain((struct vb_dev *)base);
}

int vb_dev_health(struct dev *base)
{
	struct vb_dev *dev = (struct vb_dev *)base;

	vb_dev_event_cold(dev);
	return ib_async_health(&dev->async);
}
