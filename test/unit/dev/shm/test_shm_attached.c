/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids of attached links: dev/shm/shm_attached.h. */
#include "dev/shm/shm_attached.h"

#include <criterion/criterion.h>

#include "support/rng.h"

Test(shm_attached, ids_are_those_that_were_added_and_not_removed)
{
	static struct shm_attached attached;
	static bool model[SHM_LINKS_MAX];
	struct rng rng = { .state = 3 };

	for (int step = 0; step < 20000; step++) {
		uint32_t id = (uint32_t)rng_below(&rng, SHM_LINKS_MAX);

		model[id] = !model[id];
		if (model[id])
			shm_attached_add(&attached, id);
		else
			shm_attached_remove(&attached, id);
		cr_assert_eq(attached.ids[id / 64] >> id % 64 & 1, model[id]);
		cr_assert_eq(attached.leaves >> id / 64 & 1, attached.ids[id / 64] != 0);
	}
}

Test(shm_attached, next_yields_every_id_in_turn)
{
	static struct shm_attached attached;
	static const uint32_t ids[] = { 0, 1, 63, 64, 200, 4095 };
	uint32_t id = 4095, i;

	for (i = 0; i < 6; i++)
		shm_attached_add(&attached, ids[i]);
	for (i = 0; i < 18; i++) {
		id = shm_attached_next(&attached, id);
		cr_expect_eq(id, ids[i % 6]);
	}
	cr_expect_eq(shm_attached_next(&attached, 65), 200, "from an id that is not attached");
	for (i = 0; i < 5; i++)
		shm_attached_remove(&attached, ids[i]);
	cr_expect_eq(shm_attached_next(&attached, 4095), 4095);
	cr_expect_eq(shm_attached_next(&attached, 4000), 4095);
	cr_expect_eq(shm_attached_next(&attached, 7), 4095);
}
