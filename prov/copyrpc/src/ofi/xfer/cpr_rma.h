/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access of endpoints. Called by cpr_ep.
 */
#ifndef OFI_XFER_CPR_RMA_H
#define OFI_XFER_CPR_RMA_H

#include <rdma/fi_rma.h>

struct cpr_ep;

/**
 * Fills in the table of an enabled endpoint with these capabilities; other accesses are refused.
 */
void cpr_rma_pick(struct cpr_ep *ep);

extern struct fi_ops_rma cpr_rma_ops;

#endif
