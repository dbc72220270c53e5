/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Open and close of an endpoint: see erpc_setup.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "erpc/bulk/erpc_expose.h"
#include "erpc/erpc_setup.h"
#include "erpc/tx/erpc_loss.h"

/** Tables with room for all sessions. Unused pages take no memory. */
struct erpc_tables {
	struct erpc_session *sessions[ERPC_SESSIONS_MAX];
	struct erpc_session *fresh[ERPC_SESSIONS_MAX];
	struct erpc_session *new_timers[ERPC_SESSIONS_MAX];
};

static int erpc_ep_seed(struct erpc_ep *ep, uint64_t seed)
{
	ep->random = seed;
	ep->seeded = seed;
	if (!seed && getrandom(&ep->random, sizeof(ep->random), 0) != sizeof(ep->random))
		return -FI_EIO;
	ep->exposure_random = ep->random * 0x2545F4914F6CDD1Dull + 1;
	return 0;
}

static int erpc_ep_tables(struct erpc_ep *ep)
{
	struct erpc_tables *tables = mmap(NULL, sizeof(*tables), PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (tables == MAP_FAILED)
		return -FI_ENOMEM;
	ep->sessions = tables->sessions;
	ep->fresh.at = tables->fresh;
	ep->new_timers.at = tables->new_timers;
	return 0;
}

static int erpc_ep_make(struct erpc_ep *ep, const struct erpc_ep_attr *attr)
{
	int ret = erpc_ep_tables(ep);

	if (ret)
		return ret;
	ep->used = calloc(1, ERPC_SESSIONS_MAX / 8);
	if (!ep->used)
		return -FI_ENOMEM;
	ret = erpc_ep_seed(ep, attr->seed);
	if (!ret)
		ret = erpc_out_init(&ep->out, ep->dg, ep->dev, ep->dev_ops, attr->tx_cnt);
	if (!ret)
		ret = erpc_wheel_init(&ep->timers, 0, ERPC_LOSS_SHIFT, ERPC_LOSS_SLOTS);
	if (!ret && ep->paces)
		ret = erpc_wheel_init(&ep->wheel, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS);
	return ret;
}

int erpc_ep_open(const struct erpc_ep_attr *attr, struct erpc_ep **out)
{
	struct erpc_ep *ep = calloc(1, sizeof(*ep));
	int ret;

	if (!ep) {
		attr->dg->ops->close(attr->dg);
		return -FI_ENOMEM;
	}
	ep->dg = attr->dg;
	ep->dev = attr->dev;
	ep->dev_ops = attr->dev_ops;
	ep->up = attr->up;
	ep->failed = attr->failed;
	ep->now.trust = ERPC_NOW_TRUST;
	ep->paces = attr->link_rate > 0;
	ep->eager_min = attr->eager_min;
	ep->mark = attr->mark;
	ep->stats = &ep->own_stats;
	erpc_timely_cfg_init(&ep->timely_cfg, ep->paces ? attr->link_rate : 1e12, attr->host_ns);
	util_list_init(&ep->dirty);
	util_list_init(&ep->waiting);
	util_list_init(&ep->piggybacking);
	util_list_init(&ep->failing);
	util_list_init(&ep->dereg_list);
	util_list_init(&ep->zombies);
	util_pool_init(&ep->bodies, sizeof(struct erpc_body), 64, 0);
	util_pool_init(&ep->exposure_pool, sizeof(struct erpc_exposure), 16, 0);
	util_idmap_init(&ep->exposures);
	erpc_ep_mem_init(ep);
	erpc_bufs_init(&ep->bufs, ep->dg, ep->dev, ep->dev_ops);
	pthread_mutex_init(&ep->lock, NULL);
	ret = erpc_ep_make(ep, attr);
	if (ret) {
		erpc_ep_close(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

void erpc_ep_count_in(struct erpc_ep *ep, struct copyrpc_stats_packets *stats)
{
	const uint64_t *from = (const uint64_t *)ep->stats;
	uint64_t *to = (uint64_t *)stats;

	if (ep->stats == stats)
		return;
	for (size_t i = 0; i < sizeof(*stats) / sizeof(*to); i++)
		to[i] += from[i];
	ep->stats = stats;
}

void erpc_ep_close(struct erpc_ep *ep)
{
	erpc_session_reap(ep, true);
	ep->dg->ops->close(ep->dg);
	erpc_expose_reap(ep, true);
	erpc_out_fini(&ep->out);
	erpc_bufs_fini(&ep->bufs);
	erpc_wheel_fini(&ep->wheel);
	erpc_wheel_fini(&ep->timers);
	util_pool_fini(&ep->bodies);
	util_pool_fini(&ep->exposure_pool);
	util_idmap_fini(&ep->exposures);
	if (ep->sessions)
		munmap(ep->sessions, sizeof(struct erpc_tables)); /* first member */
	free(ep->used);
	erpc_ep_mem_fini(ep);
	pthread_mutex_destroy(&ep->lock);
	free(ep);
}
