/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Active and parked links (shm_watch.h). */
#include "dev/shm/shm_watch.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/log.h"

#define SHM_ACT_CAP_MIN 16u

const struct shm_tune shm_tune_default = {
	.per_poll = 16,
	.tick = 16,
	.keep = 4,
	.idle_ticks = 4096,
};

void shm_watch_tune(struct shm_dev *dev, const struct shm_tune *tune)
{
	dev->tune = *tune;
	dev->per_poll = tune->per_poll;
	dev->tick_left = tune->tick;
}

int shm_watch_reserve(struct shm_dev *dev)
{
	struct shm_slot *act;
	uint32_t cap;

	if (dev->attached_cnt < dev->act_cap)
		return 0;
	cap = dev->act_cap ? 2 * dev->act_cap : SHM_ACT_CAP_MIN;
	act = realloc(dev->act, cap * sizeof(*act));
	if (!act)
		return -FI_ENOMEM;
	dev->act = act;
	dev->act_cap = cap;
	return 0;
}

/* Relaxed: the caller that takes the word loads it again with acquire. */
static bool shm_watch_has_word(const struct shm_link *link)
{
	return __atomic_load_n(shm_link_word(link->base.rx_base, link->rx_off), __ATOMIC_RELAXED);
}

void shm_watch_add(struct shm_dev *dev, struct shm_link *link)
{
	struct shm_slot *slot = &dev->act[dev->act_cnt];

	if (link->act_idx != SHM_IDX_NONE)
		return;
	util_list_remove(&link->unsettled);
	slot->link = link;
	slot->word = shm_link_word(link->base.rx_base, link->rx_off);
	link->act_idx = dev->act_cnt++;
	link->seen = dev->tick_cnt;
}

static void shm_watch_deactivate(struct shm_dev *dev, struct shm_link *link)
{
	uint32_t idx = link->act_idx, last = --dev->act_cnt;

	if (idx != last) {
		dev->act[idx] = dev->act[last];
		dev->act[idx].link->act_idx = idx;
	}
	link->act_idx = SHM_IDX_NONE;
	if (dev->cursor >= dev->act_cnt)
		dev->cursor = 0;
}

/*
 * Makes a link active whose word was found without a post. The post may have been erased: only
 * another change of notify makes the writer post again.
 */
static void shm_watch_find(struct shm_dev *dev, struct shm_link *link)
{
	if (link->act_idx != SHM_IDX_NONE)
		return;
	link->armed = false;
	shm_watch_add(dev, link);
}

void shm_watch_remove(struct shm_dev *dev, struct shm_link *link)
{
	util_list_remove(&link->unsettled);
	if (link->act_idx != SHM_IDX_NONE)
		shm_watch_deactivate(dev, link);
}

/*
 * Changes notify: the writer owes a post once it sees the change. A link that is armed and had an
 * event since is armed anew, as its post may have been erased. The patrol covers one that stands at
 * the same offset again.
 */
static void shm_watch_arm(struct shm_link *link)
{
	uint32_t at = (uint32_t)(link->rx_off >> SHM_IMM_SHIFT);

	if (link->armed && link->armed_at == at)
		return;
	link->armed_at = at;
	link->armed = true;
	link->owed = true;
	link->settled = false;
	__atomic_store_n(&link->ctrl->notify, ++link->epoch, __ATOMIC_RELEASE);
}

bool shm_watch_park(struct shm_dev *dev, struct shm_link *link)
{
	shm_watch_arm(link);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the reader's half of the Dekker pair */
	if (shm_watch_has_word(link))
		return false;
	shm_watch_deactivate(dev, link);
	if (!link->settled)
		util_list_push_back(&dev->unsettled, &link->unsettled);
	return true;
}

/* Returns the active link at the clock hand, and advances the hand. */
static struct shm_link *shm_watch_hand(struct shm_dev *dev)
{
	if (++dev->hand >= dev->act_cnt)
		dev->hand = 0;
	return dev->act[dev->hand].link;
}

static void shm_watch_age(struct shm_dev *dev)
{
	struct shm_link *link;

	if (dev->act_cnt <= dev->tune.keep)
		return;
	link = shm_watch_hand(dev);
	if (dev->tick_cnt - link->seen > dev->tune.idle_ticks)
		shm_watch_park(dev, link);
}

/* Parks links that had no event this tick while more are active than one poll looks at. */
static void shm_watch_shed(struct shm_dev *dev)
{
	uint32_t looks;

	for (looks = dev->per_poll; looks && dev->act_cnt > dev->per_poll; looks--) {
		struct shm_link *link = shm_watch_hand(dev);

		if (link->seen != dev->tick_cnt)
			shm_watch_park(dev, link);
	}
}

static void shm_watch_sweep(struct shm_dev *dev)
{
	struct util_list *item = util_list_pop(&dev->unsettled);
	struct shm_link *link;

	if (!item)
		return;
	link = UTIL_CONTAINER_OF(item, struct shm_link, unsettled);
	if (shm_watch_has_word(link))
		shm_watch_find(dev, link);
	else
		util_list_push_back(&dev->unsettled, item);
}

/* Looks at the next `cnt` attached links, in turn, and makes parked ones with a word active. */
static void shm_watch_patrol(struct shm_dev *dev, uint32_t cnt)
{
	struct shm_link *link;

	if (dev->attached_cnt == dev->act_cnt)
		return;
	while (cnt--) {
		dev->patrol = shm_attached_next(&dev->attached, dev->patrol);
		link = dev->links[dev->patrol];
		if (link->act_idx == SHM_IDX_NONE && !link->dead && shm_watch_has_word(link))
			shm_watch_find(dev, link);
	}
}

/* Looks at a closed inbox, and opens it when its time is over. */
static void shm_watch_guard(struct shm_dev *dev)
{
	if (shm_guard_tick(&dev->guard) && shm_inbox_is_set(dev->inbox))
		shm_watch_take(dev);
	if (!dev->guard.closed)
		dev->polled = dev->inbox;
}

void shm_watch_tick(struct shm_dev *dev)
{
	dev->tick_left = dev->tune.tick;
	dev->tick_cnt++;
	shm_watch_age(dev);
	shm_watch_shed(dev);
	shm_watch_sweep(dev);
	if (!(dev->tick_cnt % SHM_PATROL_TICKS))
		shm_watch_patrol(dev, 1);
	if (++dev->cursor >= dev->act_cnt)
		dev->cursor = 0;
	if (dev->bulk_cnt)
		dev->per_poll = 0;
	if (UTIL_UNLIKELY(dev->guard.closed))
		shm_watch_guard(dev);
}

/*
 * Returns whether a writer owed this post. That of a parked link posts after its publish. A link
 * that was armed before a sleep may be active, and its word taken.
 */
static bool shm_watch_is_owed(const struct shm_link *link)
{
	return link->owed && (link->act_idx != SHM_IDX_NONE || shm_watch_has_word(link));
}

/* Makes the link of a post active. Returns false if the post was surplus. */
static bool shm_watch_take_one(struct shm_dev *dev, struct shm_link *link)
{
	bool owed;

	if (link->dead)
		return false;
	owed = shm_watch_is_owed(link);
	link->armed = false;
	link->owed = false;
	shm_watch_add(dev, link);
	return owed;
}

bool shm_watch_take(struct shm_dev *dev)
{
	uint64_t leaves = shm_inbox_take_summary(dev->inbox) & dev->attached.leaves, bits;
	uint32_t first = dev->act_cnt, leaf;
	bool owed = false;

	for (; leaves; leaves &= leaves - 1) {
		leaf = (uint32_t)__builtin_ctzll(leaves);
		bits = shm_inbox_take(dev->inbox, leaf) & dev->attached.ids[leaf];
		for (; bits; bits &= bits - 1)
			owed |= shm_watch_take_one(
				dev, dev->links[64 * leaf + (uint32_t)__builtin_ctzll(bits)]);
	}
	shm_guard_count(&dev->guard, !owed);
	if (UTIL_UNLIKELY(dev->guard.closed))
		dev->polled = &shm_guard_empty;
	if (first < dev->act_cnt)
		dev->cursor = first;
	shm_watch_shed(dev);
	return owed;
}

void shm_watch_rung(struct shm_dev *dev)
{
	bool owed = shm_inbox_is_set(dev->inbox) && shm_watch_take(dev);

	shm_watch_patrol(dev, owed ? SHM_PATROL_WAKE : dev->attached_cnt);
}

bool shm_watch_end(struct shm_dev *dev, struct shm_link *link, struct dev_event *ev)
{
	shm_watch_remove(dev, link);
	link->dead = true;
	ev->link = &link->base;
	ev->kind = DEV_EV_DOWN;
	ev->status = -FI_EIO;
	return true;
}

bool shm_watch_fail(struct shm_dev *dev, struct shm_link *link, uint64_t word, struct dev_event *ev)
{
	UTIL_WARN(EP_DATA,
		  "peer %d wrote an illegal step (0x%llx at offset %llu of %llu): "
		  "the connection is closed\n",
		  (int)link->peer.pid, (unsigned long long)word, (unsigned long long)link->rx_off,
		  (unsigned long long)link->base.rx_len);
	return shm_watch_end(dev, link, ev);
}

bool shm_link_poll(struct dev_link *base, struct dev_event *ev)
{
	struct shm_link *link = (struct shm_link *)base;
	struct shm_dev *dev = link->dev;
	uint64_t word;

	if (!link->attached || link->dead)
		return false;
	word = __atomic_load_n(shm_link_word(base->rx_base, link->rx_off), __ATOMIC_ACQUIRE);
	if (!word)
		return false;
	shm_watch_find(dev, link);
	return shm_slot_take(dev, &dev->act[link->act_idx], word, ev);
}

/* Makes earlier writes of all writers visible, and the changed epochs visible to all writers. */
static bool shm_watch_barrier(struct shm_dev *dev)
{
	if (!dev->membarrier) { /* writers execute fences: tx_fence */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		return true;
	}
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		return true;
	if (!dev->logged_no_barrier)
		UTIL_WARN(DOMAIN,
			  "membarrier: %s (a seccomp filter set after the start?): "
			  "waiting will not sleep but poll\n",
			  strerror(errno));
	dev->logged_no_barrier = true;
	return false;
}

static bool shm_watch_settle_act(struct shm_dev *dev)
{
	uint32_t i;

	for (i = 0; i < dev->act_cnt; i++) {
		if (shm_watch_has_word(dev->act[i].link))
			return false;
		dev->act[i].link->settled = true;
	}
	return true;
}

static bool shm_watch_settle_parked(struct shm_dev *dev)
{
	struct util_list *item;
	struct shm_link *link;

	while ((item = util_list_first(&dev->unsettled))) {
		link = UTIL_CONTAINER_OF(item, struct shm_link, unsettled);
		if (shm_watch_has_word(link)) {
			shm_watch_find(dev, link);
			return false;
		}
		util_list_remove(item);
		link->settled = true;
	}
	return true;
}

int shm_watch_arm_all(struct shm_dev *dev)
{
	uint32_t i;

	for (i = 0; i < dev->act_cnt; i++)
		shm_watch_arm(dev->act[i].link);
	if (!shm_watch_barrier(dev))
		return -FI_EAGAIN;
	if (shm_inbox_is_set(dev->inbox)) { /* polls may look at another one */
		shm_watch_take(dev);
		return -FI_EAGAIN;
	}
	return shm_watch_settle_act(dev) && shm_watch_settle_parked(dev) ? 0 : -FI_EAGAIN;
}
