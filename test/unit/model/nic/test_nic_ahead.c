/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of payload gathered ahead: a missing fence shows, and a fence helps. */
#include "unit/model/nic/nic_bench.h"
#include "model/nic/nic_wqe.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TRIES = 200 };

static struct mdl_cq *cq_a, *cq_b;
static struct mdl_qp *a, *b;

static void setup(void)
{
	bench_open();
	cq_a = bench_cq(16, 64);
	cq_b = bench_cq(16, 64);
	a = bench_qp(MDL_QPT_RC, cq_a, NULL, 16);
	b = bench_qp(MDL_QPT_RC, cq_b, NULL, 16);
	bench_connect(a, b);
}

TestSuite(nic_ahead, .init = setup);

static void await(struct mdl_cq *cq)
{
	while (bench_op(bench_poll(cq)) == 0xff)
		nic_service(mdl_now_ns());
}

/* READs a word, then sends its target. Returns how often the old contents were sent. */
static uint32_t stale(uint8_t flags)
{
	uint8_t *source = bench.buf, *place = bench.buf + 4096, *got = bench.buf + 8192;
	uint32_t cnt = 0;

	for (int i = 0; i < TRIES; i++) {
		memset(source, 1, 8);
		memset(place, 0, 8);
		bench_recv(b, got, 8, bench.key);
		bench_put(a, &(struct bench_wr){ .opcode = NIC_OP_READ,
						 .raddr = (uintptr_t)source,
						 .rkey = bench.key,
						 .addr = place,
						 .len = 8 });
		bench_put(a,
			  &(struct bench_wr){
				  .opcode = NIC_OP_SEND, .flags = flags, .addr = place, .len = 8 });
		bench_record(a);
		bench_ring(a);
		await(cq_a);
		await(cq_b);
		cr_assert_eq(place[0], 1);
		cnt += got[0] == 0;
	}
	return cnt;
}

Test(nic_ahead, in_poll_mode_what_follows_a_read_may_be_old)
{
	uint32_t cnt;

	mdl_self.config.mode = MDL_MODE_POLL;
	cnt = stale(8);
	cr_expect(cnt > TRIES / 4 && cnt < TRIES * 3 / 4, "%u of %u", cnt, TRIES);
}

Test(nic_ahead, a_fence_waits)
{
	mdl_self.config.mode = MDL_MODE_POLL;
	cr_expect_eq(stale(8 | 0x80), 0);
	cr_expect_eq(stale(8 | 0x40), 0, "so does that for READs alone");
}

Test(nic_ahead, the_small_fence_does_not_wait_for_reads)
{
	mdl_self.config.mode = MDL_MODE_POLL;
	cr_expect_gt(stale(8 | 0x20), 0);
}

Test(nic_ahead, trap_mode_is_exact)
{
	cr_expect_eq(stale(8), 0);
}
