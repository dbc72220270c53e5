/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Link over DC (m5_dlink.h). */
#include "dev/mlx5/m5_dlink.h"

#include <errno.h>
#include <string.h>

#include "dev/ib/ib_qp.h"
#include "dev/mlx5/m5_dv.h"
#include "dev/mlx5/m5_imm.h"
#include "util/log.h"

#define M5_DLINK_ID_SHIFT 16

void m5_dlink_describe(struct m5_link *link, struct ib_desc *d)
{
	if (!link->dc.id)
		return;
	d->flags = IB_DESC_DC | (link->dc.is_wanted ? IB_DESC_DC_WANTED : 0) |
		   (link->move.is_known ? IB_DESC_MOVES : 0);
	d->dctn = link->dev->dc.dctn;
	d->dc_id = link->dc.id;
	d->dc_key = link->dev->dc.key;
}

/* Packets of an initiator are as long as its own port permits: a target with less drops them. */
static bool m5_dlink_is_possible(const struct m5_link *link, const struct ib_desc *peer)
{
	return link->dc.id && (peer->flags & IB_DESC_DC) &&
	       peer->mtu == (uint8_t)link->dev->ib.port_attr.active_mtu;
}

bool m5_dlink_is_chosen(const struct m5_link *link, const struct ib_desc *peer)
{
	return m5_dlink_is_possible(link, peer) &&
	       (link->dc.is_wanted || (peer->flags & IB_DESC_DC_WANTED));
}

bool m5_dlink_may_move(const struct m5_link *link, const struct ib_desc *peer)
{
	return m5_dlink_is_possible(link, peer) && link->move.is_known &&
	       (peer->flags & IB_DESC_MOVES);
}

void m5_dlink_retire(struct m5_link *link)
{
	if (!link->dc.id)
		return;
	pthread_mutex_lock(&link->dev->lock);
	m5_ids_retire(link->dev->dc.ids, link->dc.id);
	link->dc.id = 0;
	ib_early_fini(&link->ib.early);
	pthread_mutex_unlock(&link->dev->lock);
}

/* Copies the address vector that libmlx5 made, and puts the target into it. */
static int m5_dlink_copy_av(struct m5_link *link, struct ibv_ah *obj, const struct ib_desc *peer)
{
	struct m5_av *av = &link->dc.av;
	uint64_t key = htobe64(peer->dc_key);
	struct mlx5dv_ah dv = { 0 };
	struct mlx5dv_obj objs = { .ah = { .in = obj, .out = &dv } };
	bool extended;

	if (m5_dv_get()->init_obj(&objs, MLX5DV_OBJ_AH))
		return ib_dev_refuse(&link->dev->ib, "access to an address handle");
	memcpy(av, dv.av, sizeof(*av));
	extended = peer->is_eth || be32toh(av->dqp_dct) & M5_AV_EXT ||
		   be32toh(av->grh_gid_fl) & M5_AV_GRH;
	memcpy(av, &key, sizeof(key));
	av->dqp_dct = htobe32(peer->dctn | (extended ? M5_AV_EXT : 0));
	link->dc.inline_max = (uint16_t)(M5_INLINE_MAX - (extended ? sizeof(*av) : M5_AV_SHORT));
	return 0;
}

static int m5_dlink_make_av(struct m5_link *link, const struct ib_desc *peer)
{
	const struct ib_dev *ib = &link->dev->ib;
	struct ibv_ah_attr attr = {
		.dlid = peer->lid,
		.port_num = ib->port,
		.is_global = ib_qp_is_global(ib, peer),
		.grh = { .dgid = peer->gid,
			 .sgid_index = ib_dev_gid(ib).index,
			 .hop_limit = IB_HOP_LIMIT },
	};
	struct ibv_ah *obj = ibv_create_ah(ib->pd, &attr);
	int ret;

	if (!obj) {
		UTIL_WARN(EP_CTRL, "%s: no route to a peer: %s\n", ib_dev_name(ib),
			  strerror(errno));
		return errno == ENOMEM ? -FI_ENOMEM : -FI_EHOSTUNREACH;
	}
	ret = m5_dlink_copy_av(link, obj, peer);
	ibv_destroy_ah(obj);
	return ret;
}

int m5_dlink_aim(struct m5_link *link, const struct ib_desc *peer)
{
	link->move.peer = *peer;
	link->dc.peer_imm = peer->dc_id << M5_DLINK_ID_SHIFT;
	return m5_dlink_make_av(link, peer);
}

int m5_dlink_connect(struct m5_link *link, const struct ib_desc *peer)
{
	uint8_t own = link->dev->ib.rd_atomic;
	int ret = ib_qp_check_layer(&link->dev->ib, peer);

	if (!ret)
		ret = ib_link_make_tx(&link->ib, peer);
	if (!ret)
		ret = m5_dlink_aim(link, peer);
	if (ret)
		return ret;
	pthread_mutex_lock(&link->dev->lock);
	ret = m5_dct_make_pool(link->dev);
	pthread_mutex_unlock(&link->dev->lock);
	if (ret)
		return ret;
	m5_move_park(link);
	link->ib.peer_qpn = peer->dctn;
	link->ib.reads_max = peer->rd_atomic < own ? peer->rd_atomic : own;
	link->ib.base.inline_max = link->dc.inline_max;
	link->ib.base.caps = DEV_CAP_GET | DEV_CAP_PUT | DEV_CAP_DC;
	link->dc.is_wanted = true;
	link->dc.is_on = true;
	return 0;
}

static void m5_dlink_leave_scqs(struct m5_dev *dev, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		m5_scq_deactivate(dev, dev->dc.pool.dci[i].scq);
}

int m5_dlink_enter(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;
	struct m5_dcis *pool = &dev->dc.pool;

	for (uint32_t i = 0; !pool->link_cnt && i < pool->cnt; i++)
		if (m5_scq_activate(dev, pool->dci[i].scq)) {
			m5_dlink_leave_scqs(dev, i);
			return -FI_ENOMEM;
		}
	pool->link_cnt++;
	link->dc.has_entered = true;
	return 0;
}

void m5_dlink_leave(struct m5_link *link)
{
	struct m5_dcis *pool = &link->dev->dc.pool;
	struct m5_dci *dci = link->dc.pool.dci;

	if (!link->dc.has_entered)
		return;
	link->dc.has_entered = false;
	if (dci && !m5_dci_is_idle(dci))
		m5_dct_reset(link->dev, dci);
	m5_dcis_leave(pool, &link->dc.pool);
	if (!--pool->link_cnt)
		m5_dlink_leave_scqs(link->dev, pool->cnt);
}

/*
 * Puts the immediate into the link word of the write's head. The short form does not send its head:
 * the range is extended by the word, which is the head's end.
 */
static void m5_dlink_put_word(struct dev_link *base, uint64_t *off, uint32_t *len, uint32_t imm)
{
	uint64_t word = htole64(imm), at = *off + DEV_LINK_WORD_OFF;

	if (imm & DEV_IMM_SHORT) {
		at = *off -= sizeof(word);
		*len += sizeof(word);
	}
	memcpy(base->tx_base + at, &word, sizeof(word));
}

int m5_dlink_write(struct m5_link *link, uint64_t off, uint32_t len, uint32_t imm, bool ack)
{
	struct dev_link *base = &link->ib.base;
	struct m5_dcis *pool = &link->dev->dc.pool;
	uint32_t brief = m5_imm_pack(imm);
	struct m5_dci *dci;
	struct m5_wqe wqe;
	uint8_t flags;
	uint16_t bb;

	if (!link->dc.is_on || link->ib.dead)
		return -FI_EAGAIN;
	dci = m5_dcis_take(pool, &link->dc.pool);
	if (!dci || !m5_sq_has_room(&dci->sq, M5_WQE_MAX_BB))
		return -FI_EAGAIN;
	if (UTIL_UNLIKELY(brief == M5_IMM_IN_WORD))
		m5_dlink_put_word(base, &off, &len, imm);
	m5_wqe_begin(&wqe, m5_sq_reserve(&dci->sq, M5_WQE_MAX_BB));
	m5_wqe_av(&wqe, &link->dc.av);
	m5_wqe_raddr(&wqe, link->ib.peer_ring + off, link->ib.peer_rkey);
	if (len <= link->dc.inline_max)
		m5_wqe_inline(&wqe, base->tx_base + off, len);
	else
		m5_wqe_data(&wqe, (uintptr_t)base->tx_base + off, len, link->ib.tx_lkey);
	bb = (uint16_t)M5_WQE_BLOCKS((size_t)(wqe.end - (uint8_t *)wqe.ctrl));
	flags = ack ? M5_CTRL_SIGNAL : m5_dcis_signal(pool, dci, bb);
	m5_wqe_end(&wqe, dci->sq.pi, M5_OP_WRITE_IMM, dci->sq.qpn, flags,
		   link->dc.peer_imm | brief);
	if (flags)
		m5_sparse_put(&dci->users, dci->sq.pi, ack ? M5_USER_ACK : M5_USER_NONE);
	m5_sq_commit(&dci->sq, bb, flags);
	m5_sq_ring_built(&dci->sq);
	m5_dcis_posted(pool, dci);
	return 0;
}

bool m5_dlink_acks_are_free(const struct dev_link *base)
{
	const struct m5_link *link = UTIL_CONTAINER_OF(base, struct m5_link, ib.base);

	return link->dc.is_on && m5_dcis_are_shared(&link->dev->dc.pool);
}

bool m5_dlink_post_byte(struct m5_link *link, uint8_t byte)
{
	struct m5_dcis *pool = &link->dev->dc.pool;
	struct m5_dci *dci = m5_dcis_take(pool, &link->dc.pool);
	struct m5_wqe wqe;
	uint8_t flags;
	uint16_t bb;

	if (!dci || !m5_sq_has_room(&dci->sq, M5_WQE_MAX_BB))
		return false;
	m5_wqe_begin(&wqe, m5_sq_reserve(&dci->sq, M5_WQE_MAX_BB));
	m5_wqe_av(&wqe, &link->dc.av);
	m5_wqe_raddr(&wqe, link->ib.peer_ring, link->ib.peer_rkey);
	bb = (uint16_t)M5_WQE_BLOCKS((size_t)(wqe.end - (uint8_t *)wqe.ctrl));
	flags = m5_dcis_signal(pool, dci, bb);
	m5_wqe_end(&wqe, dci->sq.pi, M5_OP_WRITE_IMM, dci->sq.qpn, flags,
		   link->dc.peer_imm | m5_imm_of_byte(byte));
	if (flags)
		m5_sparse_put(&dci->users, dci->sq.pi, M5_USER_NONE);
	m5_sq_commit(&dci->sq, bb, flags);
	m5_sq_ring_built(&dci->sq);
	m5_dcis_posted(pool, dci);
	return true;
}

bool m5_dlink_take(struct m5_link *link, uint32_t brief, uint32_t *imm)
{
	if (UTIL_UNLIKELY(m5_imm_is_byte(brief))) {
		m5_move_receive(link, m5_imm_byte(brief));
		return false;
	}
	*imm = m5_imm_unpack(brief);
	return true;
}

bool m5_dlink_take_kept(struct m5_link *link, uint32_t kept, uint32_t *imm)
{
	if ((kept & DEV_IMM_SHORT) && !dev_imm_units(kept))
		return m5_dlink_take(link, m5_imm_of_byte((uint8_t)(kept >> 16)), imm);
	*imm = kept;
	return true;
}

struct m5_link *m5_dlink_find(struct m5_dev *dev, uint32_t imm)
{
	return ib_qpns_get(&dev->qpns, m5_dlink_number(imm >> M5_DLINK_ID_SHIFT));
}

struct m5_link *m5_dlink_find_early(struct m5_dev *dev, uint32_t imm)
{
	uint32_t id = imm >> M5_DLINK_ID_SHIFT;
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->waiting) {
		struct m5_link *link = UTIL_CONTAINER_OF(it, struct m5_link, ib.cold);

		if (id && link->dc.id == id)
			return link;
	}
	return NULL;
}
