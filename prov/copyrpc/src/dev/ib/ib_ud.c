/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram endpoints: the part shared by RDMA devices (ib_ud.h). */
#include "dev/ib/ib_ud.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/random.h>

#include "dev/ib/ib_desc.h"
#include "util/bits.h"
#include "util/log.h"

#define IB_UD_MAGIC     0x75726369u /* "icru" */
#define IB_UD_VERSION   1u
#define IB_UD_QKEY_MASK 0x7fffffffu
#define IB_UD_HOP_LIMIT 64

struct ib_ud_bytes {
	uint32_t magic;
	uint16_t version;
	uint8_t mtu;
	uint8_t is_eth;
	uint32_t qpn;
	uint32_t qkey;
	uint16_t lid;
	uint16_t pad;
	uint32_t flags;
	uint8_t gid[16];
	uint64_t reserved;
};

static_assert(sizeof(struct ib_ud_bytes) == IB_UD_DESC_LEN && IB_UD_DESC_LEN <= DEV_DESC_MAX,
	      "format");
static_assert(offsetof(struct ib_ud_bytes, gid) == 24, "format");

void ib_ud_desc_encode(const struct ib_ud_desc *d, struct dev_desc *desc)
{
	struct ib_ud_bytes b = {
		.magic = htole32(IB_UD_MAGIC),
		.version = htole16(IB_UD_VERSION),
		.mtu = d->mtu,
		.is_eth = d->is_eth,
		.qpn = htole32(d->qpn),
		.qkey = htole32(d->qkey),
		.lid = htole16(d->lid),
	};

	memcpy(b.gid, d->gid.raw, sizeof(b.gid));
	memcpy(desc->bytes, &b, sizeof(b));
	desc->len = sizeof(b);
	desc->fd_cnt = 0;
}

static const char *ib_ud_fault(const struct ib_ud_bytes *b, const struct ib_ud_desc *d)
{
	static const union ibv_gid none;
	bool has_gid = memcmp(&d->gid, &none, sizeof(none)) != 0;

	if (le32toh(b->magic) != IB_UD_MAGIC)
		return "not a description of an RDMA datagram endpoint";
	if (le16toh(b->version) != IB_UD_VERSION)
		return "another version: use the same copyrpc in all processes";
	if (b->flags || b->pad || b->reserved || b->is_eth > 1)
		return "unknown flags";
	if (d->mtu < IBV_MTU_256 || d->mtu > IBV_MTU_4096)
		return "illegal MTU";
	if (!d->qpn || d->qpn >= IB_QPN_MAX || d->qkey & ~IB_UD_QKEY_MASK)
		return "illegal QP number or Q_Key";
	if (!has_gid && (d->is_eth || !d->lid))
		return "no address";
	return NULL;
}

int ib_ud_desc_decode(const struct dev_desc *desc, struct ib_ud_desc *d)
{
	const char *why = "wrong length";
	struct ib_ud_bytes b;

	if (desc->len == sizeof(b) && !desc->fd_cnt) {
		memcpy(&b, desc->bytes, sizeof(b));
		*d = (struct ib_ud_desc){
			.qpn = le32toh(b.qpn),
			.qkey = le32toh(b.qkey),
			.lid = le16toh(b.lid),
			.mtu = b.mtu,
			.is_eth = b.is_eth,
		};
		memcpy(d->gid.raw, b.gid, sizeof(b.gid));
		why = ib_ud_fault(&b, d);
	}
	if (!why)
		return 0;
	UTIL_WARN(EP_CTRL, "peer's description refused: %s\n", why);
	return -FI_EINVAL;
}

/* Returns how senders are named: all peers use the same kind of GID. */
static enum ib_ud_naming ib_ud_naming(const struct ib_dev *dev)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!dev->is_eth)
		return IB_UD_BY_LID;
	return memcmp(dev->gid.raw, mapped, sizeof(mapped)) ? IB_UD_BY_GID : IB_UD_BY_IPV4;
}

static int ib_ud_make_qkey(struct ib_ud *ud)
{
	if (getrandom(&ud->qkey, sizeof(ud->qkey), 0) != sizeof(ud->qkey)) {
		UTIL_WARN(EP_CTRL, "no random numbers: %s\n", strerror(errno));
		return -FI_EIO;
	}
	ud->qkey &= IB_UD_QKEY_MASK;
	return 0;
}

int ib_ud_init(struct ib_ud *ud, struct ib_dev *dev, const struct dev_dgram_attr *attr)
{
	int ret;

	if (!attr->rx_cnt || attr->rx_cnt > DEV_DGRAM_CNT_MAX || attr->tx_cnt < 8)
		return -FI_EINVAL;
	ud->dev = dev;
	ud->naming = ib_ud_naming(dev);
	ud->base.mtu = 128u << dev->port_attr.active_mtu;
	ud->base.rx_cnt = attr->rx_cnt;
	ud->stride = (uint32_t)util_align_up(IB_UD_DATA_OFF + ud->base.mtu, UTIL_CACHE_LINE);
	ret = ib_ud_make_qkey(ud);
	if (ret)
		return ret;
	ret = ib_dev_make_chan(dev, &ud->chan);
	if (ret)
		return ret;
	return ib_mem_init(&ud->rx, dev, (size_t)attr->rx_cnt * ud->stride,
			   IBV_ACCESS_LOCAL_WRITE | dev->relaxed);
}

void ib_ud_fini(struct ib_ud *ud)
{
	if (ud->qp && ibv_destroy_qp(ud->qp))
		UTIL_WARN(EP_CTRL, "queue pair 0x%06x stays: %s\n", ud->qp->qp_num,
			  strerror(errno));
	if (ud->cq_obj)
		ibv_destroy_cq(ud->cq_obj);
	if (ud->chan)
		ibv_destroy_comp_channel(ud->chan);
	ib_mem_fini(&ud->rx);
}

static int ib_ud_modify(struct ib_ud *ud, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(ud->qp, attr, mask);

	if (!err)
		return 0;
	UTIL_WARN(EP_CTRL, "%s: a datagram queue pair cannot enter state %d: %s\n",
		  ib_dev_name(ud->dev), attr->qp_state, strerror(err));
	return err == ENOMEM ? -FI_ENOMEM : -FI_EIO;
}

int ib_ud_start(struct ib_ud *ud)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = ud->dev->port,
		.qkey = ud->qkey,
	};

	return ib_ud_modify(ud, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

int ib_ud_run(struct ib_ud *ud)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int ret = ib_ud_modify(ud, &attr, IBV_QP_STATE);

	if (ret)
		return ret;
	attr.qp_state = IBV_QPS_RTS;
	return ib_ud_modify(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int ib_ud_describe(struct dev_dgram *base, struct dev_desc *desc)
{
	struct ib_ud *ud = (struct ib_ud *)base;
	struct ib_ud_desc d = {
		.qpn = ud->qp->qp_num,
		.qkey = ud->qkey,
		.lid = ud->dev->port_attr.lid,
		.mtu = (uint8_t)ud->dev->port_attr.active_mtu,
		.is_eth = ud->dev->is_eth,
		.gid = ib_dev_gid(ud->dev).gid,
	};

	ib_ud_desc_encode(&d, desc);
	return 0;
}

int ib_ud_wait_fd(struct dev_dgram *base)
{
	return ((struct ib_ud *)base)->chan->fd;
}

/* On InfiniBand only another subnet needs a routing header, which hides the LID. */
static bool ib_ud_is_global(const struct ib_ud *ud, const struct ib_ud_desc *peer)
{
	return ud->dev->is_eth ||
	       (peer->gid.global.subnet_prefix &&
		peer->gid.global.subnet_prefix != ud->dev->gid.global.subnet_prefix);
}

static int ib_ud_refuse(const struct ib_ud *ud, const char *why, int ret)
{
	UTIL_WARN(EP_CTRL, "%s: no route to a peer: %s\n", ib_dev_name(ud->dev), why);
	return ret;
}

int ib_ud_route(struct ib_ud *ud, const struct ib_ud_desc *peer, struct dev_dgram_ah *ah,
		struct ibv_ah **obj)
{
	bool global = ib_ud_is_global(ud, peer);
	struct ibv_ah_attr attr = {
		.dlid = peer->lid,
		.port_num = ud->dev->port,
		.is_global = global,
		.grh = { .dgid = peer->gid,
			 .sgid_index = ib_dev_gid(ud->dev).index,
			 .hop_limit = IB_UD_HOP_LIMIT },
	};

	if (peer->is_eth != ud->dev->is_eth)
		return ib_ud_refuse(ud,
				    "one device is on Ethernet, the other on InfiniBand: choose "
				    "devices that reach each other with FI_COPYRPC_DEVICE",
				    -FI_EHOSTUNREACH);
	*obj = ibv_create_ah(ud->dev->pd, &attr);
	if (!*obj)
		return ib_ud_refuse(ud, strerror(errno),
				    errno == ENOMEM ? -FI_ENOMEM : -FI_EHOSTUNREACH);
	ah->mtu = 128u << peer->mtu;
	if (ah->mtu > ud->base.mtu)
		ah->mtu = ud->base.mtu;
	if (global)
		ib_ud_id_gid(&ah->id, peer->qpn, peer->gid.raw);
	else
		ib_ud_id_lid(&ah->id, peer->qpn, peer->lid);
	return 0;
}

void ib_ud_fail(struct ib_ud *ud, int err)
{
	if (!ud->status)
		ud->status = err;
}

void ib_ud_log(const struct ib_ud *ud, const char *what, unsigned vendor, const char *advice)
{
	UTIL_WARN(EP_DATA, "%s: datagrams of qp 0x%06x ended: %s (vendor code 0x%02x): %s\n",
		  ib_dev_name(ud->dev), ud->qp->qp_num, what, vendor, advice);
}
