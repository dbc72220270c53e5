/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gets that both ends copy (shm_share.h). */
#include "dev/shm/shm_share.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_poll.h"
#include "util/clock.h"
#include "util/log.h"

#define SHM_SHARE_STOP_NS UTIL_NS_PER_S /* time after which the wait is logged */
#define SHM_SHARE_CLOSED  UINT32_MAX    /* in claim: there is no part */

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

/**
 * Takes the next of `parts` parts of the generation in *claim. Returns its index, or parts if none.
 */
static uint32_t shm_share_claim(uint64_t *word, uint64_t *claim, uint32_t parts)
{
	uint64_t gen = *claim >> 32;

	while (*claim >> 32 == gen && (uint32_t)*claim < parts) {
		if (__atomic_compare_exchange_n(word, claim, *claim + 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return (uint32_t)*claim;
	}
	return parts;
}

/* --- the offer ------------------------------------------------------------------------------ */

static void shm_share_close(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	s->claim = __atomic_exchange_n(&link->ctrl->offer.claim,
				       (uint64_t)s->gen << 32 | SHM_SHARE_CLOSED, __ATOMIC_ACQ_REL);
}

static void shm_offer_put(struct shm_offer *offer, const struct shm_round *round)
{
	for (uint32_t i = 0; i < round->cnt; i++) {
		__atomic_store_n(&offer->round.of[i].src, round->of[i].src, __ATOMIC_RELAXED);
		__atomic_store_n(&offer->round.of[i].dst, round->of[i].dst, __ATOMIC_RELAXED);
		__atomic_store_n(&offer->round.of[i].len, round->of[i].len, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&offer->round.cnt, round->cnt, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->round.parts, round->parts, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->failed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->done, 0, __ATOMIC_RELAXED);
}

/** Copies the peer's offer. Returns false if it is malformed. */
static bool shm_offer_take(const struct shm_offer *offer, struct shm_round *round)
{
	round->cnt = __atomic_load_n(&offer->round.cnt, __ATOMIC_RELAXED);
	round->parts = __atomic_load_n(&offer->round.parts, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < round->cnt && i < SHM_ROUND_GETS; i++) {
		round->of[i].src = __atomic_load_n(&offer->round.of[i].src, __ATOMIC_RELAXED);
		round->of[i].dst = __atomic_load_n(&offer->round.of[i].dst, __ATOMIC_RELAXED);
		round->of[i].len = __atomic_load_n(&offer->round.of[i].len, __ATOMIC_RELAXED);
	}
	return shm_round_is_sound(round);
}

/**
 * Opens a generation. The claim word is closed before the parameters change, so a sender that has
 * read a new parameter cannot swap an older claim. The release fence pairs with the acquire fence
 * in shm_share_help.
 */
static void shm_share_open(struct shm_link *link)
{
	struct shm_offer *offer = &link->ctrl->offer;
	struct shm_share *s = &link->share;

	s->gen++;
	shm_share_close(link);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	shm_offer_put(offer, &s->round);
	s->claim = (uint64_t)s->gen << 32;
	__atomic_store_n(&offer->claim, s->claim, __ATOMIC_RELEASE);
}

/* --- the receiver --------------------------------------------------------------------------- */

/** Returns true if a get goes into the open round: short ones of one buffer each do. */
static bool shm_share_appends(const struct shm_share *s, const struct dev_get *get, uint64_t len)
{
	return s->round.cnt < SHM_ROUND_GETS && s->gets[0]->iov_cnt == 1 && get->iov_cnt == 1 &&
	       get->len <= SHM_ROUND_LEN && len <= SHM_ROUND_LEN - get->len;
}

/** Collects the next round of waiting gets. Returns its bytes. */
static uint64_t shm_share_collect(struct shm_share *s)
{
	struct dev_get *get;
	uint64_t len = 0;

	s->round.cnt = 0;
	while ((get = shm_share_first(&s->waiting)) &&
	       (!s->round.cnt || shm_share_appends(s, get, len))) {
		util_list_remove(&get->dev_link);
		s->round.of[s->round.cnt] = (struct shm_stretch){
			.src = get->remote_addr,
			.dst = (uintptr_t)get->iov[0].iov_base,
			.len = get->len,
		};
		s->gets[s->round.cnt++] = get;
		len += get->len;
	}
	return len;
}

/** Begins the collected round with its first part. */
static void shm_share_start(struct shm_link *link, bool offered)
{
	struct shm_share *s = &link->share;

	s->mine = 0;
	s->offered = offered;
	for (uint32_t i = 0; i < s->round.cnt; i++)
		s->gets[i]->status = 0;
	if (offered)
		shm_share_open(link);
}

/**
 * Begins the next round. A get of several buffers is not offered: an offer has one range per get.
 */
static void shm_share_begin(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint64_t len = shm_share_collect(s);

	if (!s->round.cnt)
		return;
	s->round.parts = shm_round_cut(s->round.cnt, len);
	shm_share_start(link, s->round.parts > 1 && s->gets[0]->iov_cnt == 1 &&
				      (link->base.caps & DEV_CAP_PUT));
}

static uint32_t shm_share_next(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint32_t idx = s->mine;

	if (s->offered)
		idx = shm_share_claim(&link->ctrl->offer.claim, &s->claim, s->round.parts);
	s->mine += idx < s->round.parts;
	return idx;
}

/** Reads part `idx` of each get separately, so that an error ends only its own get. */
static void shm_share_read_each(struct shm_link *link, uint32_t idx)
{
	struct shm_share *s = &link->share;
	uint64_t from, to;

	for (uint32_t i = 0; i < s->round.cnt; i++) {
		shm_part_of(s->round.of[i].len, s->round.parts, idx, &from, &to);
		if (!s->gets[i]->status)
			shm_bulk_get_part(link, s->gets[i], from, to);
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
		shm_round_part(&s->round, idx, false, &vec);
		if (shm_bulk_get_vec(link, &vec))
			return true;
	}
	shm_share_read_each(link, idx);
	return true;
}

/** Returns true if all parts are copied. The sender's count is final once all parts are claimed. */
static bool shm_share_is_over(const struct shm_link *link)
{
	const struct shm_share *s = &link->share;
	const struct shm_offer *offer = &link->ctrl->offer;

	if (!s->offered)
		return s->mine == s->round.parts;
	return (uint32_t)s->claim >= s->round.parts &&
	       __atomic_load_n(&offer->done, __ATOMIC_ACQUIRE) == s->round.parts - s->mine;
}

/**
 * Ends the round and begins the next one, or reads it again if the sender could not write a part.
 */
static void shm_share_end(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	if (s->offered && __atomic_load_n(&link->ctrl->offer.failed, __ATOMIC_RELAXED)) {
		shm_share_start(link, false);
		return;
	}
	for (uint32_t i = 0; i < s->round.cnt; i++)
		util_list_push_back(&s->done, &s->gets[i]->dev_link);
	shm_share_begin(link);
}

/** Makes one step of a link's gets. Returns true if something was copied. */
static bool shm_share_step(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	bool copied;

	if (!s->round.cnt)
		shm_share_begin(link);
	if (!s->round.cnt)
		return false;
	copied = shm_share_read(link);
	if (shm_share_is_over(link))
		shm_share_end(link);
	return copied;
}

static void shm_share_forget(struct shm_link *link)
{
	util_list_remove(&link->share.link);
	link->dev->bulk_cnt--;
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

static bool shm_share_report(struct shm_link *link, struct dev_event *ev)
{
	struct shm_share *s = &link->share;
	struct dev_get *get = shm_share_first(&s->done);

	if (!get)
		return false;
	util_list_remove(&get->dev_link);
	if (!s->round.cnt && util_list_is_empty(&s->done) && util_list_is_empty(&s->waiting))
		shm_share_forget(link);
	ev->link = &link->base;
	ev->kind = DEV_EV_GET;
	ev->get = get;
	return true;
}

/* --- the sender ----------------------------------------------------------------------------- */

void shm_share_expose(struct shm_link *link, int delta)
{
	if (!link->exposed)
		util_list_push_back(&link->dev->exposed, &link->exposure_link);
	link->exposed += delta;
	link->dev->bulk_cnt += (uint32_t)delta;
	if (!link->exposed)
		util_list_remove(&link->exposure_link);
}

/** Writes a part of the peer's offer. Returns false if there was none. */
static bool shm_share_help(struct shm_link *link)
{
	struct shm_offer *offer = link->peer_offer;
	uint64_t claim = __atomic_load_n(&offer->claim, __ATOMIC_ACQUIRE);
	struct shm_round round;
	struct shm_vec vec;
	uint32_t idx;

	if ((uint32_t)claim >= __atomic_load_n(&offer->round.parts, __ATOMIC_RELAXED) ||
	    !shm_offer_take(offer, &round))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	idx = shm_share_claim(&offer->claim, &claim, round.parts);
	if (idx == round.parts)
		return false;
	shm_round_part(&round, idx, true, &vec);
	if (!shm_bulk_put_vec(link, &vec))
		__atomic_store_n(&offer->failed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&offer->done, 1, __ATOMIC_RELEASE);
	return true;
}

/* --- polling -------------------------------------------------------------------------------- */

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
		if (shm_share_help(UTIL_CONTAINER_OF(it, struct shm_link, exposure_link))) {
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

/* --- the end -------------------------------------------------------------------------------- */

/** Returns true if the sender, which has claimed a part, may still write it. */
static bool shm_share_may_write(const struct shm_link *link, bool long_waited)
{
	enum shm_probe_result peer = shm_probe(&link->peer);

	return peer == SHM_PROBE_SAME || (peer == SHM_PROBE_HIDDEN && !long_waited);
}

/** Waits until the sender has written `theirs` parts and writes into no buffer any more. */
static void shm_share_wait(const struct shm_link *link, uint32_t theirs)
{
	uint64_t since = util_clock_ns();
	bool logged = false, late = false;

	while (__atomic_load_n(&link->ctrl->offer.done, __ATOMIC_ACQUIRE) != theirs &&
	       shm_share_may_write(link, late)) {
		late = util_clock_ns() - since > SHM_SHARE_STOP_NS;
		if (late && !logged)
			UTIL_WARN(EP_DATA,
				  "process %d is stopped while it writes into a receive buffer: "
				  "waiting until it goes on or is killed\n",
				  (int)link->peer.pid);
		logged = late;
		if (late)
			poll(NULL, 0, 1);
		else
			sched_yield();
	}
}

/** Closes the round to new claims and waits for parts in progress. */
static void shm_share_withdraw(struct shm_link *link)
{
	struct shm_share *s = &link->share;
	uint32_t claimed;

	shm_share_close(link);
	claimed = (uint32_t)s->claim < s->round.parts ? (uint32_t)s->claim : s->round.parts;
	shm_share_wait(link, claimed - s->mine);
}

void shm_share_stop(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	if (link->exposed)
		shm_share_expose(link, -link->exposed);
	if (util_list_is_empty(&s->link))
		return;
	if (s->round.cnt && s->offered)
		shm_share_withdraw(link);
	s->round.cnt = 0;
	util_list_init(&s->waiting);
	util_list_init(&s->done);
	shm_share_forget(link);
}
