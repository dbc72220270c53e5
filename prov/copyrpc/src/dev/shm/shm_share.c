/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fetches that both ends copy: see shm_share.h. */
#include "dev/shm/shm_share.h"

#include <poll.h>
#include <sched.h>
#include <sys/uio.h>

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_poll.h"
#include "util/clock.h"
#include "util/log.h"

#define SHM_SHARE_SPINS     2000u         /* about as long as one piece takes */
#define SHM_SHARE_STOP_NS   UTIL_NS_PER_S /* then a line says what we wait for */
#define SHM_SHARE_HELP_CALL 4u            /* pieces that one poll may copy for a peer */
#define SHM_SHARE_CLOSED    UINT32_MAX    /* in claim: there is no piece */

static uint32_t shm_share_pieces(uint64_t len, uint32_t piece_len)
{
	return (uint32_t)((len + piece_len - 1) / piece_len);
}

/**
 * Half of a short message, where a call costs as much as its bytes; a quarter of a long one, where one
 * end may come late; in pages, within bounds.
 */
static uint32_t shm_share_piece_len(uint64_t len)
{
	uint64_t parts = len <= SHM_SHARE_HALVES ? 2 : 4;
	uint64_t piece = util_align_up((len + parts - 1) / parts, SHM_PAGE);

	piece = piece < SHM_SHARE_PIECE_MIN ? SHM_SHARE_PIECE_MIN : piece;
	return (uint32_t)(piece < SHM_SHARE_PIECE_MAX ? piece : SHM_SHARE_PIECE_MAX);
}

/** Takes the next of `cnt` pieces of the generation in *claim: its index, or cnt. */
static uint32_t shm_share_claim(uint64_t *word, uint64_t *claim, uint32_t cnt)
{
	uint64_t gen = *claim >> 32;

	while (*claim >> 32 == gen && (uint32_t)*claim < cnt) {
		if (__atomic_compare_exchange_n(word, claim, *claim + 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return (uint32_t)*claim;
	}
	return cnt;
}

static uint64_t shm_share_piece_end(uint64_t len, uint32_t piece_len, uint32_t idx)
{
	uint64_t end = ((uint64_t)idx + 1) * piece_len;

	return end < len ? end : len;
}

/** Reads [from, to) of the fetch: 0 or -FI_E*. */
static int shm_share_read(struct shm_link *link, const struct shm_share *s, uint64_t from,
			  uint64_t to)
{
	struct iovec local = { (uint8_t *)s->get->iov[0].iov_base + from, to - from };
	struct dev_get part = {
		.remote_addr = s->get->remote_addr + from,
		.remote_key = s->get->remote_key,
		.iov = &local,
		.iov_cnt = 1,
		.len = to - from,
	};

	shm_bulk_get(link, &part);
	return part.status;
}

bool shm_share_fits(const struct shm_link *link, const struct dev_get *get)
{
	return get->len >= SHM_SHARE_MIN && get->iov_cnt == 1 && !link->share.get &&
	       (link->base.caps & DEV_CAP_PUT);
}

/** Has the sender finished the pieces it claimed? Then the fetch has ended. */
static bool shm_share_is_done(const struct shm_link *link)
{
	const struct shm_offer *offer = &link->ctrl->offer;

	return __atomic_load_n(&offer->done, __ATOMIC_ACQUIRE) == link->share.theirs;
}

static void shm_share_end(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	if (!s->status && __atomic_load_n(&link->ctrl->offer.failed, __ATOMIC_RELAXED))
		s->status = shm_share_read(link, s, 0, s->get->len);
	s->get->status = s->status;
}

/**
 * Opens a generation: the claim that goes with it. The word is closed before the parameters change,
 * so that whoever has read one of the new ones cannot swap an old claim any more: our release
 * fence pairs with the acquire fence in shm_share_help.
 */
static uint64_t shm_share_open(struct shm_link *link, const struct dev_get *get, uint32_t piece_len)
{
	struct shm_offer *offer = &link->ctrl->offer;
	uint64_t claim = (uint64_t)++link->share.gen << 32;

	__atomic_store_n(&offer->claim, claim | SHM_SHARE_CLOSED, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&offer->src, get->remote_addr, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->dst, (uintptr_t)get->iov[0].iov_base, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->len, get->len, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->piece_len, piece_len, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->failed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->done, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->claim, claim, __ATOMIC_RELEASE);
	return claim;
}

int shm_share_get(struct shm_link *link, struct dev_get *get)
{
	struct shm_offer *offer = &link->ctrl->offer;
	struct shm_share *s = &link->share;
	uint32_t piece_len = shm_share_piece_len(get->len);
	uint32_t cnt = shm_share_pieces(get->len, piece_len);
	uint32_t idx, mine = 0, spins;
	uint64_t claim = shm_share_open(link, get, piece_len);

	s->get = get;
	s->status = 0;
	while ((idx = shm_share_claim(&offer->claim, &claim, cnt)) < cnt) {
		mine++;
		claim++;
		if (!s->status)
			s->status = shm_share_read(link, s, (uint64_t)idx * piece_len,
						   shm_share_piece_end(get->len, piece_len, idx));
	}
	s->theirs = cnt - mine;
	for (spins = SHM_SHARE_SPINS; spins && !shm_share_is_done(link); spins--)
		util_cpu_relax();
	if (!spins) {
		util_list_push_back(&link->dev->pending, &s->link);
		link->dev->bulk_cnt++;
		return 0;
	}
	shm_share_end(link);
	s->get = NULL;
	return 1;
}

void shm_share_lend(struct shm_link *link, int delta)
{
	if (!link->lent)
		util_list_push_back(&link->dev->lent, &link->lent_link);
	link->lent += delta;
	link->dev->bulk_cnt += (uint32_t)delta;
	if (!link->lent)
		util_list_remove(&link->lent_link);
}

/** Writes pieces of the peer's offer, a few. */
static void shm_share_help(struct shm_link *link)
{
	struct shm_offer *offer = link->peer_offer;
	uint64_t claim = __atomic_load_n(&offer->claim, __ATOMIC_ACQUIRE);
	uint64_t src = __atomic_load_n(&offer->src, __ATOMIC_RELAXED);
	uint64_t dst = __atomic_load_n(&offer->dst, __ATOMIC_RELAXED);
	uint64_t len = __atomic_load_n(&offer->len, __ATOMIC_RELAXED);
	uint32_t piece_len = __atomic_load_n(&offer->piece_len, __ATOMIC_RELAXED);
	uint32_t left = SHM_SHARE_HELP_CALL, cnt, idx;

	if (piece_len < SHM_SHARE_PIECE_MIN || piece_len > SHM_SHARE_PIECE_MAX ||
	    len / piece_len >= UINT32_MAX)
		return;
	cnt = shm_share_pieces(len, piece_len);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	while (left-- && (idx = shm_share_claim(&offer->claim, &claim, cnt)) < cnt) {
		uint64_t from = (uint64_t)idx * piece_len;
		struct iovec local = { (void *)(uintptr_t)(src + from),
				       shm_share_piece_end(len, piece_len, idx) - from };
		struct dev_get part = {
			.remote_addr = dst + from, .iov = &local, .iov_cnt = 1, .len = local.iov_len
		};

		claim++;
		shm_bulk_put(link, &part);
		if (part.status)
			__atomic_store_n(&offer->failed, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&offer->done, 1, __ATOMIC_RELEASE);
	}
}

static void shm_share_forget(struct shm_link *link)
{
	link->share.get = NULL;
	util_list_remove(&link->share.link);
	link->dev->bulk_cnt--;
}

bool shm_share_poll(struct shm_dev *dev, struct dev_event *ev)
{
	struct util_list *it, *tmp;
	struct shm_link *link;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->lent)
		shm_share_help(UTIL_CONTAINER_OF(it, struct shm_link, lent_link));
	UTIL_LIST_FOREACH_SAFE (it, tmp, &dev->pending) {
		link = UTIL_CONTAINER_OF(it, struct shm_link, share.link);
		if (!shm_share_is_done(link))
			continue;
		shm_share_end(link);
		ev->link = &link->base;
		ev->kind = DEV_EV_GET;
		ev->get = link->share.get;
		shm_share_forget(link);
		return true;
	}
	return false;
}

/** The sender holds a piece: may it still write it? Not if it is gone. */
static bool shm_share_may_write(const struct shm_link *link, bool long_waited)
{
	enum shm_probe_result peer = shm_probe(&link->peer);

	return peer == SHM_PROBE_SAME || (peer == SHM_PROBE_HIDDEN && !long_waited);
}

/** Waits until nobody writes into the buffer of the fetch any more. */
static void shm_share_wait(const struct shm_link *link)
{
	uint64_t since = util_clock_ns();
	bool told = false, late = false;

	while (!shm_share_is_done(link) && shm_share_may_write(link, late)) {
		late = util_clock_ns() - since > SHM_SHARE_STOP_NS;
		if (late && !told)
			UTIL_WARN(EP_DATA,
				  "process %d is stopped while it writes into a receive buffer: "
				  "waiting until it goes on or is killed\n",
				  (int)link->peer.pid);
		told = late;
		if (late)
			poll(NULL, 0, 1);
		else
			sched_yield();
	}
}

void shm_share_stop(struct shm_link *link)
{
	if (link->lent)
		shm_share_lend(link, -link->lent);
	if (!link->share.get)
		return;
	shm_share_wait(link);
	shm_share_forget(link);
}
