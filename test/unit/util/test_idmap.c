/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids find their object while in use, and nothing before and after. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "support/rng.h"
#include "util/idmap.h"

#define SLOTS 64u /* of a table that has not grown */

static int object; /* target of the pointers */

Test(idmap, an_empty_map_finds_nothing)
{
	struct util_idmap map;

	util_idmap_init(&map);
	cr_assert_null(util_idmap_lookup(&map, 0));
	cr_assert_null(util_idmap_lookup(&map, UINT32_MAX));
	util_idmap_fini(&map);
}

Test(idmap, ids_that_were_never_assigned_find_nothing)
{
	struct util_idmap map;
	uint32_t id = 0;

	util_idmap_init(&map);
	cr_assert_eq(util_idmap_alloc(&map, &object, &id), 0);
	cr_assert_eq(util_idmap_lookup(&map, id), &object);
	cr_assert_null(util_idmap_lookup(&map, id + 1), "a free slot");
	cr_assert_null(util_idmap_lookup(&map, id + SLOTS), "no slot");
	cr_assert_null(util_idmap_lookup(&map, id ^ 1u << UTIL_IDMAP_SLOT_BITS), "generation");
	cr_assert_null(util_idmap_lookup(&map, id | 1u << 31), "bit 31");
	util_idmap_fini(&map);
}

Test(idmap, ids_have_31_bits)
{
	struct util_idmap map;
	uint32_t id = 0;

	util_idmap_init(&map);
	for (int i = 0; i < 300000; i++) {
		if (util_idmap_alloc(&map, &object, &id) || id >> 31)
			break;
		util_idmap_release(&map, id);
	}
	cr_assert_eq(id >> 31, 0);
	cr_assert_eq(map.used_cnt, 0);
	cr_assert_eq(map.slot_cnt, SLOTS);
	util_idmap_fini(&map);
}

/* One slot stays in use; the other 63 are reused in turn, 2048 generations each. */
Test(idmap, an_id_repeats_only_after_every_generation_of_every_free_slot)
{
	uint32_t turns = (SLOTS - 1) << UTIL_IDMAP_GEN_BITS;
	struct util_idmap map;
	uint32_t kept = 0, old = 0, id;
	uint32_t i;

	util_idmap_init(&map);
	cr_assert_eq(util_idmap_alloc(&map, &object, &kept), 0);
	cr_assert_eq(util_idmap_alloc(&map, &object, &old), 0);
	util_idmap_release(&map, old);
	for (i = 1; i < turns; i++) {
		if (util_idmap_lookup(&map, old) || util_idmap_alloc(&map, &object, &id))
			break;
		util_idmap_release(&map, id);
	}
	cr_assert_eq(i, turns);
	cr_assert_eq(util_idmap_alloc(&map, &object, &id), 0);
	cr_assert_eq(id, old);
	cr_assert_eq(util_idmap_lookup(&map, kept), &object);
	util_idmap_fini(&map);
}

/* More ids than the initial table: notes move with it, and a reused slot has its own note. */
Test(idmap, a_note_stays_as_long_as_its_id)
{
	uint32_t ids[3 * SLOTS], i;
	struct util_idmap map;

	util_idmap_init(&map);
	for (i = 0; i < 3 * SLOTS; i++)
		cr_assert_eq(util_idmap_alloc_noted(&map, &object, ~i, &ids[i]), 0);
	for (i = 0; i < 3 * SLOTS; i += 2) {
		util_idmap_release(&map, ids[i]);
		cr_assert_null(util_idmap_lookup(&map, ids[i]));
	}
	for (i = 0; i < 3 * SLOTS; i += 2)
		cr_assert_eq(util_idmap_alloc_noted(&map, &object, i, &ids[i]), 0);
	for (i = 0; i < 3 * SLOTS; i++) {
		cr_assert_eq(util_idmap_lookup(&map, ids[i]), &object);
		cr_expect_eq(util_idmap_note(&map, ids[i]), i % 2 ? ~i : i);
	}
	util_idmap_fini(&map);
}

Test(idmap, the_map_holds_two_to_the_twenty_ids_then_returns_eagain)
{
	struct util_idmap map;
	uint32_t id, last = 0;
	uint32_t i;

	util_idmap_init(&map);
	for (i = 0; i < UTIL_IDMAP_MAX; i++) {
		if (util_idmap_alloc(&map, (void *)(uintptr_t)(1 + i), &last))
			break;
	}
	cr_assert_eq(i, UTIL_IDMAP_MAX);
	cr_assert_eq(util_idmap_alloc(&map, &object, &id), -FI_EAGAIN);
	cr_assert_eq(map.used_cnt, UTIL_IDMAP_MAX);
	util_idmap_release(&map, last);
	cr_assert_eq(util_idmap_alloc(&map, &object, &id), 0);
	cr_assert_null(util_idmap_lookup(&map, last));
	cr_assert_eq(util_idmap_lookup(&map, id), &object);
	util_idmap_fini(&map);
}

#define LIVE 500
#define GONE 64

Test(idmap, random_operations_find_exactly_the_ids_in_use)
{
	static uint32_t ids[LIVE], gone[GONE];
	static bool live[LIVE];
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 7);
	struct rng rng = { seed };
	struct util_idmap map;
	unsigned gone_cnt = 0;
	bool ok = true;

	util_idmap_init(&map);
	for (int step = 0; step < 100000; step++) {
		unsigned i = (unsigned)rng_below(&rng, LIVE);

		if (live[i]) {
			ok = ok && util_idmap_lookup(&map, ids[i]) == &ids[i];
			util_idmap_release(&map, ids[i]);
			gone[gone_cnt++ % GONE] = ids[i];
		} else {
			ok = ok && !util_idmap_alloc(&map, &ids[i], &ids[i]);
		}
		live[i] = !live[i];
		i = (unsigned)rng_below(&rng, GONE);
		ok = ok && (i >= gone_cnt || !util_idmap_lookup(&map, gone[i]));
	}
	cr_assert(ok, "COPYRPC_TEST_SEED=%llu", (unsigned long long)seed);
	util_idmap_fini(&map);
}
