/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram endpoint: open, close, addresses (vb_ud.h). */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/verbs/vb_ud.h"
#include "util/log.h"

static int vb_ud_make_cq(struct vb_ud *ud, const struct dev_dgram_attr *attr)
{
	ud->ib.cq_obj = ibv_create_cq(ud->ib.dev->ctx, (int)(attr->rx_cnt + attr->tx_cnt), NULL,
				      ud->ib.chan, 0);
	return ud->ib.cq_obj ? 0 : ib_dev_refuse(ud->ib.dev, "datagram completion queue");
}

/* Requests inline room for a small datagram, or less if the device refuses. */
static int vb_ud_make_qp(struct vb_ud *ud, const struct dev_dgram_attr *attr)
{
	static const uint32_t sizes[] = { VB_UD_INLINE, 28, 0 };

	for (size_t i = 0; !ud->ib.qp && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = ud->ib.cq_obj,
			.recv_cq = ud->ib.cq_obj,
			.qp_type = IBV_QPT_UD,
			.cap = { .max_send_wr = attr->tx_cnt,
				 .max_send_sge = DEV_DGRAM_PIECES,
				 .max_recv_wr = attr->rx_cnt,
				 .max_recv_sge = 1,
				 .max_inline_data = sizes[i] },
		};

		ud->ib.qp = ibv_create_qp(ud->ib.dev->pd, &init);
		ud->ib.base.inline_max = sizes[i];
		if (!ud->ib.qp && errno != EINVAL)
			break;
	}
	return ud->ib.qp ? 0 : ib_dev_refuse(ud->ib.dev, "datagram queue pair");
}

static int vb_ud_post_all(struct vb_ud *ud)
{
	uint32_t cnt = ud->ib.base.rx_cnt;

	ud->slots = calloc(cnt, sizeof(*ud->slots));
	if (!ud->slots)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		struct vb_ud_slot *slot = &ud->slots[i];

		slot->sge.addr = (uintptr_t)ib_ud_slot(&ud->ib, i) + IB_UD_GRH_OFF;
		slot->sge.length = IB_UD_GRH_LEN + ud->ib.base.mtu;
		slot->sge.lkey = ud->ib.rx.mr->lkey;
		slot->wr.wr_id = (uint64_t)i << 1;
		slot->wr.sg_list = &slot->sge;
		slot->wr.num_sge = 1;
		slot->wr.next = i + 1 < cnt ? &ud->slots[i + 1].wr : NULL;
	}
	ud->free_first = &ud->slots[0].wr;
	ud->free_last = &ud->slots[cnt - 1].wr;
	ud->rx_free = cnt;
	vb_ud_post_free(ud);
	return ud->ib.status;
}

/* Posts receives between INIT and RTR, so that the first datagrams find buffers. */
static int vb_ud_make(struct vb_ud *ud, const struct dev_dgram_attr *attr)
{
	int ret = ib_ud_init(&ud->ib, ud->ib.dev, attr);

	if (!ret)
		ret = vb_ud_make_cq(ud, attr);
	if (!ret)
		ret = vb_ud_make_qp(ud, attr);
	if (!ret)
		ret = ib_ud_start(&ud->ib);
	if (!ret)
		ret = vb_ud_post_all(ud);
	if (!ret)
		ret = ib_ud_run(&ud->ib);
	return ret;
}

int vb_ud_open(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **out)
{
	struct vb_ud *ud = calloc(1, sizeof(*ud));
	int ret;

	if (!ud)
		return -FI_ENOMEM;
	ud->dev = (struct vb_dev *)dev;
	ud->ib.dev = &ud->dev->ib;
	util_list_init(&ud->ib.in_dev);
	ud->ib.base.ops = &vb_dgram_ops;
	ud->tx_depth = attr->tx_cnt;
	ud->signal_interval =
		attr->tx_cnt / 2 < IB_SIGNAL_INTERVAL ? attr->tx_cnt / 2 : IB_SIGNAL_INTERVAL;
	ud->rx_bulk = attr->rx_cnt / 4 < VB_UD_BULK ? (attr->rx_cnt + 3) / 4 : VB_UD_BULK;
	for (unsigned i = 0; i < VB_UD_BURST; i++) {
		ud->wrs[i].sg_list = ud->sges[i];
		ud->wrs[i].opcode = IBV_WR_SEND;
	}
	ret = vb_ud_make(ud, attr);
	if (ret) {
		vb_ud_close(&ud->ib.base);
		return ret;
	}
	util_list_push_back(&ud->dev->uds, &ud->ib.in_dev);
	*out = &ud->ib.base;
	return 0;
}

void vb_ud_close(struct dev_dgram *base)
{
	struct vb_ud *ud = (struct vb_ud *)base;

	util_list_remove(&ud->ib.in_dev);
	if (ud->ib.cq_obj)
		vb_ud_disarm(base);
	ib_ud_fini(&ud->ib);
	free(ud->slots);
	free(ud);
}

int vb_ud_resolve(struct dev_dgram *base, const struct dev_desc *peer, struct dev_dgram_ah **out)
{
	struct vb_ud *ud = (struct vb_ud *)base;
	struct vb_ud_ah *ah;
	struct ib_ud_desc d;
	int ret = ib_ud_desc_decode(peer, &d);

	if (ret)
		return ret;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -FI_ENOMEM;
	ah->qpn = d.qpn;
	ah->qkey = d.qkey;
	ret = ib_ud_route(&ud->ib, &d, &ah->base, &ah->obj);
	if (ret) {
		free(ah);
		return ret;
	}
	*out = &ah->base;
	return 0;
}

void vb_ud_forget(struct dev_dgram *base, struct dev_dgram_ah *ah_base)
{
	struct vb_ud_ah *ah = (struct vb_ud_ah *)ah_base;

	ibv_destroy_ah(ah->obj);
	free(ah);
}
