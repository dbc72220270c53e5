/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State that all verbs links of a device share.
 *
 * One completion queue: a poll costs the same for one peer and for a thousand. One shared receive
 * queue of zero-length WQEs: each arriving write uses one. Further: a map of QP numbers, and memory
 * for transfers in progress.
 *
 * The completion queue cannot overrun: it has room for the whole receive queue and for every WQE
 * that any link may have in flight, as a failed queue pair completes all its WQEs. It grows with
 * the links.
 *
 * A peer may write once it has connected, even before the local attach. Such arrivals are kept in
 * their link (early) and returned right after attach.
 *
 * Belongs to the polling thread, except links that are not attached and the size of the completion
 * queue: these are under `lock`, shared with the control thread.
 */
#ifndef DEV_VERBS_VB_DEV_H
#define DEV_VERBS_VB_DEV_H

#include <pthread.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dev/ib/ib_async.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_qpns.h"
#include "util/bits.h"
#include "util/list.h"
#include "util/pool.h"

#define VB_POLL_BATCH 16u /* completions fetched at a time */

/** Queue depths. Tests use small ones, to reach wraps soon. */
struct vb_tune {
	uint32_t srq_depth;
	uint32_t sq_depth;
	uint32_t signal_interval; /* at most half of sq_depth */
	uint32_t chunk_len;       /* longest piece of a get or put */
};

struct vb_dev {
	/* Used by poll. */
	struct ibv_cq *cq;
	uint32_t wc_at;  /* index of the next one in wc[] */
	uint32_t wc_cnt; /* number of valid entries in wc[] */
	uint32_t srq_posted;
	uint32_t srq_low;       /* refill below this number */
	struct util_list early; /* attached links with arrivals from before attach: ib_link.cold */
	struct util_list failing; /* links to end that no completion has ended: ib_link.cold */
	struct ib_async async;
	struct util_list uds; /* ib_ud.in_dev */
	struct ibv_wc wc[VB_POLL_BATCH];
	struct ib_qpns qpns; /* attached links that are not dead */

	/* Rarely used. */
	struct ibv_srq *srq;
	struct ibv_recv_wr *recv_wrs; /* a chain of srq_depth, built once */
	struct ibv_comp_channel *channel;
	struct util_pool ops; /* struct vb_op */
	struct vb_tune tune;
	struct ib_dev ib;
	uint32_t event_cnt; /* read from the channel, not yet acknowledged */
	uint64_t stray_cnt; /* completions of detached links */

	pthread_mutex_t lock;
	struct util_list waiting; /* links that are not attached: ib_link.cold */
	uint32_t link_cnt;
	uint32_t cq_depth;
};

/** Computes depths for a device's limits. */
void vb_tune_default(const struct ib_dev *ib, struct vb_tune *tune);

/** Opens a device with the caller's depths, or default ones (NULL). */
int vb_dev_open_tuned(const struct vb_tune *tune, struct dev **dev);

/** Makes room in the completion queue for one more link / releases it. */
int vb_dev_add_link(struct vb_dev *dev);
void vb_dev_remove_link(struct vb_dev *dev);

/**
 * Removes the number of a queue pair that is gone from completions fetched and not returned, so
 * that a later one with that number does not get them. Polling thread.
 */
void vb_dev_forget(struct vb_dev *dev, uint32_t qpn);

/** Posts the missing WQEs of the shared receive queue. */
void vb_dev_refill_cold(struct vb_dev *dev);

static inline void vb_dev_refill(struct vb_dev *dev)
{
	if (UTIL_UNLIKELY(dev->srq_posted < dev->srq_low))
		vb_dev_refill_cold(dev);
}

/** Handles asynchronous events of the device: puts the links that they end into `failing`. */
void vb_dev_event_cold(struct vb_dev *dev);

int vb_dev_probe(struct dev_about *about);
int vb_dev_open(struct dev **dev);
int vb_dev_open_beside(struct dev *other, struct dev **dev);
void vb_dev_close(struct dev *dev);
int vb_dev_mem_reg(struct dev *dev, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem);
void vb_dev_mem_dereg(struct dev *dev, struct dev_mem *mem);
int vb_dev_wait_fd(struct dev *dev);
int vb_dev_arm(struct dev *dev);
void vb_dev_disarm(struct dev *dev);
int vb_dev_health(struct dev *dev);

#endif
