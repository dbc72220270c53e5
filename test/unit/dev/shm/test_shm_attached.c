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
