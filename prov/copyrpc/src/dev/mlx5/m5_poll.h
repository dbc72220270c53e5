/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll of the mlx5 device. Compiled into the engine's loop.
 *
 * An idle poll is three loads: the list of early links, the owner bit of the receive CQ's next CQE,
 * and that of one send CQ. An arrival is an owner bit, a CQE, two loads to find the link, and its
 * receive WQE appended to the free list. Every few hundred arrivals the list is given to the
 * device, after the CQ's consumer index.
 *
 * The hot functions are inline, and m5_dev_ops_inline and m5_link_ops_inline are constants: the
 * engine's loop has no indirect call.
 */
#ifndef DEV_MLX5_M5_POLL_H
#define DEV_MLX5_M5_POLL_H

#include "dev/mlx5/m5_access.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_link.h"

/** Returns the event of the first link in m5_dev.early: an arrival from before attach, or DOWN. */
bool m5_poll_early(struct m5_dev *dev, struct dev_event *ev);
/** Handles any other CQE of the receive CQ. Returns true if it is an event. */
bool m5_poll_rx_other(struct m5_dev *dev, const struct m5_cqe *cqe, struct dev_event *ev);
/**
 * Handles an arrival for a QP that is no attached link's: an arrival over DC is an event. Keeps
 * others for attach, or counts them. Returns true if it is an event.
 */
bool m5_poll_other(struct m5_dev *dev, uint32_t qpn, uint32_t imm, struct dev_event *ev);
/** Handles a CQE of a send CQ. Returns true if it is an event. */
bool m5_poll_send(struct m5_dev *dev, struct m5_scq *scq, const struct m5_cqe *cqe,
		  struct dev_event *ev);

/** Handles the failure of a DC initiator without a completion: ends its link, and resets it. */
void m5_poll_dci_failed(struct m5_dev *dev, uint32_t qpn, int err);

/** Returns the receive WQE of a CQE to the free list. */
static inline void m5_poll_refill(struct m5_dev *dev, const struct m5_cqe *cqe)
{
	if (UTIL_UNLIKELY(!m5_srq_give(&dev->srq, m5_cqe_counter(cqe))))
		dev->stray_cnt++;
	if (UTIL_UNLIKELY(m5_srq_is_due(&dev->srq))) {
		m5_cq_publish(&dev->rx);
		m5_srq_post(&dev->srq);
	}
}

/** Polls one send CQ, in turn. */
static inline bool m5_poll_sends(struct m5_dev *dev, struct dev_event *ev)
{
	const struct m5_cqe *cqe;
	struct m5_scq *scq;

	if (!dev->active_cnt)
		return false;
	scq = dev->active[dev->cursor];
	while (UTIL_UNLIKELY((cqe = m5_cq_poll(&scq->cq)) != NULL))
		if (m5_poll_send(dev, scq, cqe, ev))
			return true;
	/* The last active queue may have ended with its error. */
	if (++dev->cursor >= dev->active_cnt)
		dev->cursor = 0;
	if (UTIL_UNLIKELY(ib_async_is_due(&dev->async)))
		m5_dev_event_cold(dev);
	return false;
}

static inline bool m5_poll(struct dev *base, struct dev_event *ev)
{
	struct m5_dev *dev = (struct m5_dev *)base;
	const struct m5_cqe *cqe;

	if (UTIL_UNLIKELY(dev->early.next != &dev->early) && m5_poll_early(dev, ev))
		return true;
	while ((cqe = m5_cq_poll(&dev->rx)) != NULL) {
		if (UTIL_LIKELY(cqe->op_own >> 4 == M5_CQE_RESP_WRITE_IMM)) {
			uint32_t qpn = m5_cqe_qpn(cqe), imm = be32toh(cqe->imm);
			struct m5_link *link = ib_qpns_get(&dev->qpns, qpn);

			m5_poll_refill(dev, cqe);
			if (UTIL_UNLIKELY(!link)) {
				if (m5_poll_other(dev, qpn, imm, ev))
					return true;
				continue;
			}
			ev->link = &link->ib.base;
			ev->kind = DEV_EV_IMM;
			ev->imm = imm;
			return true;
		}
		if (m5_poll_rx_other(dev, cqe, ev))
			return true;
	}
	return m5_poll_sends(dev, ev);
}

#define M5_LINK_OPS_INIT                                                                           \
	{                                                                                          \
		.write_imm = m5_link_write_imm, .write_imm_ack = m5_link_write_imm_ack,            \
		.acks_are_free = m5_dlink_acks_are_free, .read_consumer = m5_link_read_consumer,   \
		.get = m5_link_get, .put = m5_link_put, .access = m5_link_access,                  \
		.settle = m5_link_settle, .kick = m5_link_kick, .describe = m5_link_describe,      \
		.connect = m5_link_connect, .attach = m5_link_attach, .detach = m5_link_detach,    \
		.close = m5_link_close, .move = m5_link_move, .adopt = ib_link_adopt,              \
	}

#define M5_DEV_OPS_INIT                                                                            \
	{                                                                                          \
		.name = "mlx5", .probe = m5_dev_probe, .open = m5_dev_open,                        \
		.open_beside = m5_dev_open_beside, .close = m5_dev_close,                          \
		.link_create = m5_link_create, .link_beside = m5_link_beside,                      \
		.mem_reg = m5_dev_mem_reg, .mem_dereg = m5_dev_mem_dereg, .poll = m5_poll,         \
		.wait_fd = m5_dev_wait_fd, .arm = m5_dev_arm, .disarm = m5_dev_disarm,             \
		.own_left = m5_dev_own_left, .health = m5_dev_health,                              \
	}

/** Operations behind one address, for comparisons. */
extern const struct dev_link_ops m5_link_ops;
extern const struct dev_ops m5_dev_ops;

/** Operations as constants, for inlining. */
static const struct dev_link_ops m5_link_ops_inline __attribute__((unused)) = M5_LINK_OPS_INIT;
static const struct dev_ops m5_dev_ops_inline __attribute__((unused)) = M5_DEV_OPS_INIT;

#endif
