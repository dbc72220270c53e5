/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exposures, and parts that the sender writes (shm_expose.h). */
#include "dev/shm/shm_expose.h"

#include <rdma/fi_errno.h>

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_poll.h"

#define SHM_CLAIM_TRIES 4u
#define SHM_HELP_MAX    (2u * SHM_PART_MAX) /* bytes of one part of a round, rounded up to pages */

/** Copy of the peer's offer, checked. */
struct shm_help {
	uint32_t cnt;
	uint32_t parts;
	struct shm_exposure *of[SHM_ROUND_GETS];
	struct shm_source src[SHM_ROUND_GETS];
	struct iovec local[SHM_ROUND_GETS];
	size_t local_cnt;
	size_t len; /* bytes of the claimed part */
};

int shm_expose(struct dev_link *base, const void *addr, size_t len, struct dev_mem **mem)
{
	struct shm_link *link = (struct shm_link *)base;
	struct shm_exposure *exposure = util_pool_alloc(&link->dev->exposure_pool);
	uint32_t id;
	int ret;

	if (!exposure)
		return -FI_ENOMEM;
	ret = util_idmap_alloc(&link->dev->exposure_ids, exposure, &id);
	if (ret) {
		util_pool_release(&link->dev->exposure_pool, exposure);
		return ret;
	}
	exposure->mem.remote_key = id;
	exposure->link = link;
	exposure->addr = addr;
	exposure->len = len;
	exposure->left = len;
	if (util_list_is_empty(&link->exposures))
		util_list_push_back(&link->dev->exposed, &link->exposed_link);
	util_list_init(&exposure->exposed_link);
	util_list_push_back(&link->exposures, &exposure->exposed_link);
	link->dev->bulk_cnt++;
	*mem = &exposure->mem;
	return 0;
}

static void shm_expose_revoke(struct shm_exposure *exposure)
{
	struct shm_link *link = exposure->link;

	util_idmap_release(&link->dev->exposure_ids, (uint32_t)exposure->mem.remote_key);
	util_list_remove(&exposure->exposed_link);
	link->dev->bulk_cnt--;
	if (util_list_is_empty(&link->exposures))
		util_list_remove(&link->exposed_link);
	exposure->link = NULL;
}

void shm_unexpose(struct dev_link *base, struct dev_mem *mem)
{
	struct shm_exposure *exposure = (struct shm_exposure *)mem;

	if (exposure->link)
		shm_expose_revoke(exposure);
	util_pool_release(&((struct shm_link *)base)->dev->exposure_pool, exposure);
}

void shm_expose_revoke_all(struct shm_link *link)
{
	struct util_list *it;

	while ((it = util_list_first(&link->exposures)))
		shm_expose_revoke(UTIL_CONTAINER_OF(it, struct shm_exposure, exposed_link));
}

/** Returns the exposure that a source of the peer names, or NULL if it may not get that range. */
static struct shm_exposure *shm_expose_find(const struct shm_link *link,
					    const struct shm_source *src)
{
	struct shm_exposure *exposure;

	if (src->key > UINT32_MAX)
		return NULL;
	exposure = util_idmap_lookup(&link->dev->exposure_ids, (uint32_t)src->key);
	if (!exposure || exposure->link != link || src->off > exposure->len ||
	    src->len > exposure->len - src->off)
		return NULL;
	return exposure;
}

/** Copies the peer's offer. Returns false if it is malformed, or changes just now. */
static bool shm_help_take(const struct shm_link *link, struct shm_help *help)
{
	struct shm_offer *offer = link->peer_offer;

	help->cnt = __atomic_load_n(&offer->cnt, __ATOMIC_RELAXED);
	help->parts = __atomic_load_n(&offer->parts, __ATOMIC_RELAXED);
	if (!shm_round_is_sound(help->cnt, help->parts, 0))
		return false;
	for (uint32_t i = 0; i < help->cnt; i++) {
		const struct shm_source *from = shm_offer_source(offer, i);
		struct shm_source *src = &help->src[i];

		src->key = __atomic_load_n(&from->key, __ATOMIC_RELAXED);
		src->off = __atomic_load_n(&from->off, __ATOMIC_RELAXED);
		src->len = __atomic_load_n(&from->len, __ATOMIC_RELAXED);
		help->of[i] = shm_expose_find(link, src);
		if (!help->of[i] || !shm_round_is_sound(help->cnt, help->parts, src->len))
			return false;
	}
	return true;
}

/**
 * Takes the next part of the generation in `claim`. Returns its index, or 0 (the receiver's part)
 * if there is none.
 */
static uint32_t shm_help_claim(struct shm_offer *offer, uint64_t claim, uint32_t parts)
{
	uint64_t gen = claim >> 32;

	for (unsigned tries = SHM_CLAIM_TRIES; tries; tries--) {
		if (claim >> 32 != gen || (uint32_t)claim - 1 >= parts - 1)
			return 0;
		if (__atomic_compare_exchange_n(&offer->claim, &claim, claim + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return (uint32_t)claim;
	}
	return 0;
}

/** Collects the local ranges of part `idx`. Returns false if the peer has got some of it before. */
static bool shm_help_collect(struct shm_help *help, uint32_t idx)
{
	help->local_cnt = 0;
	help->len = 0;
	for (uint32_t i = 0; i < help->cnt; i++) {
		struct shm_exposure *exposure = help->of[i];
		uint64_t from, to;

		shm_part_of(help->src[i].len, help->parts, idx, &from, &to);
		if (to - from > exposure->left)
			return false;
		exposure->left -= to - from;
		if (from == to)
			continue;
		help->local[help->local_cnt++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)(exposure->addr + help->src[i].off + from),
			.iov_len = to - from,
		};
		help->len += to - from;
	}
	return help->len <= SHM_HELP_MAX;
}

/** Reports one more part of generation `gen`. This end alone writes `done`. */
static void shm_help_report(struct shm_link *link, uint32_t gen, bool written)
{
	struct shm_helped *helped = &link->helped;

	if (helped->gen != gen)
		*helped = (struct shm_helped){ .gen = gen };
	helped->done = ((helped->done + 1) & ~SHM_OFFER_FAILED) |
		       (helped->done & SHM_OFFER_FAILED) | (written ? 0 : SHM_OFFER_FAILED);
	__atomic_store_n(&link->peer_offer->done, shm_offer_word(gen, helped->done),
			 __ATOMIC_RELEASE);
}

bool shm_expose_help(struct shm_link *link)
{
	struct shm_offer *offer = link->peer_offer;
	uint64_t claim = __atomic_load_n(&offer->claim, __ATOMIC_ACQUIRE);
	struct shm_help help;
	uint32_t idx;
	bool written;

	if ((uint32_t)claim >= __atomic_load_n(&offer->parts, __ATOMIC_RELAXED) || link->dead ||
	    !shm_help_take(link, &help))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with the release in shm_offer_open */
	idx = shm_help_claim(offer, claim, help.parts);
	if (!idx)
		return false;
	written = shm_help_collect(&help, idx) &&
		  shm_bulk_put_vec(link, help.local, help.local_cnt,
				   &offer->dst[(idx - 1) * help.cnt], help.cnt, help.len);
	shm_help_report(link, (uint32_t)(claim >> 32), written);
	return true;
}
