/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of memory access: bounds for all numbers, and copies between pieces of any sizes. */
#include "model/fabric/mdl_table.h"
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_mem.h"
#include "model/nic/nic_rwqe.h"
#include "model/nic/nic_state.h"

#include <criterion/criterion.h>
#include <string.h>

enum { PD = 7 };

TestSuite(nic_mem, .init = bench_open);

static struct mdl_mr *region(uint32_t key)
{
	return mdl_mr_find(key);
}

static bool inside(uint32_t key, uint64_t addr, uint64_t len)
{
	return nic_mem_find(key, 0, PD, addr, len, 0) != NULL;
}

Test(nic_mem, ranges_at_the_edges)
{
	uint64_t at = (uintptr_t)bench.buf;

	cr_expect(inside(bench.key, at, 0));
	cr_expect(inside(bench.key, at, BENCH_BUF));
	cr_expect(inside(bench.key, at + BENCH_BUF - 1, 1));
	cr_expect_not(inside(bench.key, at, BENCH_BUF + 1));
	cr_expect_not(inside(bench.key, at - 1, 1));
	cr_expect_not(inside(bench.key, at + BENCH_BUF, 1));
	cr_expect_not(inside(bench.key, at + 1, UINT64_MAX), "the end wraps around");
	cr_expect_not(inside(bench.key, UINT64_MAX, 2), "so does this");
	cr_expect_not(inside(bench.key, 0, UINT64_MAX));
}

Test(nic_mem, a_region_at_the_end_of_the_addresses)
{
	uint32_t key = bench_mr(bench.buf, 4096, 0xf);

	region(key)->addr = UINT64_MAX - 4095;
	cr_expect(inside(key, UINT64_MAX - 4095, 4096));
	cr_expect_not(inside(key, UINT64_MAX - 4094, 4096));
}

Test(nic_mem, keys_rights_owners_and_domains)
{
	uint32_t key = bench_mr(bench.buf, 4096, MDL_ACCESS_LOCAL_WRITE | MDL_ACCESS_REMOTE_READ);
	uint64_t at = (uintptr_t)bench.buf;

	cr_expect(nic_mem_find(key, 0, PD, at, 8, MDL_ACCESS_REMOTE_READ));
	cr_expect_not(nic_mem_find(key, 0, PD, at, 8, MDL_ACCESS_REMOTE_WRITE));
	cr_expect_not(nic_mem_find(key, 1, PD, at, 8, 0), "another process");
	cr_expect_not(nic_mem_find(key, 0, PD + 1, at, 8, 0), "another domain");
	cr_expect_not(nic_mem_find(key ^ 1, 0, PD, at, 8, 0), "another key");
	cr_expect_not(nic_mem_find(0, 0, PD, at, 8, 0));
	mdl_table_hide(region(key));
	cr_expect_not(nic_mem_find(key, 0, PD, at, 8, 0), "deregistered");
}

/* Cuts SUM bytes into pieces, the first of `first` bytes, of the region or of plain bytes. */
static void cut(struct nic_spans *spans, uint8_t *at, uint32_t sum, uint32_t first, bool regions)
{
	uint32_t part = first;

	for (spans->cnt = 0; sum; part = part * 2 + 1) {
		part = part < sum ? part : sum;
		spans->span[spans->cnt++] =
			(struct nic_span){ .mr = regions ? region(bench.key) : NULL,
					   .bytes = at,
					   .addr = (uintptr_t)at,
					   .len = part };
		at += part;
		sum -= part;
	}
}

Test(nic_mem, pieces_of_any_sizes_fit_together)
{
	uint8_t *from = bench.buf, *to = bench.buf + 4096;

	for (uint32_t first = 1; first < 40; first++) {
		for (uint32_t other = 1; other < 40; other += 3) {
			struct nic_spans source, target;
			uint32_t writes = 0;

			for (uint32_t i = 0; i < 600; i++)
				from[i] = i * first;
			memset(to, 0, 700);
			cut(&source, from, 600, first, other & 1);
			cut(&target, to, 600, other, true);
			cr_assert_eq(nic_mem_copy(&target, &source, 600, &writes), 0);
			cr_assert_arr_eq(to, from, 600);
			cr_assert_eq(to[600], 0);
			cr_assert_eq(writes, target.cnt);
		}
	}
}

Test(nic_mem, a_message_longer_than_its_place_is_not_done)
{
	struct nic_spans source, target;
	uint32_t writes = 0;

	cut(&source, bench.buf, 100, 10, true);
	cut(&target, bench.buf + 4096, 99, 10, true);
	cr_expect_neq(nic_mem_copy(&target, &source, 100, &writes), 0);
}

Test(nic_mem, a_datagram_skips_its_header_over_segments)
{
	struct mdl_qp *qp = bench_qp(MDL_QPT_UD, bench_cq(4, 64), NULL, 4);
	struct nic_rwqe rwqe = { .seg_cnt = 3 };
	struct nic_spans spans;

	for (uint32_t i = 0; i < 3; i++)
		rwqe.seg[i] = (struct nic_scatter){ .addr = (uintptr_t)bench.buf + i * 1000,
						    .len = 30,
						    .lkey = bench.key };
	cr_assert(nic_mem_scatter(qp, &rwqe, 40, 45, &spans));
	cr_expect_eq(spans.cnt, 2);
	cr_expect_eq(spans.span[0].addr, (uintptr_t)bench.buf + 1010);
	cr_expect_eq(spans.span[0].len, 20);
	cr_expect_eq(spans.span[1].len, 25);
	cr_expect_not(nic_mem_scatter(qp, &rwqe, 40, 51, &spans), "one byte too many");
}
