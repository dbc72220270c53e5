/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "model/nic/nic_av.h"

#include "model/nic/nic_be.h"

static void nic_av_decode_extended(struct nic_av *av, const uint8_t *bytes)
{
	uint32_t word = nic_be32_get(bytes + 28);

	memcpy(av->rmac, bytes + 20, sizeof(av->rmac));
	av->tclass = bytes[26];
	av->hop_limit = bytes[27];
	av->grh = word >> 30 & 1;
	av->sgid_index = word >> 20 & 0xff;
	av->flow_label = word & 0xfffff;
	memcpy(av->rgid, bytes + 32, sizeof(av->rgid));
}

uint32_t nic_av_decode(struct nic_av *av, const uint8_t *bytes, uint32_t len)
{
	uint32_t word;

	*av = (struct nic_av){ 0 };
	if (len < NIC_AV_BASE)
		return 0;
	word = nic_be32_get(bytes + 8);
	av->dc_key = nic_be64_get(bytes);
	av->qkey = nic_be32_get(bytes);
	av->qpn = word & 0xffffff;
	av->extended = word >> 31;
	av->sl = bytes[12] & 0xf;
	av->src_path_bits = bytes[13] & 0x7f;
	av->rlid = nic_be16_get(bytes + 14);
	if (!av->extended)
		return NIC_AV_BASE;
	if (len < NIC_AV_EXTENDED)
		return 0;
	nic_av_decode_extended(av, bytes);
	return NIC_AV_EXTENDED;
}
