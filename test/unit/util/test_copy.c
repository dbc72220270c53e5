/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies of every short length, and gather, scatter and slice of random I/O vectors. */
#include <criterion/criterion.h>
#include <string.h>

#include "support/rng.h"
#include "util/copy.h"

#define LEN_MAX 100u

static void fill(uint8_t *buf, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(first + i);
}

Test(copy, every_length_and_offset_copies_its_bytes_and_no_others)
{
	uint8_t src[2 * LEN_MAX], dst[2 * LEN_MAX], want[2 * LEN_MAX];
	bool ok = true;

	fill(src, sizeof(src), 1);
	for (size_t len = 0; len <= LEN_MAX; len++) {
		for (size_t off = 0; off < 17; off++) {
			memset(dst, 0xEE, sizeof(dst));
			memset(want, 0xEE, sizeof(want));
			memcpy(want + off, src + 3, len);
			util_copy(dst + off, src + 3, len);
			ok = ok && !memcmp(dst, want, sizeof(dst));
		}
	}
	cr_assert(ok);
}

/* Fills iov with consecutive pieces of `buf` of random length, zero included. Returns the sum. */
static size_t cut(struct rng *rng, struct iovec *iov, size_t cnt, uint8_t *buf)
{
	size_t len = 0;

	for (size_t i = 0; i < cnt; i++) {
		iov[i].iov_base = buf + len;
		iov[i].iov_len = rng_below(rng, 20);
		len += iov[i].iov_len;
	}
	return len;
}

Test(copy, gather_and_scatter_agree_with_flat_memory)
{
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 3);
	struct rng rng = { seed };
	uint8_t flat[200], iov_bytes[200], got[200];
	bool ok = true;

	fill(flat, sizeof(flat), 1);
	for (int round = 0; round < 20000; round++) {
		struct iovec iov[6];
		size_t cnt = 1 + rng_below(&rng, 6);
		size_t total = cut(&rng, iov, cnt, iov_bytes);
		size_t skip = rng_below(&rng, total + 1);
		size_t len = rng_below(&rng, total - skip + 1);

		ok = ok && util_iov_len(iov, cnt) == total;
		memcpy(iov_bytes, flat, sizeof(flat));
		memset(got, 0, sizeof(got));
		util_iov_gather(got, iov, cnt, skip, len);
		ok = ok && !memcmp(got, flat + skip, len) && (len == 200 || !got[len]);
		memset(iov_bytes, 0xEE, sizeof(iov_bytes));
		memset(got, 0xEE, sizeof(got));
		memcpy(got + skip, flat, len);
		util_iov_scatter(iov, cnt, skip, flat, len);
		ok = ok && !memcmp(iov_bytes, got, sizeof(got));
	}
	cr_assert(ok, "COPYRPC_TEST_SEED=%llu", (unsigned long long)seed);
}

Test(copy, a_sum_is_bounded_and_no_overflow_hides)
{
	const size_t half = SIZE_MAX / 2 + 1;
	struct iovec iov[3] = { { NULL, half }, { NULL, half }, { NULL, 20 } };
	size_t len = 7;

	cr_expect(!util_iov_sum(iov, 3, SIZE_MAX, &len), "wraps to 20");
	cr_expect(!util_iov_sum(iov, 2, SIZE_MAX, &len), "wraps to 0");
	cr_expect(!util_iov_sum(iov, 1, half - 1, &len));
	cr_expect_eq(len, 7, "unchanged");
	cr_expect(util_iov_sum(iov, 1, half, &len));
	cr_expect_eq(len, half);
	iov[1].iov_len = half - 1;
	cr_expect(util_iov_sum(iov, 2, SIZE_MAX, &len));
	cr_expect_eq(len, SIZE_MAX);
	cr_expect(util_iov_sum(iov, 0, 0, &len));
	cr_expect_eq(len, 0);
}

Test(copy, a_slice_covers_the_same_bytes)
{
	struct rng rng = { rng_env("COPYRPC_TEST_SEED", 5) };
	uint8_t bytes[200];
	bool ok = true;

	for (int round = 0; round < 20000; round++) {
		struct iovec iov[6], out[6];
		size_t cnt = 1 + rng_below(&rng, 6);
		size_t total = cut(&rng, iov, cnt, bytes);
		size_t skip = rng_below(&rng, total + 1);
		size_t len = rng_below(&rng, total - skip + 1);
		size_t out_cnt = util_iov_slice(out, 6, iov, cnt, skip, len);

		ok = ok && util_iov_len(out, out_cnt) == len && (!!out_cnt == !!len);
		for (size_t i = 0, at = skip; i < out_cnt; at += out[i++].iov_len)
			ok = ok && out[i].iov_base == bytes + at && out[i].iov_len;
	}
	cr_assert(ok);
}

Test(copy, a_slice_stops_at_out_max)
{
	uint8_t bytes[30];
	struct iovec iov[3] = { { bytes, 10 }, { bytes + 10, 10 }, { bytes + 20, 10 } };
	struct iovec out[2];

	cr_assert_eq(util_iov_slice(out, 2, iov, 3, 5, 25), 2);
	cr_assert_eq(util_iov_len(out, 2), 15);
	cr_assert_eq(util_iov_slice(out, 0, iov, 3, 5, 25), 0);
	cr_assert_eq(util_iov_slice(out, 2, iov, 3, 30, 0), 0);
}
