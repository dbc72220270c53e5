/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll of the verbs device. Compiled into the engine's loop.
 *
 * ibv_poll_cq fetches completions in batches, which poll returns one by one. Arrived writes are
 * handled here, all others in vb_poll.c. The hot functions are inline, and vb_dev_ops_inline and
 * vb_link_ops_inline are constants: the only indirect calls are those of libibverbs.
 */
#ifndef DEV_VERBS_VB_POLL_H
#define DEV_VERBS_VB_POLL_H

#include "dev/verbs/vb_bulk.h"
#include "dev/verbs/vb_dev.h"
#include "dev/verbs/vb_link.h"

/** Returns an arrival from before attach, if one is left. */
bool vb_poll_early(struct vb_dev *dev, struct dev_event *ev);
/** Ends a link of `failing`. Runs after pending completions, which tell the cause. */
bool vb_poll_failing(struct vb_dev *dev, struct dev_event *ev);
/** Handles any other completion. Returns true if it is an event. */
bool vb_poll_other(struct vb_dev *dev, const struct ibv_wc *wc, struct dev_event *ev);
/** Handles an arrival for a QP that is not attached: keeps it for attach, or counts it. */
void vb_poll_stray(struct vb_dev *dev, const struct ibv_wc *wc);
/** Logs once that ibv_poll_cq failed. */
void vb_poll_broken(struct vb_dev *dev);

static inline bool vb_poll_fill(struct vb_dev *dev)
{
	int cnt = ibv_poll_cq(dev->cq, VB_POLL_BATCH, dev->wc);

	if (UTIL_UNLIKELY(cnt < 0)) {
		vb_poll_broken(dev);
		cnt = 0;
	}
	dev->wc_at = 0;
	dev->wc_cnt = (uint32_t)cnt;
	return cnt > 0;
}

static inline bool vb_poll(struct dev *base, struct dev_event *ev)
{
	struct vb_dev *dev = (struct vb_dev *)base;

	for (;;) {
		const struct ibv_wc *wc;

		/*
		 * Early arrivals come before all completions, which may belong to the same links.
		 */
		while (UTIL_UNLIKELY(dev->early.next != &dev->early))
			if (vb_poll_early(dev, ev))
				return true;
		if (dev->wc_at == dev->wc_cnt && !vb_poll_fill(dev)) {
			if (UTIL_UNLIKELY(ib_async_is_due(&dev->async)))
				vb_dev_event_cold(dev);
			return UTIL_UNLIKELY(dev->failing.next != &dev->failing) &&
			       vb_poll_failing(dev, ev);
		}
		wc = &dev->wc[dev->wc_at++];
		if (UTIL_LIKELY(wc->status == IBV_WC_SUCCESS &&
				wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)) {
			struct vb_link *link = ib_qpns_get(&dev->qpns, wc->qp_num);

			dev->srq_posted--;
			vb_dev_refill(dev);
			if (UTIL_UNLIKELY(!link)) {
				vb_poll_stray(dev, wc);
				continue;
			}
			ev->link = &link->ib.base;
			ev->kind = DEV_EV_IMM;
			ev->imm = ntohl(wc->imm_data);
			return true;
		}
		if (vb_poll_other(dev, wc, ev))
			return true;
	}
}

#define VB_LINK_OPS_INIT                                                                           \
	{                                                                                          \
		.write_imm = vb_link_write_imm, .write_imm_ack = vb_link_write_imm_ack,            \
		.read_consumer = vb_link_read_consumer, .get = vb_link_get, .put = vb_link_put,    \
		.describe = ib_link_describe, .connect = vb_link_connect,                          \
		.attach = vb_link_attach, .detach = vb_link_detach, .close = vb_link_close,        \
		.adopt = ib_link_adopt,                                                            \
	}

#define VB_DEV_OPS_INIT                                                                            \
	{                                                                                          \
		.name = "verbs", .probe = vb_dev_probe, .open = vb_dev_open,                       \
		.open_beside = vb_dev_open_beside, .close = vb_dev_close,                          \
		.link_create = vb_link_create, .link_beside = vb_link_beside,                      \
		.mem_reg = vb_dev_mem_reg, .mem_dereg = vb_dev_mem_dereg, .poll = vb_poll,         \
		.wait_fd = vb_dev_wait_fd, .arm = vb_dev_arm, .disarm = vb_dev_disarm,             \
		.health = vb_dev_health,                                                           \
	}

/** Operations behind one address, for comparisons. */
extern const struct dev_link_ops vb_link_ops;
extern const struct dev_ops vb_dev_ops;

/** Operations as constants, for inlining. */
static const struct dev_link_ops vb_link_ops_inline __attribute__((unused)) = VB_LINK_OPS_INIT;
static const struct dev_ops vb_dev_ops_inline __attribute__((unused)) = VB_DEV_OPS_INIT;

#endif
