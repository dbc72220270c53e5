/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Words of an offer that the peer may write. Revocation, which takes a sender that stops, is tested
 * in test_shm_share_ends.c, and claims of both ends in test_shm_share.c.
 */
#include "dev/shm/shm_offer.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "shm_far.h"
#include "util/param.h"

TestSuite(shm_offer, .fini = pair_fini, .timeout = 200);

/** Words that no sender writes which follows the rules, during the receiver's generation `gen`. */
static uint64_t impossible(int which, uint32_t gen, bool *is_claim)
{
	const uint64_t claims[] = { 0,
				    UINT64_MAX,
				    shm_offer_word(gen, 0),
				    shm_offer_word(gen, 100000),
				    shm_offer_word(gen + 1, 2),
				    shm_offer_word(gen, SHM_OFFER_CLOSED) };
	const uint64_t dones[] = { shm_offer_word(gen, 100000), shm_offer_word(gen, UINT32_MAX),
				   shm_offer_word(gen, 1) };

	*is_claim = which < 6;
	return *is_claim ? claims[which] : dones[which - 6];
}

Test(shm_offer, impossible_words_end_the_link_and_nothing_else)
{
	struct shm_dev *da = pair_dev(), *db = pair_dev();
	static uint8_t from[SHM_PART_MAX * 4], to[SHM_PART_MAX * 4];
	struct iovec iov = { to, sizeof(to) };

	util_params.single_copy = 1;
	for (int which = 0; which < 9; which++) {
		struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(to) };
		struct transport a, b;
		struct dev_event ev = { 0 };
		uint64_t word;
		bool is_claim;

		pair_open(da, &a, 1024, db, &b, 1024);
		g.remote_addr = (uintptr_t)from;
		cr_assert_eq(a.link->ops->get(a.link, &g), 0);
		while (!pair_shm_link(&a)->share.mine) /* the first part of four */
			cr_assert(!shm_dev_ops.poll((struct dev *)da, &ev));
		word = impossible(which, pair_shm_link(&a)->share.gen, &is_claim);
		if (is_claim)
			pair_shm_link(&a)->ctrl->offer.claim = word;
		else
			pair_shm_link(&a)->ctrl->offer.done = word;
		while (!shm_dev_ops.poll((struct dev *)da, &ev) && far_patient())
			;
		cr_expect_eq(ev.kind, DEV_EV_DOWN, "word %d", which);
		cr_expect_eq(ev.status, -FI_EIO);
		cr_expect_eq(ev.link, a.link);
		cr_expect(a.link->ops->withdraw(a.link));
		cr_expect(!shm_dev_ops.poll((struct dev *)da, &ev), "the last event");
		pair_close(&a, &b);
	}
}
