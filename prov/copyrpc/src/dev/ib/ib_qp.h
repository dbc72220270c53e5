/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs of RC links: state changes and timeouts. Called by m5_link.c and vb_link.c.
 *
 * An unacknowledged packet is sent again IB_RETRIES times, each after 4.096 us << timeout. The
 * timeout is the longest that fits FI_COPYRPC_PEER_TIMEOUT, and at most about a second, to bound
 * the cost of a lost last packet. RNR retries have no limit: a peer without a posted receive may
 * compute for minutes. The other retries notice its death.
 *
 * Tests: test/unit/dev/ib/test_ib_qp.c, on a kernel device test/rxe.
 */
#ifndef DEV_IB_IB_QP_H
#define DEV_IB_IB_QP_H

#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_mem.h"

#define IB_RETRIES     6u /* 7, the maximum, means for ever on soft-RoCE */
#define IB_RNR_FOREVER 7  /* rnr_retry */
#define IB_RNR_TIMER   12 /* 0.64 ms between retries after RNR */
#define IB_HOP_LIMIT   64
#define IB_TIMEOUT_MAX 18u /* 1.07 s */

/** Returns the timeout exponent for a peer that may be silent for `ms`: 1 to IB_TIMEOUT_MAX. */
uint8_t ib_qp_timeout(unsigned ms);

/** Moves RESET -> INIT. Remote access is limited by rkeys only. */
int ib_qp_init(struct ibv_qp *qp, const struct ib_dev *dev);

/**
 * Moves INIT -> RTR -> RTS towards `peer`. own_psn is the one in the local description,
 * is_brief: DEV_CAP_BRIEF. Sets *rd_atomic to the READs that may be in flight. Returns 0 or an
 * error, logged.
 */
int ib_qp_connect(struct ibv_qp *qp, const struct ib_dev *dev, uint32_t own_psn,
		  const struct ib_desc *peer, bool is_brief, uint8_t *rd_atomic);

/** Logs that a queue pair cannot enter `state`. Returns the error for errno's value `err`. */
int ib_qp_fail(const struct ib_dev *dev, const char *state, int err);

/** Moves any state -> ERR: the device executes no posted work any more. */
void ib_qp_stop(struct ibv_qp *qp);

/** Returns a random packet number. */
uint32_t ib_qp_psn(void);

/**
 * Describes a link's end: queue pair (NULL: none), ring that the peer writes, word that the peer
 * reads.
 */
void ib_qp_describe(const struct ibv_qp *qp, const struct ib_dev *dev, uint32_t psn,
		    const struct ib_mem *ring, const struct ib_mem *word, struct ib_desc *desc);

/** Returns true if packets to `peer` need a GRH: always on Ethernet, else to another subnet. */
bool ib_qp_is_global(const struct ib_dev *dev, const struct ib_desc *peer);

/** Returns 0, or -FI_EHOSTUNREACH with a log line if the two ports are of different kinds. */
int ib_qp_check_layer(const struct ib_dev *dev, const struct ib_desc *peer);

#endif
