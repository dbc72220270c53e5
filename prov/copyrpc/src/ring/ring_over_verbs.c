/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport over any RDMA device, through libibverbs: this device's copy of the loop.
 *
 * Reading the peer's consumer word takes a round trip, so the flush policy uses the advertised
 * position.
 */
#include "dev/verbs/vb.h"
#include "ring/ring_over.h"
#include "ring/ring_transports.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_verbs_flush_cfg = { .best_len = RING_NIC_BEST_LEN,
							    .packet_len = RING_NIC_BEST_LEN };

RING_OVER(verbs, WIRE_CM_PATH_NIC, vb_dev_ops, vb_dev_ops_inline, vb_link_ops_inline,
	  ring_verbs_flush_cfg);
