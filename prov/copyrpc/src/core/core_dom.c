/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Core domain: open, close, merge, lock, queued work, arming. See core_dom.h. */
#include "core/core_dom.h"

#include <rdma/fi_errno.h>

#include "core/core_ep.h"
#include "core/core_handler.h"

/**
 * Runs work and engine of the other merged domains. Each has this piece of work, and the caller's
 * own is unlinked during the call.
 */
static void core_dom_run_merged(struct core_work *work)
{
	struct core_dom *dom = UTIL_CONTAINER_OF(work, struct core_dom, merged_work);
	struct core_dom *member;

	for (member = dom->merged_next; member != dom; member = member->merged_next) {
		util_list_remove(&member->merged_work.link);
		core_dom_run_work(member);
		core_dom_work(member, &member->merged_work);
		member->progress_ops->progress(member->progress);
	}
	core_dom_work(dom, work);
}

/** Returns false: pending work of a merged domain prevents sleep by itself. */
static bool core_dom_retry_merged(struct core_work *work)
{
	struct core_dom *dom = UTIL_CONTAINER_OF(work, struct core_dom, merged_work);

	core_dom_work(dom, work);
	return false;
}

int core_dom_init(struct core_dom *dom, const struct core_progress_ops *progress_ops,
		  const struct core_engine_ops *engine_ops, const struct core_limits *limits,
		  bool locked)
{
	int ret = progress_ops->open(&core_upcall_table, &dom->progress);

	if (ret)
		return ret;
	dom->progress_ops = progress_ops;
	dom->engine_ops = engine_ops;
	dom->limits = *limits;
	dom->locked = locked;
	dom->guarded = locked;
	dom->watched = false;
	if (locked)
		util_bias_prepare();
	util_bias_init(&dom->own_lock);
	dom->lock = &dom->own_lock;
	dom->merged_next = dom;
	util_list_init(&dom->merged_work.link);
	dom->merged_work.run = core_dom_run_merged;
	dom->merged_work.retry = core_dom_retry_merged;
	dom->unexpected_used = 0;
	dom->unexpected_warned = false;
	util_cache_init(&dom->cache, limits->unexpected_mem / CORE_DOM_CACHE_SHARE);
	core_mr_table_init(&dom->own_mrs);
	dom->mrs = &dom->own_mrs;
	util_list_init(&dom->eps);
	util_list_init(&dom->work);
	return 0;
}

void core_dom_fini(struct core_dom *dom)
{
	dom->progress_ops->close(dom->progress);
	core_mr_table_fini(&dom->own_mrs);
	util_cache_fini(&dom->cache);
	util_bias_fini(&dom->own_lock);
}

void core_dom_share_mrs(struct core_dom *dom, struct core_dom *with)
{
	dom->mrs = with->mrs;
}

void core_dom_merge(struct core_dom *dom, struct core_dom *with)
{
	struct util_bias *lock = core_dom_bias(dom), *old = core_dom_bias(with);
	struct core_dom *member = with, *next = with->merged_next;

	if (lock == old)
		return;
	do {
		__atomic_store_n(&member->lock, lock, __ATOMIC_RELAXED);
		member = member->merged_next;
	} while (member != with);
	/* Joins the two rings: exchanging the next pointers of two rings makes one. */
	with->merged_next = dom->merged_next;
	dom->merged_next = next;
	for (member = dom->merged_next; member != dom; member = member->merged_next)
		core_dom_work(member, &member->merged_work);
	core_dom_work(dom, &dom->merged_work);
	util_bias_unlock(old);
}

void core_dom_lock_again(struct core_dom *dom, struct util_bias *held)
{
	do {
		util_bias_unlock(held);
		held = core_dom_bias(dom);
		util_bias_lock(held);
	} while (core_dom_bias(dom) != held);
}

void core_dom_lock_transient(struct core_dom *dom)
{
	struct util_bias *lock;

	if (!dom->locked)
		return;
	lock = core_dom_bias(dom);
	util_bias_lock_transient(lock);
	if (core_dom_bias(dom) != lock)
		core_dom_lock_again(dom, lock);
}

bool core_dom_trylock(struct core_dom *dom)
{
	struct util_bias *lock = core_dom_bias(dom);

	if (!util_bias_trylock(lock))
		return false;
	if (core_dom_bias(dom) == lock)
		return true;
	util_bias_unlock(lock);
	return false;
}

/* Runs each piece of work once; unfinished work queues itself again. A piece may unlink others. */
void core_dom_run_work(struct core_dom *dom)
{
	struct util_list todo, *first;
	struct core_work *work;

	util_list_move(&dom->work, &todo);
	while ((first = util_list_pop(&todo))) {
		work = UTIL_CONTAINER_OF(first, struct core_work, link);
		work->run(work);
	}
}

int core_dom_wait_fd(struct core_dom *dom)
{
	return dom->progress->wait_fd;
}

static bool core_dom_retry(struct core_dom *dom, struct core_work *work)
{
	if (work->retry)
		return work->retry(work);
	core_dom_work(dom, work);
	return true;
}

/*
 * Returns true if work prevents sleep. Work that waits for the engine is tried once more: there may
 * be room since the last try, and no event would follow.
 */
static bool core_dom_is_busy(struct core_dom *dom)
{
	struct util_list todo, *first;
	bool busy = false;

	util_list_move(&dom->work, &todo);
	while ((first = util_list_pop(&todo)))
		busy |= core_dom_retry(dom, UTIL_CONTAINER_OF(first, struct core_work, link));
	return busy;
}

/** Returns true if operations are open, so that a thread that sleeps should look at them. */
static bool core_dom_waits(const struct core_dom *dom)
{
	const struct util_list *it;

	for (it = dom->eps.next; it != &dom->eps; it = it->next)
		if (UTIL_CONTAINER_OF(it, const struct core_ep, dom_link)->tx_open)
			return true;
	return false;
}

/** Shows the state in which a thread sleeps: no look follows while nothing happens. */
static void core_dom_show(struct core_dom *dom)
{
	const struct util_list *it;

	for (it = dom->eps.next; it != &dom->eps; it = it->next)
		core_ep_show(UTIL_CONTAINER_OF(it, struct core_ep, dom_link));
}

int core_dom_arm(struct core_dom *dom)
{
	struct core_dom *member = dom;
	int ret;

	do {
		__atomic_store_n(&member->progress->waits, core_dom_waits(member),
				 __ATOMIC_RELAXED);
		core_dom_show(member);
		ret = core_dom_is_busy(member) ? -FI_EAGAIN
					       : member->progress_ops->arm(member->progress);
		member = member->merged_next;
	} while (!ret && member != dom);
	return ret;
}

void core_dom_disarm(struct core_dom *dom)
{
	struct core_dom *member = dom;

	do {
		member->progress_ops->disarm(member->progress);
		member = member->merged_next;
	} while (member != dom);
}
