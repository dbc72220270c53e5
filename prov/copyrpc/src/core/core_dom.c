/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A domain's beginning and end, and the table of up-calls it gives its engine: see core_dom.h. */
#include "core/core_dom.h"

#include <rdma/fi_errno.h>

#include "core/core_conn.h"
#include "core/msg/core_late.h"
#include "core/core_op.h"
#include "core/core_peer.h"
#include "core/msg/core_rx.h"

static void core_dom_on_get_done(struct core_chan *chan, struct core_get *get)
{
	(void)chan;
	get->done(get);
}

static const struct core_upcalls core_dom_upcalls = {
	.on_msg = core_rx_on_msg,
	.on_call = core_rx_on_call,
	.on_reply = core_op_on_reply,
	.on_get_done = core_dom_on_get_done,
	.on_arrived = core_late_on_arrived,
	.on_up = core_peer_on_up,
	.on_connect_failed = core_peer_on_connect_failed,
	.on_accepted = core_conn_on_accepted,
	.on_refused = core_conn_on_refused,
	.on_news = core_conn_on_news,
	.on_down = core_peer_on_down,
};

/** Progress of the allies, when `work` is run: each of them has such a piece, and ours does not count. */
static void core_dom_run_allies(struct core_work *work)
{
	struct core_dom *dom = UTIL_CONTAINER_OF(work, struct core_dom, ally_work);
	struct core_dom *ally;

	for (ally = dom->ally; ally != dom; ally = ally->ally) {
		util_list_remove(&ally->ally_work.link);
		core_dom_run_work(ally);
		core_dom_work(ally, &ally->ally_work);
		ally->engine_ops->progress(ally->engine);
	}
	core_dom_work(dom, work);
}

/** Whatever an ally has to do keeps that one awake. */
static bool core_dom_retry_allies(struct core_work *work)
{
	struct core_dom *dom = UTIL_CONTAINER_OF(work, struct core_dom, ally_work);

	core_dom_work(dom, work);
	return false;
}

int core_dom_init(struct core_dom *dom, const struct core_engine_ops *engine_ops,
		  const struct core_limits *limits, bool locked)
{
	int ret = engine_ops->open(&core_dom_upcalls, &dom->engine);

	if (ret)
		return ret;
	dom->engine_ops = engine_ops;
	dom->limits = *limits;
	dom->locked = locked;
	dom->guarded = locked;
	dom->watched = false;
	util_bias_init(&dom->own_lock);
	dom->lock = &dom->own_lock;
	dom->ally = dom;
	util_list_init(&dom->ally_work.link);
	dom->ally_work.run = core_dom_run_allies;
	dom->ally_work.retry = core_dom_retry_allies;
	dom->unexpected_used = 0;
	dom->unexpected_warned = false;
	util_spare_init(&dom->spare, limits->unexpected_mem / CORE_DOM_SPARE);
	core_mr_table_init(&dom->own_mrs);
	dom->mrs = &dom->own_mrs;
	util_list_init(&dom->eps);
	util_list_init(&dom->work);
	return 0;
}

void core_dom_fini(struct core_dom *dom)
{
	dom->engine_ops->close(dom->engine);
	core_mr_table_fini(&dom->own_mrs);
	util_spare_fini(&dom->spare);
	util_bias_fini(&dom->own_lock);
}

void core_dom_share_mrs(struct core_dom *dom, struct core_dom *with)
{
	dom->mrs = with->mrs;
}

void core_dom_ally(struct core_dom *dom, struct core_dom *with)
{
	struct util_bias *lock = core_dom_bias(dom), *old = core_dom_bias(with);
	struct core_dom *ally = with, *next = with->ally;

	if (lock == old)
		return;
	do {
		__atomic_store_n(&ally->lock, lock, __ATOMIC_RELAXED);
		ally = ally->ally;
	} while (ally != with);
	/* Two rings that exchange their next ones are one. */
	with->ally = dom->ally;
	dom->ally = next;
	for (ally = dom->ally; ally != dom; ally = ally->ally)
		core_dom_work(ally, &ally->ally_work);
	core_dom_work(dom, &dom->ally_work);
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

void core_dom_visit(struct core_dom *dom)
{
	struct util_bias *lock;

	if (!dom->locked)
		return;
	lock = core_dom_bias(dom);
	util_bias_visit(lock);
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

/* Each once: what is left is in the list again. One may take out others. */
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
	return dom->engine_ops->wait_fd(dom->engine);
}

static bool core_dom_retry(struct core_dom *dom, struct core_work *work)
{
	if (work->retry)
		return work->retry(work);
	core_dom_work(dom, work);
	return true;
}

/*
 * Does work keep us awake? What waits for the engine is tried once more: there may be room since the last
 * time, and who sleeps now would miss it.
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

int core_dom_arm(struct core_dom *dom)
{
	struct core_dom *ally = dom;
	int ret;

	do {
		ret = core_dom_is_busy(ally) ? -FI_EAGAIN : ally->engine_ops->arm(ally->engine);
		ally = ally->ally;
	} while (!ret && ally != dom);
	return ret;
}

void core_dom_disarm(struct core_dom *dom)
{
	struct core_dom *ally = dom;

	do {
		ally->engine_ops->disarm(ally->engine);
		ally = ally->ally;
	} while (ally != dom);
}
