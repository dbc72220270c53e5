/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of an mlx5 link: create, describe, connect, attach, detach, close (m5_link.h).
 *
 * The device reuses the number of a destroyed queue pair. So the polling thread moves the QP to
 * RESET first, after which it makes no more CQEs, removes its number from the CQEs already written
 * (m5_cq_forget) and then destroys it. A link that the control thread closes before attach is
 * halted at once and waits in m5_dev.to_free for the polling thread.
 */
#include "dev/mlx5/m5_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/ib/ib_qp.h"
#include "dev/mlx5/m5_dlink.h"
#include "dev/mlx5/m5_poll.h"
#include "util/log.h"
#include "util/param.h"

const struct dev_link_ops m5_link_ops = M5_LINK_OPS_INIT;

#define M5_BLOCKS_PER_WR 4u /* upper limit of the library's count */

/* Registers and send CQs are shared: hence the lock. */
int m5_link_make_qp(struct m5_link *link)
{
	struct ibv_qp_init_attr attr = {
		.recv_cq = link->dev->rx_obj,
		.srq = link->dev->srq_obj,
		.cap = { .max_send_wr = m5_tune.sq_blocks / M5_BLOCKS_PER_WR, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	int ret;

	link->sq_blocks = 4 * m5_tune.sq_blocks; /* upper limit; the library rounds up */
	ret = m5_scq_get(link->dev, link->sq_blocks, &link->scq);
	if (ret)
		return ret;
	attr.send_cq = link->scq->obj;
	qp = ibv_create_qp(link->dev->ib.pd, &attr);
	if (!qp)
		return ib_dev_refuse(&link->dev->ib, "queue pair");
	ret = ib_link_init_qp(&link->ib, qp);
	if (!ret)
		ret = m5_dev_take_sq(link->dev, qp, link->sq_blocks, &link->sq, &link->users);
	if (ret)
		return ret;
	link->scq->room += link->sq_blocks - (link->sq.mask + 1u);
	link->sq_blocks = link->sq.mask + 1u;
	link->is_rc = true;
	link->dev->rc_cnt++;
	return 0;
}

void m5_link_drop_qp(struct m5_link *link)
{
	struct m5_sq *sq = link->move.is_parked ? &link->move.sq : &link->sq;

	if (link->ib.qp && ibv_destroy_qp(link->ib.qp))
		UTIL_WARN(EP_CTRL, "queue pair 0x%06x stays: %s\n", link->ib.qpn, strerror(errno));
	if (sq->uar)
		m5_reg_put(link->dev, sq->uar);
	if (link->scq)
		m5_scq_put(link->scq, link->sq_blocks);
	free(link->users.user);
	link->dev->rc_cnt -= link->is_rc;
	link->is_rc = false;
	link->ib.qp = NULL;
	link->ib.qpn = 0;
	sq->qpn = 0; /* may be another link's from now on */
	sq->uar = NULL;
	link->scq = NULL;
	link->users.user = NULL;
}

/*
 * Gives the link an id for DC, and a queue pair. Where the limit is reached, DC is preferred, and
 * the queue pair is for a peer without DC; with a limit of 0 there is none. Where the device has no
 * more queue pairs, DC is all there is.
 */
static int m5_link_make_paths(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;
	uint32_t max = (uint32_t)util_params.rc_max;
	int ret;

	if (dev->dc.dctn)
		link->dc.id = m5_ids_take(dev->dc.ids);
	link->dc.is_wanted = link->dc.id && dev->rc_cnt >= max;
	if (link->dc.is_wanted && !max)
		return 0;
	ret = m5_link_make_qp(link);
	if (ret && link->dc.id) {
		m5_link_drop_qp(link);
		link->dc.is_wanted = true;
		ret = 0;
	}
	return ret;
}

/* Makes a link with a ring of rx_len bytes, or over the rings of `first`. */
static int m5_link_new(struct m5_dev *dev, uint64_t rx_len, struct dev_link *first,
		       struct dev_link **out)
{
	struct m5_link *link = calloc(1, sizeof(*link));
	int ret;

	if (!link)
		return -FI_ENOMEM;
	link->dev = dev;
	util_list_init(&link->ib.cold);
	m5_dlink_init(&link->dc.pool);
	ret = first ? ib_link_share_memory(&link->ib, &dev->ib, (struct ib_link *)first)
		    : ib_link_make_memory(&link->ib, &dev->ib, rx_len);
	if (!ret) {
		pthread_mutex_lock(&dev->lock);
		ret = m5_link_make_paths(link);
		pthread_mutex_unlock(&dev->lock);
	}
	if (ret) {
		m5_link_destroy(link);
		return ret;
	}
	link->ib.base.ops = &m5_link_ops;
	*out = &link->ib.base;
	return 0;
}

int m5_link_create(struct dev *base, uint64_t rx_len, struct dev_link **out)
{
	return m5_link_new((struct m5_dev *)base, rx_len, NULL, out);
}

int m5_link_beside(struct dev *base, struct dev_link *first, struct dev_link **out)
{
	return m5_link_new((struct m5_dev *)base, 0, first, out);
}

/* The peer may write by DC as soon as it has the description: no state of this end stops it. */
int m5_link_describe(struct dev_link *base, struct dev_desc *desc)
{
	struct m5_link *link = (struct m5_link *)base;
	struct ib_link *ib = &link->ib;
	struct ib_desc d;

	link->move.is_known = desc->peer_moves;
	ib_qp_describe(ib->qp, ib->dev, ib->psn, &ib->rx, &ib->word, &d);
	m5_dlink_describe(link, &d);
	ib_desc_encode(&d, desc);
	if (link->is_known || !link->dc.id)
		return 0;
	pthread_mutex_lock(&link->dev->lock);
	util_list_push_back(&link->dev->waiting, &ib->cold);
	pthread_mutex_unlock(&link->dev->lock);
	link->is_known = true;
	return 0;
}

static int m5_link_connect_dc(struct m5_link *link, const struct ib_desc *peer)
{
	int ret;

	pthread_mutex_lock(&link->dev->lock);
	m5_link_drop_qp(link);
	pthread_mutex_unlock(&link->dev->lock);
	ret = m5_dlink_connect(link, peer);
	if (!ret && m5_dlink_may_move(link, peer)) {
		link->move.state = M5_MOVE_ON_DC;
		link->ib.base.caps |= DEV_CAP_MOVE;
	}
	return ret;
}

/* The id is retired where the peer cannot use it, now or later. */
static int m5_link_connect_rc(struct m5_link *link, const struct ib_desc *peer)
{
	bool may_move = m5_dlink_may_move(link, peer);
	int ret = 0;

	if (may_move)
		ret = m5_dlink_aim(link, peer); /* the peer will rely on it */
	else
		m5_dlink_retire(link);
	if (ret)
		return ret;
	link->is_known = true;
	ret = ib_link_connect(&link->ib, peer, &link->dev->lock, &link->dev->waiting);
	if (!ret && may_move) {
		link->move.state = M5_MOVE_ON_RC;
		link->ib.base.caps |= DEV_CAP_MOVE;
	}
	return ret;
}

int m5_link_connect(struct dev_link *base, const struct dev_desc *desc)
{
	struct m5_link *link = (struct m5_link *)base;
	struct ib_desc peer;
	int ret = ib_desc_decode(desc, &peer);

	if (ret)
		return ret;
	base->inline_max = M5_INLINE_MAX;
	link->max_piece = util_pow2_floor(link->dev->ib.port_attr.max_msg_sz | 1);
	if (link->max_piece > 1u << 30)
		link->max_piece = 1u << 30;
	if (m5_dlink_is_chosen(link, &peer))
		return m5_link_connect_dc(link, &peer);
	if (!link->ib.qp) {
		UTIL_WARN(EP_CTRL,
			  "%s: the peer has no DC, or a port with another MTU: set "
			  "FI_COPYRPC_RC_MAX above 0\n",
			  ib_dev_name(&link->dev->ib));
		return -FI_EOPNOTSUPP;
	}
	return m5_link_connect_rc(link, &peer);
}

int m5_link_list(struct m5_link *link)
{
	struct ib_qpns *map = &link->dev->qpns;
	int ret = 0;

	if (link->ib.qpn)
		ret = ib_qpns_set(map, link->ib.qpn, link);
	if (!ret && link->dc.id)
		ret = ib_qpns_set(map, m5_dlink_number(link->dc.id), link);
	if (ret)
		m5_link_unlist(link);
	return ret;
}

void m5_link_unlist(struct m5_link *link)
{
	if (link->ib.qpn)
		ib_qpns_clear(&link->dev->qpns, link->ib.qpn);
	if (link->dc.id)
		ib_qpns_clear(&link->dev->qpns, m5_dlink_number(link->dc.id));
}

static int m5_link_enter(struct m5_link *link)
{
	int ret = link->dc.is_on ? m5_dlink_enter(link) : m5_scq_activate(link->dev, link->scq);

	link->move.is_polled = !ret && !link->dc.is_on;
	return ret;
}

int m5_link_attach(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;
	struct m5_dev *dev = link->dev;
	int ret;

	m5_dev_defer_destroy(dev);
	if (link->ib.dead) /* an arrival could not be kept */
		return -FI_ENOMEM;
	ret = m5_link_list(link);
	if (ret)
		return ret;
	ret = m5_link_enter(link);
	if (ret) {
		m5_link_unlist(link);
		return ret;
	}
	ib_link_attached(&link->ib, &dev->lock, &dev->early);
	link->was_attached = true;
	return 0;
}

void m5_link_fail(struct m5_link *link, int err)
{
	if (link->ib.err)
		return;
	link->ib.dead = true;
	link->ib.err = err;
	if (util_list_is_empty(&link->ib.cold))
		util_list_push_back(&link->dev->early, &link->ib.cold);
}

void m5_link_stop(struct m5_link *link)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	/* Fails only if the device is gone. Then no completion follows either. */
	if (link->ib.qp && ibv_modify_qp(link->ib.qp, &attr, IBV_QP_STATE))
		UTIL_INFO(EP_CTRL, "queue pair 0x%06x cannot be reset: %s\n", link->ib.qpn,
			  strerror(errno));
}

void m5_link_halt(struct m5_link *link)
{
	link->ib.dead = true;
	m5_dlink_leave(link);
	m5_link_stop(link);
}

/* Removes a halted QP's number from all queues. */
static void m5_link_forget(struct m5_link *link)
{
	m5_link_unlist(link);
	if (!link->ib.qpn)
		return;
	m5_cq_forget(&link->dev->rx, link->ib.qpn);
	if (link->scq)
		m5_cq_forget(&link->scq->cq, link->ib.qpn);
}

void m5_link_detach(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;

	if (!link->ib.attached)
		return;
	link->ib.attached = false;
	m5_link_halt(link);
	m5_link_forget(link);
	if (link->move.is_polled)
		m5_scq_deactivate(link->dev, link->scq);
	link->move.is_polled = false;
	util_list_remove(&link->ib.cold);
}

void m5_link_destroy(struct m5_link *link)
{
	struct m5_dev *dev = link->dev;

	pthread_mutex_lock(&dev->lock);
	m5_link_drop_qp(link);
	pthread_mutex_unlock(&dev->lock);
	ib_link_fini(&link->ib);
	m5_dlink_retire(link);
	free(link);
}

/* Frees the ids of links whose memory is gone, behind the CQEs that have them. */
static void m5_link_free_ids(struct m5_dev *dev)
{
	uint32_t id;

	if (!dev->dc.ids)
		return;
	pthread_mutex_lock(&dev->lock);
	while ((id = m5_ids_retired(dev->dc.ids))) {
		m5_cq_forget_id(&dev->rx, dev->dc.dctn, id);
		m5_ids_free(dev->dc.ids, id);
	}
	pthread_mutex_unlock(&dev->lock);
}

void m5_dev_defer_destroy(struct m5_dev *dev)
{
	struct util_list *it;

	for (;;) {
		pthread_mutex_lock(&dev->lock);
		it = util_list_pop(&dev->to_free);
		pthread_mutex_unlock(&dev->lock);
		if (!it)
			break;
		m5_link_forget(UTIL_CONTAINER_OF(it, struct m5_link, ib.cold));
		m5_link_destroy(UTIL_CONTAINER_OF(it, struct m5_link, ib.cold));
	}
	m5_link_free_ids(dev);
}

void m5_link_close(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;

	if (link->was_attached || !link->is_known) {
		m5_link_destroy(link);
		return;
	}
	m5_link_halt(link);
	pthread_mutex_lock(&link->dev->lock);
	util_list_remove(&link->ib.cold);
	util_list_push_back(&link->dev->to_free, &link->ib.cold);
	pthread_mutex_unlock(&link->dev->lock);
}
