/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Generator of patterns: see kv_pattern.h. Random numbers are those of splitmix64. Zipf's law is
 * drawn by bisection of the sums of its weights, over the keys of one node: key 0 is the most
 * frequent one on each node.
 */
#include "kv_pattern.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct kv_random {
	uint64_t state;
};

static uint64_t kv_random_next(struct kv_random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Returns a number in [0, 1). */
static double kv_random_unit(struct kv_random *r)
{
	return (double)(kv_random_next(r) >> 11) * 0x1p-53;
}

/* Returns the sums of the weights of keys 0..keys-1, the last one 1; NULL without memory. */
static double *kv_zipf_sums(uint64_t keys, double exponent)
{
	double *sums = malloc(keys * sizeof(*sums)), sum = 0;

	if (!sums)
		return NULL;
	for (uint64_t i = 0; i < keys; i++)
		sums[i] = sum += pow((double)(i + 1), -exponent);
	for (uint64_t i = 0; i < keys; i++)
		sums[i] /= sum;
	return sums;
}

/* Returns the first key whose sum exceeds `at`. */
static uint64_t kv_zipf_key(const double *sums, uint64_t keys, double at)
{
	uint64_t low = 0, high = keys - 1;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (sums[mid] > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static uint32_t kv_pattern_rank(const struct kv_mix *mix, struct kv_random *r)
{
	if (mix->pinned)
		return mix->first;
	if (!mix->remote_only || mix->ranks == 1)
		return (uint32_t)(kv_random_next(r) % mix->ranks);
	return (uint32_t)((mix->self + 1 + kv_random_next(r) % (mix->ranks - 1)) % mix->ranks);
}

int kv_pattern_init(struct kv_pattern *pattern, const struct kv_mix *mix, uint32_t client)
{
	struct kv_random r = { mix->seed * 0x9e3779b97f4a7c15ull + client };
	double *sums = mix->zipf > 0 ? kv_zipf_sums(mix->keys, mix->zipf) : NULL;

	pattern->len = mix->len;
	pattern->steps = malloc(mix->len * sizeof(*pattern->steps));
	if (!pattern->steps || (mix->zipf > 0 && !sums)) {
		free(sums);
		kv_pattern_fini(pattern);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < mix->len; i++) {
		struct kv_step *step = &pattern->steps[i];

		step->rank = kv_pattern_rank(mix, &r);
		step->key = sums ? kv_zipf_key(sums, mix->keys, kv_random_unit(&r))
				 : kv_random_next(&r) % mix->keys;
		step->is_get = kv_random_unit(&r) < mix->read_ratio;
	}
	free(sums);
	return 0;
}

void kv_pattern_fini(struct kv_pattern *pattern)
{
	free(pattern->steps);
	pattern->steps = NULL;
}
