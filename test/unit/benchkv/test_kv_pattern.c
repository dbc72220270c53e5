/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Patterns: they follow their mix, and the same seed gives the same pattern. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "benchkv/kv_pattern.h"

static struct kv_mix mix_of(void)
{
	return (struct kv_mix){
		.ranks = 4,
		.self = 1,
		.keys = 100,
		.read_ratio = 0.5,
		.seed = 3,
		.len = 20000,
	};
}

static struct kv_pattern make(const struct kv_mix *mix, uint32_t client)
{
	struct kv_pattern pattern;

	cr_assert_eq(kv_pattern_init(&pattern, mix, client), 0);
	cr_assert_eq(pattern.len, mix->len);
	return pattern;
}

static unsigned gets(const struct kv_pattern *pattern)
{
	unsigned cnt = 0;

	for (uint32_t i = 0; i < pattern->len; i++)
		cnt += pattern->steps[i].is_get;
	return cnt;
}

Test(kv_pattern, all_keys_and_nodes_are_within_their_bounds_and_asked)
{
	struct kv_mix mix = mix_of();
	struct kv_pattern pattern = make(&mix, 0);
	unsigned ranks[4] = { 0 }, keys[100] = { 0 };

	for (uint32_t i = 0; i < pattern.len; i++) {
		cr_assert_lt(pattern.steps[i].rank, 4);
		cr_assert_lt(pattern.steps[i].key, 100);
		ranks[pattern.steps[i].rank]++;
		keys[pattern.steps[i].key]++;
	}
	for (unsigned i = 0; i < 4; i++)
		cr_expect(ranks[i] > 4500 && ranks[i] < 5500, "node %u: %u", i, ranks[i]);
	for (unsigned i = 0; i < 100; i++)
		cr_expect(keys[i] > 100 && keys[i] < 300, "key %u: %u", i, keys[i]);
	kv_pattern_fini(&pattern);
}

Test(kv_pattern, the_share_of_gets_is_the_read_ratio)
{
	static const double ratio[] = { 0, 0.1, 0.5, 0.95, 1 };
	struct kv_mix mix = mix_of();

	for (unsigned i = 0; i < 5; i++) {
		struct kv_pattern pattern;

		mix.read_ratio = ratio[i];
		pattern = make(&mix, 0);
		cr_expect(fabs(gets(&pattern) / (double)mix.len - ratio[i]) < 0.02, "%g", ratio[i]);
		kv_pattern_fini(&pattern);
	}
}

Test(kv_pattern, the_same_seed_and_client_give_the_same_pattern_others_another)
{
	struct kv_mix mix = mix_of();
	struct kv_pattern a = make(&mix, 5), b = make(&mix, 5), c = make(&mix, 6), d;
	size_t bytes = mix.len * sizeof(*a.steps);
	unsigned same_c = 0, same_d = 0;

	mix.seed++;
	d = make(&mix, 5);
	for (uint32_t i = 0; i < mix.len; i++) {
		cr_assert(a.steps[i].key == b.steps[i].key && a.steps[i].rank == b.steps[i].rank &&
			  a.steps[i].is_get == b.steps[i].is_get);
		same_c += a.steps[i].key == c.steps[i].key;
		same_d += a.steps[i].key == d.steps[i].key;
	}
	cr_expect_lt(same_c, mix.len / 20);
	cr_expect_lt(same_d, mix.len / 20);
	cr_expect_gt(bytes, 0);
	kv_pattern_fini(&a);
	kv_pattern_fini(&b);
	kv_pattern_fini(&c);
	kv_pattern_fini(&d);
}

Test(kv_pattern, remote_only_never_asks_the_own_node_unless_it_is_alone)
{
	struct kv_mix mix = mix_of();
	struct kv_pattern pattern;

	mix.remote_only = true;
	pattern = make(&mix, 0);
	for (uint32_t i = 0; i < pattern.len; i++)
		cr_assert_neq(pattern.steps[i].rank, mix.self);
	kv_pattern_fini(&pattern);
	mix.ranks = 1;
	mix.self = 0;
	pattern = make(&mix, 0);
	cr_expect_eq(pattern.steps[0].rank, 0);
	kv_pattern_fini(&pattern);
}

Test(kv_pattern, a_pinned_client_asks_one_node)
{
	struct kv_mix mix = mix_of();
	struct kv_pattern pattern;

	mix.pinned = true;
	mix.first = 2;
	pattern = make(&mix, 0);
	for (uint32_t i = 0; i < pattern.len; i++)
		cr_assert_eq(pattern.steps[i].rank, 2);
	kv_pattern_fini(&pattern);
}

Test(kv_pattern, zipf_keys_have_the_frequencies_of_the_law)
{
	struct kv_mix mix = mix_of();
	struct kv_pattern pattern;
	unsigned cnt[100] = { 0 };
	double sum = 0;

	mix.zipf = 1;
	mix.len = 100000;
	pattern = make(&mix, 0);
	for (uint32_t i = 0; i < pattern.len; i++)
		cnt[pattern.steps[i].key]++;
	for (unsigned i = 1; i <= 100; i++)
		sum += 1.0 / i;
	for (unsigned i = 0; i < 10; i++) {
		double expected = mix.len / (sum * (i + 1));

		cr_expect(fabs(cnt[i] - expected) < 0.1 * expected, "key %u: %u", i, cnt[i]);
	}
	kv_pattern_fini(&pattern);
}
