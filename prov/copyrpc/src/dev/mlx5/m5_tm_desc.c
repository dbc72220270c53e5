/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Description of queue pairs for tag matching: see m5_tm_desc.h. */
#include "dev/mlx5/m5_tm_desc.h"

#include <assert.h>
#include <endian.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "util/log.h"

/** Queue pairs for what software sends and for the device, little endian. */
struct m5_tm_desc {
	uint32_t qpn[2];
	uint32_t psn[2];
	uint16_t lid;
	uint8_t mtu; /* enum ibv_mtu */
	uint8_t rd_atomic;
	uint32_t zero;
	uint8_t gid[16];
};

static_assert(sizeof(struct m5_tm_desc) == M5_TM_DESC_LEN, "format");

void m5_tm_desc_encode(const struct m5_tm_peer *peer, uint8_t *bytes)
{
	struct m5_tm_desc desc = { 0 };
	struct ib_desc half[2];

	m5_tm_peer_describe(peer, &half[0], &half[1]);
	for (unsigned i = 0; i < 2; i++) {
		desc.qpn[i] = htole32(half[i].qpn);
		desc.psn[i] = htole32(half[i].psn);
	}
	desc.lid = htole16(half[0].lid);
	desc.mtu = half[0].mtu;
	desc.rd_atomic = half[0].rd_atomic;
	memcpy(desc.gid, half[0].gid.raw, sizeof(desc.gid));
	memcpy(bytes, &desc, sizeof(desc));
}

static bool m5_tm_desc_is_legal(const struct m5_tm_desc *desc, const struct ib_desc *half)
{
	return half->qpn && half->qpn <= IB_QPN_MAX && half->psn <= IB_QPN_MAX && half->lid &&
	       half->rd_atomic && half->mtu >= IBV_MTU_256 && half->mtu <= IBV_MTU_4096 &&
	       !desc->zero;
}

static void m5_tm_desc_load(const struct m5_tm_desc *desc, unsigned i, struct ib_desc *half)
{
	*half = (struct ib_desc){
		.qpn = le32toh(desc->qpn[i]),
		.psn = le32toh(desc->psn[i]),
		.lid = le16toh(desc->lid),
		.mtu = desc->mtu,
		.rd_atomic = desc->rd_atomic,
	};
	memcpy(half->gid.raw, desc->gid, sizeof(desc->gid));
}

int m5_tm_desc_decode(const uint8_t *bytes, struct ib_desc *tx, struct ib_desc *rx)
{
	struct m5_tm_desc desc;

	memcpy(&desc, bytes, sizeof(desc));
	m5_tm_desc_load(&desc, 0, tx);
	m5_tm_desc_load(&desc, 1, rx);
	if (m5_tm_desc_is_legal(&desc, tx) && m5_tm_desc_is_legal(&desc, rx))
		return 0;
	UTIL_WARN(EP_CTRL,
		  "a peer's description of its tag matching is refused: use the same copyrpc in "
		  "all processes, or FI_COPYRPC_TAG_OFFLOAD=0\n");
	return -FI_EINVAL;
}

int m5_tm_desc_connect(struct m5_tm_peer *peer, const uint8_t *bytes)
{
	struct ib_desc tx, rx;
	int ret = m5_tm_desc_decode(bytes, &tx, &rx);

	return ret ? ret : m5_tm_peer_connect(peer, &tx, &rx);
}
