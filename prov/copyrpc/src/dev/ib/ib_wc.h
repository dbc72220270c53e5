/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a failed completion mean, and what can the user do?
 *
 * Shown by test/unit/dev/ib/test_ib_wc.c.
 */
#ifndef IB_IB_WC_H
#define IB_IB_WC_H

#include <infiniband/verbs.h>

/** As -FI_E*; 0 for IBV_WC_SUCCESS. */
int ib_wc_errno(enum ibv_wc_status status);

/** A sentence for the log: what happened, and where to look. */
const char *ib_wc_advice(enum ibv_wc_status status);

/** The one line about a link that died. Not for IBV_WC_WR_FLUSH_ERR that follows another. */
void ib_wc_log(const char *device, uint32_t qpn, uint32_t peer_qpn, enum ibv_wc_status status,
	       uint32_t vendor_err);

#endif
