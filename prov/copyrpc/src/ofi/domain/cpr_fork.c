/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects inherited by a forked child: see cpr_fork.h. */
#include "ofi/domain/cpr_fork.h"

#include <pthread.h>
#include <rdma/fi_errno.h>

#include "engine/eng_engine.h"
#include "engine/eng_node.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_fabric.h"
#include "ofi/base/cpr_refuse.h"
#include "ofi/queue/cpr_cq.h"

/* Engine that does nothing */

static int cpr_fork_ep_open(struct core_progress *base, struct core_ep *ep,
			    const struct sockaddr *addr, struct core_engine_ep **eep)
{
	return -FI_EBADF;
}

static void cpr_fork_progress(struct core_progress *base)
{
}

static int cpr_fork_refuse(struct core_progress *base)
{
	return -FI_EBADF;
}

/* Other entries are never called: endpoints refuse transfers, and domains stay open. */
static const struct core_engine_ops cpr_fork_engine = {
	.ep_open = cpr_fork_ep_open,
	.ep_addr = eng_ep_addr,
};

static const struct core_progress_ops cpr_fork_progress_ops = {
	.name = "inherited",
	.progress = cpr_fork_progress,
	.arm = cpr_fork_refuse,
	.disarm = cpr_fork_progress,
};

/* Changes in the child */

/* Adds an error completion that ends a reader's wait. */
static void cpr_fork_fail_cq(struct cpr_cq *cq, uint64_t flags)
{
	struct fi_cq_err_entry err = { .flags = flags, .err = FI_EBADF, .prov_errno = FI_EBADF };

	if (!cq)
		return;
	core_cq_set_notify(&cq->core, NULL); /* the descriptor belongs to the parent, too */
	if (!cq->core.failed_cnt)
		core_cq_write_err(&cq->core, &err, FI_ADDR_NOTAVAIL);
}

static void cpr_fork_disown_ep(struct cpr_ep *ep)
{
	ep->is_enabled = false;
	cpr_refuse_all(ep);
	if (ep->owner == ep)
		util_list_remove(&ep->av_link); /* peers outlive the address vector */
	cpr_fork_fail_cq(ep->tx_cq, FI_SEND);
	cpr_fork_fail_cq(ep->rx_cq, FI_RECV);
}

static void cpr_fork_disown_pdom(struct cpr_pdom *pdom)
{
	struct core_dom *dom = &pdom->core;

	pdom->is_inherited = true;
	dom->engine_ops = &cpr_fork_engine;
	dom->progress_ops = &cpr_fork_progress_ops;
	dom->progress->wait_fd = -FI_EBADF; /* the descriptor belongs to the parent, too */
	util_bias_init(&dom->own_lock);
	util_list_init(&dom->work);
}

static void cpr_fork_disown(struct cpr_domain *domain)
{
	struct util_list *it, *tmp;

	for (struct cpr_pdom *g = &domain->main; g; g = cpr_pdom_next(g))
		cpr_fork_disown_pdom(g);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &domain->eps)
		cpr_fork_disown_ep(UTIL_CONTAINER_OF(it, struct cpr_ep, domain_link));
}

static void cpr_fork_in_child(void)
{
	cpr_fabric_forget_all(cpr_fork_disown);
}

static void cpr_fork_register_once(void)
{
	/* Handlers registered later run first: the locks of the fabrics are the outer ones. */
	eng_node_guard_fork();
	pthread_atfork(cpr_fabric_lock_all, cpr_fabric_unlock_all, cpr_fork_in_child);
}

void cpr_fork_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, cpr_fork_register_once);
}
