/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Offer, receiver's half (shm_offer.h). Publishes a round in the control page, claims parts of it
 * for the receiver, and revokes it. Checks each word that the sender may have written.
 */
#include "dev/shm/shm_offer.h"

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_share.h"

#define SHM_CLAIM_TRIES 4u

static void shm_offer_put_source(struct shm_offer *offer, uint32_t i, const struct dev_get *get,
				 uint64_t off, uint64_t len)
{
	struct shm_source *to = shm_offer_source(offer, i);

	__atomic_store_n(&to->key, get->remote_key, __ATOMIC_RELAXED);
	__atomic_store_n(&to->off, off, __ATOMIC_RELAXED);
	__atomic_store_n(&to->len, len, __ATOMIC_RELAXED);
}

/** Publishes where parts 1 and up of get `i` go. */
static void shm_offer_put_dsts(struct shm_offer *offer, const struct shm_round *round, uint32_t i)
{
	const struct shm_stretch *s = &round->of[i];
	uint64_t from, to;

	for (uint32_t part = 1; part < round->parts; part++) {
		struct iovec *dst = &offer->dst[(part - 1) * round->cnt + i];

		shm_part_of(s->len, round->parts, part, &from, &to);
		__atomic_store_n(&dst->iov_base, (void *)(uintptr_t)(s->dst + from),
				 __ATOMIC_RELAXED);
		__atomic_store_n(&dst->iov_len, to - from, __ATOMIC_RELAXED);
	}
}

/*
 * The claim word is closed before the parameters change, so a sender that has read a new parameter
 * cannot swap an older claim. The release fence pairs with the acquire fence in shm_expose_help.
 */
void shm_offer_open(struct shm_link *link)
{
	struct shm_offer *offer = &link->ctrl->offer;
	struct shm_share *s = &link->share;

	s->gen++;
	__atomic_store_n(&offer->claim, shm_offer_word(s->gen, SHM_OFFER_CLOSED), __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t i = 0; i < s->round.cnt; i++) {
		shm_offer_put_source(offer, i, s->gets[i], s->at, s->round.of[i].len);
		shm_offer_put_dsts(offer, &s->round, i);
	}
	__atomic_store_n(&offer->cnt, s->round.cnt, __ATOMIC_RELAXED);
	__atomic_store_n(&offer->parts, s->round.parts, __ATOMIC_RELAXED);
	s->claim = shm_offer_word(s->gen, 1);
	__atomic_store_n(&offer->claim, s->claim, __ATOMIC_RELEASE);
}

/**
 * Accepts a value of the claim word: the sender may have claimed further parts, nothing else.
 * Returns false, and marks the peer, if the value is impossible.
 */
static bool shm_offer_accept(struct shm_share *s, uint64_t claim)
{
	if (claim >> 32 != s->gen || claim < s->claim || (uint32_t)claim > s->round.parts) {
		s->broken = true;
		return false;
	}
	s->claim = claim;
	return true;
}

uint32_t shm_offer_theirs(const struct shm_share *s)
{
	return (uint32_t)s->claim - s->mine;
}

uint32_t shm_offer_done(const struct shm_link *link, uint32_t gen)
{
	uint64_t done = __atomic_load_n(&link->ctrl->offer.done, __ATOMIC_ACQUIRE);

	return done >> 32 == gen ? (uint32_t)done : 0;
}

uint32_t shm_offer_claim(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	for (unsigned tries = SHM_CLAIM_TRIES; tries && (uint32_t)s->claim < s->round.parts;
	     tries--) {
		uint64_t claim = s->claim;

		if (__atomic_compare_exchange_n(&link->ctrl->offer.claim, &claim, claim + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			s->mine++;
			return (uint32_t)s->claim++;
		}
		if (!shm_offer_accept(s, claim))
			break;
	}
	return s->round.parts;
}

void shm_offer_revoke(struct shm_link *link)
{
	struct shm_offer *offer = &link->ctrl->offer;
	struct shm_share *s = &link->share;
	uint32_t used = (s->round.parts - 1) * s->round.cnt;

	shm_offer_accept(s, __atomic_exchange_n(&offer->claim,
						shm_offer_word(s->gen, SHM_OFFER_CLOSED),
						__ATOMIC_ACQ_REL));
	for (uint32_t i = 0; i < used; i++)
		__atomic_store_n(&offer->dst[i].iov_len, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	s->state = SHM_SHARE_REVOKED;
	s->since_ns = util_clock_ns();
	s->probed_ns = 0;
	s->owed_gen = s->gen;
	s->owed = shm_offer_theirs(s);
}

bool shm_offer_is_settled(struct shm_link *link)
{
	struct shm_share *s = &link->share;

	if (s->owed && (shm_offer_done(link, s->owed_gen) & ~SHM_OFFER_FAILED) == s->owed)
		s->owed = 0;
	return !s->owed;
}
