/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll of the shared-memory device. Compiled into the engine's loop.
 *
 * Links are active (poll loads their word) or parked (their writer posts, shm_inbox.h). A poll
 * loads the inbox's summary and at most `per_poll` words, going round the active links. An event
 * leaves the cursor in place, so that a stream is found at the first load. Every `tick` polls the
 * cursor moves on, so that a stream cannot block the others.
 *
 * A busy link costs one load per round, an idle one nothing. The first message after a pause costs
 * its writer two atomic operations. shm_watch.h has the policy and the proof that no message is
 * missed.
 *
 * The hot functions are inline, and shm_dev_ops_inline and shm_link_ops_inline are constants: the
 * engine's loop has no indirect call.
 *
 * Runs in the polling thread; `lock` and the ids under it are shared with the control thread.
 */
#ifndef DEV_SHM_SHM_POLL_H
#define DEV_SHM_SHM_POLL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dev/shm/shm_attached.h"
#include "dev/shm/shm_expose.h"
#include "dev/shm/shm_guard.h"
#include "dev/shm/shm_inbox.h"
#include "dev/shm/shm_link.h"
#include "util/bits.h"
#include "util/idmap.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/switches.h"

/** Active link and its next word. Dense, so that an idle poll touches nothing else. */
struct shm_slot {
	uint64_t *word;
	struct shm_link *link;
};

/** Constants of the polling policy. The defaults are in shm_watch.c. */
struct shm_tune {
	uint32_t per_poll;   /* words that one poll loads, at most */
	uint32_t tick;       /* polls between two ticks */
	uint32_t keep;       /* number of links that stay active however silent */
	uint32_t idle_ticks; /* ticks of silence after which a link is parked */
};

struct shm_dev {
	/* Used by poll: one line. */
	alignas(UTIL_CACHE_LINE) struct shm_slot *act;
	const struct shm_inbox *polled; /* inbox, or an empty one while that is closed */
	uint32_t act_cnt;
	uint32_t cursor;
	uint32_t per_poll; /* tune.per_poll; 0 for one poll in which bulk copies have their turn */
	uint32_t tick_left;
	uint32_t tick_cnt;
	uint32_t hand;     /* clock hand that ages active links: index in act */
	uint32_t bulk_cnt; /* exposures and links with gets: an idle poll looks after them */

	/* Rarely used. */
	alignas(UTIL_CACHE_LINE) struct shm_inbox *inbox;
	struct shm_guard guard;
	struct shm_attached attached; /* ids of `links` */
	struct util_list unsettled;
	struct util_list distrusted;           /* parked links whose peers took lines away */
	struct util_list exposed;              /* shm_link.exposed_link */
	struct util_list pending;              /* shm_share.link */
	struct util_switches switches;         /* counted by rounds that could be offered */
	struct shm_link *links[SHM_LINKS_MAX]; /* attached links */
	uint32_t act_cap;
	uint32_t attached_cnt;
	uint32_t patrol;            /* id of the last link that the patrol looked at */
	uint32_t closed_patrol;     /* id of the last one of the closed inbox's patrol */
	uint32_t distrusted_active; /* number of active links that are distrusted */
	uint32_t timed;             /* id of the last link whose ring was timed */
	uint32_t time_rest;         /* patrols until loads are timed again */
	uint32_t time_again;        /* ticks that may still time a suspicious inbox in a row */
	uint32_t alert;             /* patrols that time loads each time */
	uint32_t theft;             /* sum of shm_theft.h for the inbox */
	uint64_t timed_from;        /* counter at the last tick if the next one times loads, or 0 */
	struct shm_tune tune;
	bool bulk_event; /* the last look at gets returned an event */
	bool armed;      /* `sleeping` was set */
	bool membarrier; /* this process is registered */
	bool logged_no_barrier;
	uint32_t sleep; /* value of `sleeping` in the last sleep */
	struct shm_bell bell;
	int inbox_fd;
	struct util_idmap exposure_ids; /* keys of local exposures */
	struct util_pool exposure_pool;
	uint64_t nonce[2]; /* for shm_probe of peers */

	pthread_mutex_t lock; /* protects ids */
	uint64_t ids[SHM_LINKS_MAX / 64];
	bool logged_no_get;
};

/**
 * Handles a tick: ages one active link, sweeps one parked one, patrols, moves the cursor, gives
 * bulk this poll.
 */
void shm_watch_tick(struct shm_dev *dev);
/**
 * Takes the posts: makes their links active and moves the cursor to them. Returns true if a writer
 * owed one of them.
 */
bool shm_watch_take(struct shm_dev *dev);
/** Ends a link after an illegal word. Fills *ev and returns true. */
bool shm_watch_fail(struct shm_dev *dev, struct shm_link *link, uint64_t word,
		    struct dev_event *ev);

/** Fills *ev for the write with `word`, just loaded from slot->word. */
static inline bool shm_slot_take(struct shm_dev *dev, struct shm_slot *slot, uint64_t word,
				 struct dev_event *ev)
{
	struct shm_link *link = slot->link;
	uint64_t off = link->rx_off;

	if (UTIL_UNLIKELY(word > (link->base.rx_len - off) >> SHM_IMM_SHIFT))
		return shm_watch_fail(dev, link, word, ev);
	off = (off + (word << SHM_IMM_SHIFT)) & (link->base.rx_len - 1);
	link->rx_off = off;
	link->seen = dev->tick_cnt;
	slot->word = shm_link_word(link->base.rx_base, off);
	ev->link = &link->base;
	ev->kind = DEV_EV_IMM;
	ev->imm = (uint32_t)word;
	return true;
}

static inline bool shm_poll(struct dev *base, struct dev_event *ev)
{
	struct shm_dev *dev = (struct shm_dev *)base;
	uint32_t i, left;

	if (UTIL_UNLIKELY(!--dev->tick_left))
		shm_watch_tick(dev);
	if (UTIL_UNLIKELY(shm_inbox_is_set(dev->polled)))
		shm_watch_take(dev);

	i = dev->cursor;
	for (left = dev->act_cnt < dev->per_poll ? dev->act_cnt : dev->per_poll; left; left--) {
		struct shm_slot *slot = &dev->act[i];
		uint64_t word = __atomic_load_n(slot->word, __ATOMIC_ACQUIRE);

		if (word) {
			dev->cursor = i;
			return shm_slot_take(dev, slot, word, ev);
		}
		if (++i == dev->act_cnt)
			i = 0;
	}
	dev->cursor = i;
	return UTIL_UNLIKELY(dev->bulk_cnt) && shm_share_poll(dev, ev);
}

/** Returns one event of `link` alone. */
bool shm_link_poll(struct dev_link *base, struct dev_event *ev);

int shm_dev_open(struct dev **dev);
void shm_dev_close(struct dev *dev);
int shm_dev_wait_fd(struct dev *dev);
int shm_dev_arm(struct dev *dev);
void shm_dev_disarm(struct dev *dev);

#define SHM_LINK_OPS_INIT                                                                          \
	{                                                                                          \
		.write_imm = shm_link_write_imm, .read_consumer = shm_link_read_consumer,          \
		.get = shm_link_get, .put = shm_link_put, .expose = shm_expose,                    \
		.unexpose = shm_unexpose, .withdraw = shm_link_withdraw,                           \
		.describe = shm_link_describe, .connect = shm_link_connect,                        \
		.attach = shm_link_attach, .poll = shm_link_poll, .detach = shm_link_detach,       \
		.close = shm_link_close,                                                           \
	}

#define SHM_DEV_OPS_INIT                                                                           \
	{                                                                                          \
		.name = "shm", .probe = shm_seg_probe, .open = shm_dev_open,                       \
		.close = shm_dev_close, .link_create = shm_link_create, .poll = shm_poll,          \
		.wait_fd = shm_dev_wait_fd, .arm = shm_dev_arm, .disarm = shm_dev_disarm,          \
	}

/** Operations behind one address, for comparisons. */
extern const struct dev_link_ops shm_link_ops;
extern const struct dev_ops shm_dev_ops;

/** Operations as constants, for inlining. */
static const struct dev_link_ops shm_link_ops_inline __attribute__((unused)) = SHM_LINK_OPS_INIT;
static const struct dev_ops shm_dev_ops_inline __attribute__((unused)) = SHM_DEV_OPS_INIT;

#endif
