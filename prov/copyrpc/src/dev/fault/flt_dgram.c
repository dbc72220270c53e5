/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint with faults: open, close, waiting (flt_dgram.h). */
#include "dev/fault/flt_dgram.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

#define FLT_LINE 64u /* dgram.h: data starts at a cache line */

static int flt_open_none(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg)
{
	return -FI_ENOSYS; /* flt_open opens the device below */
}

/** Frees the wrapper; the device below stays open. */
static void flt_free(struct flt_dgram *flt)
{
	if (flt->wait_fd >= 0)
		close(flt->wait_fd);
	if (flt->timer_fd >= 0)
		close(flt->timer_fd);
	if (flt->bytes)
		munmap(flt->bytes, flt->cell_cnt * flt->cell_len);
	free(flt->cells);
	free(flt);
}

static void flt_close(struct dev_dgram *dg)
{
	struct flt_dgram *flt = (struct flt_dgram *)dg;
	const struct flt_cnt *c = &flt->cnt;

	UTIL_INFO(EP_CTRL,
		  "faults: of %" PRIu64 " datagrams %" PRIu64 " dropped, %" PRIu64
		  " corrupt, %" PRIu64 " duplicated, %" PRIu64 " deferred, %" PRIu64
		  " delayed, %" PRIu64 " without room\n",
		  c->received, c->dropped, c->corrupt, c->duplicated, c->deferred, c->delayed,
		  c->no_room);
	flt->below->ops->close(flt->below);
	flt_free(flt);
}

static int flt_make_cells(struct flt_dgram *flt)
{
	uint32_t i;
	void *mem;

	flt->cell_len = (flt->base.mtu + FLT_LINE - 1) & ~(size_t)(FLT_LINE - 1);
	flt->cell_cnt = flt->base.rx_cnt + FLT_CELLS;
	flt->cells = calloc(flt->cell_cnt, sizeof(*flt->cells));
	if (!flt->cells)
		return -FI_ENOMEM;
	mem = mmap(NULL, flt->cell_cnt * flt->cell_len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return -FI_ENOMEM;
	flt->bytes = mem;
	for (i = flt->cell_cnt; i-- > 0;)
		util_list_push_front(&flt->free, &flt->cells[i].link);
	return 0;
}

static int flt_watch(struct flt_dgram *flt, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd < 0 || epoll_ctl(flt->wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int flt_make_wait(struct flt_dgram *flt)
{
	int ret, fd = flt->below->ops->wait_fd(flt->below);

	flt->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	flt->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (flt->wait_fd < 0)
		return -errno;
	ret = flt_watch(flt, flt->timer_fd);
	return ret || fd < 0 ? ret : flt_watch(flt, fd);
}

int flt_wrap(const struct flt_config *cfg, struct dev_dgram *below, struct dev_dgram **dg)
{
	struct flt_dgram *flt = calloc(1, sizeof(*flt));
	int ret;

	if (!flt)
		return -FI_ENOMEM;
	flt->base = *below;
	flt->base.ops = &flt_dgram_ops;
	flt->below = below;
	flt->cfg = *cfg;
	flt->rng = cfg->seed;
	flt->now_ns = util_clock_ns;
	flt->timer_fd = flt->wait_fd = -1;
	util_list_init(&flt->free);
	util_list_init(&flt->delayed);
	util_list_init(&flt->deferred);
	util_list_init(&flt->ready);
	ret = flt_make_cells(flt);
	if (!ret)
		ret = flt_make_wait(flt);
	if (ret) {
		flt_free(flt);
		return ret;
	}
	*dg = &flt->base;
	return 0;
}

/**
 * Chooses and logs the seed. Each endpoint of a process has its own sequence, which the seed
 * repeats.
 */
static void flt_seed(struct flt_config *cfg)
{
	static _Atomic uint64_t opened;

	if (!cfg->has_seed)
		cfg->seed = (util_clock_ns() ^ (uint64_t)getpid() << 40) % 1000000000;
	UTIL_INFO(EP_CTRL, "FI_COPYRPC_FAULT is active, seed=%" PRIu64 "\n", cfg->seed);
	cfg->seed += 0x632BE59BD9B4E019ull * opened++;
}

static int flt_read(struct flt_config *cfg)
{
	char why[256];

	if (flt_config_read(cfg, util_params.fault, why, sizeof(why)))
		return 0;
	UTIL_WARN(EP_CTRL, "FI_COPYRPC_FAULT: %s\n", why);
	return -FI_EINVAL;
}

int flt_check(void)
{
	struct flt_config cfg;

	return util_params.fault ? flt_read(&cfg) : 0;
}

int flt_open(const struct dev_dgram_ops *ops, struct dev *dev, const struct dev_dgram_attr *attr,
	     struct dev_dgram **dg)
{
	struct dev_dgram *below;
	struct flt_config cfg;
	int ret;

	if (!util_params.fault)
		return ops->open(dev, attr, dg);
	ret = flt_read(&cfg);
	if (!ret)
		ret = ops->open(dev, attr, &below);
	if (ret)
		return ret;
	flt_seed(&cfg);
	ret = flt_wrap(&cfg, below, dg);
	if (ret) {
		UTIL_WARN(EP_CTRL, "no memory or descriptors for FI_COPYRPC_FAULT: %s\n",
			  strerror(-ret));
		below->ops->close(below);
	}
	return ret;
}

const struct flt_cnt *flt_counters(const struct dev_dgram *dg)
{
	return dg->ops == &flt_dgram_ops ? &((const struct flt_dgram *)dg)->cnt : NULL;
}

/* --- operations of the device below --- */

static struct dev_dgram *flt_below(struct dev_dgram *dg)
{
	return ((struct flt_dgram *)dg)->below;
}

static int flt_describe(struct dev_dgram *dg, struct dev_desc *desc)
{
	return flt_below(dg)->ops->describe(flt_below(dg), desc);
}

static int flt_resolve(struct dev_dgram *dg, const struct dev_desc *peer, struct dev_dgram_ah **ah)
{
	return flt_below(dg)->ops->resolve(flt_below(dg), peer, ah);
}

static uint32_t flt_route_mtu(struct dev_dgram *dg, const struct sockaddr *peer)
{
	struct dev_dgram *below = flt_below(dg);

	return below->ops->route_mtu ? below->ops->route_mtu(below, peer) : below->mtu;
}

static void flt_forget(struct dev_dgram *dg, struct dev_dgram_ah *ah)
{
	flt_below(dg)->ops->forget(flt_below(dg), ah);
}

static int flt_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt)
{
	struct dev_dgram *below = flt_below(dg);
	int ret = below->ops->send(below, out, cnt);

	dg->tx_posted = below->tx_posted;
	dg->tx_done = below->tx_done;
	dg->tx_full = below->tx_full;
	return ret;
}

/* --- waiting: for the device below, or for a deferred datagram --- */

static int flt_wait_fd(struct dev_dgram *dg)
{
	return ((struct flt_dgram *)dg)->wait_fd;
}

static void flt_set_timer(struct flt_dgram *flt, uint64_t due_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due_ns / UTIL_NS_PER_S),
					       .tv_nsec = (long)(due_ns % UTIL_NS_PER_S) } };

	timerfd_settime(flt->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static int flt_arm(struct dev_dgram *dg)
{
	struct flt_dgram *flt = (struct flt_dgram *)dg;
	uint64_t due_ns = flt_next_ns(flt);
	int ret;

	if (due_ns <= flt->now_ns())
		return -FI_EAGAIN;
	if (due_ns != UINT64_MAX)
		flt_set_timer(flt, due_ns);
	ret = flt->below->ops->arm(flt->below);
	dg->tx_full = flt->below->tx_full;
	return ret;
}

static void flt_disarm(struct dev_dgram *dg)
{
	struct flt_dgram *flt = (struct flt_dgram *)dg;

	flt_set_timer(flt, 0);
	flt->below->ops->disarm(flt->below);
}

const struct dev_dgram_ops flt_dgram_ops = {
	.open = flt_open_none,
	.close = flt_close,
	.describe = flt_describe,
	.resolve = flt_resolve,
	.route_mtu = flt_route_mtu,
	.forget = flt_forget,
	.send = flt_send,
	.poll = flt_poll,
	.release = flt_release,
	.wait_fd = flt_wait_fd,
	.arm = flt_arm,
	.disarm = flt_disarm,
};
