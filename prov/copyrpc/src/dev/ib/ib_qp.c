/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* State changes of queue pairs, from RESET to ERR (ib_qp.h). */
#include "dev/ib/ib_qp.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/random.h>

#include "dev/ib/ib_gid.h"
#include "util/log.h"
#include "util/param.h"

uint8_t ib_qp_timeout(unsigned ms)
{
	uint64_t limit_ns = (uint64_t)ms * 1000000;
	uint8_t timeout = IB_TIMEOUT_MAX;

	while (timeout > 1 && (4096ull << timeout) * (IB_RETRIES + 1) > limit_ns)
		timeout--;
	return timeout;
}

uint32_t ib_qp_psn(void)
{
	uint32_t psn = 0;

	/* Random, so that packets of an earlier connection rarely fit. A failure is harmless. */
	if (getrandom(&psn, sizeof(psn), 0) < 0)
		psn = 0;
	return psn & IB_QPN_MAX;
}

int ib_qp_fail(const struct ib_dev *dev, const char *state, int err)
{
	UTIL_WARN(EP_CTRL, "%s: a queue pair cannot enter %s: %s%s\n", dev->name, state,
		  strerror(err),
		  err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH
			  ? ": there is no route to the peer's GID from ours"
			  : "");
	switch (err) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH: return -FI_EHOSTUNREACH;
	case ENOMEM: return -FI_ENOMEM;
	default: return -FI_EIO;
	}
}

int ib_qp_init(struct ibv_qp *qp, const struct ib_dev *dev)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = dev->port,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	int err = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	return err ? ib_qp_fail(dev, "INIT", err) : 0;
}

bool ib_qp_is_global(const struct ib_dev *dev, const struct ib_desc *peer)
{
	return dev->is_eth || (peer->gid.global.subnet_prefix &&
			       peer->gid.global.subnet_prefix != dev->gid.global.subnet_prefix);
}

static int ib_qp_to_rtr(struct ibv_qp *qp, const struct ib_dev *dev, const struct ib_desc *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu < dev->port_attr.active_mtu ? peer->mtu
								  : dev->port_attr.active_mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = dev->rd_atomic,
		.min_rnr_timer = IB_RNR_TIMER,
		.ah_attr = {
			.dlid = peer->lid,
			.port_num = dev->port,
			.is_global = ib_qp_is_global(dev, peer),
		},
	};
	int err;

	if (attr.ah_attr.is_global) {
		attr.ah_attr.grh.dgid = peer->gid;
		attr.ah_attr.grh.sgid_index = ib_dev_gid(dev).index;
		attr.ah_attr.grh.hop_limit = IB_HOP_LIMIT;
	}
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	return err ? ib_qp_fail(dev, "RTR", err) : 0;
}

static int ib_qp_to_rts(struct ibv_qp *qp, const struct ib_dev *dev, uint32_t own_psn,
			uint8_t rd_atomic, uint32_t silent_ms)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = own_psn,
		.timeout = ib_qp_timeout(silent_ms),
		.retry_cnt = IB_RETRIES,
		.rnr_retry = IB_RNR_FOREVER,
		.max_rd_atomic = rd_atomic,
	};
	int err = ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);

	return err ? ib_qp_fail(dev, "RTS", err) : 0;
}

int ib_qp_check_layer(const struct ib_dev *dev, const struct ib_desc *peer)
{
	if (peer->is_eth == dev->is_eth)
		return 0;
	UTIL_WARN(EP_CTRL,
		  "%s is on %s, the peer's device is not: choose devices that reach each other "
		  "with FI_COPYRPC_DEVICE\n",
		  dev->name, dev->is_eth ? "Ethernet" : "InfiniBand");
	return -FI_EHOSTUNREACH;
}

int ib_qp_connect(struct ibv_qp *qp, const struct ib_dev *dev, uint32_t own_psn,
		  const struct ib_desc *peer, bool is_brief, uint8_t *rd_atomic)
{
	uint32_t silent_ms = (uint32_t)util_params.peer_timeout_ms;
	int ret = ib_qp_check_layer(dev, peer);

	if (is_brief && DEV_BRIEF_MS < silent_ms)
		silent_ms = DEV_BRIEF_MS;
	if (ret)
		return ret;
	*rd_atomic = peer->rd_atomic < dev->rd_atomic ? peer->rd_atomic : dev->rd_atomic;
	ret = ib_qp_to_rtr(qp, dev, peer);
	return ret ? ret : ib_qp_to_rts(qp, dev, own_psn, *rd_atomic, silent_ms);
}

void ib_qp_stop(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	/* Fails only if the device is gone. Then no completion follows either. */
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		UTIL_INFO(EP_CTRL, "qp 0x%06x cannot be stopped: %s\n", qp->qp_num,
			  strerror(errno));
}

void ib_qp_describe(const struct ibv_qp *qp, const struct ib_dev *dev, uint32_t psn,
		    const struct ib_mem *ring, const struct ib_mem *word, struct ib_desc *desc)
{
	*desc = (struct ib_desc){
		.qpn = qp ? qp->qp_num : 0,
		.psn = psn,
		.lid = dev->port_attr.lid,
		.mtu = (uint8_t)dev->port_attr.active_mtu,
		.rd_atomic = dev->rd_atomic,
		.is_eth = dev->is_eth,
		.gid = ib_dev_gid(dev).gid,
		.ring_addr = (uintptr_t)ring->addr,
		.ring_len = ring->len,
		.ring_rkey = ring->mr->rkey,
		.word_addr = (uintptr_t)word->addr,
		.word_rkey = word->mr->rkey,
	};
}
