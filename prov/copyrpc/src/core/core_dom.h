/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What makes progress together?
 *
 * A core domain: the endpoints that share an engine, a lock and a budget. core_dom_progress takes in
 * everything that arrived for any of them and continues what waits; every read of a CQ, counter
 * or EQ calls it. The lock guards all that hangs below; it is taken at the libfabric border
 * (ofi/) and nowhere else, and not at all under FI_THREAD_DOMAIN (locked = false). It costs a thread
 * that alone uses the domain plain loads and stores (util/bias.h).
 * Lock order: domain -> (engine's, control thread's own). Up-calls arrive with it held.
 *
 * A libfabric domain may have several (ofi/domain/cpr_pdom.h). They have memory regions in common; who
 * changes these holds the locks of all, so one lock is enough to look. Allies have everything in
 * common: one lock, and progress of one is progress of all.
 */
#ifndef CORE_DOM_H
#define CORE_DOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "core/core_mr.h"
#include "util/bias.h"
#include "util/bits.h"
#include "util/list.h"
#include "util/cache.h"

struct core_dom;

/** Something that could not be finished: progress goes on with it. In no list, or in core_dom.work. */
struct core_work {
	struct util_list link;
	/* Is in no list when called, and calls core_dom_work if something is left. */
	void (*run)(struct core_work *work);
	/*
	 * As run, by who is about to sleep: false: nothing could be done, and whatever lets it go on wakes
	 * the engine. NULL: it keeps everybody awake.
	 */
	bool (*retry)(struct core_work *work);
};

/** Limits, fixed at open (from util_params; tests set their own). */
struct core_limits {
	size_t eager_max;       /* user bytes that may go in one piece */
	size_t single_copy_min; /* from here a fetch beats parts; SIZE_MAX: never */
	size_t unexpected_mem;  /* heap bytes for unexpected messages */
};

/** One part in so many of unexpected_mem is kept when it is free again, for the next unexpected messages. */
#define CORE_DOM_CACHE_SHARE 32u

struct core_dom {
	const struct core_engine_ops *engine_ops;
	struct core_engine *engine;
	bool guarded; /* locked or watched: somebody else is to be thought of */
	bool locked;
	/*
	 * Somebody sleeps until this domain has news, or has a thread do so: who transfers makes
	 * progress too, for nobody else will let go what waits.
	 */
	bool watched;
	struct util_bias
		*lock; /* own_lock, or that of an merged_next; atomic, changed with both held */
	struct util_bias own_lock;
	struct core_dom *merged_next; /* the next in their ring; itself: none */
	struct core_work merged_work; /* with allies: always in `work`, keeps nobody awake */
	struct core_limits limits;
	size_t unexpected_used; /* heap bytes held by unexpected messages */
	bool unexpected_warned;
	struct util_cache cache;   /* for their bytes */
	struct core_mr_table *mrs; /* memory that peers may reach: own_mrs, or another's */
	struct core_mr_table own_mrs;
	struct util_list eps;  /* core_ep.dom_link */
	struct util_list work; /* core_work.link: peers with operations that found no room */
};

/** Opens the engine. 0 or -FI_E*. */
int core_dom_init(struct core_dom *dom, const struct core_engine_ops *engine_ops,
		  const struct core_limits *limits, bool locked);
/** No endpoint is left. */
void core_dom_fini(struct core_dom *dom);

/** Peers reach the regions of `with`, which outlives it. Before the first endpoint. */
void core_dom_share_mrs(struct core_dom *dom, struct core_dom *with);

/** For good: one lock, that of `dom`, and one progress. Both are locked; that of `with` is given back. */
void core_dom_merge(struct core_dom *dom, struct core_dom *with);

/** Its lock; any thread may ask, who holds it knows that it stays. */
static inline struct util_bias *core_dom_bias(const struct core_dom *dom)
{
	return __atomic_load_n(&dom->lock, __ATOMIC_RELAXED);
}

/** `held` was its lock once: takes what is now. */
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

/** Of a domain with a lock: false if somebody has it. */
bool core_dom_trylock(struct core_dom *dom);

/** As core_dom_lock, by who will not be back soon: nobody loses a lock that costs nothing (util/bias.h). */
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

/** locked and watched change here only. Under the lock, if there is one already. */
static inline void core_dom_set_locked(struct core_dom *dom)
{
	dom->locked = true;
	dom->guarded = true;
}

static inline void core_dom_set_watched(struct core_dom *dom, bool watched)
{
	dom->watched = watched;
	if (!dom->locked) /* else it is and stays set, and others read it without the lock */
		dom->guarded = watched;
}

/** One thread uses the domain and nobody sleeps on it: neither lock nor core_dom_transferred. */
static inline bool core_dom_is_private(const struct core_dom *dom)
{
	return !dom->guarded;
}

/** Has progress go on with it. */
static inline void core_dom_work(struct core_dom *dom, struct core_work *work)
{
	if (util_list_is_empty(&work->link))
		util_list_push_back(&dom->work, &work->link);
}

void core_dom_run_work(struct core_dom *dom);

/**
 * Everything that can be done now without waiting. Queued sends go first: the engine's progress then
 * lets them leave, for their completions may be the last that the user waits for.
 */
static inline void core_dom_progress(struct core_dom *dom)
{
	if (UTIL_UNLIKELY(dom->work.next != &dom->work))
		core_dom_run_work(dom);
	dom->engine_ops->progress(dom->engine);
}

/** After a transfer that nothing follows for now (no FI_MORE). */
static inline void core_dom_transferred(struct core_dom *dom)
{
	if (UTIL_UNLIKELY(dom->watched))
		core_dom_progress(dom);
}

/** The domain's events make it readable, as in core_chan.h; those of allies, theirs. */
int core_dom_wait_fd(struct core_dom *dom);
/** Allies are armed together. -FI_E*: some may be armed, and some that were not any more. */
int core_dom_arm(struct core_dom *dom);
void core_dom_disarm(struct core_dom *dom);

#endif
