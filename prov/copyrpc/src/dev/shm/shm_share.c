/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gets that both ends copy, receiver's half (shm_share.h). */
#include "dev/shm/shm_share.h"

#include <poll.h>
#include <sched.h>

#include "dev/shm/shm_expose.h"
#include "dev/shm/shm_link.h"
#include "dev/shm/shm_poll.h"
#include "dev/shm/shm_watch.h"
#include "util/log.h"

void shm_share_init(struct shm_share *share)
{
	*share = (struct shm_share){ .gen = 0 };
	util_list_init(&share->link);
	util_list_init(&share->waiting);
	util_list_init(&share->done);
}

static struct dev_get *shm_share_first(struct util_list *list)
{
	struct util_list *first = util_list_first(list);

	return first ? UTIL_CONTAINER_OF(first, struct dev_get, dev_link) : NULL;
}

/* --- the receiver --------------------------------------------------------------------------- */

/** Returns true if a get goes into the open round: short ones of one buffer each do. */
static bool shm_share_appends(const struct shm_share *s, const struct dev_get *get, uint64_t len)
{
	return s->round.cnt < SHM_ROUND_GETS && s->gets[0]->iov_cnt == 1 && get->iov_cnt == 1 &&
	       get->len <= SHM_ROUND_LEN && len <= SHM_ROUND_LEN - get->len;
}

/** Sets the range of gets[i] that the round copies. */
static void shm_share_aim(struct shm_share *s, uint32_t i)
{
	const struct dev_get *get = s->gets[i];
	uint64_t left = get->len - s->at;

	s->round.of[i] = (struct shm_stretch){
		.src = get->remote_addr + s->at,
		.dst = (uintptr_t)get->iov[0].iov_base + s->at,
		.len = left < SHM_ROUND_MAX ? left : SHM_ROUND_MAX,
	};
}

/** Collects the next round of waiting gets. Returns its bytes. */
static uint64_t shm_share_collect(struct shm_share *s)
{
	struct dev_get *get;
	uint64_t len = 0;

	s->at = 0;
	s->round.cnt = 0;
	while ((get = shm_share_first(&s->waiting)) &&
	       (!s->round.cnt || shm_share_appends(s, get, len))) {
		util_list_remove(&get->dev_link);
		s->gets[s->round.cnt] = get;
		shm_share_aim(s, s->round.cnt++);
		len += get->len;
	}
	return len;
}

/**
 * Returns true if the sender may copy parts of a round. A get of several buffers is not offered: an
 * offer has one range per get. Nor is one from a peer that has bytes of this end to get: each then
 * has a copy of its own to make, and to share both is slower. Nor is any where this process shares
 * its processor: the sender may wait for it.
 */
static bool shm_share_may_offer(struct shm_link *link)
{
	const struct shm_share *s = &link->share;

	return s->round.parts > 1 && s->gets[0]->iov_cnt == 1 &&
	       s->at + s->round.of[0].len <= s->gets[0]->iov[0].iov_len &&
	       (link->base.caps & DEV_CAP_PUT) && util_list_is_empty(&link->exposures) &&
	       shm_offer_is_settled(link) && !util_switches_event(&link->dev->switches);
}

/** Starts the collected round with its first part. */
static void shm_share_start(struct shm_link *link, bool offered)
{
	struct shm_share *s = &link->share;

	s->mine = 0;
	s->since_ns = 0;
	if (!offered && s->round.cnt == 1)
		s->round.parts = shm_round_cut_local(s->round.of[0].len);
	s->state = offered ? SHM_SHARE_OFFERED : SHM_SHARE_LOCAL;
	for (uint32_t i = 0; i < s->round.cnt; i++)
		s->gets[i]->status = 0;
	if (offered)
		shm_offer_open(link);
}

/** Starts a round of `len` bytes. */
static void shm_share_start_len(struct shm_link *link, uint64_t len)
{
	struct shm_share *s = &link->share;

	s->round.parts = shm_round_cut(s->round.cnt, len);
	shm_share_start(link, shm_share_may_offer(link));
}

static void shm_share_begin(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint64_t len = shm_share_collect(s);

	if (!s->round.cnt)
		return;
	if (s->round.cnt == 1)
		len = s->round.of[0].len;
	shm_share_start_len(link, len);
}

/** Claims a part for this end. Returns its index, or the number of parts if there is none. */
static uint32_t shm_share_next(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	if (s->state == SHM_SHARE_OFFERED && s->mine)
		return shm_offer_claim(link);
	return s->mine < s->round.parts ? s->mine++ : s->round.parts;
}

/** Reads part `idx` of each get separately, so that an error ends only its own get. */
static void shm_share_read_each(struct shm_link *link, uint32_t idx)
{
	struct shm_share *s = &link->share;
	uint64_t from, to;

	for (uint32_t i = 0; i < s->round.cnt; i++) {
		shm_part_of(s->round.of[i].len, s->round.parts, idx, &from, &to);
		if (!s->gets[i]->status)
			shm_bulk_get_part(link, s->gets[i], s->at + from, s->at + to);
	}
}

/** Reads the next unclaimed part. Returns false if there is none. */
static bool shm_share_read(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint32_t idx = shm_share_next(link);
	struct shm_vec vec;

	if (idx >= s->round.parts)
		return false;
	if (s->round.cnt > 1) {
		shm_round_part(&s->round, idx, &vec);
		if (shm_bulk_get_vec(link, &vec))
			return true;
	}
	shm_share_read_each(link, idx);
	return true;
}

/** Ends the gets of the round, or goes on with the rest of a get that takes several rounds. */
static void shm_share_end(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	struct dev_get *get = s->gets[0];

	s->at += s->round.of[0].len;
	if (s->round.cnt == 1 && !get->status && s->at < get->len) {
		shm_share_aim(s, 0);
		shm_share_start_len(link, s->round.of[0].len);
		return;
	}
	for (uint32_t i = 0; i < s->round.cnt; i++)
		util_list_push_back(&s->done, &s->gets[i]->dev_link);
	shm_share_begin(link);
}

/** Ends a round whose parts are all claimed, once the sender has reported its own. */
static void shm_share_join(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint32_t theirs = shm_offer_theirs(s), done = shm_offer_done(link, s->gen);

	if ((done & ~SHM_OFFER_FAILED) > theirs)
		s->broken = true;
	else if (done & SHM_OFFER_FAILED && (done & ~SHM_OFFER_FAILED) == theirs)
		shm_share_start(link, false);
	else if (done == theirs)
		shm_share_end(link);
}

/** Waits for the sender: offers it the processor, and revokes the round in the end. */
static void shm_share_wait(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint64_t now = util_clock_ns();

	if (!s->since_ns)
		s->since_ns = now;
	if (now - s->since_ns > SHM_SHARE_LATE_NS)
		shm_offer_revoke(link);
	else if (now - s->since_ns > SHM_SHARE_YIELD_NS)
		sched_yield();
}

/**
 * Returns true once no call of the sender that writes into a revoked round can be in progress: the
 * sender reported all its parts, is dead, or the grace has passed.
 */
static bool shm_share_is_released(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint64_t now;

	if (shm_offer_is_settled(link))
		return true;
	now = util_clock_ns();
	if (now - s->since_ns > SHM_SHARE_GRACE_NS)
		return true;
	if (now - s->probed_ns < SHM_SHARE_PROBE_NS)
		return false;
	s->probed_ns = now;
	return shm_probe(&link->peer) == SHM_PROBE_GONE;
}

static void shm_share_forget(struct shm_link *link)
{
	util_list_remove(&link->share.link);
	link->dev->bulk_cnt--;
}

/** Reads a revoked round alone, once that is safe. */
static void shm_share_take_over(struct shm_link *link)
{
	if (!shm_share_is_released(link))
		return;
	if (link->share.owed)
		UTIL_WARN_SELDOM(EP_DATA,
				 "process %d does not finish its part of a copy: "
				 "is it stopped? The rest is copied here\n",
				 (int)link->peer.pid);
	shm_share_start(link, false);
}

/** Makes one step of a link's gets. Returns true if something was copied. */
static bool shm_share_step(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	bool copied;

	if (link->dead || s->broken || s->withdrawn)
		return false;
	if (!s->round.cnt)
		shm_share_begin(link);
	if (!s->round.cnt)
		return false;
	if (s->state == SHM_SHARE_REVOKED) {
		shm_share_take_over(link);
		return false;
	}
	copied = shm_share_read(link);
	if (s->state == SHM_SHARE_LOCAL && s->mine == s->round.parts)
		shm_share_end(link);
	else if (s->state == SHM_SHARE_OFFERED && (uint32_t)s->claim == s->round.parts)
		shm_share_join(link);
	if (!copied && s->round.cnt && s->state == SHM_SHARE_OFFERED)
		shm_share_wait(link);
	return copied;
}

int shm_share_get(struct shm_link *link, struct dev_get *get)
{
	struct shm_share *s = &link->share;

	util_list_push_back(&s->waiting, &get->dev_link);
	if (util_list_is_empty(&s->link)) {
		util_list_push_back(&link->dev->pending, &s->link);
		link->dev->bulk_cnt++;
	}
	return 0;
}

/* --- the end -------------------------------------------------------------------------------- */

static void shm_share_drop(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	s->round.cnt = 0;
	util_list_init(&s->waiting);
	util_list_init(&s->done);
	shm_share_forget(link);
}

bool shm_share_withdraw(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	if (util_list_is_empty(&s->link))
		return true;
	s->withdrawn = true;
	if (s->round.cnt && s->state == SHM_SHARE_OFFERED)
		shm_offer_revoke(link);
	if (s->round.cnt && s->state == SHM_SHARE_REVOKED && !shm_share_is_released(link))
		return false;
	shm_share_drop(link);
	return true;
}

void shm_share_stop(struct shm_link *link)
{
	uint64_t since = util_clock_ns();

	shm_expose_revoke_all(link);
	while (!shm_share_withdraw(link)) {
		if (util_clock_ns() - since > SHM_SHARE_LATE_NS)
			poll(NULL, 0, 1);
		else
			sched_yield();
	}
}

/* --- polling -------------------------------------------------------------------------------- */

/** Ends a link whose peer wrote an impossible value. Fills *ev and returns true. */
static bool shm_share_fail(struct shm_link *link, struct dev_event *ev)
{
	UTIL_WARN(EP_DATA,
		  "peer %d claimed or reported parts of a copy that there are not: "
		  "the connection is closed\n",
		  (int)link->peer.pid);
	return shm_watch_end(link->dev, link, ev);
}

/** Fills *ev if the gets of a link have one: a get has ended, or all are dropped. */
static bool shm_share_report(struct shm_link *link, struct dev_event *ev)
{
	struct shm_share *s = &link->share;
	struct dev_get *get;

	ev->link = &link->base;
	if (s->withdrawn) {
		ev->kind = DEV_EV_WITHDRAWN;
		return shm_share_withdraw(link);
	}
	if (s->broken)
		return !link->dead && shm_share_fail(link, ev);
	get = shm_share_first(&s->done);
	if (!get)
		return false;
	util_list_remove(&get->dev_link);
	if (!s->round.cnt && util_list_is_empty(&s->done) && util_list_is_empty(&s->waiting))
		shm_share_forget(link);
	ev->kind = DEV_EV_GET;
	ev->get = get;
	return true;
}

/** Moves a served link to the end of its list: the next poll begins with others. */
static void shm_share_last(struct util_list *list, struct util_list *it)
{
	util_list_remove(it);
	util_list_push_back(list, it);
}

static void shm_share_copy(struct shm_dev *dev)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->exposed) {
		if (shm_expose_help(UTIL_CONTAINER_OF(it, struct shm_link, exposed_link))) {
			shm_share_last(&dev->exposed, it);
			break;
		}
	}
	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->pending) {
		if (shm_share_step(UTIL_CONTAINER_OF(it, struct shm_link, share.link))) {
			shm_share_last(&dev->pending, it);
			break;
		}
	}
}

static bool shm_share_report_any(struct shm_dev *dev, struct dev_event *ev)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->pending)
		if (shm_share_report(UTIL_CONTAINER_OF(it, struct shm_link, share.link), ev))
			return true;
	return false;
}

/** Alternates events and copies, so that the engine can send responses between two parts. */
bool shm_share_poll(struct shm_dev *dev, struct dev_event *ev)
{
	bool had_event = dev->bulk_event;

	dev->per_poll = dev->tune.per_poll;
	dev->bulk_event = shm_share_report_any(dev, ev);
	if (dev->bulk_event || had_event)
		return dev->bulk_event;
	shm_share_copy(dev);
	dev->bulk_event = shm_share_report_any(dev, ev);
	return dev->bulk_event;
}
