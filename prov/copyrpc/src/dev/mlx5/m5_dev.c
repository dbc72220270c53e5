/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mlx5 device: open, close, memory registration, waiting. Called through dev_ops, once per domain.
 *
 * arm arms every CQ in use, then polls each once more. An event of the channel names its CQ. disarm
 * reads all events, and each makes the next arm of that CQ a new one. The device ignores an arm
 * that it has already served, so arm begins with disarm.
 *
 * Tests: test/unit/dev/mlx5/test_m5_dev.c; on the device model test/integ/dev/dev_link.
 */
#include "dev/mlx5/m5_dev.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/ib/ib_mem.h"
#include "dev/mlx5/m5_dv.h"
#include "dev/mlx5/m5_link.h"
#include "dev/mlx5/m5_tm_poll.h"
#include "util/log.h"
#include "util/param.h"

struct m5_tune m5_tune = {
	.srq = IB_SRQ_DEPTH - 1,
	.cq = IB_CQ_DEPTH,
	.sq_blocks = IB_SQ_DEPTH,
};

static int m5_dev_make_chan(struct m5_dev *dev)
{
	int ret = ib_dev_make_chan(&dev->ib, &dev->chan);

	return ret ? ret : ib_async_init(&dev->async, &dev->ib, dev->chan->fd);
}

/* The CQ is larger than the receive queue, so it cannot overrun. */
static int m5_dev_make_rx(struct m5_dev *dev)
{
	return m5_dev_make_cq(dev, m5_tune.cq, &dev->rx, dev->chan, &dev->rx_obj, &dev->rx);
}

int m5_dev_take_srq(struct m5_dev *dev, struct ibv_srq *obj, uint32_t cqes, struct m5_srq *srq)
{
	struct mlx5dv_srq dv = { 0 };
	struct mlx5dv_obj objs = { .srq = { .in = obj, .out = &dv } };
	uint32_t places;

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_SRQ))
		return ib_dev_refuse(&dev->ib, "access to the shared receive queue");
	/* A fresh queue's free list is all of it, from head to tail. */
	places = dv.tail + 1;
	if (dv.head || !util_is_pow2(places) || places < 4 || places > cqes ||
	    dv.stride < sizeof(struct m5_srq_next) + sizeof(struct m5_data)) {
		UTIL_WARN(DOMAIN, "%s: libmlx5 made a receive queue of %u x %u bytes\n",
			  ib_dev_name(&dev->ib), places, dv.stride);
		return -FI_ENOSYS;
	}
	m5_srq_init(srq, dv.buf, places, dv.stride, (uint32_t *)dv.dbrec, 0);
	return 0;
}

static int m5_dev_make_srq(struct m5_dev *dev)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = m5_tune.srq, .max_sge = 1 } };
	int ret;

	dev->srq_obj = ibv_create_srq(dev->ib.pd, &attr);
	if (!dev->srq_obj)
		return ib_dev_refuse(&dev->ib, "shared receive queue");
	ret = m5_dev_take_srq(dev, dev->srq_obj, dev->rx.size, &dev->srq);
	if (!ret)
		m5_srq_post(&dev->srq);
	return ret;
}

static void m5_dev_unmake(struct m5_dev *dev)
{
	m5_dct_close(dev);
	if (dev->srq_obj)
		ibv_destroy_srq(dev->srq_obj);
	if (dev->rx_obj)
		ibv_destroy_cq(dev->rx_obj);
	ib_async_fini(&dev->async);
	if (dev->chan)
		ibv_destroy_comp_channel(dev->chan);
	ib_dev_fini(&dev->ib);
	ib_qpns_fini(&dev->qpns);
	pthread_mutex_destroy(&dev->lock);
	free(dev->active);
	free(dev);
}

static int m5_dev_open_at(const struct ib_dev *beside, struct dev **out)
{
	struct m5_dev *dev =
		aligned_alloc(UTIL_CACHE_LINE, util_align_up(sizeof(*dev), UTIL_CACHE_LINE));
	int ret;

	if (!dev)
		return -FI_ENOMEM;
	memset(dev, 0, sizeof(*dev));
	util_list_init(&dev->early);
	util_list_init(&dev->uds);
	util_list_init(&dev->waiting);
	util_list_init(&dev->to_free);
	util_list_init(&dev->scqs);
	util_list_init(&dev->tms);
	util_list_init(&dev->regs);
	ret = ib_dev_init(&dev->ib, m5_dv_fits, beside);
	if (ret) {
		free(dev);
		return ret;
	}
	pthread_mutex_init(&dev->lock, NULL);
	ret = m5_dev_make_chan(dev);
	if (!ret)
		ret = m5_dev_make_rx(dev);
	if (!ret)
		ret = m5_dev_make_srq(dev);
	if (ret) {
		m5_dev_unmake(dev);
		return ret;
	}
	m5_dct_open(dev);
	*out = (struct dev *)dev;
	return 0;
}

int m5_dev_open(struct dev **out)
{
	return m5_dev_open_at(NULL, out);
}

int m5_dev_open_beside(struct dev *other, struct dev **out)
{
	return m5_dev_open_at(&((struct m5_dev *)other)->ib, out);
}

void m5_dev_close(struct dev *base)
{
	struct m5_dev *dev = (struct m5_dev *)base;

	m5_dev_disarm(base);
	m5_dev_defer_destroy(dev);
	UTIL_INFO(DOMAIN, "%s closes: %llu completions came too late for their links\n",
		  ib_dev_name(&dev->ib), (unsigned long long)dev->stray_cnt);
	m5_dev_unmake(dev);
}

int m5_dev_probe(struct dev_about *about)
{
	return ib_dev_probe(m5_dv_fits, about);
}

int m5_dev_mem_reg(struct dev *base, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem)
{
	return ib_user_reg(&((struct m5_dev *)base)->ib, addr, len, access, mem);
}

void m5_dev_mem_dereg(struct dev *base, struct dev_mem *mem)
{
	ib_user_dereg(mem);
}

uint32_t m5_dev_own_left(struct dev *base)
{
	struct m5_dev *dev = (struct m5_dev *)base;
	uint32_t cnt, max = (uint32_t)util_params.rc_max;

	pthread_mutex_lock(&dev->lock);
	cnt = dev->rc_cnt;
	pthread_mutex_unlock(&dev->lock);
	return cnt < max ? max - cnt : 0;
}

int m5_dev_wait_fd(struct dev *base)
{
	return ((struct m5_dev *)base)->async.wait_fd;
}

/* Returns true if links have events, or work that no completion will make possible. */
static bool m5_dev_is_early(struct m5_dev *dev)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->early) {
		const struct m5_link *link = UTIL_CONTAINER_OF(it, struct m5_link, ib.cold);

		if (!ib_early_is_empty(&link->ib.early) || link->ib.err ||
		    (m5_move_is_due(link) && !m5_move_may_sleep(link)))
			return true;
	}
	return false;
}

/* Arms the CQs of all tag lists. Returns false if one of them has something to do. */
static bool m5_dev_arm_tms(struct m5_dev *dev)
{
	bool empty = true;
	struct util_list *it;

	pthread_mutex_lock(&dev->lock);
	for (it = util_list_first(&dev->tms); it && it != &dev->tms; it = it->next)
		empty = m5_tm_arm(UTIL_CONTAINER_OF(it, struct m5_tm, in_dev)) && empty;
	pthread_mutex_unlock(&dev->lock);
	return empty;
}

int m5_dev_arm(struct dev *base)
{
	struct m5_dev *dev = (struct m5_dev *)base;
	bool empty;
	uint32_t i;

	m5_dev_disarm(base);
	m5_dev_event_cold(dev);
	empty = !m5_dev_is_early(dev);
	m5_cq_arm(&dev->rx);
	for (i = 0; i < dev->active_cnt; i++)
		m5_cq_arm(&dev->active[i]->cq);
	empty = m5_dev_arm_tms(dev) && empty && m5_cq_is_empty(&dev->rx);
	for (i = 0; i < dev->active_cnt; i++)
		empty = empty && m5_cq_is_empty(&dev->active[i]->cq);
	return empty ? 0 : -FI_EAGAIN;
}

/* The context of a send CQ is its struct m5_scq. */
static_assert(!offsetof(struct m5_scq, cq), "the context of every CQ is a struct m5_cq");

void m5_dev_disarm(struct dev *base)
{
	struct m5_dev *dev = (struct m5_dev *)base;
	struct ibv_cq *obj;
	void *context;

	/* Keeps the control thread from destroying a queue while its events are read. */
	pthread_mutex_lock(&dev->lock);
	while (!ibv_get_cq_event(dev->chan, &obj, &context)) {
		m5_cq_event(context);
		ibv_ack_cq_events(obj, 1);
	}
	pthread_mutex_unlock(&dev->lock);
}

int m5_dev_health(struct dev *base)
{
	struct m5_dev *dev = (struct m5_dev *)base;

	m5_dev_event_cold(dev);
	m5_dct_restart(dev);
	return ib_async_health(&dev->async);
}
