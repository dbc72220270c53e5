/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_round.h"

#include <criterion/criterion.h>

#include "shm_pair.h"

#define KIB(n) ((uint64_t)(n) << 10)

Test(shm_round, rounds_are_whole_then_halved_then_quartered)
{
	static const struct {
		uint32_t cnt;
		uint64_t len;
		uint32_t parts;
	} rows[] = {
		{ 1, 0, 1 },
		{ 1, SHM_ROUND_MIN - 1, 1 },
		{ 16, SHM_ROUND_MIN - 1, 1 },
		{ 1, SHM_ROUND_MIN, 2 },
		{ 2, SHM_ROUND_MIN, 2 },
		{ 1, SHM_ROUND_HALVES, 2 },
		{ 1, SHM_ROUND_HALVES + 1, 4 },
		{ 16, SHM_ROUND_LEN, 2 },
		{ 1, 4 * SHM_PART_MAX, 4 },
		{ 1, 4 * SHM_PART_MAX + 1, 5 },
		{ 1, KIB(1024), 8 },
		{ 1, SHM_ROUND_MAX, SHM_ROUND_PARTS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(shm_round_cut(rows[i].cnt, rows[i].len), rows[i].parts,
			     "%u gets, %lu bytes", rows[i].cnt, (unsigned long)rows[i].len);
}

Test(shm_round, a_get_that_the_receiver_copies_alone_has_longer_parts)
{
	uint64_t from, to;

	for (uint64_t len = 1; len <= SHM_ROUND_MAX; len += 1 + len / 7) {
		uint32_t parts = shm_round_cut_local(len);

		shm_part_of(len, parts, 0, &from, &to);
		cr_expect_leq(to - from, SHM_PART_LOCAL);
		cr_expect_gt((uint64_t)parts * SHM_PART_LOCAL, len - 1);
		cr_expect_lt((parts - 1) * (uint64_t)SHM_PART_LOCAL, len);
	}
}

/* Expects parts in order, without gaps or overlap, none longer than SHM_PART_MAX. */
static void expect_cover(uint32_t cnt, uint64_t len, uint64_t all)
{
	uint32_t parts = shm_round_cut(cnt, all);
	uint64_t at = 0, from, to;

	for (uint32_t i = 0; i < parts; i++) {
		shm_part_of(len, parts, i, &from, &to);
		cr_assert(from == at && to >= from && to <= len);
		cr_assert_leq(to - from, SHM_PART_MAX);
		at = to;
	}
	cr_assert_eq(at, len, "%u gets of %lu bytes", cnt, (unsigned long)len);
}

Test(shm_round, parts_cover_a_get)
{
	uint64_t seed = 0x70a27;

	for (uint64_t len = 0; len < KIB(300); len += 1 + len / 37)
		expect_cover(1, len, len);
	for (int i = 0; i < 20000; i++) {
		uint64_t len = pair_rand(&seed) % SHM_ROUND_LEN;

		expect_cover(2, len, SHM_ROUND_LEN);
		expect_cover(1, len << (i % 6), len << (i % 6));
	}
}

Test(shm_round, a_part_of_a_round_is_that_part_of_each_get)
{
	struct shm_round round = { .cnt = 3,
				   .parts = 2,
				   .of = { { 1000, 2000, 10000 },
					   { 1 << 20, 2 << 20, 4096 },
					   { 3 << 20, 4 << 20, 8192 } } };
	struct shm_vec vec;

	shm_round_part(&round, 1, &vec);
	cr_assert_eq(vec.cnt, 2, "the second get has no second half");
	cr_expect_eq(vec.len, 10000 - 8192 + 4096);
	cr_expect_eq((uintptr_t)vec.local[0].iov_base, 2000 + 8192);
	cr_expect_eq((uintptr_t)vec.remote[0].iov_base, 1000 + 8192);
	cr_expect_eq(vec.local[0].iov_len, 10000 - 8192);
	cr_expect_eq(vec.remote[0].iov_len, 10000 - 8192);
	cr_expect_eq((uintptr_t)vec.local[1].iov_base, (4 << 20) + 4096);
}

Test(shm_round, malformed_rounds_are_refused)
{
	static const struct {
		uint32_t cnt, parts;
		uint64_t len;
		bool is_sound;
	} rows[] = {
		{ 0, 2, 1, false },
		{ 1, 0, 1, false },
		{ 1, 1, 1, false }, /* nothing to share */
		{ SHM_ROUND_GETS + 1, 2, 1, false },
		{ UINT32_MAX, UINT32_MAX, 1, false },
		{ UINT32_MAX / 2 + 2, 2, 1, false },
		{ 1, 2, 2 * SHM_PART_MAX, true },
		{ 1, 2, 2 * SHM_PART_MAX + 1, false },
		{ SHM_ROUND_GETS, 2, KIB(16), true },
		{ SHM_ROUND_GETS, 8, KIB(16), true },
		{ SHM_ROUND_GETS, 9, KIB(16), false }, /* more ranges than an offer has */
		{ 1, SHM_ROUND_PARTS, SHM_ROUND_MAX, true },
		{ 1, SHM_ROUND_PARTS + 1, SHM_ROUND_MAX, false },
		{ 1, 2, UINT64_MAX, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(shm_round_is_sound(rows[i].cnt, rows[i].parts, rows[i].len),
			     rows[i].is_sound, "row %zu", i);
}
