/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "model/nic/nic_be.h"
#include "model/nic/nic_rwqe.h"

void nic_rwqe_decode(struct nic_rwqe *rwqe, const uint8_t *stride, uint32_t len)
{
	rwqe->seg_cnt = 0;
	rwqe->len = 0;
	for (uint32_t at = 0; at + 16 <= len && rwqe->seg_cnt < NIC_RWQE_MAX_SEGS; at += 16) {
		struct nic_scatter seg = { .len = nic_be32_get(stride + at),
					   .lkey = nic_be32_get(stride + at + 4),
					   .addr = nic_be64_get(stride + at + 8) };

		if (seg.len == 0 && seg.lkey == NIC_LKEY_END)
			break;
		if (seg.len == 0)
			continue;
		rwqe->seg[rwqe->seg_cnt++] = seg;
		rwqe->len += seg.len;
	}
}

uint16_t nic_rwqe_decode_shared(struct nic_rwqe *rwqe, const uint8_t *stride, uint32_t len)
{
	nic_rwqe_decode(rwqe, stride + NIC_SRQ_LINK_BYTES, len - NIC_SRQ_LINK_BYTES);
	return nic_be16_get(stride + 2);
}
