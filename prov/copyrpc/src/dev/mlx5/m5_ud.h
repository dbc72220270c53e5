/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoint of the mlx5 device: dev/dgram.h on a UD queue pair. Called by the datagram
 * engine.
 *
 * A send is a control segment, the address vector and the bytes: up to M5_UD_INLINE of them in the
 * WQE, above that a gather entry for each piece. A burst is one doorbell (m5_sq.h).
 *
 *   address vector   48 bytes, or 16 where the device supports the short form and no routing header
 *                    is needed. Copied from the address handle that libmlx5 makes.
 *   inline           2 blocks (1 with a short address and up to 28 bytes)
 *   gathered         2 blocks (1 with a short address and one piece)
 *
 * The user word of a signalled WQE in the sparse table is the number of the next datagram. Its
 * completion sets tx_done to it.
 *
 * One CQ serves both directions, deep enough for all that can complete: an idle poll is one load.
 * Receive buffers are slots (dev/ib/ib_ud.h) in the queue pair's own ring (m5_rq.h).
 *
 * Runs in the polling thread; resolve in any. Tests: test/unit/dev/mlx5/test_m5_ud.c; on the device
 * model test/integ/dev/dev_dgram.
 */
#ifndef DEV_MLX5_M5_UD_H
#define DEV_MLX5_M5_UD_H

#include <rdma/fi_errno.h>

#include "dev/ib/ib_ud.h"
#include "dev/mlx5/m5_cq.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_rq.h"
#include "dev/mlx5/m5_sq.h"

#define M5_UD_INLINE 60u
#define M5_UD_BB     2u /* largest WQE */

struct m5_ud_ah {
	struct dev_dgram_ah base;
	struct m5_av av; /* complete, with the peer's QP number and Q_Key */
};

struct m5_ud {
	struct ib_ud ib;
	struct m5_cq cq;
	struct m5_sq sq;
	struct m5_rq rq;
	struct m5_sparse users; /* number of the datagram after a signalled WQE */

	/* Rarely used. */
	struct m5_dev *dev;
};

static_assert(offsetof(struct m5_ud, ib) == 0 && offsetof(struct ib_ud, base) == 0,
	      "devices embed dev_dgram first");

/** Handles any other CQE: the end of a send, or an error (sets ib.status). */
void m5_ud_other_cold(struct m5_ud *ud, const struct m5_cqe *cqe);
/** Handles a receive of a wrong length or with data in the CQE. Returns false if it is dropped. */
bool m5_ud_take_cold(struct m5_ud *ud, const struct m5_cqe *cqe, uint8_t *slot);

static inline void m5_ud_build(struct m5_ud *ud, const struct dev_dgram_out *out, uint16_t bb)
{
	const struct m5_ud_ah *ah = (const struct m5_ud_ah *)out->to;
	uint32_t len = dev_dgram_out_len(out);
	struct m5_wqe wqe;
	uint8_t flags;

	m5_wqe_begin(&wqe, m5_sq_reserve(&ud->sq, bb));
	m5_wqe_av(&wqe, &ah->av);
	if (len <= M5_UD_INLINE) {
		m5_wqe_inline2(&wqe, out->base[0], out->len[0], out->base[1], out->len[1]);
	} else {
		for (unsigned i = 0; i < DEV_DGRAM_PIECES; i++)
			if (out->len[i])
				m5_wqe_data(&wqe, (uintptr_t)out->base[i], out->len[i],
					    ib_user_lkey(out->mem[i]));
	}
	flags = m5_sq_signal(&ud->sq, bb);
	if (out->flags & DEV_DGRAM_REPORT)
		flags = M5_CTRL_SIGNAL;
	ud->ib.base.tx_posted++;
	if (flags)
		m5_sparse_put(&ud->users, ud->sq.pi, ud->ib.base.tx_posted);
	bb = m5_wqe_end(&wqe, ud->sq.pi, M5_OP_SEND, ud->sq.qpn, flags, 0);
	m5_sq_commit(&ud->sq, bb, flags);
}

static inline int m5_ud_send(struct dev_dgram *base, const struct dev_dgram_out *out, unsigned cnt)
{
	struct m5_ud *ud = (struct m5_ud *)base;
	unsigned i;

	if (UTIL_UNLIKELY(ud->ib.status))
		return ud->ib.status;
	for (i = 0; i < cnt && m5_sq_has_room(&ud->sq, M5_UD_BB); i++)
		m5_ud_build(ud, &out[i], M5_UD_BB);
	m5_sq_ring(&ud->sq);
	return i || !cnt ? (int)i : -FI_EAGAIN;
}

/* Gives free buffers back to the device, many at a time. */
static inline void m5_ud_refill(struct m5_ud *ud)
{
	if (UTIL_UNLIKELY(m5_rq_is_due(&ud->rq))) {
		m5_cq_publish(&ud->cq);
		m5_rq_publish(&ud->rq);
	}
}

static inline void m5_ud_release(struct dev_dgram *base, uint32_t slot)
{
	struct m5_ud *ud = (struct m5_ud *)base;

	base->rx_retained--;
	m5_rq_put(&ud->rq, ib_ud_slot(&ud->ib, slot) + IB_UD_GRH_OFF, slot);
	m5_ud_refill(ud);
}

/* Takes a received datagram. Returns false if it is dropped. */
static inline bool m5_ud_take(struct m5_ud *ud, const struct m5_cqe *cqe, struct dev_dgram_in *in)
{
	uint32_t len = be32toh(cqe->len) - IB_UD_GRH_LEN, source = be32toh(cqe->flags_rqpn);
	uint64_t user;
	uint8_t *slot;

	if (UTIL_UNLIKELY(!m5_rq_take(&ud->rq, m5_cqe_counter(cqe), &user)))
		return false;
	slot = ib_ud_slot(&ud->ib, (uint32_t)user);
	ud->ib.base.rx_retained++;
	if (UTIL_UNLIKELY(len > ud->ib.base.mtu || m5_cqe_scattered(cqe)) &&
	    !m5_ud_take_cold(ud, cqe, slot)) {
		m5_ud_release(&ud->ib.base, (uint32_t)user);
		return false;
	}
	in->data = slot + IB_UD_DATA_OFF;
	in->len = len;
	in->slot = (uint32_t)user;
	ib_ud_from(&ud->ib, slot, source & M5_QPN_MASK, be16toh(cqe->slid), source >> 28 & 3,
		   &in->from);
	return true;
}

/* Handles asynchronous events when nothing has arrived. Returns the endpoint's status. */
static inline int m5_ud_idle(struct m5_ud *ud)
{
	if (UTIL_UNLIKELY(ib_async_is_due(&ud->dev->async)))
		m5_dev_event_cold(ud->dev);
	return ud->ib.status;
}

static __attribute__((noinline, unused)) int m5_ud_poll_some(struct m5_ud *ud,
							     struct dev_dgram_in *in, unsigned cnt)
{
	const struct m5_cqe *cqe;
	unsigned n = 0;

	while (n < cnt && (cqe = m5_cq_poll(&ud->cq)) != NULL) {
		if (UTIL_LIKELY(cqe->op_own >> 4 == M5_CQE_RESP_SEND))
			n += m5_ud_take(ud, cqe, &in[n]);
		else
			m5_ud_other_cold(ud, cqe);
	}
	return n ? (int)n : m5_ud_idle(ud);
}

static inline int m5_ud_poll(struct dev_dgram *base, struct dev_dgram_in *in, unsigned cnt)
{
	struct m5_ud *ud = (struct m5_ud *)base;

	return m5_cq_is_empty(&ud->cq) ? m5_ud_idle(ud) : m5_ud_poll_some(ud, in, cnt);
}

static inline bool m5_ud_is_idle(struct dev_dgram *base)
{
	struct m5_ud *ud = (struct m5_ud *)base;

	return m5_cq_is_empty(&ud->cq) && !m5_ud_idle(ud);
}

int m5_ud_open(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg);
void m5_ud_close(struct dev_dgram *dg);
int m5_ud_resolve(struct dev_dgram *dg, const struct dev_desc *peer, struct dev_dgram_ah **ah);
void m5_ud_forget(struct dev_dgram *dg, struct dev_dgram_ah *ah);
int m5_ud_arm(struct dev_dgram *dg);
void m5_ud_disarm(struct dev_dgram *dg);

/** Fills the address vector that reaches d from the one that the library made. */
void m5_ud_av(struct m5_av *av, const void *made, const struct ib_ud_desc *d);

#define M5_DGRAM_OPS_INIT                                                                          \
	{                                                                                          \
		.open = m5_ud_open, .close = m5_ud_close, .describe = ib_ud_describe,              \
		.resolve = m5_ud_resolve, .forget = m5_ud_forget, .send = m5_ud_send,              \
		.poll = m5_ud_poll, .is_idle = m5_ud_is_idle, .release = m5_ud_release,            \
		.wait_fd = ib_ud_wait_fd, .arm = m5_ud_arm, .disarm = m5_ud_disarm,                \
	}

/** Operations behind one address, and as a constant for inlining. */
extern const struct dev_dgram_ops m5_dgram_ops;
static const struct dev_dgram_ops m5_dgram_ops_inline __attribute__((unused)) = M5_DGRAM_OPS_INIT;

#endif
