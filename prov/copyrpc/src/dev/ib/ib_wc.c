/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Meaning of completion statuses (ib_wc.h). No state. */
#include "dev/ib/ib_wc.h"

#include <rdma/fi_errno.h>

#include "util/log.h"

struct ib_wc_row {
	int err;
	const char *advice;
};

#define IB_WC_BUG "a bug in copyrpc or in the device: please report this line"

static const struct ib_wc_row ib_wc_rows[] = {
	[IBV_WC_LOC_LEN_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_LOC_QP_OP_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_LOC_EEC_OP_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_LOC_PROT_ERR] = { FI_EACCES,
				  "the local buffer is not registered (any more): was it freed or "
				  "unmapped before its transfer ended?" },
	[IBV_WC_WR_FLUSH_ERR] = { FI_ECONNABORTED,
				  "the connection failed earlier: see the line above, or the "
				  "peer's log" },
	[IBV_WC_MW_BIND_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_BAD_RESP_ERR] = { FI_EIO, "the peer's response is malformed: check its firmware" },
	[IBV_WC_LOC_ACCESS_ERR] = { FI_EACCES,
				    "illegal write by the peer: is it the same version?" },
	[IBV_WC_REM_INV_REQ_ERR] = { FI_EREMOTEIO,
				     "the peer's device refuses the request: are both ends the "
				     "same version?" },
	[IBV_WC_REM_ACCESS_ERR] = { FI_EREMOTEIO,
				    "the peer's memory is not registered for this (any more): did "
				    "it free or unmap a buffer too early?" },
	[IBV_WC_REM_OP_ERR] = { FI_EREMOTEIO,
				"the peer's device failed the request: see the peer's log" },
	[IBV_WC_RETRY_EXC_ERR] = { FI_ETIMEDOUT,
				   "no response: the peer died, or the network is down or drops "
				   "packets (RoCE: check its lossless class, MTU and GID)" },
	[IBV_WC_RNR_RETRY_EXC_ERR] = { FI_ETIMEDOUT,
				       "the peer is alive but posts no receives: is it stopped?" },
	[IBV_WC_LOC_RDD_VIOL_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { FI_EREMOTEIO, IB_WC_BUG },
	[IBV_WC_REM_ABORT_ERR] = { FI_ECONNRESET, "the peer's device aborted: see the peer's log" },
	[IBV_WC_INV_EECN_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_INV_EEC_STATE_ERR] = { FI_EIO, IB_WC_BUG },
	[IBV_WC_FATAL_ERR] = { FI_EIO, "the device failed: see dmesg" },
	[IBV_WC_RESP_TIMEOUT_ERR] = { FI_ETIMEDOUT, "no response: is the peer alive?" },
	[IBV_WC_GENERAL_ERR] = { FI_EIO, "the device failed: see dmesg" },
};

#define IB_WC_ROW_CNT (sizeof(ib_wc_rows) / sizeof(ib_wc_rows[0]))

static const struct ib_wc_row *ib_wc_row(enum ibv_wc_status status)
{
	static const struct ib_wc_row unknown = { FI_EIO, IB_WC_BUG };

	if ((unsigned)status >= IB_WC_ROW_CNT || !ib_wc_rows[status].advice)
		return &unknown;
	return &ib_wc_rows[status];
}

int ib_wc_errno(enum ibv_wc_status status)
{
	return status == IBV_WC_SUCCESS ? 0 : -ib_wc_row(status)->err;
}

const char *ib_wc_advice(enum ibv_wc_status status)
{
	return ib_wc_row(status)->advice;
}

void ib_wc_log(const char *device, uint32_t qpn, uint32_t peer_qpn, enum ibv_wc_status status,
	       uint32_t vendor_err)
{
	UTIL_WARN(EP_DATA,
		  "%s: connection of qp 0x%06x to qp 0x%06x: %s (vendor code 0x%02x): %s\n", device,
		  qpn, peer_qpn, ibv_wc_status_str(status), vendor_err, ib_wc_advice(status));
}
