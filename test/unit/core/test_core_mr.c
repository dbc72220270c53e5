/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Regions: keys, rights, bounds (fi_mr(3)); and the table against a list. */
#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_cntr.h"
#include "core/core_dom.h"
#include "core/core_mr.h"
#include "support/rng.h"

#define BOTH (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct core_dom dom;
static uint8_t mem[64];

static void setup(void)
{
	dom.mrs = &dom.own_mrs;
	core_mr_table_init(dom.mrs);
}

static void teardown(void)
{
	core_mr_table_fini(dom.mrs);
}

TestSuite(core_mr, .init = setup, .fini = teardown);

static void region(struct core_mr *mr, uint64_t key, uint64_t access, uint64_t base, size_t len)
{
	memset(mr, 0, sizeof(*mr));
	mr->key = key;
	mr->access = access;
	mr->base = base;
	mr->len = len;
	mr->iov_cnt = 1;
	mr->iov[0] = (struct iovec){ mem, len };
}

/** Returns the result of core_mr_reach_iov and the first buffer. */
static int reach(uint64_t key, uint64_t addr, size_t len, uint64_t access, void **ptr)
{
	struct iovec iov[CORE_MR_IOV_MAX];
	struct core_mr *mr;
	size_t cnt;
	int ret = core_mr_reach_iov(&dom, key, addr, len, access, iov, &cnt, &mr);

	if (!ret)
		*ptr = iov[0].iov_base;
	return ret;
}

Test(core_mr, a_region_is_reached_and_nothing_outside)
{
	static const uint64_t bases[] = { 0, 0x1000, UINT64_MAX - 31 };
	struct core_mr mr;
	void *ptr;

	for (unsigned b = 0; b < 3; b++) {
		uint64_t base = bases[b];

		region(&mr, 7, BOTH, base, 32);
		cr_assert_eq(core_mr_add(&dom, &mr, false), 0);
		cr_expect_eq(reach(7, base, 32, BOTH, &ptr), 0);
		cr_expect_eq(ptr, mem);
		cr_expect_eq(reach(7, base + 31, 1, FI_REMOTE_READ, &ptr), 0);
		cr_expect_eq(ptr, mem + 31);
		cr_expect_eq(reach(7, base, 33, FI_REMOTE_READ, &ptr), -FI_EINVAL);
		cr_expect_eq(reach(7, base + 31, 2, FI_REMOTE_READ, &ptr), -FI_EINVAL);
		cr_expect_eq(reach(7, base + 1, SIZE_MAX, FI_REMOTE_READ, &ptr), -FI_EINVAL);
		cr_expect_eq(reach(7, base + 31, SIZE_MAX - 30, FI_REMOTE_READ, &ptr), -FI_EINVAL);
		cr_expect_eq(reach(7, base - 1, 1, FI_REMOTE_READ, &ptr), -FI_EINVAL);
		cr_expect_eq(reach(7, base + 33, 0, FI_REMOTE_READ, &ptr), -FI_EINVAL);
		cr_expect_eq(reach(8, base, 1, FI_REMOTE_READ, &ptr), -FI_EKEYREJECTED);
		core_mr_remove(&dom, &mr);
		cr_expect_eq(reach(7, base, 1, FI_REMOTE_READ, &ptr), -FI_EKEYREJECTED);
	}
}

Test(core_mr, rights_are_those_of_the_registration)
{
	static const uint64_t rights[] = { 0, FI_REMOTE_READ, FI_REMOTE_WRITE, BOTH };
	struct core_mr mr;
	void *ptr;

	for (unsigned has = 0; has < 4; has++) {
		region(&mr, 1, rights[has] | FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 8);
		cr_assert_eq(core_mr_add(&dom, &mr, false), 0);
		for (unsigned needs = 1; needs < 4; needs++)
			cr_expect_eq(reach(1, 0, 8, rights[needs], &ptr), !has ? -FI_EKEYREJECTED
									  : (needs & ~has)
										  ? -FI_EACCES
										  : 0);
		core_mr_remove(&dom, &mr);
	}
}

Test(core_mr, buffers_of_a_region_are_contiguous_for_peers)
{
	struct core_mr mr, *found;
	struct iovec iov[CORE_MR_IOV_MAX];
	size_t cnt, from, len;
	uint8_t seen[10];
	void *ptr;

	region(&mr, 3, BOTH, 100, 10);
	mr.iov_cnt = 4;
	mr.iov[0] = (struct iovec){ mem + 40, 3 };
	mr.iov[1] = (struct iovec){ mem, 0 };
	mr.iov[2] = (struct iovec){ mem + 20, 6 };
	mr.iov[3] = (struct iovec){ mem + 10, 1 };
	for (unsigned i = 0; i < 10; i++)
		mem[i < 3 ? 40 + i : i < 9 ? 17 + i : 10] = (uint8_t)i;
	cr_assert_eq(core_mr_add(&dom, &mr, false), 0);
	for (from = 0; from <= 10; from++) {
		for (len = 0; len <= 10 - from; len++) {
			size_t at = 0;

			cr_assert_eq(core_mr_reach_iov(&dom, 3, 100 + from, len, BOTH, iov, &cnt,
						       &found),
				     0);
			cr_expect_eq(found, &mr);
			for (size_t i = 0; i < cnt; at += iov[i++].iov_len)
				memcpy(seen + at, iov[i].iov_base, iov[i].iov_len);
			cr_assert_eq(at, len);
			for (size_t i = 0; i < len; i++)
				cr_assert_eq(seen[i], from + i);
		}
	}
	cr_expect_eq(reach(3, 103, 6, BOTH, &ptr), 0);
	cr_expect_eq(ptr, mem + 20);
	core_mr_remove(&dom, &mr);
}

Test(core_mr, keys_that_the_domain_chooses_are_unique)
{
	struct core_mr mr[3];

	for (unsigned i = 0; i < 3; i++) {
		region(&mr[i], 42, i == 1 ? 0 : BOTH, 0, 1);
		cr_assert_eq(core_mr_add(&dom, &mr[i], true), 0);
	}
	cr_expect_neq(mr[0].key, mr[2].key);
	cr_expect_neq(mr[0].key, mr[1].key);
	core_mr_remove(&dom, &mr[0]);
	core_mr_remove(&dom, &mr[1]); /* was never in the table */
	core_mr_remove(&dom, &mr[2]);
	cr_expect_eq(dom.mrs->cnt, 0);
}

/* Keys do not reveal one another: each bit is set in about half of them. */
Test(core_mr, keys_that_the_domain_chooses_cannot_be_guessed)
{
	enum { CNT = 1000 };
	unsigned set[64] = { 0 }, steps = 0;
	struct core_mr mr;
	uint64_t last = 0;

	for (unsigned i = 0; i < CNT; i++) {
		region(&mr, 42, BOTH, 0, 1);
		cr_assert_eq(core_mr_add(&dom, &mr, true), 0);
		for (unsigned bit = 0; bit < 64; bit++)
			set[bit] += mr.key >> bit & 1;
		steps += mr.key - last < 1u << 31;
		last = mr.key;
		core_mr_remove(&dom, &mr);
	}
	for (unsigned bit = 0; bit < 64; bit++)
		cr_expect(set[bit] > CNT / 3 && set[bit] < CNT - CNT / 3, "bit %u: %u", bit,
			  set[bit]);
	cr_expect_eq(steps, 0);
}

/* Few keys, so that they collide; many regions, so that the table grows. */
Test(core_mr, the_table_agrees_with_a_list)
{
	enum { CNT = 200, KEYS = 300, STEPS = 20000 };
	static struct core_mr mr[CNT];
	static int owner[KEYS]; /* index + 1 */
	struct rng rng = { .state = 1 };
	void *ptr;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)(rng_below(&rng, CNT));
		unsigned key = (unsigned)(rng_below(&rng, KEYS));

		if (mr[i].listed) {
			owner[mr[i].key] = 0;
			core_mr_remove(&dom, &mr[i]);
			cr_assert_not(mr[i].listed);
			continue;
		}
		region(&mr[i], key, BOTH, 0, 1 + i % 60);
		cr_assert_eq(core_mr_add(&dom, &mr[i], false), owner[key] ? -FI_ENOKEY : 0);
		if (mr[i].listed)
			owner[key] = (int)i + 1;
		key = (unsigned)(rng_below(&rng, KEYS));
		cr_assert_eq(reach(key, 0, owner[key] ? mr[owner[key] - 1].len : 1, BOTH, &ptr),
			     owner[key] ? 0 : -FI_EKEYREJECTED);
	}
	for (unsigned i = 0; i < CNT; i++)
		core_mr_remove(&dom, &mr[i]);
	cr_expect_eq(dom.mrs->cnt, 0);
}
