/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a queue pair come to life, how long does it try, and how does it end?
 *
 * Retries: a packet that is not acknowledged is sent again IB_RETRIES times, each after
 * 4.096 us << timeout. The timeout is the longest that lets them all end within
 * FI_COPYRPC_PEER_TIMEOUT, and at most about a second, so that a lost last packet does not cost
 * more. A peer that has no receive posted is waited for without end: it may compute for minutes.
 * Its death is noticed by the retries all the same.
 *
 * Shown by test/unit/dev/ib/test_ib_qp.c, and on a kernel device by test/rxe.
 */
#ifndef IB_IB_QP_H
#define IB_IB_QP_H

#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_mem.h"

#define IB_RETRIES     6u  /* 7, the most there is, means for ever on soft-RoCE */
#define IB_TIMEOUT_MAX 18u /* 1.07 s */

/** The timeout exponent for a peer that may be silent for `ms`: 1 to IB_TIMEOUT_MAX. */
uint8_t ib_qp_timeout(unsigned ms);

/** RESET -> INIT. The peer may write and read; local rkeys decide what. */
int ib_qp_init(struct ibv_qp *qp, const struct ib_dev *dev);

/**
 * INIT -> RTR -> RTS towards `peer`. own_psn is what describe told. *rd_atomic: READs that may be
 * in flight.
 */
int ib_qp_connect(struct ibv_qp *qp, const struct ib_dev *dev, uint32_t own_psn,
		  const struct ib_desc *peer, uint8_t *rd_atomic);

/** Any state -> ERR: nothing of what was posted is carried out any more. */
void ib_qp_stop(struct ibv_qp *qp);

/** A random PSN. */
uint32_t ib_qp_psn(void);

/** Describes a link's end: its queue pair, the ring that the peer writes, the word that it reads. */
void ib_qp_describe(const struct ibv_qp *qp, const struct ib_dev *dev, uint32_t psn,
		    const struct ib_mem *ring, const struct ib_mem *word, struct dev_desc *desc);

#endif
