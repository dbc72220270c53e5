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
#include "util/tick.h"

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
	dev->time_rest = SHM_TIME_PATROLS;
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
	dev->distrusted_active += link->distrust > 0;
}

static void shm_watch_deactivate(struct shm_dev *dev, struct shm_link *link)
{
	uint32_t idx = link->act_idx, last = --dev->act_cnt;

	if (idx != last) {
		dev->act[idx] = dev->act[last];
		dev->act[idx].link->act_idx = idx;
	}
	link->act_idx = SHM_IDX_NONE;
	dev->distrusted_active -= link->distrust > 0;
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

/* Enters a parked link in the list of those whose notification may be lost. */
static void shm_watch_list(struct shm_dev *dev, struct shm_link *link)
{
	struct util_list *list = link->distrust ? &dev->distrusted : &dev->unsettled;

	util_list_remove(&link->unsettled);
	if (!link->settled)
		util_list_push_back(list, &link->unsettled);
}

bool shm_watch_park(struct shm_dev *dev, struct shm_link *link)
{
	shm_watch_arm(link);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the reader's half of the Dekker pair */
	if (shm_watch_has_word(link))
		return false;
	shm_watch_deactivate(dev, link);
	shm_watch_list(dev, link);
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

/* Looks at a link, and makes it active if it is parked and has a word. */
static void shm_watch_look(struct shm_dev *dev, struct shm_link *link)
{
	bool has_word = shm_watch_has_word(link);

	if (link->act_idx != SHM_IDX_NONE || link->dead)
		return;
	if (link->distrust && !--link->distrust)
		shm_watch_list(dev, link);
	if (has_word)
		shm_watch_find(dev, link);
}

/* Looks at the next `cnt` attached links, in turn. */
static void shm_watch_patrol(struct shm_dev *dev, uint32_t cnt)
{
	if (!dev->attached_cnt)
		return;
	while (cnt--) {
		dev->patrol = shm_attached_next(&dev->attached, dev->patrol);
		shm_watch_look(dev, dev->links[dev->patrol]);
	}
}

/* Looks at one attached link more while the inbox is closed, unless it is distrusted. */
static void shm_watch_patrol_closed(struct shm_dev *dev)
{
	struct shm_link *link;

	if (dev->attached_cnt == dev->act_cnt)
		return;
	dev->closed_patrol = shm_attached_next(&dev->attached, dev->closed_patrol);
	link = dev->links[dev->closed_patrol];
	if (!link->distrust)
		shm_watch_look(dev, link);
}

/* Parks the active links that are distrusted, unless their words are set. */
static void shm_watch_expel(struct shm_dev *dev)
{
	for (uint32_t i = dev->act_cnt; i--;)
		if (dev->act[i].link->distrust)
			shm_watch_park(dev, dev->act[i].link);
}

/* Parks a link whose peer takes the line of its ring away. */
static void shm_watch_distrust(struct shm_dev *dev, struct shm_link *link)
{
	bool active = link->act_idx != SHM_IDX_NONE;

	link->distrust = SHM_DISTRUST << link->caught;
	link->caught += link->caught < SHM_DISTRUST_MOST;
	dev->distrusted_active += active;
	if (active)
		shm_watch_park(dev, link);
	else
		shm_watch_list(dev, link);
}

void shm_watch_judge(struct shm_dev *dev, const struct shm_times *times, bool inbox_is_set,
		     bool has_word)
{
	struct shm_link *link = dev->links[dev->timed];

	if (!inbox_is_set && !dev->guard.closed &&
	    shm_theft_add(&dev->theft, times, times->inbox)) {
		shm_guard_close(&dev->guard, SHM_GUARD_THEFT);
		dev->polled = &shm_guard_empty;
	}
	if (link && !has_word && !link->dead && !link->distrust &&
	    dev->tick_cnt - link->seen > SHM_TIME_SILENT &&
	    shm_theft_add(&link->theft, times, times->ring))
		shm_watch_distrust(dev, link);
}

/* Begins a tick at whose end loads are timed, and loads the ring of the next link. */
static void shm_watch_time_begin(struct shm_dev *dev)
{
	dev->alert -= dev->alert > 0;
	dev->time_rest = dev->alert ? 1 : SHM_TIME_PATROLS;
	if (dev->attached_cnt) {
		dev->timed = shm_attached_next(&dev->attached, dev->timed);
		shm_watch_look(dev, dev->links[dev->timed]);
	}
	dev->time_again = SHM_TIME_TICKS;
	dev->timed_from = util_tick_count();
}

/*
 * Times loads of the inbox and of a ring. Both lines were loaded since the last tick. Does so again
 * at the next tick while the inbox is suspicious, and at each patrol for some time if a ring is.
 */
static void shm_watch_time_end(struct shm_dev *dev)
{
	struct shm_link *link = dev->links[dev->timed];
	uint64_t at[4];
	struct shm_times times;
	bool is_set, has_word;

	at[0] = util_tick_after_loads();
	__atomic_load_n(&dev->patrol, __ATOMIC_RELAXED);
	at[1] = util_tick_after_loads();
	is_set = shm_inbox_is_set(dev->inbox);
	at[2] = util_tick_after_loads();
	has_word = link && shm_watch_has_word(link);
	at[3] = util_tick_after_loads();
	times = (struct shm_times){ .tick = at[0] - dev->timed_from,
				    .own = at[1] - at[0],
				    .inbox = at[2] - at[1],
				    .ring = at[3] - at[2] };
	shm_watch_judge(dev, &times, is_set, has_word);
	dev->timed_from = dev->theft >= SHM_THEFT_DOUBT && --dev->time_again ? at[3] : 0;
	if (link && link->theft >= SHM_THEFT_DOUBT) {
		dev->alert = SHM_TIME_ROUNDS * dev->attached_cnt;
		dev->time_rest = 1;
	}
}

/* Looks at a closed inbox, and opens it when its time is over: the next tick times it. */
static void shm_watch_guard(struct shm_dev *dev)
{
	shm_watch_patrol_closed(dev);
	if (shm_guard_tick(&dev->guard) && shm_inbox_is_set(dev->inbox))
		shm_watch_take(dev);
	if (dev->guard.closed)
		return;
	dev->polled = dev->inbox;
	dev->time_again = SHM_TIME_TICKS;
	dev->timed_from = util_tick_count();
}

void shm_watch_tick(struct shm_dev *dev)
{
	dev->tick_left = dev->tune.tick;
	dev->tick_cnt++;
	shm_watch_age(dev);
	shm_watch_shed(dev);
	shm_watch_sweep(dev);
	if (UTIL_UNLIKELY(dev->distrusted_active))
		shm_watch_expel(dev);
	if (dev->timed_from)
		shm_watch_time_end(dev);
	if (!(dev->tick_cnt % SHM_PATROL_TICKS)) {
		shm_watch_patrol(dev, 1);
		if (!--dev->time_rest)
			shm_watch_time_begin(dev);
	}
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
	if (link->distrust && !owed)
		return false;
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
	if (owed)
		dev->theft = 0; /* writers take the line, too */
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

static bool shm_watch_settle_parked(struct shm_dev *dev, struct util_list *list)
{
	struct util_list *item;
	struct shm_link *link;

	while ((item = util_list_first(list))) {
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
	return shm_watch_settle_act(dev) && shm_watch_settle_parked(dev, &dev->unsettled) &&
			       shm_watch_settle_parked(dev, &dev->distrusted)
		       ? 0
		       : -FI_EAGAIN;
}
