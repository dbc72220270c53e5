/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors and remedies for failed completions. Called by the verbs device.
 */
#ifndef DEV_IB_IB_WC_H
#define DEV_IB_IB_WC_H

#include <infiniband/verbs.h>

/** Returns the error for a status, 0 for IBV_WC_SUCCESS. */
int ib_wc_errno(enum ibv_wc_status status);

/** Returns a text for the log: cause and remedy. */
const char *ib_wc_advice(enum ibv_wc_status status);

/** Logs the failure of a link, once. Not for an IBV_WC_WR_FLUSH_ERR that follows another error. */
void ib_wc_log(const char *device, uint32_t qpn, uint32_t peer_qpn, enum ibv_wc_status status,
	       uint32_t vendor_err);

#endif
