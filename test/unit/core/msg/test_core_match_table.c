/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of the hash table of matching, with a scan of all objects as the oracle. */
#include "core/msg/core_match_table.h"

#include <criterion/criterion.h>

#include "support/rng.h"

#define KEYS    40u
#define OBJECTS 400u

struct object {
	struct util_list link;
	uint64_t tag, src;
	unsigned nth; /* step that added it; 0: not in the table */
};

static struct core_match_table table;
static struct object objects[OBJECTS];

/** Returns the oldest object with a key, by a scan of all objects. */
static struct object *oldest(uint64_t tag, uint64_t src)
{
	struct object *found = NULL;

	for (unsigned i = 0; i < OBJECTS; i++)
		if (objects[i].nth && objects[i].tag == tag && objects[i].src == src &&
		    (!found || objects[i].nth < found->nth))
			found = &objects[i];
	return found;
}

static void check(uint64_t tag, uint64_t src)
{
	struct util_list *first = core_match_table_first(&table, tag, src);

	cr_assert_eq(first ? UTIL_CONTAINER_OF(first, struct object, link) : NULL,
		     oldest(tag, src));
}

Test(core_match_table, the_oldest_object_of_a_key_is_found)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 5) };
	unsigned there = 0;

	for (unsigned step = 1; step < 30000; step++) {
		struct object *o = &objects[rng_below(&r, OBJECTS)];
		/* The table fills and empties in turn, so that it grows and closes gaps. */
		bool add = rng_chance(&r, step / 3000 % 2 ? 1 : 3, 4);

		if (add && !o->nth) {
			o->tag = rng_below(&r, KEYS);
			o->src = rng_below(&r, 3);
			o->nth = step;
			there++;
			cr_assert(core_match_table_push(&table, o->tag, o->src, &o->link));
		} else if (!add && o->nth) {
			o->nth = 0;
			there--;
			core_match_table_remove(&table, o->tag, o->src, &o->link);
		}
		check(rng_below(&r, KEYS + 1), rng_below(&r, 3));
		check(o->tag, o->src);
	}
	cr_expect_lt(there, OBJECTS);
	core_match_table_free(&table);
	cr_expect_null(table.slots);
}

Test(core_match_table, keys_with_the_same_slot_are_distinguished)
{
	uint64_t tag = 0, home = core_match_hash(0, 0) & 63;
	unsigned cnt = 0;

	/* All keys begin their probe in the same slot of the first, small table. */
	for (; cnt < 30; tag++) {
		if ((core_match_hash(tag, 0) & 63) != home)
			continue;
		objects[cnt] = (struct object){ .tag = tag, .nth = cnt + 1 };
		cr_assert(core_match_table_push(&table, tag, 0, &objects[cnt].link));
		cnt++;
	}
	cr_assert_eq(table.mask, 63);
	for (unsigned i = 0; i < cnt; i = i * 2 + 1) {
		core_match_table_remove(&table, objects[i].tag, 0, &objects[i].link);
		objects[i].nth = 0;
		for (unsigned k = 0; k < cnt; k++)
			check(objects[k].tag, 0);
	}
	core_match_table_free(&table);
}

Test(core_match_table, only_a_large_table_frees_its_memory)
{
	struct util_list link;

	cr_assert(core_match_table_push(&table, 1, 2, &link));
	core_match_table_remove(&table, 1, 2, &link);
	core_match_table_trim(&table);
	cr_expect_not_null(table.slots);
	core_match_table_free(&table);
}
