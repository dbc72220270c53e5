/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life of a shared-memory link, from create to close. The hot part is inline in shm_link.h. */
#include "dev/shm/shm_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev/shm/shm_desc.h"
#include "dev/shm/shm_poll.h"
#include "dev/shm/shm_watch.h"
#include "util/log.h"
#include "util/param.h"

const struct dev_link_ops shm_link_ops = SHM_LINK_OPS_INIT;

static int shm_id_alloc(struct shm_dev *dev, uint32_t *id)
{
	uint32_t i;
	int ret = -FI_ENOSPC;

	pthread_mutex_lock(&dev->lock);
	for (i = 0; ret && i < SHM_LINKS_MAX / 64; i++) {
		if (dev->ids[i] == UINT64_MAX)
			continue;
		*id = 64 * i + (uint32_t)__builtin_ctzll(~dev->ids[i]);
		dev->ids[i] |= 1ull << (*id % 64);
		ret = 0;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret)
		UTIL_WARN(EP_CTRL, "more than %u connections by shared memory in one domain\n",
			  SHM_LINKS_MAX);
	return ret;
}

static void shm_id_release(struct shm_dev *dev, uint32_t id)
{
	pthread_mutex_lock(&dev->lock);
	dev->ids[id / 64] &= ~(1ull << (id % 64));
	pthread_mutex_unlock(&dev->lock);
}

static int shm_link_make_ring(struct shm_link *link, uint64_t rx_len)
{
	void *map;
	int ret;

	ret = shm_seg_create("copyrpc-ring", shm_seg_len(rx_len), &link->seg_fd);
	if (ret)
		return ret;
	ret = shm_seg_map(link->seg_fd, shm_seg_len(rx_len), &map);
	if (ret) {
		close(link->seg_fd);
		return ret;
	}
	link->ctrl = map;
	link->base.rx_base = (uint8_t *)map + SHM_PAGE;
	link->base.rx_len = rx_len;
	link->base.consumer_word = &link->ctrl->consumer;
	return 0;
}

static struct shm_link *shm_link_alloc(struct shm_dev *dev)
{
	struct shm_link *link =
		aligned_alloc(UTIL_CACHE_LINE, util_align_up(sizeof(*link), UTIL_CACHE_LINE));

	if (!link)
		return NULL;
	memset(link, 0, sizeof(*link));
	link->base.ops = &shm_link_ops;
	link->base.caps = DEV_CAP_DIRECT;
	link->act_idx = SHM_IDX_NONE;
	link->dev = dev;
	link->peer_bell_fd = -1;
	util_list_init(&link->unsettled);
	util_list_init(&link->exposures);
	util_list_init(&link->exposed_link);
	shm_share_init(&link->share);
	return link;
}

int shm_link_create(struct dev *base, uint64_t rx_len, struct dev_link **out)
{
	struct shm_dev *dev = (struct shm_dev *)base;
	struct shm_link *link;
	int ret;

	if (!util_is_pow2(rx_len) || rx_len < SHM_RING_MIN || rx_len > SHM_RING_MAX)
		return -FI_EINVAL;
	link = shm_link_alloc(dev);
	if (!link)
		return -FI_ENOMEM;
	ret = shm_id_alloc(dev, &link->id);
	if (ret)
		goto err_free;
	ret = shm_link_make_ring(link, rx_len);
	if (ret)
		goto err_id;
	*out = &link->base;
	return 0;

err_id:
	shm_id_release(dev, link->id);
err_free:
	free(link);
	return ret;
}

int shm_link_describe(struct dev_link *base, struct dev_desc *desc)
{
	struct shm_link *link = (struct shm_link *)base;

	assert(link->seg_fd >= 0);
	return shm_desc_fill(link, desc);
}

static void shm_link_try_get(struct shm_link *link)
{
	struct shm_dev *dev = link->dev;
	const char *why = "switched off by FI_COPYRPC_SINGLE_COPY";

	if (util_params.single_copy && !link->peer.pid) {
		why = "the kernel does not name the peer's process (another pid namespace)";
	} else if (util_params.single_copy) {
		if (shm_probe_check(&link->peer)) {
			link->base.caps |= DEV_CAP_GET | DEV_CAP_PUT;
			return;
		}
		why = "process_vm_readv does not reach the peer (another pid namespace, or ptrace "
		      "is restricted)";
	}
	if (!__atomic_exchange_n(&dev->logged_no_get, true, __ATOMIC_RELAXED))
		UTIL_INFO(EP_CTRL, "large messages are copied twice: %s\n", why);
}

/* Maps the peer's segment and inbox. After an error the caller runs shm_link_unmap_peer. */
static int shm_link_map_peer(struct shm_link *link, const struct dev_desc *desc, uint64_t len)
{
	void *inbox;
	int ret;

	ret = shm_seg_map(desc->fds[SHM_FD_SEG], shm_seg_len(len), &link->tx_map);
	if (ret)
		return ret;
	link->base.tx_len = len;
	ret = shm_seg_map(desc->fds[SHM_FD_INBOX], SHM_INBOX_LEN, &inbox);
	if (ret)
		return ret;
	link->peer_inbox = inbox;
	link->peer_bell_fd = fcntl(desc->fds[SHM_FD_BELL], F_DUPFD_CLOEXEC, 0);
	if (link->peer_bell_fd >= 0)
		return 0;
	UTIL_WARN_SELDOM(EP_CTRL, "cannot duplicate a descriptor: %s (ulimit -n)\n",
			 strerror(errno));
	return -FI_EMFILE;
}

static void shm_link_unmap_peer(struct shm_link *link)
{
	if (link->peer_bell_fd >= 0)
		close(link->peer_bell_fd);
	shm_seg_unmap(link->peer_inbox, SHM_INBOX_LEN);
	shm_seg_unmap(link->tx_map, shm_seg_len(link->base.tx_len));
	link->peer_bell_fd = -1;
	link->peer_inbox = NULL;
	link->tx_map = NULL;
	link->base.tx_base = NULL;
	link->base.tx_len = 0;
}

int shm_link_connect(struct dev_link *base, const struct dev_desc *peer)
{
	struct shm_link *link = (struct shm_link *)base;
	const struct shm_ctrl *ctrl;
	struct shm_desc d;
	int ret;

	assert(!link->tx_map);
	ret = shm_desc_parse(peer, &d);
	if (ret)
		return ret;
	ret = shm_link_map_peer(link, peer, d.rx_len);
	if (ret) {
		shm_link_unmap_peer(link);
		return ret;
	}
	ctrl = link->tx_map;
	base->tx_base = (uint8_t *)link->tx_map + SHM_PAGE;
	link->peer_notify = &ctrl->notify;
	link->peer_consumer = &ctrl->consumer;
	link->peer_offer = &((struct shm_ctrl *)link->tx_map)->offer;
	link->peer_id = d.link_id;
	link->ahead_small = shm_link_ahead(d.rx_len, SHM_AHEAD_SMALL);
	link->ahead_large = shm_link_ahead(d.rx_len, SHM_AHEAD_LARGE);
	link->cleared = link->ahead_large; /* a new ring is all zeros */
	base->inband_len = DEV_IMM_UNIT * (1u + link->ahead_large);
	link->tx_fence = !(link->dev->membarrier && (d.flags & SHM_DESC_MEMBARRIER));
	link->peer = (struct shm_probe){ .nonce = { d.nonce[0], d.nonce[1] },
					 .addr = d.nonce_addr,
					 .pid = peer->pid };
	shm_link_try_get(link);
	return 0;
}

int shm_link_attach(struct dev_link *base)
{
	struct shm_link *link = (struct shm_link *)base;
	struct shm_dev *dev = link->dev;
	int ret;

	assert(!link->attached && link->tx_map);
	ret = shm_watch_reserve(dev);
	if (ret)
		return ret;
	close(link->seg_fd);
	link->seg_fd = -1;
	link->attached = true;
	dev->links[link->id] = link;
	shm_attached_add(&dev->attached, link->id);
	dev->attached_cnt++;
	shm_watch_add(dev, link);
	return 0;
}

void shm_link_detach(struct dev_link *base)
{
	struct shm_link *link = (struct shm_link *)base;
	struct shm_dev *dev = link->dev;

	if (!link->attached)
		return;
	shm_share_stop(link);
	shm_watch_remove(dev, link);
	dev->links[link->id] = NULL;
	shm_attached_remove(&dev->attached, link->id);
	dev->attached_cnt--;
	link->attached = false;
}

void shm_link_close(struct dev_link *base)
{
	struct shm_link *link = (struct shm_link *)base;

	assert(!link->attached);
	shm_link_unmap_peer(link);
	if (link->seg_fd >= 0)
		close(link->seg_fd);
	shm_seg_unmap(link->ctrl, shm_seg_len(base->rx_len));
	shm_id_release(link->dev, link->id);
	free(link);
}

bool shm_link_withdraw(struct dev_link *base)
{
	return shm_share_withdraw((struct shm_link *)base);
}

void shm_link_post(struct shm_link *link, uint32_t epoch)
{
	link->posted = epoch;
	shm_inbox_post(link->peer_inbox, link->peer_id);
	shm_inbox_ring(link->peer_inbox, link->peer_bell_fd);
}
