/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Core domain: the endpoints that share an engine, a lock and a budget. Called by ofi/.
 *
 * core_dom_progress receives what arrived for any endpoint and continues queued work. Each read of
 * a CQ, counter or EQ calls it. The lock guards all objects of the domain. ofi/ takes it, no other
 * layer does, and not under FI_THREAD_DOMAIN (locked = false). A thread that is alone in the domain
 * pays plain loads and stores for it (util/bias.h). Lock order: domain, then locks of the engine
 * and the control thread. Up-calls arrive with the lock held.
 *
 * A libfabric domain may have several core domains (ofi/base/cpr_pdom.h). These share memory
 * regions: a change takes the locks of all, a lookup needs one. Merged domains share everything:
 * one lock, and progress of one is progress of all.
 */
#ifndef CORE_CORE_DOM_H
#define CORE_CORE_DOM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/core_engine.h"
#include "core/core_mr.h"
#include "util/bias.h"
#include "util/bits.h"
#include "util/cache.h"
#include "util/list.h"
#include "util/switches.h"

struct core_dom;

/** Work that progress continues. In no list, or in core_dom.work. */
struct core_work {
	struct util_list link;
	/*
	 * Called by progress, unlinked from the list. Calls core_dom_work again if something is
	 * left.
	 */
	void (*run)(struct core_work *work);
	/*
	 * Called before a thread sleeps. Returns false if nothing could be done and the event that
	 * unblocks this work signals the engine's wait object. NULL: the domain does not sleep
	 * while this work is queued.
	 */
	bool (*retry)(struct core_work *work);
};

/** Limits, fixed at open (from util_params; tests set their own). */
struct core_limits {
	size_t eager_max; /* user bytes of one eager message */
	/* from here a get is faster than pipelined parts; SIZE_MAX: never */
	size_t single_copy_min;
	size_t unexpected_mem; /* heap bytes for unexpected messages */
};

/** Share of unexpected_mem that the size-class cache retains for the next unexpected messages. */
#define CORE_DOM_CACHE_SHARE 32u

struct core_dom {
	const struct core_progress_ops *progress_ops;
	struct core_progress *progress;
	const struct core_engine_ops *engine_ops; /* NULL: datagram endpoints */
	bool guarded; /* locked or watched: transfers test this one flag */
	bool locked;
	/*
	 * A thread sleeps on events of this domain, or has another thread do so. Each transfer then
	 * makes progress, for no other thread continues queued work.
	 */
	bool watched;
	/* own_lock, or that of a merged domain; atomic, changed with both held */
	struct util_bias *lock;
	struct util_bias own_lock;
	struct core_dom *merged_next; /* ring of merged domains; itself: none */
	struct core_work merged_work; /* if merged: always in `work`, does not prevent sleep */
	struct core_limits limits;
	struct util_switches switches; /* counted by messages that the kernel could copy */
	size_t unexpected_used;        /* heap bytes of unexpected messages */
	bool unexpected_warned;
	struct util_cache cache; /* for bytes of unexpected messages */
	/* regions that peers may access: own_mrs, or another domain's */
	struct core_mr_table *mrs;
	struct core_mr_table own_mrs;
	struct util_list eps;  /* core_ep.dom_link */
	struct util_list work; /* core_work.link: peers with queued operations, and others */
};

/** Opens the engine. Returns 0 or -FI_E*. */
int core_dom_init(struct core_dom *dom, const struct core_progress_ops *progress_ops,
		  const struct core_engine_ops *engine_ops, const struct core_limits *limits,
		  bool locked);
/** Closes the engine. No endpoint is left. */
void core_dom_fini(struct core_dom *dom);

/**
 * Makes the regions of `with`, which outlives `dom`, reachable for peers. Called before the first
 * endpoint.
 */
void core_dom_share_mrs(struct core_dom *dom, struct core_dom *with);

/**
 * Merges two domains for good: one lock, that of `dom`, and one progress. Both are locked; the lock
 * of `with` is released.
 */
void core_dom_merge(struct core_dom *dom, struct core_dom *with);

/**
 * Returns the domain's lock. Any thread may call this; the result is stable while it holds the
 * lock.
 */
static inline struct util_bias *core_dom_bias(const struct core_dom *dom)
{
	return __atomic_load_n(&dom->lock, __ATOMIC_RELAXED);
}

/** Releases `held`, which was the domain's lock before a merge, and takes the present one. */
void core_dom_lock_again(struct core_dom *dom, struct util_bias *held);

static inline void core_dom_lock(struct core_dom *dom)
{
	struct util_bias *lock;

	if (!dom->locked)
		return;
	lock = core_dom_bias(dom);
	util_bias_lock(lock);
	if (UTIL_UNLIKELY(core_dom_bias(dom) != lock))
		core_dom_lock_again(dom, lock);
}

/** Takes the lock of a domain that has one. Returns false if another thread holds it. */
bool core_dom_trylock(struct core_dom *dom);

/**
 * Variant of core_dom_lock for a rare access: does not take a biased lock from its owner
 * (util/bias.h).
 */
void core_dom_lock_transient(struct core_dom *dom);

static inline void core_dom_unlock(struct core_dom *dom)
{
	if (dom->locked)
		util_bias_unlock(core_dom_bias(dom));
}

static inline bool core_dom_is_merged(const struct core_dom *dom)
{
	return dom->merged_next != dom;
}

/** Sets `locked`, which never changes back. Called under the lock, if there is one already. */
static inline void core_dom_set_locked(struct core_dom *dom)
{
	dom->locked = true;
	dom->guarded = true;
}

static inline void core_dom_set_watched(struct core_dom *dom, bool watched)
{
	dom->watched = watched;
	/* a locked domain stays guarded, and others read the flag without the lock */
	if (!dom->locked)
		dom->guarded = watched;
}

/**
 * Returns true if one thread uses the domain and no thread sleeps on it: a transfer needs neither
 * lock nor core_dom_transferred.
 */
static inline bool core_dom_is_private(const struct core_dom *dom)
{
	return !dom->guarded;
}

/** Returns the heap bytes that unexpected messages may still take. */
static inline size_t core_dom_unexpected_left(const struct core_dom *dom)
{
	size_t max = dom->limits.unexpected_mem, used = dom->unexpected_used;

	return used < max ? max - used : 0; /* core_unexp_save takes more than is left */
}

/** Queues work for progress. */
static inline void core_dom_work(struct core_dom *dom, struct core_work *work)
{
	if (util_list_is_empty(&work->link))
		util_list_push_back(&dom->work, &work->link);
}

void core_dom_run_work(struct core_dom *dom);

/**
 * Makes all progress that is possible without waiting. Queued sends go first: the engine's progress
 * then lets them leave, for their completions may be the last ones that the user waits for.
 */
static inline void core_dom_progress(struct core_dom *dom)
{
	if (UTIL_UNLIKELY(dom->work.next != &dom->work))
		core_dom_run_work(dom);
	dom->progress_ops->progress(dom->progress);
}

/** Called after a transfer without FI_MORE. */
static inline void core_dom_transferred(struct core_dom *dom)
{
	if (UTIL_UNLIKELY(dom->watched))
		core_dom_progress(dom);
}

/**
 * Returns the wait object of the domain's engine, see core_chan.h. Merged domains have one each.
 */
int core_dom_wait_fd(struct core_dom *dom);
/** Arms all merged domains. On -FI_E* some may be armed, and others may not be any more. */
int core_dom_arm(struct core_dom *dom);
void core_dom_disarm(struct core_dom *dom);

#endif
