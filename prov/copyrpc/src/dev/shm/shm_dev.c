/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared-memory device: open, close, waiting. Called through dev_ops, once per domain.
 *
 * arm makes every link owe a post and sets `sleeping`. The first post then rings the bell; wait_fd
 * returns its descriptor. A write that arrived in between makes arm return -FI_EAGAIN.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "dev/shm/shm.h"
#include "dev/shm/shm_watch.h"
#include "util/log.h"
#include "util/membarrier.h"

const struct dev_ops shm_dev_ops = SHM_DEV_OPS_INIT;

static int shm_dev_make_inbox(struct shm_dev *dev)
{
	void *map;
	int ret;

	ret = shm_seg_create("copyrpc-inbox", SHM_INBOX_LEN, &dev->inbox_fd);
	if (ret)
		return ret;
	ret = shm_seg_map(dev->inbox_fd, SHM_INBOX_LEN, &map);
	if (ret) {
		close(dev->inbox_fd);
		return ret;
	}
	dev->inbox = map;
	dev->polled = dev->inbox;
	return 0;
}

static int shm_dev_init(struct shm_dev *dev)
{
	int ret;

	if (getrandom(dev->nonce, sizeof(dev->nonce), 0) != sizeof(dev->nonce))
		return -FI_ENOSYS;
	util_list_init(&dev->unsettled);
	util_list_init(&dev->distrusted);
	util_list_init(&dev->exposed);
	util_list_init(&dev->pending);
	util_idmap_init(&dev->exposure_ids);
	util_pool_init(&dev->exposure_pool, sizeof(struct shm_exposure), 16, 0);
	pthread_mutex_init(&dev->lock, NULL);
	shm_watch_tune(dev, &shm_tune_default);
	dev->membarrier = util_membarrier_register_global();
	if (!dev->membarrier)
		UTIL_INFO(DOMAIN, "no membarrier (%s): every write pays for a fence\n",
			  strerror(errno));
	ret = shm_bell_create(&dev->bell);
	if (ret)
		return ret;
	ret = shm_dev_make_inbox(dev);
	if (ret)
		shm_bell_close(&dev->bell);
	return ret;
}

int shm_dev_open(struct dev **out)
{
	struct shm_dev *dev =
		aligned_alloc(UTIL_CACHE_LINE, util_align_up(sizeof(*dev), UTIL_CACHE_LINE));
	int ret;

	if (!dev)
		return -FI_ENOMEM;
	memset(dev, 0, sizeof(*dev));
	ret = shm_dev_init(dev);
	if (ret) {
		free(dev);
		return ret;
	}
	*out = (struct dev *)dev;
	return 0;
}

void shm_dev_close(struct dev *base)
{
	struct shm_dev *dev = (struct shm_dev *)base;

	assert(!dev->attached_cnt);
	shm_seg_unmap(dev->inbox, SHM_INBOX_LEN);
	close(dev->inbox_fd);
	shm_bell_close(&dev->bell);
	util_idmap_fini(&dev->exposure_ids);
	util_pool_fini(&dev->exposure_pool);
	pthread_mutex_destroy(&dev->lock);
	/* Invalidates the proof of identity: the address may be reused. */
	explicit_bzero(dev->nonce, sizeof(dev->nonce));
	free(dev->act);
	free(dev);
}

int shm_dev_wait_fd(struct dev *base)
{
	return ((struct shm_dev *)base)->bell.read_fd;
}

static void shm_dev_wake(struct shm_dev *dev)
{
	if (shm_inbox_wake(dev->inbox, dev->bell.read_fd))
		shm_watch_rung(dev);
}

int shm_dev_arm(struct dev *base)
{
	struct shm_dev *dev = (struct shm_dev *)base;
	int ret;

	if (!util_list_is_empty(&dev->pending))
		return -FI_EAGAIN; /* polling alone ends these */
	/*
	 * A caller may arm again without disarm. Drains the bell first, or it would stay readable.
	 * Writes that it rang for are found below.
	 */
	if (dev->armed)
		shm_dev_wake(dev);
	dev->armed = true;
	shm_inbox_sleep(dev->inbox, &dev->sleep);
	ret = shm_watch_arm_all(dev);
	if (ret)
		shm_dev_disarm(base);
	return ret;
}

void shm_dev_disarm(struct dev *base)
{
	struct shm_dev *dev = (struct shm_dev *)base;

	if (!dev->armed)
		return;
	dev->armed = false;
	shm_dev_wake(dev);
}
