/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoint of the verbs device: dev/dgram.h on a UD queue pair. Called by the datagram
 * engine.
 *
 * A burst is a chain of work requests and one ibv_post_send: one doorbell. Every signal_interval-th
 * datagram is signalled, and those with DEV_DGRAM_REPORT. The completion of datagram n means that
 * all up to n have left. The queue holds at least two intervals, so a full one always has a
 * completion pending.
 *
 * One completion queue serves both directions. Receive buffers are slots (dev/ib/ib_ud.h), each
 * with a work request built once. Free slots are chained and posted many at a time.
 *
 * Runs in the polling thread; resolve in any. Tests: test/unit/dev/verbs/test_vb_ud.c, on a kernel
 * device test/rxe.
 */
#ifndef DEV_VERBS_VB_UD_H
#define DEV_VERBS_VB_UD_H

#include "dev/ib/ib_ud.h"
#include "dev/verbs/vb_dev.h"

#define VB_UD_BURST  16u /* work requests of one chain */
#define VB_UD_INLINE 60u
#define VB_UD_BULK   32u /* receives posted at once */

/** Flag in wr_id: a send. The rest is the number of the next datagram, or the slot of a receive. */
#define VB_UD_SEND 1u

struct vb_ud_ah {
	struct dev_dgram_ah base;
	struct ibv_ah *obj;
	uint32_t qpn;
	uint32_t qkey;
};

struct vb_ud_slot {
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
};

struct vb_ud {
	struct ib_ud ib;
	uint32_t wc_at; /* index of the next one in wc[] */
	uint32_t wc_cnt;
	uint32_t tx_depth;
	uint32_t tx_silent; /* WQEs since the last signalled one */
	uint32_t signal_interval;
	uint32_t rx_posted;
	uint32_t rx_free; /* number in the chain */
	uint32_t rx_bulk;
	struct ibv_recv_wr *free_first, *free_last;
	struct vb_ud_slot *slots;
	struct ibv_send_wr wrs[VB_UD_BURST];
	struct ibv_sge sges[VB_UD_BURST][DEV_DGRAM_PIECES];
	struct ibv_wc wc[VB_POLL_BATCH];

	/* Rarely used. */
	uint32_t event_cnt; /* read from the channel, not yet acknowledged */
	struct vb_dev *dev;
};

int vb_ud_open(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg);
void vb_ud_close(struct dev_dgram *dg);
int vb_ud_resolve(struct dev_dgram *dg, const struct dev_desc *peer, struct dev_dgram_ah **ah);
void vb_ud_forget(struct dev_dgram *dg, struct dev_dgram_ah *ah);
int vb_ud_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt);
int vb_ud_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);
void vb_ud_release(struct dev_dgram *dg, uint32_t slot);
int vb_ud_arm(struct dev_dgram *dg);
void vb_ud_disarm(struct dev_dgram *dg);

/** Posts the chain of free receives. */
void vb_ud_post_free(struct vb_ud *ud);

extern const struct dev_dgram_ops vb_dgram_ops;

#endif
