/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Common part of links (ib_link.h). */
#include "dev/ib/ib_link.h"

#include <rdma/fi_errno.h>

#include "dev/ib/ib_qp.h"
#include "util/bits.h"
#include "util/log.h"

/* Rights of the ring that the peer writes. */
static int ib_link_rx_access(const struct ib_dev *dev)
{
	return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | dev->relaxed;
}

static void ib_link_use_memory(struct ib_link *link, struct ib_dev *dev)
{
	link->dev = dev;
	link->psn = ib_qp_psn();
	link->base.rx_base = link->rx.addr;
	link->base.rx_len = link->rx.len;
	link->base.consumer_word = link->word.addr;
}

int ib_link_make_memory(struct ib_link *link, struct ib_dev *dev, uint64_t rx_len)
{
	int ret;

	if (!util_is_pow2(rx_len) || rx_len < IB_RING_MIN || rx_len > IB_RING_MAX)
		return -FI_EINVAL;
	ret = ib_mem_init(&link->rx, dev, rx_len, ib_link_rx_access(dev));
	if (!ret)
		ret = ib_mem_init(&link->word, dev, sizeof(uint64_t), IBV_ACCESS_REMOTE_READ);
	ib_link_use_memory(link, dev);
	return ret;
}

int ib_link_share_memory(struct ib_link *link, struct ib_dev *dev, struct ib_link *first)
{
	int ret = ib_mem_share(&link->rx, dev, &first->rx, ib_link_rx_access(dev));

	if (!ret)
		ret = ib_mem_share(&link->word, dev, &first->word, IBV_ACCESS_REMOTE_READ);
	link->first = first;
	ib_link_use_memory(link, dev);
	return ret;
}

void ib_link_adopt(struct dev_link *base, struct dev_link *base_first)
{
	struct ib_link *link = (struct ib_link *)base, *first = (struct ib_link *)base_first;

	ib_mem_pass(&link->rx, &first->rx);
	ib_mem_pass(&link->word, &first->word);
	ib_mem_pass(&link->tx, &first->tx);
	link->first = NULL;
}

void ib_link_fini(struct ib_link *link)
{
	ib_mem_fini(&link->tx);
	ib_mem_fini(&link->word);
	ib_mem_fini(&link->rx);
	ib_early_fini(&link->early);
}

int ib_link_init_qp(struct ib_link *link, struct ibv_qp *qp)
{
	link->qp = qp;
	link->qpn = qp->qp_num;
	return ib_qp_init(qp, link->dev);
}

int ib_link_describe(struct dev_link *base, struct dev_desc *desc)
{
	struct ib_link *link = (struct ib_link *)base;
	struct ib_desc d;

	ib_qp_describe(link->qp, link->dev, link->psn, &link->rx, &link->word, &d);
	ib_desc_encode(&d, desc);
	return 0;
}

int ib_link_make_tx(struct ib_link *link, const struct ib_desc *peer)
{
	int access = IBV_ACCESS_LOCAL_WRITE | link->dev->relaxed, ret;

	if (link->first && link->first->base.tx_len != peer->ring_len) {
		UTIL_WARN(EP_CTRL, "%s: the peer's second device has another ring\n",
			  ib_dev_name(link->dev));
		return -FI_EIO;
	}
	if (link->first)
		ret = ib_mem_share(&link->tx, link->dev, &link->first->tx, access);
	else
		ret = ib_mem_init(&link->tx, link->dev, IB_LINK_PAGE + peer->ring_len, access);
	if (ret)
		return ret;
	link->base.tx_base = (uint8_t *)link->tx.addr + IB_LINK_PAGE;
	link->base.tx_len = peer->ring_len;
	link->tx_lkey = link->tx.mr->lkey;
	link->peer_ring = peer->ring_addr;
	link->peer_rkey = peer->ring_rkey;
	link->peer_word = peer->word_addr;
	link->peer_word_rkey = peer->word_rkey;
	link->peer_qpn = peer->qpn;
	return 0;
}

int ib_link_connect(struct ib_link *link, const struct ib_desc *peer, pthread_mutex_t *lock,
		    struct util_list *waiting)
{
	int ret;

	if (!peer->qpn) {
		UTIL_WARN(EP_CTRL,
			  "%s: the peer connects by DC only, which this end does not "
			  "have, or not with the same MTU: set FI_COPYRPC_RC_MAX of the "
			  "peer above 0\n",
			  ib_dev_name(link->dev));
		return -FI_EOPNOTSUPP;
	}
	ret = ib_link_make_tx(link, peer);
	if (ret)
		return ret;
	pthread_mutex_lock(lock);
	util_list_remove(&link->cold);
	util_list_push_back(waiting, &link->cold); /* the peer may write from here on */
	pthread_mutex_unlock(lock);
	ret = ib_qp_connect(link->qp, link->dev, link->psn, peer, link->base.caps & DEV_CAP_BRIEF,
			    &link->reads_max);
	if (!ret && link->reads_max)
		link->base.caps = DEV_CAP_GET | DEV_CAP_PUT;
	return ret;
}

struct ib_link *ib_link_find(struct util_list *waiting, uint32_t qpn)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, waiting) {
		struct ib_link *link = UTIL_CONTAINER_OF(it, struct ib_link, cold);

		if (link->qpn == qpn)
			return link;
	}
	return NULL;
}

void ib_link_attached(struct ib_link *link, pthread_mutex_t *lock, struct util_list *early)
{
	pthread_mutex_lock(lock);
	util_list_remove(&link->cold);
	pthread_mutex_unlock(lock);
	if (!ib_early_is_empty(&link->early) || link->err)
		util_list_push_back(early, &link->cold);
	link->attached = true;
}
